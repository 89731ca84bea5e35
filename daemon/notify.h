/* notify: what the service manager is told, in the protocol of sd_notify(3): one datagram of
 * `KEY=VALUE` lines to the socket that NOTIFY_SOCKET names.
 *
 * READY=1, RELOADING=1, STOPPING=1, STATUS=..., and WATCHDOG=1 while the daemon does its work: from
 * the loop, and only as long as the store's thread either has nothing to do or gets on with it (a
 * commit, or a try of one: a full disk is no hang). Of our own, not libsystemd's: the protocol is
 * these lines (its manual gives them for that purpose), and the library would be one more to link
 * for them. Without NOTIFY_SOCKET nothing is sent. Never waits.
 */
#pragma once

#include "base/usec.h"

#include <sys/socket.h>
#include <sys/un.h>

struct notify {
	int fd; /* -1: nobody listens */
	struct sockaddr_un to;
	socklen_t to_len;
	ff_usec watchdog_us; /* the manager's limit; 0: it has none */
	ff_usec pinged_us;
	uint64_t steps;     /* of the store's thread, when it was seen to get on */
	ff_usec stepped_us;
	char status[160]; /* as it was said last */
	ff_usec status_us;
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID (sd_watchdog_enabled(3)). */
void notify_open(struct notify *n);
void notify_close(struct notify *n);
/* Lines such as "READY=1\nSTATUS=...". */
void notify_send(struct notify *n, const char *lines);
void notify_reloading(struct notify *n, ff_usec now); /* now: monotonic */
/* Says a STATUS that differs from the last one, at most each 10 s. */
void notify_status(struct notify *n, ff_usec now, const char *text);
/* Is a ping due and earned? steps: commits and tries of the store's thread so far; waiting: it has
 * work. Sends it and returns true. */
bool notify_watchdog(struct notify *n, ff_usec now, uint64_t steps, bool waiting);
/* The address of NOTIFY_SOCKET's value: a path, or "@name" in the abstract namespace. Returns its
 * length, 0 if it is neither or too long. */
socklen_t notify_address(const char *value, struct sockaddr_un *ret);
