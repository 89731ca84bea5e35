#include "conn.h"

#include "access.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "clock.h"
#include "feed/intake.h"
#include "feeder.h"
#include "ledger.h"
#include "shell/log.h"
#include "wire/native.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#define ACK_US ((ff_usec)100000)   /* least time between two acks */
#define FIRST_LINE_US FF_SECOND    /* then the dialect is raw */
#define REFUSAL_US FF_SECOND       /* after it a wrong token is answered */
#define LINGER_US FF_SECOND        /* for the peer to read our last words */
#define OUTPUT_MAX (1024u * 1024u) /* bytes that the peer has not read */
#define OUTPUT_BUSY (64u * 1024u)  /* then an ack can wait: the next one says more */
#define DEAF_US (5 * FF_SECOND)    /* an ack waits no longer for a peer that reads nothing */
#define REFUSED_MAX 64u            /* that are told so at one time; others are closed */
#define SHARE 4u                   /* one user leaves a fourth of the places to others */
#define EVICT_US (2 * FF_SECOND)   /* so old is who makes room without a word said */
#define LOOK_US (FF_SECOND / 10)   /* between two looks for such ones */

/* A peer that is gone without a word is found out in about two minutes. */
#define KEEPALIVE_SECONDS 60
#define KEEPALIVE_INTERVAL 10
#define KEEPALIVE_PROBES 6
#define UNREAD_MS 120000 /* TCP gives up on what the peer's machine does not confirm */

enum conn_state {
	CONN_OPEN,
	CONN_DRAINING, /* the peer has ended: the last ack goes when all is committed */
	CONN_REFUSED,  /* it showed a wrong token, and is told so a little later */
	CONN_LEAVING,  /* our last words are on their way; what still comes is thrown away */
	CONN_CLOSED,   /* the close callback will free it */
};

struct conn {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} h;
	struct server *server;
	struct conn *prev, *next; /* the server's list */
	struct conn *next_ack;    /* its list of those with something to acknowledge */
	struct conn *next_doomed;
	struct conn *next_paused;
	bool in_acks, in_doomed, in_paused;
	enum conn_state state;
	bool is_tcp, reading;
	bool stranger;   /* it wanted to speak without a token */
	bool slow;       /* with a wrong one */
	bool ended;      /* its intake was told the end */
	bool peer_ended; /* nothing more comes from the peer */
	bool shut;       /* all that was written is out */
	bool broken;     /* the peer is gone without a word: counted */
	bool behind;     /* the peer sends again what is stored: see is_behind */
	uint64_t id;
	struct ff_intake *intake;
	char peer[80];
	struct access_peer who;
	struct ff_buf late; /* what it is told when it was refused */
	ff_usec accepted_us;                     /* the loop's time */
	ff_usec begun_us;                        /* likewise, of its first byte */
	ff_usec deaf_us;                         /* since when it reads nothing of much; 0 */
	ff_usec acked_us, deadline_us;           /* likewise */
	uint64_t marked;                         /* control objects told to the ledger */
	uint64_t stored;                         /* of them committed */
	uint64_t acked;                          /* of them acknowledged */
	const char *error;                       /* the intake closed it; NULL */
	struct ledger_wait wait;
	uv_shutdown_t shutdown;
	uint64_t bytes;
};

static void release(struct conn *c);
static void let_go(struct conn *c, bool shared);

struct conn *conn_next(const struct conn *c)
{
	return c->next;
}

bool conn_is_native(const struct conn *c)
{
	return ff_intake_dialect(c->intake) == FF_DIALECT_NATIVE;
}

static ff_usec loop_now(const struct conn *c)
{
	return (ff_usec)uv_now(&c->server->d->loop) * 1000;
}

/* ---- output */

struct output {
	uv_write_t req;
	struct conn *c;
	char bytes[];
};

/* The peer is gone without a word. Whoever meets it first, reading or writing, takes the error off
 * the socket: the other sees an ordinary end. */
static void count_broken(struct conn *c)
{
	if (!c->broken) {
		c->broken = true;
		c->server->d->counts[DAEMON_COUNT_connections_broken]++;
	}
}

static bool is_broken(int status)
{
	return status == UV_EPIPE || status == UV_ECONNRESET;
}

static void on_written(uv_write_t *req, int status)
{
	struct output *o = req->data;
	if (is_broken(status)) {
		count_broken(o->c);
	}
	free(o);
}

static void write_bytes(struct conn *c, struct ff_str s)
{
	if (c->state == CONN_CLOSED || !s.n) {
		return;
	}
	uv_buf_t buf = uv_buf_init((char *)s.p, (unsigned)s.n);
	int n = uv_try_write(&c->h.stream, &buf, 1);
	if (is_broken(n)) {
		count_broken(c);
		return;
	}
	s = ff_str_skip(s, n > 0 ? (size_t)n : 0);
	if (!s.n) {
		return;
	}
	struct output *o = ff_xmalloc(sizeof *o + s.n);
	memcpy(o->bytes, s.p, s.n);
	o->req.data = o;
	o->c = c;
	buf = uv_buf_init(o->bytes, (unsigned)s.n);
	if (uv_write(&o->req, &c->h.stream, &buf, 1, on_written) < 0) {
		free(o);
	}
}

/* ---- closing */

static void on_closed(uv_handle_t *handle)
{
	struct conn *c = handle->data;
	ff_intake_destroy(c->intake);
	ff_buf_finish(&c->late);
	free(c);
}

static void unlink_ack(struct conn *c)
{
	for (struct conn **p = &c->server->acks; c->in_acks && *p; p = &(*p)->next_ack) {
		if (*p == c) {
			*p = c->next_ack;
			c->in_acks = false;
			return;
		}
	}
}

static void unlink_doomed(struct conn *c)
{
	for (struct conn **p = &c->server->doomed; c->in_doomed && *p; p = &(*p)->next_doomed) {
		if (*p == c) {
			*p = c->next_doomed;
			c->in_doomed = false;
			return;
		}
	}
}

static void unlink_paused(struct conn *c)
{
	for (struct conn **p = &c->server->paused; c->in_paused && *p; p = &(*p)->next_paused) {
		if (*p == c) {
			*p = c->next_paused;
			c->in_paused = false;
			return;
		}
	}
}

static void unlink_conn(struct conn *c)
{
	struct server *s = c->server;
	*(c->prev ? &c->prev->next : &s->conns) = c->next;
	if (c->next) {
		c->next->prev = c->prev;
	}
	unlink_ack(c);
	unlink_doomed(c);
	unlink_paused(c);
	(void)ff_map_del(&s->by_id, ff_str_n(&c->id, sizeof c->id));
	s->nconns--;
}

void conn_close(struct conn *c)
{
	if (c->state == CONN_CLOSED) {
		return;
	}
	ff_log_debug("conn", "peer=%s bytes=%llu closed", c->peer, (unsigned long long)c->bytes);
	release(c);
	let_go(c, false);
	ledger_forget(c->server->d->ledger, &c->wait);
	unlink_conn(c);
	c->state = CONN_CLOSED;
	uv_close(&c->h.handle, on_closed);
}

/* Not now: this connection may be on the stack. */
static void doom(struct conn *c)
{
	if (!c->in_doomed) {
		c->in_doomed = true;
		c->next_doomed = c->server->doomed;
		c->server->doomed = c;
	}
}

void server_bury(struct server *s)
{
	while (s->doomed) {
		conn_close(s->doomed); /* leaves the list */
	}
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
	struct conn *c = req->data;
	c->shut = true;
	if (c->state == CONN_LEAVING && (status < 0 || c->peer_ended)) {
		conn_close(c);
	}
}

/* What was written goes out, then the connection ends; the peer has a moment to read it. */
static void leave(struct conn *c)
{
	if (c->state >= CONN_LEAVING) {
		return;
	}
	c->state = CONN_LEAVING;
	c->deadline_us = loop_now(c) + LINGER_US;
	c->shutdown.data = c;
	if (uv_shutdown(&c->shutdown, &c->h.stream, on_shutdown) < 0) {
		doom(c);
	}
	if (!c->peer_ended) {
		conn_hold(c, false); /* reads on, so that the peer is not cut off by a reset */
	}
	server_need_timer(c->server);
}

/* ---- acks */

/* A native peer begins at `resume` and sends again what is stored behind it. Until that has come no
 * ack is sent: it would say less than an earlier one, or speak of what did not come this time. */
static bool is_behind(const struct conn *c)
{
	size_t n;
	const struct ff_intake_stream *streams = ff_intake_streams(c->intake, &n);
	for (size_t i = 0; i < n && conn_is_native(c); i++) {
		const struct stream_state *ss = streams[i].stream ? streams[i].stream->user : NULL;
		if (ss && streams[i].pos < ss->done) {
			return true;
		}
	}
	return false;
}

/* One line (JSON Lines: one for each stream) with what is committed by now. */
static void send_ack(struct conn *c)
{
	size_t n;
	const struct ff_intake_stream *streams = ff_intake_streams(c->intake, &n);
	c->behind = is_behind(c);
	if (c->behind) {
		return;
	}
	uint64_t *resume = ff_xcalloc(n + 1, sizeof *resume);
	uint64_t *done = ff_xcalloc(n + 1, sizeof *done);
	bool native = conn_is_native(c); /* tells all of them each time, others what is new */
	bool changed = c->stored != c->acked;
	for (size_t i = 0; i < n; i++) {
		struct stream_state *ss = streams[i].stream ? streams[i].stream->user : NULL;
		if (ss) {
			bool is_new = ss->acked_resume != ss->resume;
			resume[i] = native || is_new ? ss->resume : FF_INTAKE_SAID;
			done[i] = ss->done;
			changed = changed || is_new || ss->acked_done != done[i];
			ss->acked_resume = ss->resume;
			ss->acked_done = done[i];
		}
	}
	if (changed) {
		struct ff_buf out = {0};
		ff_intake_ack(c->intake, resume, done, c->stored, &out);
		write_bytes(c, ff_buf_str(&out));
		ff_buf_finish(&out);
		c->acked = c->stored;
		c->acked_us = loop_now(c);
	}
	free(resume);
	free(done);
}

void conn_committed(struct conn *c)
{
	if (!c->in_acks && c->state < CONN_LEAVING) {
		c->in_acks = true;
		c->next_ack = c->server->acks;
		c->server->acks = c;
	}
}

void conn_controls(struct server *server, uint64_t id, uint64_t controls)
{
	struct conn *c = ff_map_get(&server->by_id, ff_str_n(&id, sizeof id));
	if (c) {
		c->stored = controls;
		conn_committed(c);
	}
}

/* Has the peer said `end`? (native: for all its streams at once) */
static bool has_ended(const struct conn *c)
{
	size_t n;
	const struct ff_intake_stream *streams = ff_intake_streams(c->intake, &n);
	return conn_is_native(c) && n && streams[0].ended;
}

/* Does it leave unread what it was told? It is closed if it goes on like that. */
static bool is_deaf(struct conn *c, ff_usec now)
{
	if (uv_stream_get_write_queue_size(&c->h.stream) <= OUTPUT_BUSY) {
		c->deaf_us = 0;
		return false;
	}
	c->deaf_us = c->deaf_us ? c->deaf_us : now;
	if (now - c->deaf_us >= DEAF_US && !c->in_doomed) {
		c->server->d->counts[DAEMON_COUNT_connections_slow]++;
		doom(c);
	}
	return true;
}

static bool is_ack_due(struct conn *c, ff_usec now)
{
	if (is_deaf(c, now)) {
		return false;
	}
	return (c->stored != c->acked && has_ended(c)) || now - c->acked_us >= ACK_US;
}

void server_acks(struct server *s)
{
	struct conn *c = s->acks;
	s->acks = NULL;
	while (c) {
		struct conn *next = c->next_ack;
		c->in_acks = false;
		if (is_ack_due(c, loop_now(c))) {
			send_ack(c);
		} else {
			conn_committed(c);
			server_need_timer(s);
		}
		c = next;
	}
	server_bury(s);
}

/* ---- what the intake says */

static void say(struct conn *c, struct ff_str bytes)
{
	if (c->slow) {
		ff_buf_adds(&c->late, bytes);
	} else {
		write_bytes(c, bytes);
	}
}

static void on_reply(void *ud, struct ff_str bytes)
{
	struct conn *c = ud;
	if (c->in_doomed) {
		return; /* it reads nothing: no more is kept for it */
	}
	say(c, bytes);
	if (c->state != CONN_CLOSED && uv_stream_get_write_queue_size(&c->h.stream) > OUTPUT_MAX) {
		c->server->d->counts[DAEMON_COUNT_connections_slow]++;
		doom(c);
	}
}

static void on_intake_closing(void *ud, const char *reason)
{
	struct conn *c = ud;
	c->error = reason;
}

static void take_over(struct conn *c, struct stream_state *ss)
{
	struct conn *old = ss->conn;
	if (!feeder_is_shared(ss) && old && old != c) {
		ff_intake_forget(old->intake, ss->stream);
		ff_log_info("conn", "peer=%s stream=%s was taken over by peer=%s", old->peer,
			ss->stream->key, c->peer);
		c->server->d->counts[DAEMON_COUNT_taken_over]++;
		doom(old);
	}
	ss->conn = c;
}

static void on_opened(void *ud, struct ff_run *run, struct ff_stream *s)
{
	struct conn *c = ud;
	struct stream_state *ss = ledger_stream(c->server->d->ledger, run, s);
	feeder_open(ss, &c->who);
	take_over(c, ss);
	/* nothing of it was acknowledged on this connection */
	ss->acked_resume = ss->acked_done = UINT64_MAX;
	c->behind = c->behind || ff_stream_resume(s) < ss->done;
}

static void on_text(void *ud, struct ff_run *run, struct ff_stream *s, const struct ff_chunk *chunk)
{
	const struct conn *c = ud;
	ledger_text(c->server->d->ledger, run, s, chunk);
}

static void on_changed(void *ud, struct ff_run *run)
{
	const struct conn *c = ud;
	struct ledger *l = c->server->d->ledger;
	access_claim(&c->who, run, ledger_run(l, run)); /* a job-start alone makes a run too */
	ledger_changed(l, run);
}

static bool on_named(void *ud, struct ff_run *run, int64_t uid)
{
	const struct conn *c = ud;
	return feeder_name(c->server->d, &c->who, uid, run);
}

/* Over TCP the first good token says who the peer is; on a unix socket the kernel has said it. */
static void show_token(struct conn *c, struct ff_str token)
{
	struct daemon *d = c->server->d;
	if (!c->is_tcp || c->who.uid >= 0) {
		return;
	}
	if (!access_show(d->access, token, &c->who)) {
		d->counts[DAEMON_COUNT_tokens_bad]++;
		c->slow = !c->who.admitted;
		return;
	}
	ff_intake_own(c->intake, c->who.uid);
	if (c->who.trusted) {
		ff_intake_trust(c->intake);
	}
}

static bool on_admit(void *ud, struct ff_str token, const char *job)
{
	struct conn *c = ud;
	if (token.n) {
		show_token(c, token);
	}
	c->stranger = c->stranger || !c->who.admitted;
	return access_may_job(&c->who, &c->server->d->runs, job);
}

static bool on_may_feed(void *ud, const struct ff_run *run)
{
	const struct conn *c = ud;
	return access_may(&c->who, run);
}

static const struct ff_intake_ops intake_ops = {
	.reply = on_reply,
	.closing = on_intake_closing,
	.opened = on_opened,
	.text = on_text,
	.changed = on_changed,
	.named = on_named,
	.admit = on_admit,
	.may_feed = on_may_feed,
};

/* ---- input */

/* What is committed from now on is no news for it: of streams that are nobody's alone, or of all.
 */
static void let_go(struct conn *c, bool shared)
{
	size_t n = 0;
	const struct ff_intake_stream *streams =
		c->intake ? ff_intake_streams(c->intake, &n) : NULL;
	for (size_t i = 0; i < n; i++) {
		struct stream_state *ss = streams[i].stream ? streams[i].stream->user : NULL;
		if (ss && ss->conn == c && (!shared || feeder_is_shared(ss))) {
			ss->conn = NULL;
		}
	}
}

/* It speaks for nobody any more: its streams have ended or vanished. */
static void release(struct conn *c)
{
	if (c->ended || !c->intake) {
		return;
	}
	c->ended = true;
	let_go(c, true); /* of those that others go on with the intake knows nothing any more */
	feeder_release(c->server->d->ledger, c->intake);
}

/* Facts can change without a word of it (a clock object). */
static void look_for_facts(struct conn *c)
{
	size_t n;
	const struct ff_intake_stream *streams = ff_intake_streams(c->intake, &n);
	const struct ff_run *last = NULL;
	for (size_t i = 0; i < n; i++) {
		if (streams[i].run && streams[i].run != last && streams[i].run->dirty) {
			ledger_changed(c->server->d->ledger, streams[i].run);
		}
		last = streams[i].run;
	}
}

/* Bytes that are stored already make no commit, whose end would make an ack. */
static void catch_up(struct conn *c)
{
	c->behind = is_behind(c);
	if (!c->behind) {
		conn_committed(c);
		server_need_timer(c->server);
	}
}

/* A peer over TCP that showed no token: nothing of it is taken, and it learns nothing else. (A
 * native one was told already.) */
static void turn_away(struct conn *c)
{
	struct ff_buf out = {0};
	if (!c->stranger || c->error || c->state != CONN_OPEN) {
		return;
	}
	ff_native_error_render(&out, FF_NATIVE_AUTH, "this port takes nothing without a token");
	say(c, ff_buf_str(&out));
	ff_buf_finish(&out);
	c->error = ff_native_error_name(FF_NATIVE_AUTH);
}

/* Who guesses tokens waits for each answer. */
static void refuse_late(struct conn *c)
{
	c->state = CONN_REFUSED;
	c->deadline_us = loop_now(c) + REFUSAL_US;
	conn_hold(c, true);
	server_need_timer(c->server);
}

static void after_feed(struct conn *c)
{
	uint64_t controls = ff_intake_controls(c->intake);
	look_for_facts(c);
	if (c->behind) {
		catch_up(c);
	}
	if (controls != c->marked) {
		c->marked = controls;
		ledger_mark(c->server->d->ledger, c->id, controls);
	}
	turn_away(c);
	if (c->error && c->state == CONN_OPEN) {
		ff_log_warn("conn", "peer=%s dialect=%s was closed: %s", c->peer,
			ff_dialect_name(ff_intake_dialect(c->intake)), c->error);
		release(c);
		if (c->slow) {
			refuse_late(c);
		} else {
			leave(c);
		}
	}
}

static void on_all_stored(void *ud)
{
	struct conn *c = ud;
	send_ack(c);
	leave(c);
}

/* The peer has nothing more to say; it may still listen. */
static void on_eof(struct conn *c)
{
	(void)uv_read_stop(&c->h.stream);
	c->reading = false;
	c->peer_ended = true;
	release(c);
	after_feed(c);
	if (c->state != CONN_OPEN) {
		return;
	}
	c->state = CONN_DRAINING;
	c->wait = (struct ledger_wait){ledger_next(c->server->d->ledger), on_all_stored, c, NULL};
	ledger_wait(c->server->d->ledger, &c->wait);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct conn *c = handle->data;
	*buf = uv_buf_init(c->server->buffer, sizeof c->server->buffer);
}

/* A full buffer: the next one comes when all others had theirs. */
static void pause_reading(struct conn *c)
{
	(void)uv_read_stop(&c->h.stream);
	c->reading = false;
	if (!c->in_paused) {
		c->in_paused = true;
		c->next_paused = c->server->paused;
		c->server->paused = c;
	}
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct conn *c = stream->data;
	struct server *s = c->server;
	if (c->state == CONN_CLOSED || n == 0) {
		return;
	}
	if (c->state == CONN_LEAVING) {
		if (n == UV_EOF && !c->shut) {
			c->peer_ended = true;
			(void)uv_read_stop(stream);
		} else if (n < 0) {
			conn_close(c);
		}
		return;
	}
	if (n > 0) {
		c->begun_us = c->bytes ? c->begun_us : loop_now(c);
		c->bytes += (uint64_t)n;
		ff_intake_feed(c->intake, buf->base, (size_t)n, clock_wall());
		after_feed(c);
		if ((size_t)n == buf->len && c->state == CONN_OPEN) {
			pause_reading(c);
		}
		if (ff_intake_dialect(c->intake) == FF_DIALECT_NONE) {
			server_need_timer(s);
		}
	} else if (n == UV_EOF) {
		on_eof(c);
	} else {
		count_broken(c);
		conn_close(c);
	}
	server_bury(s);
}

struct conn *conn_resume(struct conn *c)
{
	struct conn *next = c->next_paused;
	c->in_paused = false;
	conn_hold(c, c->server->held);
	return next;
}

void conn_hold(struct conn *c, bool hold)
{
	bool wanted = c->state == CONN_LEAVING || (c->state == CONN_OPEN && !hold);
	if (wanted == c->reading || c->state == CONN_CLOSED || c->state == CONN_DRAINING) {
		return;
	}
	c->reading = wanted;
	if (!wanted) {
		(void)uv_read_stop(&c->h.stream);
	} else if (uv_read_start(&c->h.stream, on_alloc, on_read) < 0) {
		doom(c);
	}
}

bool conn_tick(struct conn *c, ff_usec now)
{
	bool undecided = c->state == CONN_OPEN && c->bytes &&
		ff_intake_dialect(c->intake) == FF_DIALECT_NONE;
	if (c->state == CONN_LEAVING && now >= c->deadline_us) {
		doom(c);
	}
	if (c->state == CONN_REFUSED && now >= c->deadline_us) {
		write_bytes(c, ff_buf_str(&c->late));
		leave(c);
	}
	if (undecided && !c->server->held && now - c->begun_us >= FIRST_LINE_US) {
		ff_intake_settle(c->intake, clock_wall());
		after_feed(c);
		undecided =
			c->state == CONN_OPEN && ff_intake_dialect(c->intake) == FF_DIALECT_NONE;
	}
	return undecided || c->state == CONN_LEAVING || c->state == CONN_REFUSED;
}

void conn_drop_run(struct server *server, const struct ff_run *run)
{
	for (struct conn *c = server ? server->conns : NULL; c; c = c->next) {
		if (c->state == CONN_CLOSED || !c->intake) {
			continue;
		}
		ff_intake_forget_run(c->intake, run);
		if (c->error && c->state == CONN_OPEN) { /* it had no other */
			release(c);
			leave(c);
		}
	}
	if (server) {
		server_bury(server);
	}
}

static void dismiss(struct conn *c)
{
	struct ff_buf out = {0};
	ff_native_error_render(&out, FF_NATIVE_AUTH, "what you may do has changed");
	write_bytes(c, ff_buf_str(&out));
	ff_buf_finish(&out);
	c->server->d->counts[DAEMON_COUNT_rights_lost]++;
	ff_log_warn("conn", "peer=%s was closed: its token or its rights are gone", c->peer);
	release(c);
	leave(c);
}

void conn_look_at_rights(struct server *server)
{
	for (struct conn *c = server ? server->conns : NULL; c; c = c->next) {
		uv_os_fd_t fd = -1;
		bool known = c->is_tcp || uv_fileno(&c->h.handle, &fd) == 0;
		if (c->state == CONN_OPEN && known &&
			!access_holds(server->d->access, &c->who, fd)) {
			dismiss(c);
		}
	}
	if (server) {
		server_bury(server);
	}
}

/* ---- life */

static void keep_alive(int fd)
{
	static const struct {
		int level, option, value;
	} set[] = {
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_SECONDS},
		{IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL},
		{IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, UNREAD_MS},
	};
	for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
		(void)setsockopt(
			fd, set[i].level, set[i].option, &set[i].value, sizeof set[i].value);
	}
}

static void name_peer(struct conn *c)
{
	uv_os_fd_t fd;
	(void)snprintf(c->peer, sizeof c->peer, "unknown");
	c->who = access_remote(c->server->d->access);
	if (uv_fileno(&c->h.handle, &fd) < 0) {
		return;
	}
	if (!c->is_tcp) {
		c->who = access_local(c->server->d->access, fd);
		(void)snprintf(c->peer, sizeof c->peer, "uid-%lld", (long long)c->who.uid);
		return;
	}
	struct sockaddr_storage addr;
	int n = sizeof addr;
	if (uv_tcp_getpeername(&c->h.tcp, (struct sockaddr *)&addr, &n) < 0) {
		return;
	}
	if (addr.ss_family == AF_INET6) {
		(void)uv_ip6_name((const struct sockaddr_in6 *)&addr, c->peer, sizeof c->peer);
	} else {
		(void)uv_ip4_name((const struct sockaddr_in *)&addr, c->peer, sizeof c->peer);
	}
	keep_alive(fd);
}

static void refuse(struct conn *c)
{
	struct ff_buf out = {0};
	c->server->d->counts[DAEMON_COUNT_connections_refused]++;
	ff_native_error_render(
		&out, FF_NATIVE_BUSY, "the daemon has as many connections as it takes");
	write_bytes(c, ff_buf_str(&out));
	ff_buf_finish(&out);
	leave(c);
}

static void link_conn(struct conn *c)
{
	struct server *s = c->server;
	c->next = s->conns;
	if (s->conns) {
		s->conns->prev = c;
	}
	s->conns = c;
	s->nconns++;
	c->id = ++s->last_id;
	(void)ff_map_put(&s->by_id, ff_str_n(&c->id, sizeof c->id), c);
}

/* All places are taken: the oldest one that never said anything gives its up. (A timer would close
 * the pipe of a job that is quiet for long.) */
static void make_room(struct server *s, ff_usec now)
{
	struct conn *oldest = NULL;
	if (now - s->evicted_us < LOOK_US) {
		return;
	}
	s->evicted_us = now;
	for (struct conn *c = s->conns; c; c = c->next) { /* newest first */
		bool idle = c->state == CONN_OPEN && !c->bytes && now - c->accepted_us >= EVICT_US;
		oldest = idle ? c : oldest;
	}
	if (oldest) {
		s->d->counts[DAEMON_COUNT_connections_idle]++;
		conn_close(oldest);
	}
}

/* Has this user more than his share? Those that root and the daemon's user have are the machine's.
 */
static size_t over_share(const struct server *s, const struct conn *c)
{
	size_t own = 0, share = s->conns_max - s->conns_max / SHARE;
	if (c->is_tcp || c->who.host || s->nconns <= share) {
		return 0;
	}
	for (const struct conn *o = s->conns; o; o = o->next) {
		own += !o->is_tcp && o->who.uid == c->who.uid;
	}
	return own > share ? own - share : 0;
}

static int open_handle(struct conn *c, int fd)
{
	return c->is_tcp ? uv_tcp_open(&c->h.tcp, fd) : uv_pipe_open(&c->h.pipe, fd);
}

static struct conn *create(struct server *server, bool tcp, ff_usec now)
{
	struct conn *c = ff_xcalloc(1, sizeof *c);
	uv_loop_t *loop = &server->d->loop;
	int r = tcp ? uv_tcp_init(loop, &c->h.tcp) : uv_pipe_init(loop, &c->h.pipe, 0);
	if (r < 0) {
		free(c);
		return NULL;
	}
	c->h.handle.data = c;
	c->server = server;
	c->is_tcp = tcp;
	c->accepted_us = now;
	link_conn(c);
	return c;
}

void conn_accept(struct server *server, int fd, bool tcp)
{
	struct daemon *d = server->d;
	ff_usec now = (ff_usec)uv_now(&d->loop) * 1000;
	d->counts[DAEMON_COUNT_connections]++;
	if (server->nconns >= server->conns_max) {
		make_room(server, now);
	}
	if (server->nconns >= server->conns_max + REFUSED_MAX) {
		d->counts[DAEMON_COUNT_connections_refused]++;
		close(fd);
		return;
	}
	struct conn *c = create(server, tcp, now);
	if (!c || open_handle(c, fd) < 0) { /* neither fails on Linux */
		close(fd);
		if (c) {
			conn_close(c);
		}
		return;
	}
	name_peer(c);
	ff_log_debug("conn", "peer=%s connected", c->peer);
	c->intake = ff_intake_create(&d->runs,
		&(struct ff_intake_options){
			.default_job = d->config->default_job,
			.peer = c->peer,
			.trusted = c->who.trusted,
			.uid = c->who.uid,
			.room = &server->room,
		},
		&intake_ops, c);
	size_t over = over_share(server, c);
	if (over > REFUSED_MAX) {
		d->counts[DAEMON_COUNT_connections_refused]++;
		conn_close(c);
		return;
	}
	if (server->nconns > server->conns_max || over) {
		refuse(c);
	}
	conn_hold(c, server->held);
	server_bury(server);
}

void conn_describe(const struct server *server, struct ff_jw *w)
{
	ff_jw_open(w, '[');
	for (const struct conn *c = server ? server->conns : NULL; c; c = c->next) {
		size_t n = 0;
		(void)ff_intake_streams(c->intake, &n);
		ff_jw_open(w, '{');
		ff_jw_kstrz(w, "peer", c->peer);
		ff_jw_kstrz(w, "dialect", ff_dialect_name(ff_intake_dialect(c->intake)));
		ff_jw_kint(w, "streams", (int64_t)n);
		ff_jw_kint(w, "bytes", (int64_t)c->bytes);
		ff_jw_close(w, '}');
	}
	ff_jw_close(w, ']');
}

void conn_describe_dialects(const struct server *server, struct ff_jw *w)
{
	uint64_t n[FF_DIALECTS] = {0};
	for (const struct conn *c = server ? server->conns : NULL; c; c = c->next) {
		n[ff_intake_dialect(c->intake)]++;
	}
	ff_jw_open(w, '{');
	for (int i = 0; i < FF_DIALECTS; i++) {
		ff_jw_kint(w, ff_dialect_name((enum ff_dialect)i), (int64_t)n[i]);
	}
	ff_jw_close(w, '}');
}
