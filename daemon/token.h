/* token: who may speak over TCP. A file of mode 0600 with lines `TOKEN OWNER [admin]`, # comments.
 *
 * OWNER is a user's name or number; runs that begin with this token are theirs. `admin` makes the
 * peer's kernel and scheduler streams believed.
 */
#pragma once

#include "base/err.h"

struct token {
	char *text;
	int64_t owner; /* uid */
	bool admin;
};

struct token_table {
	struct token *v;
	size_t n, cap;
};

int token_load(const char *path, struct token_table *ret, struct ff_err *err);
void token_finish(struct token_table *t);
/* The entry of this token, NULL if there is none. Takes the same time wherever two texts differ. */
const struct token *token_find(const struct token_table *t, const char *text);
