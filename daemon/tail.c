#include "tail_own.h"

#include "access.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "clock.h"
#include "feed/nodes.h"
#include "shell/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define TURN_BYTES (1u << 20) /* taken from one thread before the loop sees to others */
#define SAID_MAX 64u          /* lines about files an hour */
#define SAID_US (3600 * FF_SECOND)
#define LOOKS_MAX 4u          /* looks for one run: each may find files that have to be read */

static void know_file(struct tail *t, struct tail_file *f)
{
	struct inode_key key = {f->device, f->inode};
	(void)ff_map_put(&t->by_path, ff_str_z(f->path), f);
	(void)ff_map_put(&t->by_inode, ff_str_n(&key, sizeof key), f);
}

/* Streams that were restored. */
static void know_restored(struct tail *t)
{
	struct ff_run *run;
	for (size_t i = 0; (run = ff_runs_any(&t->d->runs, i)); i++) {
		for (size_t k = 0; k < run->job->nstreams; k++) {
			struct ff_stream *s = run->job->streams[k];
			struct stream_state *ss = s->user;
			if (!ss || !ss->tail) {
				continue;
			}
			const char *generation = strrchr(s->origin.source, ':');
			int64_t n = 0;
			(void)ff_str_digits(ff_str_z(generation ? generation + 1 : ""), &n);
			ss->tail->stream = ss;
			ss->tail->generation = (uint64_t)n;
			know_file(t, ss->tail);
		}
	}
}

/* ---- which stream a file is */

static struct files_pattern *find_pattern(const struct tail *t, uint64_t number)
{
	for (size_t i = 0; i < t->npatterns; i++) {
		if (t->patterns[i]->number == number) {
			return t->patterns[i];
		}
	}
	return NULL;
}

static bool has_head(const struct tail_file *f, const struct files_notice *n)
{
	return f->head_length <= n->head_length &&
		files_hash(ff_str_n(n->head, f->head_length)) == f->head_hash;
}

/* What follows this (device, inode) or did so last, NULL. */
static struct tail_file *find_inode(const struct tail *t, const struct files_notice *n)
{
	struct inode_key key = {n->device, n->inode};
	return ff_map_get(&t->by_inode, ff_str_n(&key, sizeof key));
}

static bool is_same(const struct tail_file *f, const struct files_notice *n)
{
	return f && !f->thread && f->inode == n->inode && n->size >= f->mark_at &&
		(!f->head_length || has_head(f, n));
}

/* The file that was followed before, also under another name; NULL if this is another one. */
static struct tail_file *find_known(struct tail *t, const struct files_notice *n)
{
	struct tail_file *f = ff_map_get(&t->by_path, ff_str_z(n->path));
	if (n->distrust) {
		return NULL;
	}
	if (is_same(f, n)) {
		return f;
	}
	f = find_inode(t, n);
	return is_same(f, n) && f->mark_length ? f : NULL;
}

static const char *job_of(const struct tail *t, const char *root,
	const struct ff_path_identity *id, char *buf, size_t size)
{
	if (id->job) {
		return id->job;
	}
	if (t->d->config->default_job) {
		return t->d->config->default_job;
	}
	const char *base = strrchr(root, '/');
	(void)snprintf(buf, size, "tail-%.*s", (int)(FF_JOB_ID_MAX - 5), base ? base + 1 : root);
	return buf;
}

/* Its path below the pattern's root. */
static const char *name_of(const char *root, const struct files_notice *n)
{
	size_t len = strlen(root);
	return n->path + len + (len > 1);
}

static struct tail_file *make_file(struct tail *t, const struct files_notice *n)
{
	const struct tail_file *before = find_inode(t, n);
	struct tail_file *f = ff_xcalloc(1, sizeof *f);
	f->path = ff_xstrdup(n->path);
	f->device = n->device;
	f->inode = n->inode;
	f->generation = before ? before->generation + 1 : 0;
	f->head_hash = files_hash(FF_STR(""));
	return f;
}

/* Whoever makes many files does not fill the log. */
static bool may_say(struct tail *t)
{
	ff_usec now = clock_mono();
	if (!t->said || now - t->said_us > SAID_US) {
		t->said = 0;
		t->said_us = now;
	}
	if (t->said++ == SAID_MAX) {
		ff_log_warn("tail", "more files are refused or can't be read, counting only");
	}
	return t->said <= SAID_MAX;
}

/* A run's files are of its owner. What root's own link leads to is there because root wants it. */
static bool may_join(struct tail *t, struct ff_run *run, const struct files_notice *n)
{
	const struct run_state *rs = ledger_run(t->d->ledger, run);
	if (n->linked || rs->owner < 0 || rs->owner == n->uid) {
		return true;
	}
	t->d->counts[DAEMON_COUNT_tail_foreign]++;
	if (may_say(t)) {
		ff_log_warn("tail", "path=%s is uid %lld's, its job=%s is uid %lld's, ignoring",
			n->path, (long long)n->uid, run->job->facts.job, (long long)rs->owner);
	}
	return false;
}

/* What a node's own log is, by its name: a kernel's, or a scheduler's. Other files of a machine may
 * hold a kernel's lines too, but anybody's as well: they are not believed. */
static void name_kind(struct ff_origin *o)
{
	static const char *const words[] = {"slurm", "kubelet", "kern", "dmesg"};
	const char *base = strrchr(o->name, '/');
	base = base ? base + 1 : o->name;
	o->kind = FF_STREAM_KERNEL;
	o->kind_declared = true;
	bool own = false;
	for (size_t i = 0; i < sizeof words / sizeof *words && !own; i++) {
		own = strstr(base, words[i]) != NULL;
		o->kind = own && i < 2 ? FF_STREAM_SCHEDULER : FF_STREAM_KERNEL;
	}
	o->trusted = o->trusted && own;
}

/* A log of a node, of this host where the path names none. */
static struct ff_stream *open_node_stream(struct tail *t, const char *root,
	const struct files_notice *n, const struct ff_path_identity *id, const char *source,
	struct ff_run **ret_run)
{
	char host[FF_JOB_ID_MAX + 1] = "";
	size_t size = sizeof host;
	struct ff_err err = {0};
	bool trusted = n->uid == 0 || n->uid == (int64_t)geteuid();
	(void)uv_os_gethostname(host, &size);
	struct ff_origin origin = {.name = name_of(root, n),
		.node = id->node ? id->node : host,
		.source = source,
		.rank = FF_UNKNOWN,
		.local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN,
		.pid = FF_UNKNOWN,
		.tailed = true,
		.trusted = trusted};
	name_kind(&origin);
	if (ff_nodes_resolve(&t->d->runs, ff_str_z(origin.node), trusted ? FF_NODE_TRUSTED : n->uid,
		    clock_wall(), ret_run, &err) < 0) {
		ff_log_warn("tail", "path=%s: %s, ignoring", n->path, err.text);
		return NULL;
	}
	return ff_job_stream((*ret_run)->job, &origin);
}

static struct ff_stream *open_stream(struct tail *t, const char *root, const struct files_notice *n,
	const struct ff_path_identity *id, const char *source, struct ff_run **ret_run)
{
	char buf[FF_JOB_ID_MAX + 1];
	struct ff_err err = {0};
	struct ff_str run_name = ff_str_z(id->run);
	const char *job = job_of(t, root, id, buf, sizeof buf);
	struct ff_origin origin = {
		.name = name_of(root, n),
		.node = id->node,
		.source = source,
		.kind = id->kind,
		.kind_declared = id->kind_known,
		.fd = id->fd,
		.rank = id->rank,
		.local_rank = id->local_rank,
		.attempt = id->attempt,
		.pid = FF_UNKNOWN,
		.filtered = id->filtered,
		.tailed = true,
		.trusted = (n->uid == 0 || n->uid == (int64_t)geteuid()) && id->kind_known &&
			(id->kind == FF_STREAM_KERNEL || id->kind == FF_STREAM_SCHEDULER),
	};
	bool own = n->uid == 0 || n->uid == (int64_t)geteuid();
	if (ff_runs_resolve_for(&t->d->runs, own ? FF_RUNS_ANYBODY : n->uid, ff_str_z(job),
		    id->run ? &run_name : NULL, source, n->first ? FF_RUN_FEED : FF_RUN_LIVE,
		    clock_wall(), ret_run, &err) < 0) {
		ff_log_warn("tail", "path=%s: %s, ignoring", n->path, err.text);
		return NULL;
	}
	bool may = may_join(t, *ret_run, n) && ff_job_may_feed((*ret_run)->job, &origin, own);
	return may ? ff_job_stream((*ret_run)->job, &origin) : NULL;
}

/* A file of which nothing is known. NULL if it can't be followed. */
static struct tail_file *open_new(struct tail *t, const struct files_notice *n)
{
	struct ff_path_identity id = {0};
	char source[80];
	const struct files_pattern *pattern = find_pattern(t, n->pattern);
	if (!pattern || !ff_path_pattern_match(pattern->parsed, ff_str_z(n->path), &id)) {
		return NULL;
	}
	const char *root = ff_path_pattern_root(pattern->parsed);
	if (strlen(name_of(root, n)) > FF_NAME_MAX) {
		ff_log_warn(
			"tail", "path=%s is longer than %u bytes, ignoring", n->path, FF_NAME_MAX);
		ff_path_identity_finish(&id);
		return NULL;
	}
	struct tail_file *f = make_file(t, n);
	(void)snprintf(source, sizeof source, "tail:%llu:%llu:%llu", (unsigned long long)f->device,
		(unsigned long long)f->inode, (unsigned long long)f->generation);
	struct ff_run *run;
	struct ff_stream *s = pattern->of_node
		? open_node_stream(t, root, n, &id, source, &run)
		: open_stream(t, root, n, &id, source, &run);
	ff_path_identity_finish(&id);
	if (!s) {
		tail_file_destroy(f);
		return NULL;
	}
	struct stream_state *ss = ledger_stream(t->d->ledger, run, s);
	if (ss->tail) { /* the store lacks what would tell two generations apart */
		tail_file_destroy(f);
		return NULL;
	}
	ss->tail = f;
	f->stream = ss;
	access_claim(&(struct access_peer){.uid = n->uid}, run, ss->run);
	know_file(t, f);
	return f;
}

/* Where reading begins, and what has which time. */
static void begin(struct thread *th, struct tail_file *f, const struct files_notice *n)
{
	struct ff_stream *s = f->stream->stream;
	struct files_start start = {.file = n->file, .offset = s->fed};
	if (f->mark_length && f->mark_length <= f->mark_at) {
		start.mark_at = f->mark_at;
		start.mark_length = f->mark_length;
		start.mark_hash = f->mark_stored ? f->mark_hash
						 : files_hash(ff_str_n(f->mark, f->mark_length));
	}
	f->thread = th;
	f->number = n->file;
	f->read = start.offset;
	f->replay_end = f->mark_at > s->fed ? f->mark_at : s->fed;
	f->held_end = n->size;
	f->device = n->device;
	ff_buf_clear(&f->word);
	(void)ff_map_put(&th->by_number, ff_str_n(&n->file, sizeof n->file), f);
	files_start(th->files, &start);
}

static void rename_file(struct tail *t, struct tail_file *f, const char *path)
{
	if (ff_map_get(&t->by_path, ff_str_z(f->path)) == f) {
		(void)ff_map_del(&t->by_path, ff_str_z(f->path));
	}
	free(f->path);
	f->path = ff_xstrdup(path);
	know_file(t, f);
}

/* Its text is found under another name from now on; its stream keeps its own. */
static void on_moved(struct tail *t, struct thread *th, const struct files_notice *n)
{
	struct tail_file *f = ff_map_get(&th->by_number, ff_str_n(&n->file, sizeof n->file));
	if (f) {
		rename_file(t, f, n->path);
		ledger_touch(t->d->ledger, tail_file_run(f), f->stream->stream);
	}
}

static void on_found(struct tail *t, struct thread *th, const struct files_notice *n)
{
	struct tail_file *f = find_inode(t, n);
	bool refused = f && f->thread && f->thread != th; /* on its way through a mount, too */
	f = refused ? NULL : find_known(t, n);
	if (f) {
		refused = !may_join(t, tail_file_run(f), n);
	} else if (!refused && tail_is_let_go(t, n)) {
		t->d->counts[DAEMON_COUNT_tail_let_go]++;
		refused = true;
	} else if (!refused) {
		f = open_new(t, n);
		refused = !f;
	}
	if (refused) {
		files_let_go(th->files, n->file);
		return;
	}
	if (strcmp(f->path, n->path) != 0) {
		rename_file(t, f, n->path);
	}
	struct ff_stream *s = f->stream->stream;
	struct ff_run *run = tail_file_run(f);
	if (s->state != FF_STREAM_OPEN) {
		ff_stream_reopen(s);
	}
	th->found++;
	begin(th, f, n);
	ledger_touch(t->d->ledger, run, s);
	ledger_changed(t->d->ledger, run);
	if (ff_facts_ended(&run->job->facts) && !s->read_to_end && !tail_is_looking(t, run)) {
		tail_look(t, run);
	}
}

/* A file that was read to its end after the end of its job has said what it had to. */
static void on_gone(struct tail *t, struct thread *th, const struct files_notice *n)
{
	struct tail_file *f = ff_map_del(&th->by_number, ff_str_n(&n->file, sizeof n->file));
	if (!f) {
		return;
	}
	struct ff_run *run = tail_file_run(f);
	struct ff_stream *s = f->stream->stream;
	tail_feed_flush(t, f);
	f->thread = NULL;
	if (!s->read_to_end) {
		ff_job_end_stream(run->job, s, false, FF_TIME_NONE);
	}
	ledger_touch(t->d->ledger, run, s);
	ledger_changed(t->d->ledger, run);
}

/* ---- file systems */

static struct thread *add_thread(struct tail *t, struct ff_err *err)
{
	struct thread *th = &t->threads[t->nthreads];
	th->tail = t;
	if (files_create(&t->shared, &th->files, err) < 0) {
		return NULL;
	}
	t->nthreads++;
	return th;
}

/* No file system is this thread's any more. */
static void free_devices(struct tail *t, const struct thread *th)
{
	for (size_t i = 0; i < t->ndevices;) {
		if (&t->threads[t->devices[i].thread] == th) {
			t->devices[i] = t->devices[--t->ndevices];
		} else {
			i++;
		}
	}
}

/* Whoever asks which file system a folder is on may hang: a thread that has nothing else to do, or
 * a new one; one in turn where there can't be more. NULL: there is none at all. */
static struct thread *thread_to_probe(struct tail *t, struct ff_err *err)
{
	for (unsigned i = 0; i < t->nthreads; i++) {
		if (files_is_free(t->threads[i].files)) {
			free_devices(t, &t->threads[i]);
			return &t->threads[i];
		}
	}
	struct thread *th = t->nthreads < THREADS ? add_thread(t, err) : NULL;
	return th || !t->nthreads ? th : &t->threads[t->last_probe++ % t->nthreads];
}

/* The thread of this file system: who asked, if it has none so far. */
static struct thread *thread_of(struct tail *t, struct thread *asked, uint64_t device)
{
	for (size_t i = 0; i < t->ndevices; i++) {
		if (t->devices[i].device == device) {
			return &t->threads[t->devices[i].thread];
		}
	}
	*FF_ARR_ADD(t->devices, t->ndevices, t->cdevices) =
		(struct device){device, (unsigned)(asked - t->threads)};
	return asked;
}

static void on_device(struct tail *t, struct thread *th, const struct files_notice *n)
{
	struct files_pattern *pattern = find_pattern(t, n->pattern);
	if (pattern) {
		files_walk(thread_of(t, th, n->device)->files, pattern, n->path, n->device);
	}
}

static void on_mount(struct tail *t, const struct files_notice *n)
{
	struct files_pattern *pattern = find_pattern(t, n->pattern);
	struct thread *th = pattern ? thread_to_probe(t, NULL) : NULL;
	if (th) {
		files_probe(th->files, pattern, n->path);
	}
}

/* ---- patterns */

static void let_go_pattern(struct tail *t, struct files_pattern *p)
{
	for (unsigned i = 0; i < t->nthreads; i++) {
		files_drop(t->threads[i].files, p->number);
	}
	files_pattern_leave(p);
}

static struct files_pattern *find_text(
	struct files_pattern **v, size_t n, const char *text, bool of_node)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i] && v[i]->of_node == of_node && !strcmp(v[i]->text, text)) {
			return v[i];
		}
	}
	return NULL;
}

/* A list of patterns in the making. */
struct pattern_list {
	struct files_pattern **v;
	size_t n;
};

/* Those of the list, each once; what is followed already is taken as it is. False with err. */
static bool add_patterns(struct tail *t, struct pattern_list *to, const struct ff_option_list *list,
	bool of_node, struct ff_err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		if (find_text(to->v, to->n, list->v[i], of_node)) {
			continue;
		}
		struct files_pattern *p =
			find_text(t->patterns, t->npatterns, list->v[i], of_node);
		if (p) {
			atomic_fetch_add(&p->users, 1);
		} else {
			p = files_pattern_create(++t->last_pattern, list->v[i], err);
		}
		if (!p) {
			return false;
		}
		p->of_node = of_node;
		to->v[to->n++] = p;
	}
	return true;
}

int tail_set_patterns(struct tail *t, const struct ff_option_list *list,
	const struct ff_option_list *nodes, struct ff_err *err)
{
	struct pattern_list all = {
		.v = ff_xcalloc(list->n + nodes->n + 1, sizeof(struct files_pattern *))};
	if (!add_patterns(t, &all, list, false, err) || !add_patterns(t, &all, nodes, true, err)) {
		while (all.n) {
			files_pattern_leave(all.v[--all.n]);
		}
		free(all.v);
		return FF_EUSAGE;
	}
	struct files_pattern **now = all.v;
	size_t n = all.n;
	struct files_pattern **before = t->patterns;
	size_t nbefore = t->npatterns;
	t->patterns = now;
	t->npatterns = n;
	for (size_t i = 0; i < nbefore; i++) {
		if (find_pattern(t, before[i]->number)) {
			files_pattern_leave(before[i]);
		} else {
			let_go_pattern(t, before[i]);
			before[i] = NULL;
		}
	}
	int r = 0;
	for (size_t i = 0; i < n; i++) {
		if (find_text(before, nbefore, now[i]->text, now[i]->of_node)) {
			continue;
		}
		struct thread *th = thread_to_probe(t, err);
		if (!th) {
			r = FF_ELIMIT;
			break;
		}
		files_probe(th->files, now[i], ff_path_pattern_root(now[i]->parsed));
	}
	free(before);
	return r;
}

/* ---- looks */

static void mark_read(struct tail *t, struct thread *th, struct ff_run *run)
{
	for (size_t i = 0; i < run->job->nstreams; i++) {
		struct ff_stream *s = run->job->streams[i];
		struct stream_state *ss = s->user;
		if (!ss || !ss->tail || ss->tail->thread != th) {
			continue;
		}
		tail_feed_flush(t, ss->tail);
		if (!s->read_to_end) {
			s->read_to_end = true;
			s->dirty = true;
		}
		ledger_touch(t->d->ledger, run, s);
	}
}

static bool is_done(const struct tail *t, const struct look *l)
{
	for (unsigned i = 0; i < t->nthreads; i++) {
		if (l->left[i]) {
			return false;
		}
	}
	return true;
}

static void on_looked(struct tail *t, struct thread *th, const struct files_notice *n)
{
	unsigned index = (unsigned)(th - t->threads);
	struct look **p = &t->looks;
	while (*p && (*p)->number != n->look) {
		p = &(*p)->next;
	}
	struct look *l = *p;
	if (!l) {
		return;
	}
	if (th->found && l->left[index] > 1) { /* what was found has to be read too */
		th->found = 0;
		l->left[index]--;
		files_look(th->files, l->number);
		return;
	}
	l->left[index] = 0;
	mark_read(t, th, l->run);
	if (is_done(t, l)) {
		*p = l->next;
		free(l);
	}
}

void tail_offer(struct tail *t, int64_t uid)
{
	for (unsigned i = 0; t && i < t->nthreads; i++) {
		files_offer(t->threads[i].files, uid);
	}
}

void tail_look(struct tail *t, struct ff_run *run)
{
	if (!t || !t->nthreads) {
		return;
	}
	struct look *l = ff_xcalloc(1, sizeof *l);
	l->number = ++t->last_look;
	l->run = run;
	l->next = t->looks;
	t->looks = l;
	for (unsigned i = 0; i < t->nthreads; i++) {
		l->left[i] = LOOKS_MAX;
		files_look(t->threads[i].files, l->number);
	}
}

static bool has_files(const struct thread *th, const struct ff_run *run)
{
	for (size_t i = 0; i < run->job->nstreams; i++) {
		const struct stream_state *ss = run->job->streams[i]->user;
		if (ss && ss->tail && ss->tail->thread == th) {
			return true;
		}
	}
	return false;
}

bool tail_thread_is_hung(const struct thread *th)
{
	struct files_status status;
	files_status(th->files, &status);
	return status.hung;
}

bool tail_is_looking(const struct tail *t, const struct ff_run *run)
{
	for (const struct look *l = t ? t->looks : NULL; l; l = l->next) {
		for (unsigned i = 0; l->run == run && i < t->nthreads; i++) {
			const struct thread *th = &t->threads[i];
			if (l->left[i] && (!tail_thread_is_hung(th) || has_files(th, run))) {
				return true;
			}
		}
	}
	return false;
}

void tail_on_changed(struct tail *t, struct ff_run *run)
{
	struct run_state *rs = run->user;
	if (t && rs && !rs->looked && ff_facts_ended(&run->job->facts)) {
		rs->looked = true;
		tail_look(t, run);
	}
}

/* ---- notices */

/* Threads say a thing once. */
static void on_trouble(struct tail *t, const struct files_notice *n)
{
	if (may_say(t)) {
		ff_log_warn("tail", "path=%s %s%s%s, ignoring", n->path, n->text,
			n->error ? ": " : "", n->error ? uv_strerror(-n->error) : "");
	}
}

static void on_limit(struct tail *t, const struct files_notice *n)
{
	if (!t->limit_said) {
		t->limit_said = true;
		ff_log_warn("tail",
			"folders can't be watched (%s), polling them; raise %s to be quicker",
			uv_strerror(-n->error),
			n->error == ENOSPC ? "fs.inotify.max_user_watches"
					   : "fs.inotify.max_user_instances");
	}
}

static void take_notice(struct tail *t, struct thread *th, const struct files_notice *n)
{
	switch (n->kind) {
	case FILES_DEVICE: on_device(t, th, n); break;
	case FILES_MOUNT: on_mount(t, n); break;
	case FILES_FOUND: on_found(t, th, n); break;
	case FILES_DATA: tail_feed_data(t, th, n); break;
	case FILES_MOVED: on_moved(t, th, n); break;
	case FILES_GONE: on_gone(t, th, n); break;
	case FILES_TROUBLE: on_trouble(t, n); break;
	case FILES_LIMIT: on_limit(t, n); break;
	case FILES_LOOKED: on_looked(t, th, n); break;
	}
}

/* Some of what a thread has to say; true if there is more. */
static bool take_some(struct tail *t, struct thread *th)
{
	size_t bytes = 0;
	while (!t->held && !t->d->stopping) {
		struct files_notice *n = files_take(th->files);
		if (!n) {
			return false;
		}
		bytes += sizeof *n + n->bytes.n;
		take_notice(t, th, n);
		free(n->path);
		free(n);
		if (bytes > TURN_BYTES) {
			return true;
		}
	}
	return false;
}

static void on_async(uv_async_t *async)
{
	struct tail *t = async->data;
	bool more = false;
	for (unsigned i = 0; i < t->nthreads; i++) {
		more = take_some(t, &t->threads[i]) || more;
	}
	if (more) {
		uv_async_send(async);
	}
}

void tail_hold(struct tail *t, bool hold)
{
	if (!t || t->held == hold) {
		return;
	}
	t->held = hold;
	if (!hold && t->handle_open) {
		uv_async_send(&t->async);
	}
}

void tail_count(struct tail *t)
{
	for (unsigned i = 0; t && i < t->nthreads; i++) {
		struct thread *th = &t->threads[i];
		struct files_status now;
		files_status(th->files, &now);
		t->d->counts[DAEMON_COUNT_tail_refused] += now.refused - th->seen.refused;
		t->d->counts[DAEMON_COUNT_tail_failed] += now.failed - th->seen.failed;
		t->d->counts[DAEMON_COUNT_tail_changed] += now.changed - th->seen.changed;
		t->d->counts[DAEMON_COUNT_tail_waiting] += now.waited - th->seen.waited;
		t->d->counts[DAEMON_COUNT_tail_unwatched] += now.limited - th->seen.limited;
		t->d->counts[DAEMON_COUNT_tail_holes] += now.holes - th->seen.holes;
		th->seen = now;
	}
}

void tail_describe(struct tail *t, struct ff_jw *w)
{
	uint64_t files = 0, waiting = 0, hung = 0, watched = 0, polled = 0;
	for (unsigned i = 0; t && i < t->nthreads; i++) {
		files += t->threads[i].seen.files;
		waiting += t->threads[i].seen.waiting;
		hung += t->threads[i].seen.hung;
		watched += t->threads[i].seen.watched;
		polled += t->threads[i].seen.polled;
	}
	ff_jw_open(w, '{');
	ff_jw_kint(w, "patterns", t ? (int64_t)t->npatterns : 0);
	ff_jw_kint(w, "threads", t ? t->nthreads : 0);
	ff_jw_kint(w, "hung", (int64_t)hung);
	ff_jw_kint(w, "files", (int64_t)files);
	ff_jw_kint(w, "open", t ? (int64_t)atomic_load(&t->shared.open) : 0);
	ff_jw_kint(w, "waiting", (int64_t)waiting);
	ff_jw_kint(w, "watched", (int64_t)watched);
	ff_jw_kint(w, "polled", (int64_t)polled);
	ff_jw_close(w, '}');
}

/* ---- life */

/* Half of the descriptors at most: connections and the store need theirs. */
static unsigned files_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 >= FF_TAIL_FILES) {
		return FF_TAIL_FILES;
	}
	return limit.rlim_cur > 32 ? (unsigned)limit.rlim_cur / 2 : 16;
}

int tail_open(struct daemon *d, struct tail **ret, struct ff_err *err)
{
	struct tail *t = ff_xcalloc(1, sizeof *t);
	*ret = t; /* also on failure: whoever closes and destroys it knows what is open */
	t->d = d;
	know_restored(t);
	t->shared.notify = &t->async;
	t->shared.open_max = files_limit();
	int r = uv_async_init(&d->loop, &t->async, on_async);
	if (r < 0) {
		return ff_err_set(err, r, "cannot start tail: %s", uv_strerror(r));
	}
	t->async.data = t;
	t->handle_open = true;
	return tail_set_patterns(t, &d->config->tail, &d->config->tail_node, err);
}

void tail_stop(struct tail *t)
{
	for (unsigned i = 0; t && i < t->nthreads; i++) {
		files_stop(t->threads[i].files);
	}
}

bool tail_stopped(const struct tail *t)
{
	for (unsigned i = 0; t && i < t->nthreads; i++) {
		if (!files_stopped(t->threads[i].files)) {
			return false;
		}
	}
	return true;
}

void tail_close_handle(struct tail *t)
{
	if (t && t->handle_open) {
		uv_close((uv_handle_t *)&t->async, NULL);
		t->handle_open = false;
	}
}

void tail_destroy(struct tail *t)
{
	if (!t) {
		return;
	}
	for (unsigned i = 0; i < t->nthreads; i++) {
		files_destroy(t->threads[i].files);
		ff_map_finish(&t->threads[i].by_number);
	}
	while (t->looks) {
		struct look *next = t->looks->next;
		free(t->looks);
		t->looks = next;
	}
	for (size_t i = 0; i < t->npatterns; i++) {
		files_pattern_leave(t->patterns[i]);
	}
	ff_map_finish(&t->by_path);
	ff_map_finish(&t->by_inode);
	free(t->patterns);
	free(t->devices);
	free(t);
}
