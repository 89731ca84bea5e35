/* server: the listeners for log lines (unix socket, TCP) and their connections.
 *
 * One timer for all connections runs only while there is something to wait for: a first line, an
 * ack that came too soon after the last, the end of a closing connection.
 */
#pragma once

#include "daemon.h"
#include "token.h"

struct conn;

struct server {
	struct daemon *d;
	uv_pipe_t pipe;
	uv_tcp_t *tcp;       /* one for each address of `listen` */
	size_t ntcp, opened; /* of them initialised */
	bool pipe_open, closing, held;
	char *path; /* of the socket file, once it is ours */
	uv_timer_t timer;
	bool timer_open;
	struct conn *conns;  /* all, newest first */
	struct conn *acks;   /* with something to acknowledge */
	struct conn *doomed; /* to be closed when the stack is clear */
	size_t nconns;
	struct ff_map by_id; /* number, as bytes */
	uint64_t last_id;
	struct token_table tokens;
	char buffer[65536]; /* what is being read; one connection at a time */
};

/* Opens all listeners; restored runs have to be there. Returns 0 or a negative code with err. */
int server_open(struct daemon *d, struct server **ret, struct ff_err *err);
void server_hold(struct server *s, bool hold);
/* Sends acks that are due; called when batches came back. */
void server_acks(struct server *s);
/* Something has to be waited for. */
void server_need_timer(struct server *s);
/* Closes what was marked. */
void server_bury(struct server *s);
/* Adds the addresses of the TCP listeners, as they are bound: an array. */
struct ff_jw;
void server_describe(const struct server *s, struct ff_jw *w);
/* Closes everything; server_destroy after the loop has run out. */
void server_close(struct server *s);
void server_destroy(struct server *s);
