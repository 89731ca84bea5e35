#include "forward.h"

#include "base/arr.h"
#include "base/map.h"
#include "base/mask_rules.h"
#include "client.h"
#include "pieces.h"
#include "shell/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OUT_MAX (32u * 1024u)   /* bytes encoded ahead: 1,024 senders have that much */
#define IN_MAX (64u * 1024u)    /* bytes of one answer */
#define TICK_US 100000          /* how often followed files are looked at */
#define LOOK_US 2000000
#define PIECE_AFTER_US FF_SECOND /* an unfinished line of a followed file goes out after this */
#define BACKOFF_FIRST 100000
#define BACKOFF_LAST 5000000
#define FILES_SPARE 32u    /* descriptors for other things than senders; each of these has two */
#define FILES_WANTED (2 * FORWARD_MAX + FILES_SPARE)
#define HELLOS_AT_ONCE 64u /* that wait for their welcome */
#define DRAIN_US (5 * FF_SECOND) /* after a stop */
#define PINGS_FIRST 8u
#define HEIRS_MAX 64u /* files that were replaced and are not sent yet keep their descriptors */

enum state {
	STATE_WAITING, /* not connected: until `again` */
	STATE_HELLO,   /* hello is on its way */
	STATE_SENDING,
	STATE_DONE,
};

/* Bytes up to `end` were seen at `stamp`. */
struct seen {
	uint64_t end;
	ff_usec stamp;
};

struct sender {
	char *path; /* shown, of a spool */
	const struct ff_mask_rules *mask; /* of a file; NULL */
	struct spool *spool; /* instead of a file; NULL */
	bool live;           /* a pipe fills it */
	struct ff_native_hello hello; /* strings: own copies */
	char source[33];
	int file, sock; /* -1: closed */
	enum state state;
	ff_usec again, backoff;
	struct ff_buf out, in;
	uint64_t next;   /* first byte that is not encoded */
	uint64_t acked, done;
	uint64_t size;   /* of the file, as last seen */
	struct seen *seen;
	size_t nseen, cseen;
	ff_usec grown;   /* when it was seen to grow last */
	bool stopped;    /* no more is waited for: end it at `size` */
	bool replaced;   /* it was cut: begin the file anew when this one is done */
	struct sender *heir; /* of the file that took its place: comes when this one is done */
	bool waits;      /* it is an heir */
	bool ended;      /* `end` is encoded, or nothing follows without one */
	uint64_t max_unacked;
	unsigned generation; /* of the same file: it was cut, and its front does not tell */
	unsigned pings;
	ff_usec next_ping;
};

struct forward {
	struct forward_options o;
	struct sender **v;
	size_t n, cap;
	struct ff_map paths; /* paths, and what file_key makes of them, that were met */
	ff_usec alone_since; /* no daemon since, FF_TIME_NONE: there is one */
	bool met;            /* there was one */
	ff_usec next_look;
	ff_usec next_tick;   /* when followed files are looked at again */
	ff_usec next_try;    /* nobody connects before: nobody answered the last one */
	ff_usec backoff;     /* of that */
	unsigned hellos;     /* senders that wait for their welcome */
	ff_usec drain_until;
	size_t nlive;        /* pipes that were added */
	size_t nheirs;       /* that wait */
	int wake;
	char why[512];       /* the last reason without a daemon */
	int status;
};

static volatile sig_atomic_t stop;

void forward_stop(void)
{
	stop = 1;
}

bool forward_stopped(void)
{
	return stop;
}

static ff_usec clock_us(clockid_t id)
{
	struct timespec t;
	(void)clock_gettime(id, &t);
	return (ff_usec)t.tv_sec * FF_SECOND + t.tv_nsec / 1000;
}

static ff_usec monotonic(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

static ff_usec wall(void)
{
	return clock_us(CLOCK_REALTIME);
}

/* ---- one file */

static void close_fd(int *fd)
{
	if (*fd >= 0) {
		(void)close(*fd);
		*fd = -1;
	}
}

static void sender_destroy(struct sender *s)
{
	spool_destroy(s->spool, false);
	close_fd(&s->file);
	close_fd(&s->sock);
	free(s->path);
	free((char *)s->hello.job);
	free((char *)s->hello.node);
	free((char *)s->hello.kind);
	free((char *)s->hello.run);
	free((char *)s->hello.token);
	free((char *)s->hello.streams[0]);
	free((char *)s->hello.fds[0]);
	free(s->seen);
	ff_buf_finish(&s->out);
	ff_buf_finish(&s->in);
	free(s);
}

/* The file's token: device, inode and its first 64 bytes. The same file shipped again has the same,
 * one that was truncated or replaced another. (A file of less than 64 bytes has none of them in it:
 * they are still to come.) */
static void make_source(struct sender *s)
{
	static const char digits[] = "0123456789abcdef";
	struct stat st = {0};
	char front[64];
	struct ff_buf b = {0};
	uint64_t h[2];
	(void)fstat(s->file, &st);
	ff_buf_addf(&b, "%llx:%llx:%u:", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino, s->generation);
	if (pread(s->file, front, sizeof front, 0) == (ssize_t)sizeof front) {
		ff_buf_add(&b, front, sizeof front);
	}
	h[0] = ff_str_hash(ff_buf_str(&b), FF_HASH_INIT);
	ff_buf_addc(&b, '2');
	h[1] = ff_str_hash(ff_buf_str(&b), h[0] * 0x9e3779b97f4a7c15ull + 1);
	for (size_t i = 0; i < 32; i++) {
		s->source[i] = digits[h[i / 16] >> (i % 16 * 4) & 15];
	}
	s->source[32] = '\0';
	s->hello.source = s->source;
	ff_buf_finish(&b);
}

static void note_size(struct sender *s, uint64_t size, ff_usec stamp)
{
	if (size > s->size || !s->nseen) {
		*FF_ARR_ADD(s->seen, s->nseen, s->cseen) = (struct seen){size, stamp};
		s->size = size;
		s->grown = monotonic();
	}
}

/* Opens the file that stands at the path now. */
static int begin_file(struct sender *s, struct ff_err *err)
{
	struct stat st;
	close_fd(&s->file);
	s->file = ff_file_open(s->path, err);
	if (s->file < 0) {
		return s->file;
	}
	if (fstat(s->file, &st) < 0 || !S_ISREG(st.st_mode)) {
		return ff_err_set(err, -EINVAL,
			"\"%s\" is no regular file; pipe it to a file first", s->path);
	}
	s->nseen = 0;
	s->size = s->next = s->acked = 0;
	s->stopped = s->replaced = s->ended = false;
	make_source(s);
	note_size(s, (uint64_t)st.st_size, FF_TIME_NONE);
	return 0;
}

static struct sender *add(
	struct forward *f, const char *path, const struct ff_native_hello *hello);
static void know_file(struct forward *f, struct sender *s);

/* Another file stands at the path. It is opened now: when the daemon is away for long, that one may
 * be rotated away too before its turn comes. If it is gone again by now, the next look tells. */
static void begin_heir(struct forward *f, struct sender *s)
{
	struct sender *heir = add(f, s->path, &s->hello);
	if (begin_file(heir, NULL) < 0) {
		heir->state = STATE_DONE; /* gone again */
		return;
	}
	know_file(f, heir);
	heir->waits = s->stopped = true;
	s->heir = heir;
	f->nheirs++;
}

/* A followed file: did it grow, shrink, or make way for another of its name? */
static void look_at(struct forward *f, struct sender *s)
{
	struct stat st, other;
	if (s->stopped || fstat(s->file, &st) < 0) {
		return;
	}
	if ((uint64_t)st.st_size < s->size) {
		s->size = s->size < s->next ? s->size : s->next; /* what is gone can't be sent */
		s->stopped = s->replaced = true;
		s->generation++;
		return;
	}
	note_size(s, (uint64_t)st.st_size, wall());
	if (stat(s->path, &other) == 0 && S_ISREG(other.st_mode) &&
		(other.st_ino != st.st_ino || other.st_dev != st.st_dev) &&
		f->nheirs < HEIRS_MAX) {
		begin_heir(f, s);
	}
}

static ff_usec stamp_at(const struct sender *s, uint64_t offset)
{
	for (size_t i = 0; i < s->nseen; i++) {
		if (offset < s->seen[i].end) {
			return s->seen[i].stamp;
		}
	}
	return FF_TIME_NONE;
}

/* Stamps of acknowledged bytes are never needed again. */
static void forget_acked(struct sender *s)
{
	size_t k = 0;
	while (k + 1 < s->nseen && s->seen[k].end <= s->acked) {
		k++;
	}
	if (k) {
		memmove(s->seen, s->seen + k, (s->nseen - k) * sizeof *s->seen);
		s->nseen -= k;
	}
}

/* ---- encoding */

static bool encode(void *ud, char *text, size_t n, bool newline)
{
	struct sender *s = ud;
	(void)ff_mask_rules_text(s->mask, text, n, NULL);
	ff_native_data_render(&s->out, &(struct ff_native_data){.stamp = stamp_at(s, s->next),
		.newline = newline, .text = ff_str_n(text, n)});
	s->next += n + newline;
	return s->out.len < OUT_MAX;
}

/* Nothing is left to be read. */
static void finish(struct sender *s)
{
	ff_native_end_render(&s->out, &s->next, 1);
	s->ended = true;
}

static void fill_spool(struct sender *s)
{
	bool ended;
	s->size = spool_size(s->spool, &ended);
	s->stopped = ended || !s->live;
	if (s->state != STATE_SENDING || s->ended) {
		return;
	}
	if (s->next < s->size) {
		spool_get(s->spool, &s->next, s->acked + s->max_unacked, OUT_MAX, &s->out);
	}
	if (s->next >= s->size && ended) {
		finish(s);
	} else if (s->next >= s->size && s->stopped) {
		s->ended = true; /* its ship was killed: what followed nobody knows */
	}
}

/* Encodes what may be sent. */
static int fill(struct sender *s, bool follow, struct ff_err *err)
{
	static char p[PIECES_MAX * 2];
	while (s->state == STATE_SENDING && !s->ended && s->out.len < OUT_MAX) {
		uint64_t left = s->size - s->next;
		uint64_t room = s->acked + s->max_unacked;
		if (left && s->next >= room) {
			return 0;
		}
		size_t want = left < sizeof p ? (size_t)left : sizeof p;
		ssize_t n = 0;
		while (want && (n = pread(s->file, p, want, (off_t)s->next)) < 0 &&
			errno == EINTR) {
		}
		if (n < 0) {
			return ff_err_set(err, -errno, "cannot read \"%s\": %s", s->path,
					  ff_strerror(-errno));
		}
		if (left && !n) { /* it shrank since we looked */
			s->size = s->next;
			s->stopped = true;
			s->replaced = follow;
			left = 0;
		}
		if (!left) {
			if (!s->stopped) {
				return 0;
			}
			finish(s);
			return 0;
		}
		enum pieces_rest rest = (uint64_t)n < left ? PIECES_WAIT :
			s->stopped ? PIECES_END :
			monotonic() - s->grown >= PIECE_AFTER_US ? PIECES_PAUSE : PIECES_WAIT;
		if (!pieces_take(s->mask, p, (size_t)n, rest, encode, s)) {
			return 0;
		}
	}
	return 0;
}

/* ---- the connection */

static void set_state(struct forward *f, struct sender *s, enum state state)
{
	f->hellos += (state == STATE_HELLO) - (s->state == STATE_HELLO);
	s->state = state;
}

/* When to come again, and the next pause twice as long. The senders of a thousand nodes lose their
 * daemon in one moment and must not all come back in one: half of a pause is left to chance. */
static ff_usec after(ff_usec *pause)
{
	uint32_t chance = 0;
	(void)getrandom(&chance, sizeof chance, GRND_NONBLOCK);
	ff_usec at = monotonic() + *pause / 2 + (ff_usec)chance % *pause;
	*pause = *pause * 2 < BACKOFF_LAST ? *pause * 2 : BACKOFF_LAST;
	return at;
}

static void disconnect(struct forward *f, struct sender *s, const char *why)
{
	close_fd(&s->sock);
	ff_buf_finish(&s->out); /* nobody needs its memory while there is no daemon */
	ff_buf_clear(&s->in);
	set_state(f, s, STATE_WAITING);
	s->ended = false;
	s->again = after(&s->backoff);
	if (f->alone_since == FF_TIME_NONE) {
		f->alone_since = monotonic();
	}
	if (why) {
		(void)snprintf(f->why, sizeof f->why, "%s", why);
	}
}

static void connect_sender(struct forward *f, struct sender *s)
{
	struct ff_err err = {0};
	s->sock = ff_addr_connect(&f->o.to, &err);
	if (s->sock < 0) {
		s->sock = -1;
		disconnect(f, s, err.text);
		f->next_try = after(&f->backoff);
		return;
	}
	(void)fcntl(s->sock, F_SETFL, fcntl(s->sock, F_GETFL) | O_NONBLOCK);
	ff_native_hello_render(&s->out, &s->hello);
	set_state(f, s, STATE_HELLO);
	s->pings = 0;
}

static void fail(struct forward *f, int status, const char *text)
{
	if (!f->status) {
		f->status = client_fail(status, text, status == CLIENT_NO_DAEMON ?
			"is firstfaultd running? FIRSTFAULT_ADDR says where it takes logs" : NULL);
	}
}

static int error_status(const char *code)
{
	if (!strcmp(code, "job-name") || !strcmp(code, "auth")) {
		return CLIENT_USAGE;
	}
	return !strcmp(code, "rank") ? CLIENT_INPUT : CLIENT_INTERNAL;
}

static void take_error(struct forward *f, struct sender *s, const struct ff_native_reply *r)
{
	struct ff_buf b = {0};
	ff_buf_addf(&b, "firstfaultd refuses \"%s\": %s", s->path, r->text);
	if (!strcmp(r->code, "busy")) {
		disconnect(f, s, b.p);
	} else if (s->spool && !s->live) {
		/* a token may be missing here and there be there for the next ship */
		client_warn("%s, its rest stays in \"%s\"", b.p, spool_folder(s->spool));
		if (strcmp(r->code, "auth") != 0) {
			spool_refuse(s->spool);
		}
		set_state(f, s, STATE_DONE);
		close_fd(&s->sock);
	} else {
		set_state(f, s, STATE_DONE);
		close_fd(&s->sock);
		fail(f, error_status(r->code), b.p);
	}
	ff_buf_finish(&b);
}

static void take_welcome(struct forward *f, struct sender *s, const struct ff_native_reply *r)
{
	if (s->spool && r->offsets[0] > s->size) {
		s->size = r->offsets[0]; /* what is here was stored, and the spool knew it */
	}
	if (r->offsets[0] > s->size) {
		/* it has more than there is: the file was cut, what it holds now is another life */
		s->generation++;
		make_source(s);
		disconnect(f, s, NULL);
		s->again = 0;
		return;
	}
	s->next = s->acked = r->offsets[0];
	s->max_unacked = r->max_unacked;
	set_state(f, s, STATE_SENDING);
	s->backoff = f->backoff = BACKOFF_FIRST;
	f->next_try = 0;
	s->next_ping = monotonic();
	f->alone_since = FF_TIME_NONE;
	f->met = true;
}

/* All of it is stored, or none of it ever will be. */
static void close_spool(struct sender *s, bool done)
{
	uint64_t dropped = s->spool ? spool_dropped(s->spool) : 0;
	if (dropped && done) {
		client_warn("%llu bytes of \"%s\" were dropped, the spool was full (--spool-max)",
			(unsigned long long)dropped, s->path);
	}
	if (s->spool) {
		spool_destroy(s->spool, done);
		s->spool = NULL;
	}
}

static void take_ack(struct forward *f, struct sender *s, const struct ff_native_reply *r)
{
	s->done = r->done[0];
	if (r->offsets[0] > s->acked) {
		s->acked = r->offsets[0];
		forget_acked(s);
		if (s->spool) {
			spool_forget(s->spool, s->acked);
		}
	}
	if (!s->ended || s->acked < s->size || !r->controls) {
		return;
	}
	close_fd(&s->sock);
	set_state(f, s, STATE_DONE);
	close_spool(s, true);
	if (s->replaced && f->o.follow && !stop) {
		close_fd(&s->file); /* the one that took its place is opened next */
		set_state(f, s, STATE_WAITING);
		s->again = 0;
	}
}

static void take_reply(struct forward *f, struct sender *s, struct ff_str line)
{
	struct ff_err err = {0};
	struct ff_native_reply r;
	struct ff_json *doc = ff_json_parse(line, &err);
	if (!doc || ff_native_reply_parse(ff_json_root(doc), 1, &r, &err) < 0) {
		struct ff_buf b = {0};
		ff_buf_addf(&b, "what answers is no firstfaultd: %s", err.text);
		fail(f, CLIENT_INTERNAL, b.p);
		ff_buf_finish(&b);
		ff_json_destroy(doc);
		return;
	}
	switch (r.kind) {
	case FF_NATIVE_REPLY_WELCOME:
		if (s->state == STATE_HELLO) {
			take_welcome(f, s, &r);
		}
		break;
	case FF_NATIVE_REPLY_ACK: take_ack(f, s, &r); break;
	case FF_NATIVE_REPLY_PONG:
		ff_native_clock_render(&s->out, r.t[0], r.t[1], r.t[2], wall());
		break;
	case FF_NATIVE_REPLY_ERROR: take_error(f, s, &r); break;
	case FF_NATIVE_REPLY_OTHER: break;
	}
	ff_json_destroy(doc);
}

/* The whole lines that came. */
static void take_replies(struct forward *f, struct sender *s)
{
	size_t at = 0;
	while (s->sock >= 0 && !f->status) {
		const char *lf = at < s->in.len ? memchr(s->in.p + at, '\n', s->in.len - at) : NULL;
		if (!lf) {
			break;
		}
		struct ff_buf line = {0};
		size_t n = (size_t)(lf - s->in.p) - at;
		ff_buf_add(&line, s->in.p + at, n);
		at += n + 1;
		take_reply(f, s, ff_buf_str(&line)); /* may close the connection */
		ff_buf_finish(&line);
	}
	if (s->sock >= 0) {
		ff_buf_consume(&s->in, at);
	} else {
		ff_buf_clear(&s->in);
	}
}

static void receive(struct forward *f, struct sender *s)
{
	char p[4096];
	ssize_t n = 1;
	int error = 0;
	while (n > 0 && s->in.len <= IN_MAX) {
		n = recv(s->sock, p, sizeof p, 0);
		error = n < 0 ? errno : 0;
		if (n > 0) {
			ff_buf_add(&s->in, p, (size_t)n);
		}
	}
	take_replies(f, s); /* what it said before it went, an error above all */
	if (s->sock < 0 || f->status) {
		return;
	}
	if (s->in.len > IN_MAX) {
		fail(f, CLIENT_INTERNAL, "what answers is no firstfaultd: its line has no end");
	} else if (!n && s->spool && s->ended && s->done >= s->size) {
		/* It has all there is and was told no end, so the text of a record that is open
		 * isn't acknowledged. It is in the daemon's segments, that rebuild it from them. */
		close_fd(&s->sock);
		set_state(f, s, STATE_DONE);
		close_spool(s, true);
	} else if (!n || (n < 0 && error != EAGAIN && error != EINTR)) {
		disconnect(f, s, n ? ff_strerror(-error) : "firstfaultd closed the connection");
	}
}

static void transmit(struct forward *f, struct sender *s)
{
	while (s->out.len) {
		ssize_t n = send(s->sock, s->out.p, s->out.len, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			return;
		}
		if (n < 0) {
			int error = errno;
			receive(f, s); /* an error line may still be there to be read */
			if (s->sock >= 0) {
				disconnect(f, s, ff_strerror(-error));
			}
			return;
		}
		ff_buf_consume(&s->out, (size_t)n);
	}
}

/* 8 in the first 8 s, then one a minute; only a sender that lives that long, on a named node. */
static void ping(const struct forward *f, struct sender *s, ff_usec now)
{
	bool lives = s->spool ? s->live : f->o.follow;
	if (!lives || s->state != STATE_SENDING || !s->hello.node || now < s->next_ping) {
		return;
	}
	ff_native_ping_render(&s->out, wall());
	s->pings++;
	s->next_ping = now + (s->pings < PINGS_FIRST ? 1 : 60) * FF_SECOND;
}

/* ---- all of them */

size_t forward_room(void)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) < 0) {
		return FORWARD_MAX / 8;
	}
	if (l.rlim_cur < FILES_WANTED && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max < FILES_WANTED ? l.rlim_max : FILES_WANTED;
		(void)setrlimit(RLIMIT_NOFILE, &l);
		(void)getrlimit(RLIMIT_NOFILE, &l);
	}
	size_t room = l.rlim_cur > FILES_SPARE + 2 ? (size_t)(l.rlim_cur - FILES_SPARE) / 2 : 1;
	return room < FORWARD_MAX ? room : FORWARD_MAX;
}

struct forward *forward_create(const struct forward_options *o)
{
	struct forward *f = ff_xcalloc(1, sizeof *f);
	f->o = *o;
	f->alone_since = FF_TIME_NONE;
	f->backoff = BACKOFF_FIRST;
	f->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return f;
}

void forward_destroy(struct forward *f)
{
	if (!f) {
		return;
	}
	for (size_t i = 0; i < f->n; i++) {
		sender_destroy(f->v[i]);
	}
	free(f->v);
	ff_map_finish(&f->paths);
	close_fd(&f->wake);
	free(f);
}

/* What stays of a file when it gets another name: its inode and when that was made. */
static bool file_key(const char *path, struct ff_buf *ret)
{
	struct statx st;
	if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &st) < 0 ||
		!(st.stx_mask & STATX_BTIME)) {
		return false;
	}
	ff_buf_addf(ret, "\1%x:%x:%llx:%llx.%x", st.stx_dev_major, st.stx_dev_minor,
		    (unsigned long long)st.stx_ino, (unsigned long long)st.stx_btime.tv_sec,
		    st.stx_btime.tv_nsec);
	return true;
}

bool forward_knows(const struct forward *f, const char *path)
{
	struct ff_buf key = {0};
	bool known = ff_map_get(&f->paths, ff_str_z(path)) ||
		(file_key(path, &key) && ff_map_get(&f->paths, ff_buf_str(&key)));
	ff_buf_finish(&key);
	return known;
}

/* The file that stands at the path now: known under any name that it may get. */
static void know_file(struct forward *f, struct sender *s)
{
	struct ff_buf key = {0};
	if (file_key(s->path, &key)) {
		(void)ff_map_put(&f->paths, ff_buf_str(&key), f);
	}
	ff_buf_finish(&key);
}

int forward_wake(const struct forward *f)
{
	return f->wake;
}

/* It is done: it keeps nothing, and its heir's turn has come. */
static void settle(struct forward *f, struct sender *s)
{
	close_fd(&s->file);
	ff_buf_finish(&s->out);
	ff_buf_finish(&s->in);
	if (s->heir) {
		s->heir->waits = false;
		s->heir = NULL;
		f->nheirs--;
	}
}

/* Those that are done go, so that rotation for months costs nothing. */
static void sweep(struct forward *f)
{
	size_t kept = 0;
	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i]->state == STATE_DONE) {
			settle(f, f->v[i]);
			sender_destroy(f->v[i]);
		} else {
			f->v[kept++] = f->v[i];
		}
	}
	f->n = kept;
}

static struct sender *add(
	struct forward *f, const char *path, const struct ff_native_hello *hello)
{
	struct sender *s = ff_xcalloc(1, sizeof *s);
	s->path = ff_xstrdup(path);
	s->mask = f->o.mask;
	s->hello = *hello;
	s->hello.job = ff_xstrdup(hello->job);
	s->hello.node = ff_xstrdup(hello->node);
	s->hello.kind = ff_xstrdup(hello->kind);
	s->hello.run = ff_xstrdup(hello->run);
	s->hello.token = ff_xstrdup(hello->token);
	s->hello.nstreams = 1;
	s->hello.streams[0] = ff_xstrdup(hello->streams[0]);
	s->hello.fds[0] = ff_xstrdup(hello->fds[0]);
	s->file = s->sock = -1;
	s->backoff = BACKOFF_FIRST;
	s->state = STATE_WAITING;
	*FF_ARR_ADD(f->v, f->n, f->cap) = s;
	return s;
}

void forward_add(struct forward *f, const char *path, const struct ff_native_hello *hello)
{
	(void)add(f, path, hello);
	(void)ff_map_put(&f->paths, ff_str_z(path), f);
}

void forward_add_spool(struct forward *f, struct spool *spool, const char *shown, bool live,
	const char *token)
{
	struct ff_native_hello h = *spool_hello(spool);
	h.token = token;
	struct sender *s = add(f, shown, &h);
	(void)snprintf(s->source, sizeof s->source, "%s", h.source);
	s->hello.source = s->source;
	s->spool = spool;
	s->live = live;
	f->nlive += live;
}

bool forward_has(const struct forward *f, const struct spool *spool)
{
	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i]->spool == spool) {
			return true;
		}
	}
	return false;
}

/* Before the first hello the file is opened; a file that can't be is left out, with its message. */
static void start(struct forward *f, struct sender *s)
{
	struct ff_err err = {0};
	if (s->file < 0 && !s->spool) {
		if (begin_file(s, &err) < 0) {
			set_state(f, s, STATE_DONE);
			fail(f, CLIENT_IO, err.text);
			return;
		}
		know_file(f, s);
		s->stopped = !f->o.follow;
	}
	connect_sender(f, s);
}

/* While nobody answers one sender tries for all; then they come a few at a time, so that those who
 * are welcome already get a word in between. */
static bool may_connect(const struct forward *f, const struct sender *s, ff_usec now)
{
	unsigned most = f->alone_since == FF_TIME_NONE ? HELLOS_AT_ONCE : 1;
	return !s->waits && now >= s->again && now >= f->next_try && f->hellos < most;
}

/* The daemon answers the end of what it reads with its last word. */
static void end_input(struct sender *s)
{
	bool said;
	(void)spool_size(s->spool, &said);
	if (!said) {
		(void)shutdown(s->sock, SHUT_WR);
	}
}

/* Everything a sender can do without waiting; true while it counts as one of those at once. */
static bool step(struct forward *f, struct sender *s, ff_usec now, bool tick)
{
	struct ff_err err = {0};
	if (s->state == STATE_WAITING && may_connect(f, s, now)) {
		start(f, s);
	}
	if (s->state == STATE_DONE) {
		settle(f, s);
		return false;
	}
	if (s->file >= 0 && f->o.follow) {
		if (tick) {
			look_at(f, s);
		}
		s->stopped = s->stopped || stop;
	}
	ping(f, s, now);
	if (s->spool) {
		fill_spool(s);
	} else if (fill(s, f->o.follow, &err) < 0) {
		set_state(f, s, STATE_DONE);
		close_fd(&s->sock);
		fail(f, CLIENT_IO, err.text);
		return false;
	}
	if (s->sock >= 0) {
		transmit(f, s);
	}
	if (s->sock >= 0 && s->spool && !s->live && s->ended && !s->out.len) {
		end_input(s);
	}
	if (s->state == STATE_DONE) {
		settle(f, s);
	}
	return s->state != STATE_DONE;
}

/* Is a pipe still open? Its writer must not be left alone. */
static bool is_fed(const struct forward *f)
{
	bool fed = false, ended;
	for (size_t i = 0; f->nlive && i < f->n && !fed; i++) {
		fed = f->v[i]->live && f->v[i]->spool &&
			(spool_size(f->v[i]->spool, &ended), !ended);
	}
	return fed;
}

/* Has nobody answered for too long? */
static bool is_over(struct forward *f, ff_usec now)
{
	if (f->status) {
		return true;
	}
	if (stop && (f->o.follow || f->nlive) && now >= f->drain_until) {
		fail(f, CLIENT_NO_DAEMON, "stopped before everything was acknowledged");
		return true;
	}
	if (f->alone_since == FF_TIME_NONE || (f->o.follow && !stop)) {
		return false;
	}
	if (is_fed(f) && !stop) {
		f->alone_since = now; /* the time that is given up after begins with its end */
		return false;
	}
	if ((!f->met && !f->nlive) || now - f->alone_since >= f->o.give_up_us) {
		fail(f, CLIENT_NO_DAEMON, f->why);
		return true;
	}
	return false;
}

static void wait_for(struct forward *f, size_t from, size_t to)
{
	static struct pollfd fds[FORWARD_MAX + 1];
	nfds_t n = 0;
	uint64_t woken;
	for (size_t i = from; i < to && n < FORWARD_MAX; i++) {
		if (f->v[i]->sock >= 0) {
			short events = (short)(POLLIN | (f->v[i]->out.len ? POLLOUT : 0));
			fds[n++] = (struct pollfd){f->v[i]->sock, events, 0};
		}
	}
	fds[n] = (struct pollfd){f->wake, POLLIN, 0};
	if (poll(fds, n + 1, TICK_US / 1000) <= 0) {
		return;
	}
	(void)!read(f->wake, &woken, sizeof woken);
	n = 0;
	for (size_t i = from; i < to && n < FORWARD_MAX; i++) {
		struct sender *s = f->v[i];
		if (s->sock >= 0 && fds[n].fd == s->sock) {
			if (fds[n].revents & (POLLIN | POLLHUP | POLLERR)) {
				receive(f, s);
			}
			n++;
		}
	}
}

int forward_run(struct forward *f)
{
	size_t from = 0;
	const size_t at_once = forward_room();
	f->next_look = monotonic() + LOOK_US;
	while (!f->status) {
		ff_usec now = monotonic();
		size_t alive = 0, to;
		bool tick = now >= f->next_tick;
		if (!stop) {
			f->drain_until = now + DRAIN_US;
		}
		f->next_tick = tick ? now + TICK_US : f->next_tick;
		if (f->o.follow && f->o.look && !stop && now >= f->next_look) {
			f->o.look(f->o.ud);
			f->next_look = now + LOOK_US;
		}
		for (to = from; to < f->n && alive < at_once; to++) {
			alive += step(f, f->v[to], now, tick);
		}
		while (from < to && f->v[from]->state == STATE_DONE) {
			from++;
		}
		if (tick && f->o.follow) {
			sweep(f);
			from = 0;
			to = to < f->n ? to : f->n;
		}
		if (is_over(f, now) || (from == f->n && (!f->o.follow || stop))) {
			break;
		}
		wait_for(f, from, to);
	}
	return f->status;
}
