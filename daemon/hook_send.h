/* hook_send: one try to deliver a message: a program that gets it on its standard input, or an HTTP
 * POST.
 *
 * In the loop, and it never waits: the program is a process of libuv's in a process group of its
 * own, the POST a transfer of libcurl's multi interface (names are looked up by libcurl's own
 * thread). What takes longer than its limit is ended, the program with its whole group. fn is
 * called once, from the loop and never from inside start, unless the try is dropped.
 */
#pragma once

#include "base/str.h"
#include "base/usec.h"

#include <uv.h>

struct hook_send;   /* opaque: what both kinds share */
struct hook_try; /* opaque: one try */

/* why: what went wrong, NULL if it was delivered. */
typedef void hook_send_fn(void *ud, const char *why);

struct hook_send *hook_send_create(uv_loop_t *loop);
/* Starts a program: no shell, no arguments. env is NULL-terminated and, like body, borrowed until
 * fn is called or the try is dropped. */
struct hook_try *hook_send_command(struct hook_send *s, const char *program, char **env,
	struct ff_str body, ff_usec limit, hook_send_fn *fn, void *ud);
struct hook_try *hook_send_url(struct hook_send *s, const char *url, const char *id,
	struct ff_str body, ff_usec limit, hook_send_fn *fn, void *ud);
/* Ends it; fn is not called. */
void hook_send_drop(struct hook_try *t);
/* All tries are dropped before. Handles close in the loop; destroy after it has run out. */
void hook_send_close(struct hook_send *s);
void hook_send_destroy(struct hook_send *s);
