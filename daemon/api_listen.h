/* api_listen: the listeners of the HTTP API: its unix socket and the addresses of `api-listen`.
 *
 * Accepts by itself and hands the connections on, so that both kinds have places of their own: a
 * crowd over TCP takes none from the users of the machine, and one of these not all. Where a kind
 * has no place left, or no file can be opened, those who come wait in the kernel.
 */
#pragma once

#include "daemon.h"

#define API_LISTEN_LOCAL 200u /* connections of the unix socket */
#define API_LISTEN_USER 100u  /* of them one user's; further ones of his are closed at once */
#define API_LISTEN_TCP 100u
#define API_LISTEN_HOST 0 /* peers: root and the daemon's user, who have no share */
#define API_LISTEN_REMOTE (-1) /* over TCP; else a uid */

struct api_listen; /* opaque */

/* Takes an accepted, non-blocking connection; false: it is closed already. */
typedef bool (*api_listen_fn)(
	void *ud, int fd, const struct sockaddr *addr, socklen_t len, int64_t peer);

/* Opens all. *ret is there also on failure, to be closed. Returns 0 or a negative code with err. */
int api_listen_open(struct daemon *d, api_listen_fn fn, void *ud, struct api_listen **ret,
	struct ff_err *err);
/* One that was taken is closed. */
void api_listen_done(struct api_listen *l, int64_t peer);
/* Adds the addresses over TCP, as they are bound: an array. */
struct ff_jw;
void api_listen_describe(const struct api_listen *l, struct ff_jw *w);
/* Closes the handles; the memory goes after the loop has run out. */
void api_listen_close(struct api_listen *l);
void api_listen_destroy(struct api_listen *l);
