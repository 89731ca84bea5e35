/* conn: one connection of a sender: a uv stream, its intake, and what may be acknowledged to it.
 *
 * Bytes go to the intake; what the intake says about runs and streams goes to the ledger; when the
 * ledger has them on disk, an ack goes back: at most each 100 ms, at once when a control object was
 * stored. The peer's end of input is answered with the last ack and a close.
 *
 * Ownership: a connection belongs to its server's list until its handle's close callback frees it.
 * No function here frees one that may be on the stack.
 */
#pragma once

#include "server.h"

struct conn;

/* Takes a connection that was accepted: given, non-blocking. */
void conn_accept(struct server *server, int fd, bool tcp);
void conn_hold(struct conn *c, bool hold);
/* Rows of a stream that it speaks for were committed. */
void conn_committed(struct conn *c);
/* Other tokens hold: who lost the rights that it came with is told `auth` and closed. */
void conn_look_at_rights(struct server *server);
/* A run goes: nobody speaks for it afterwards. */
void conn_drop_run(struct server *server, const struct ff_run *run);
/* So many control objects of the connection of this number were committed. */
void conn_controls(struct server *server, uint64_t id, uint64_t controls);
/* The next turn of the loop: it may read on. Returns the next one of those that are paused. */
struct conn *conn_resume(struct conn *c);
/* Looks after deadlines; true if there will be more to do. */
bool conn_tick(struct conn *c, ff_usec now);
/* At once, without a word. */
void conn_close(struct conn *c);
/* Does it speak the native protocol, so that its end will be said? */
bool conn_is_native(const struct conn *c);
/* The next one of the server's list. */
struct conn *conn_next(const struct conn *c);
/* Adds what `status` shows of all connections: an array of objects. */
struct ff_jw;
void conn_describe(const struct server *server, struct ff_jw *w);
/* Adds how many connections speak what, as an object: every dialect is in it. */
void conn_describe_dialects(const struct server *server, struct ff_jw *w);
