/* socket: unix sockets as files, made with care: for the ingest listener and the API. */
#pragma once

#include "base/err.h"

/* A bound, non-blocking, close-on-exec stream socket at path; not listening yet. Its folder is made
 * if it is missing. A socket that nobody listens at any more is replaced; one that is in use, and
 * anything else at that place, is an error. Mode 0600, for root 0666: who may do what is then
 * decided by the peer's uid. Returns the descriptor or a negative code with err. */
int socket_bind(const char *path, struct ff_err *err);
/* The uid of the peer of a connected unix socket, or -1. */
int64_t socket_peer(int fd);
