/* api_greet: waits for the first byte of a connection of the HTTP API, and tells who speaks
 * something else where log lines go: libmicrohttpd closes such a one without a word, or waits for
 * the rest of what it takes for a request.
 *
 * A native hello or an object of JSON Lines gets an error object of the native protocol, all else
 * one line of text. Who says nothing for 10 s is closed.
 */
#pragma once

#include "api_listen.h"

struct api_greet; /* opaque */

/* speaks: takes a connection that may speak HTTP. gone: one was closed here. */
struct api_greet *api_greet_create(struct daemon *d, api_listen_fn speaks,
	void (*gone)(void *ud, int64_t peer), void *ud);
/* Takes an accepted, non-blocking connection; never calls back from inside. */
void api_greet_take(
	struct api_greet *g, int fd, const struct sockaddr *addr, socklen_t len, int64_t peer);
/* Closes those that wait; api_greet_destroy after the loop has run out. */
void api_greet_close(struct api_greet *g);
void api_greet_destroy(struct api_greet *g);
