/* server: the listeners for log lines (unix socket, TCP) and their connections.
 *
 * One timer for all connections runs only while there is something to wait for: a first line, an
 * ack that came too soon after the last, the end of a closing connection, files that can be opened
 * again.
 *
 * Accepts by itself and not by uv_listen: where no file can be opened any more libuv closes who
 * waits, or turns for ever; here they wait until there is room. Nobody gets more than a buffer of
 * bytes read in one turn of the loop, so that one client at full speed leaves the others theirs.
 */
#pragma once

#include "daemon.h"
#include "feed/intake.h"

struct conn;

struct listener {
	uv_poll_t poll;
	struct server *server;
	int fd;
	bool tcp;
};

struct server {
	struct daemon *d;
	struct listener *listeners; /* the unix socket, then each address of `listen` */
	size_t nlisteners, opened;  /* of them initialised */
	bool closing, held;
	bool starved;        /* no file could be opened: nobody is accepted for a while */
	unsigned starved_ticks;
	char *path;          /* of the socket file, once it is ours */
	uv_timer_t timer;
	uv_prepare_t resume; /* before the loop waits: those that are paused read on */
	bool handles_open;
	struct conn *conns;  /* all, newest first */
	struct conn *acks;   /* with something to acknowledge */
	struct conn *doomed; /* to be closed when the stack is clear */
	struct conn *paused; /* had their share of this turn */
	size_t nconns;
	struct ff_intake_room room; /* of all their unfinished lines */
	size_t conns_max;      /* FF_CONNS_MAX, or what the limit of open files allows */
	ff_usec evicted_us;    /* the loop's time of the last look for somebody to make room */
	struct ff_map by_id; /* number, as bytes */
	uint64_t last_id;
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
