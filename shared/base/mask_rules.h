/* mask_rules: what an operator calls a secret: PCRE2 patterns, compiled once, besides the kinds
 * that base/mask.h knows. (Includes PCRE2 inside.)
 *
 * The functions are those of base/mask.h with a set of rules; NULL is the set without one, which
 * costs nothing. What a pattern matches becomes `<secret:own:HASH>` as there: of its own length. Of
 * a pattern with a group named `secret` only that group does, where it took part.
 *
 * A pattern sees a line, without its LF or CR, as it came; of a line longer than FF_MASK_OPEN_MAX a
 * window of so many bytes after the other, each half a window further: a secret of up to half a
 * window is found wherever it stands. What is masked already stays as it is.
 *
 * A pattern that reaches its match limit has said nothing of the rest of the window: all of that is
 * masked, and counted in *limited (NULL: nobody counts).
 *
 * Pieces: an unfinished line is open as a whole (ff_mask_rules_open) up to FF_MASK_OPEN_MAX bytes;
 * of a longer one at least the last half, from no place inside a secret.
 *
 * Ownership: create gives the set, which never changes: any thread may use it.
 */
#pragma once

#include "base/err.h"
#include "base/mask.h"

struct ff_mask_rules;

/* No patterns: *ret is NULL. FF_EREGEX with err, which names the pattern and the place in it, for
 * one that can't be compiled or may match nothing at all; FF_ELIMIT beyond FF_MASK_RULES_MAX. */
int ff_mask_rules_create(
	char *const *patterns, size_t n, struct ff_mask_rules **ret, struct ff_err *err);
void ff_mask_rules_destroy(struct ff_mask_rules *r);

size_t ff_mask_rules_text(const struct ff_mask_rules *r, char *p, size_t n, unsigned *limited);
size_t ff_mask_rules_line(
	const struct ff_mask_rules *r, struct ff_mask_lines *m, char *p, size_t n);
size_t ff_mask_rules_open(const struct ff_mask_rules *r, const char *p, size_t n);
bool ff_mask_rules_is_front(const struct ff_mask_rules *r, const char *p, size_t n);
void ff_mask_rules_cut(const struct ff_mask_rules *r, char *p, size_t n);
