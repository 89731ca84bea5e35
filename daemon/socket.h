/* socket: unix sockets as files, made with care: for the ingest listener and the API. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <netdb.h>

/* A bound, non-blocking, close-on-exec stream socket at path; not listening yet. Its folder is made
 * if it is missing. A socket that nobody listens at any more is replaced; one that is in use, and
 * anything else at that place, is an error, as is a folder in which others could replace it. Mode
 * 0666: everybody may connect, and who may do what is decided by the peer (access.h). Returns the
 * descriptor or a negative code with err. */
int socket_bind(const char *path, struct ff_err *err);

/* The addresses of HOST:PORT, the value of this key: for freeaddrinfo. 0 or FF_EUSAGE with err. At
 * the start only: it may ask a name server. */
int socket_resolve(
	const char *key, const char *text, struct addrinfo **ret, struct ff_err *err);
/* A bound, non-blocking, close-on-exec socket; negative errno. */
int socket_bind_tcp(const struct addrinfo *a);
/* Adds the address that it is bound to, "127.0.0.1:9120" or "[::1]:9120"; false: it has none. */
bool socket_name(int fd, struct ff_buf *out);
