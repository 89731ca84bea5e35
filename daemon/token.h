/* token: who may speak over TCP. A regular file of root's or the daemon's user, which nobody else
 * may read or write (mode 0600 or less), with lines `TOKEN OWNER [admin]`, # comments.
 *
 * OWNER is a user's name or number; runs that begin with this token are theirs. `admin` makes the
 * peer an administrator (access.h). Only digests of the tokens are kept: they are in no core dump.
 */
#pragma once

#include "base/err.h"
#include "base/sha256.h"

struct token {
	char digest[FF_SHA256_HEX];
	int64_t owner; /* uid */
	bool admin;
};

struct token_table {
	struct token *v;
	size_t n, cap;
};

int token_load(const char *path, struct token_table *ret, struct ff_err *err);
void token_finish(struct token_table *t);
/* The entry of this token, NULL if there is none. Takes the same time whichever token it is like,
 * and however much: digests are compared, each to its end. */
const struct token *token_find(const struct token_table *t, struct ff_str text);
/* The entry of a token by its digest, likewise. */
const struct token *token_find_digest(
	const struct token_table *t, const char digest[FF_SHA256_HEX]);
