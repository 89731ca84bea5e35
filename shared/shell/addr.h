/* addr: where the daemon is: `unix:PATH` or `HOST:PORT`, and the places it has by default.
 *
 * As root: state /var/lib/firstfault, sockets /run/firstfault/{ingest,api}.sock; else
 * $XDG_STATE_HOME/firstfault and $XDG_RUNTIME_DIR/firstfault, with the XDG defaults where unset
 * (~/.local/state; without XDG_RUNTIME_DIR /tmp/firstfault-UID for the sockets).
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct ff_addr {
	char *path; /* of a unix socket, NULL for TCP */
	char *host; /* without the brackets of [::1] */
	char *port; /* decimal, 1 to 65535 */
};

int ff_addr_parse(const char *text, struct ff_addr *ret, struct ff_err *err);
void ff_addr_finish(struct ff_addr *a);
/* "unix:PATH" or "HOST:PORT" */
void ff_addr_render(const struct ff_addr *a, struct ff_buf *out);
/* A connected stream socket, blocking, close-on-exec, or negative errno with err. */
int ff_addr_connect(const struct ff_addr *a, struct ff_err *err);

/* The default places; malloc'd. */
char *ff_addr_state_folder(void);
char *ff_addr_ingest_socket(void);
char *ff_addr_api_socket(void);
/* What a client speaks to: arg if not NULL, else the environment variable (FIRSTFAULT_ADDR or
 * FIRSTFAULT_API), else the default socket. */
int ff_addr_ingest(const char *arg, struct ff_addr *ret, struct ff_err *err);
int ff_addr_api(const char *arg, struct ff_addr *ret, struct ff_err *err);
