/* socket: unix sockets as files, made with care: for the ingest listener and the API. */
#pragma once

#include "base/err.h"

/* A bound, non-blocking, close-on-exec stream socket at path; not listening yet. Its folder is made
 * if it is missing. A socket that nobody listens at any more is replaced; one that is in use, and
 * anything else at that place, is an error, as is a folder in which others could replace it. Mode
 * 0666: everybody may connect, and who may do what is decided by the peer (access.h). Returns the
 * descriptor or a negative code with err. */
int socket_bind(const char *path, struct ff_err *err);
