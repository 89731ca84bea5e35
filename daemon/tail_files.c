#include "tail_files_own.h"

#include "base/arr.h"
#include "base/mem.h"
#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define POLL_MOST_WATCHED 8000u /* ms */
#define HINTS_REST_US (10 * FF_SECOND / 1000)
#define HUNG_US (5 * FF_SECOND)

uint64_t files_hash(struct ff_str s)
{
	return ff_str_hash(s, FF_HASH_INIT);
}

/* ---- notices */

struct files_notice *files_notice(enum files_notice_kind kind, size_t bytes)
{
	struct files_notice *n = ff_xcalloc(1, sizeof *n + bytes);
	n->kind = kind;
	n->bytes = (struct ff_str){(char *)(n + 1), bytes};
	return n;
}

/* Gives it to the loop. */
void files_post(struct files *f, struct files_notice *n)
{
	uv_mutex_lock(&f->lock);
	*f->notices_end = n;
	f->notices_end = &n->next;
	f->ahead += sizeof *n + n->bytes.n;
	uv_mutex_unlock(&f->lock);
	uv_async_send(f->shared->notify);
}

/* False when the thread is to end. */
bool files_wait_for_room(struct files *f)
{
	uv_mutex_lock(&f->lock);
	f->alive_us = 0;
	while (f->ahead >= FILES_AHEAD && !f->stop) {
		uv_cond_wait(&f->room, &f->lock);
	}
	f->alive_us = clock_mono();
	bool go_on = !f->stop;
	uv_mutex_unlock(&f->lock);
	return go_on;
}

void files_alive(struct files *f)
{
	uv_mutex_lock(&f->lock);
	f->alive_us = clock_mono();
	uv_mutex_unlock(&f->lock);
}

void files_count(struct files *f, uint64_t *which)
{
	uv_mutex_lock(&f->lock);
	++*which;
	uv_mutex_unlock(&f->lock);
}

/* ---- orders */

static void add_root(struct files *f, struct order *o, bool probing)
{
	for (size_t i = 0; i < f->nroots; i++) {
		if (f->roots[i]->pattern == o->pattern && !strcmp(f->roots[i]->path, o->path)) {
			return;
		}
	}
	struct root *root = ff_xcalloc(1, sizeof *root);
	root->pattern = o->pattern;
	root->path = o->path;
	root->device = o->device;
	root->probing = probing;
	*FF_ARR_ADD(f->roots, f->nroots, f->croots) = root;
	f->walk_wanted = true;
	f->walk_due_us = 0;
	o->pattern = NULL; /* they are the root's now */
	o->path = NULL;
}

/* The pattern is followed no more. */
static void drop_pattern(struct files *f, uint64_t number)
{
	for (size_t i = 0; i < f->nroots;) {
		if (f->roots[i]->pattern->number == number) {
			tail_walk_drop_root(f, i);
		} else {
			i++;
		}
	}
}

static void order_finish(struct order *o)
{
	files_pattern_leave(o->pattern);
	free(o->path);
	free(o);
}

static struct file *file_by_number(struct files *f, uint64_t number)
{
	for (size_t i = 0; i < f->nfiles; i++) {
		if (f->files[i]->number == number) {
			return f->files[i];
		}
	}
	return NULL;
}

/* Reading begins, if what stands before the place is what was there. False when the
 * thread is to end. */
static bool start_file(struct files *f, const struct files_start *s)
{
	struct file *file = file_by_number(f, s->file);
	char before[FILES_MARK];
	if (!file || file->fd < 0) {
		return true;
	}
	if (s->mark_length) {
		ssize_t n =
			tail_read_at(file->fd, before, s->mark_length, s->mark_at - s->mark_length);
		if (n != (ssize_t)s->mark_length ||
			files_hash(ff_str_n(before, (size_t)n)) != s->mark_hash) {
			struct stat st = {0};
			(void)fstat(file->fd, &st);
			tail_read_again(f, file, &st);
			return true;
		}
	}
	file->pos = s->offset;
	file->mark_length = 0;
	file->started = true;
	return tail_read_poll(f, file);
}

/* Everything there is now is found and read. */
static bool look(struct files *f, uint64_t number)
{
	if (!tail_walk_all(f) || !tail_read_poll_all(f)) {
		return false;
	}
	struct files_notice *n = files_notice(FILES_LOOKED, 0);
	n->look = number;
	files_post(f, n);
	return true;
}

/* The next walk forgets them, and the one behind it finds them. */
static void offer(struct files *f, uint64_t uid)
{
	for (size_t i = 0; i < f->nfiles; i++) {
		struct file *file = f->files[i];
		if (file->let_go && file->uid == uid) {
			file->stale = f->walk_wanted = true;
		}
	}
}

static bool obey(struct files *f, struct order *o)
{
	switch (o->kind) {
	case ORDER_PROBE: add_root(f, o, true); break;
	case ORDER_WALK: add_root(f, o, false); break;
	case ORDER_DROP: drop_pattern(f, o->number); break;
	case ORDER_START: return start_file(f, &o->start);
	case ORDER_LOOK: return look(f, o->look);
	case ORDER_OFFER: offer(f, o->number); break;
	case ORDER_LET_GO: {
		struct file *file = file_by_number(f, o->start.file);
		if (file) {
			file->let_go = true;
			tail_read_close(f, file);
		}
		break;
	}
	}
	return true;
}

/* ---- rounds and hints */

/* All orders that came. False when the thread is to end. */
static bool take_orders(struct files *f)
{
	uv_mutex_lock(&f->lock);
	struct order *o = f->orders;
	f->orders = NULL;
	f->orders_end = &f->orders;
	f->obeying = true;
	f->alive_us = clock_mono();
	bool go_on = !f->stop;
	uv_mutex_unlock(&f->lock);
	while (o) {
		struct order *next = o->next;
		go_on = go_on && obey(f, o);
		order_finish(o);
		o = next;
	}
	uv_mutex_lock(&f->lock);
	f->obeying = false;
	f->has_roots = f->nroots > 0;
	uv_mutex_unlock(&f->lock);
	return go_on;
}

/* How long there is nothing to do, in ms; -1: until an order comes. */
static int pause_ms(const struct files *f, bool hints)
{
	if (!f->nroots) {
		return -1;
	}
	ff_usec due = f->round_due_us;
	if (f->walk_wanted && f->walk_due_us < due) {
		due = f->walk_due_us;
	}
	if (!hints && f->hints_due_us < due) {
		due = f->hints_due_us;
	}
	ff_usec left = due - clock_mono();
	return left > 0 ? (int)((left + 999) / 1000) : 0;
}

/* Until there are orders, hints, or it is time. */
static void wait_for_work(struct files *f)
{
	bool hints = tail_watch_fd(f->watch) >= 0 && clock_mono() >= f->hints_due_us;
	struct pollfd fds[2] = {{f->wake, POLLIN, 0},
		{hints ? tail_watch_fd(f->watch) : -1, POLLIN, 0}};
	uv_mutex_lock(&f->lock);
	f->alive_us = 0;
	uv_mutex_unlock(&f->lock);
	(void)poll(fds, 2, pause_ms(f, hints || tail_watch_fd(f->watch) < 0));
	uint64_t count;
	if (fds[0].revents) {
		(void)!read(f->wake, &count, sizeof count);
	}
}

/* False when the thread is to end. */
static bool take_hint(struct files *f, enum tail_watch_hint hint, const char *path)
{
	struct file *file = ff_map_get(&f->by_path, ff_str_z(path));
	if (hint == TAIL_WATCH_CHANGED || (file && file->fd < 0 && !file->let_go)) {
		f->walk_wanted = f->walk_wanted || tail_walk_may_concern(f, path);
	}
	return !file || tail_read_poll(f, file);
}

/* Then it rests: a writer of many small lines does not make a read of each. */
static bool take_hints(struct files *f)
{
	const char *path = NULL;
	bool go_on = true, any = false;
	if (tail_watch_fd(f->watch) < 0 || clock_mono() < f->hints_due_us) {
		return true;
	}
	f->hinted = true;
	for (enum tail_watch_hint hint = tail_watch_next(f->watch, &path);
		hint != TAIL_WATCH_NONE && go_on; hint = tail_watch_next(f->watch, &path)) {
		any = true;
		if (hint == TAIL_WATCH_LOST) {
			f->round_due_us = 0;
			f->walk_wanted = true;
		} else {
			go_on = take_hint(f, hint, path);
		}
	}
	f->hinted = false;
	if (any) {
		f->hints_due_us = clock_mono() + HINTS_REST_US;
	}
	return go_on;
}

/* Everything is looked at. False when the thread is to end. */
static bool make_round(struct files *f)
{
	/* what a walk is needed for, or nobody tells of */
	bool alone = f->polled || f->left || f->waiting;
	unsigned most = alone ? FILES_POLL_MOST : POLL_MOST_WATCHED;
	f->interval_ms = f->interval_ms * 2 < most ? f->interval_ms * 2 : most;
	bool go_on = tail_read_poll_all(f) &&
		(clock_mono() < f->walk_due_us || tail_walk_all(f));
	f->round_due_us = clock_mono() + (ff_usec)f->interval_ms * 1000;
	return go_on;
}

static bool work_once(struct files *f)
{
	wait_for_work(f);
	if (!take_orders(f) || !take_hints(f)) {
		return false;
	}
	if (clock_mono() >= f->round_due_us) {
		return make_round(f);
	}
	return !f->walk_wanted || clock_mono() < f->walk_due_us || tail_walk_all(f);
}

static void work(void *ud)
{
	struct files *f = ud;
	while (work_once(f)) {
	}
	uv_mutex_lock(&f->lock);
	f->ended = true;
	f->alive_us = 0;
	uv_mutex_unlock(&f->lock);
	uv_async_send(f->shared->notify);
}

static void wake(struct files *f)
{
	(void)!write(f->wake, &(uint64_t){1}, sizeof(uint64_t));
}

static void give(struct files *f, struct order order)
{
	struct order *o = ff_xmalloc(sizeof *o);
	*o = order;
	o->next = NULL;
	uv_mutex_lock(&f->lock);
	*f->orders_end = o;
	f->orders_end = &o->next;
	uv_mutex_unlock(&f->lock);
	wake(f);
}

bool files_is_free(struct files *f)
{
	uv_mutex_lock(&f->lock);
	bool is_free = !f->orders && !f->obeying && !f->has_roots;
	uv_mutex_unlock(&f->lock);
	return is_free;
}

static void give_root(struct files *f, enum order_kind kind, struct files_pattern *pattern,
	const char *path, uint64_t device)
{
	atomic_fetch_add(&pattern->users, 1);
	give(f, (struct order){.kind = kind,
			.pattern = pattern,
			.path = ff_xstrdup(path),
			.device = device});
}

void files_probe(struct files *f, struct files_pattern *pattern, const char *path)
{
	give_root(f, ORDER_PROBE, pattern, path, 0);
}

void files_walk(
	struct files *f, struct files_pattern *pattern, const char *path, uint64_t device)
{
	give_root(f, ORDER_WALK, pattern, path, device);
}

void files_drop(struct files *f, uint64_t pattern)
{
	give(f, (struct order){.kind = ORDER_DROP, .number = pattern});
}

void files_start(struct files *f, const struct files_start *start)
{
	give(f, (struct order){.kind = ORDER_START, .start = *start});
}

void files_look(struct files *f, uint64_t number)
{
	give(f, (struct order){.kind = ORDER_LOOK, .look = number});
}

void files_let_go(struct files *f, uint64_t file)
{
	give(f, (struct order){.kind = ORDER_LET_GO, .start.file = file});
}

void files_offer(struct files *f, int64_t uid)
{
	give(f, (struct order){.kind = ORDER_OFFER, .number = (uint64_t)uid});
}

struct files_notice *files_take(struct files *f)
{
	uv_mutex_lock(&f->lock);
	struct files_notice *n = f->notices;
	if (n) {
		f->notices = n->next;
		if (!f->notices) {
			f->notices_end = &f->notices;
		}
		n->next = NULL;
		bool full = f->ahead >= FILES_AHEAD;
		f->ahead -= sizeof *n + n->bytes.n;
		if (full && f->ahead < FILES_AHEAD) {
			uv_cond_signal(&f->room);
		}
	}
	uv_mutex_unlock(&f->lock);
	return n;
}

void files_status(struct files *f, struct files_status *ret)
{
	uv_mutex_lock(&f->lock);
	*ret = f->status;
	ret->hung = f->alive_us && clock_mono() - f->alive_us > HUNG_US;
	uv_mutex_unlock(&f->lock);
}

/* ---- life */

struct files_pattern *files_pattern_create(uint64_t number, const char *text, struct ff_err *err)
{
	struct ff_path_pattern *parsed = ff_path_pattern_parse(text, err);
	if (!parsed) {
		return NULL;
	}
	struct files_pattern *p = ff_xcalloc(1, sizeof *p);
	p->number = number;
	p->text = ff_xstrdup(text);
	p->parsed = parsed;
	atomic_init(&p->users, 1);
	return p;
}

void files_pattern_leave(struct files_pattern *p)
{
	if (p && atomic_fetch_sub(&p->users, 1) == 1) {
		ff_path_pattern_destroy(p->parsed);
		free(p->text);
		free(p);
	}
}

int files_create(struct files_shared *shared, struct files **ret, struct ff_err *err)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd < 0) {
		return ff_err_set(
			err, -errno, "cannot start a thread for tail: %s", strerror(errno));
	}
	struct files *f = ff_xcalloc(1, sizeof *f);
	f->shared = shared;
	f->wake = fd;
	f->watch = tail_watch_create();
	f->interval_ms = FILES_POLL_LEAST;
	f->chunk = ff_xmalloc(FILES_CHUNK);
	f->orders_end = &f->orders;
	f->notices_end = &f->notices;
	uv_mutex_init(&f->lock);
	uv_cond_init(&f->room);
	int r = uv_thread_create(&f->thread, work, f);
	if (r < 0) {
		uv_cond_destroy(&f->room);
		uv_mutex_destroy(&f->lock);
		tail_watch_destroy(f->watch);
		close(fd);
		free(f->chunk);
		free(f);
		return ff_err_set(err, r, "cannot start a thread for tail: %s", uv_strerror(r));
	}
	*ret = f;
	return 0;
}

void files_stop(struct files *f)
{
	uv_mutex_lock(&f->lock);
	f->stop = true;
	uv_cond_signal(&f->room);
	uv_mutex_unlock(&f->lock);
	wake(f);
}

bool files_stopped(struct files *f)
{
	uv_mutex_lock(&f->lock);
	bool ended = f->ended;
	uv_mutex_unlock(&f->lock);
	return ended;
}

void files_destroy(struct files *f)
{
	if (!f) {
		return;
	}
	uv_thread_join(&f->thread);
	while (f->orders) {
		struct order *next = f->orders->next;
		order_finish(f->orders);
		f->orders = next;
	}
	for (struct files_notice *n = files_take(f); n; n = files_take(f)) {
		free(n->path);
		free(n);
	}
	for (size_t i = 0; i < f->nfiles; i++) {
		tail_read_close(f, f->files[i]);
		free(f->files[i]->path);
		free(f->files[i]);
	}
	f->nfiles = 0;
	while (f->nroots) {
		tail_walk_drop_root(f, f->nroots - 1);
	}
	free(f->files);
	free(f->roots);
	ff_map_finish(&f->by_inode);
	ff_map_finish(&f->by_path);
	tail_watch_destroy(f->watch);
	close(f->wake);
	ff_map_finish(&f->told);
	free(f->failed);
	free(f->chunk);
	uv_cond_destroy(&f->room);
	uv_mutex_destroy(&f->lock);
	free(f);
}
