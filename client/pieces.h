/* pieces: bytes of a source become the texts of native data lines: what LF ends, and pieces of what
 * is longer than 64 KiB or not finished. A cut is never inside what may be a secret: pieces are
 * masked each for itself.
 */
#pragma once

#include "base/mask_rules.h"

#define PIECES_MAX 65536u /* bytes of one text */

/* A text, without its LF; it may be changed in place (masked). False: no more now. */
typedef bool (*pieces_fn)(void *ud, char *text, size_t n, bool newline);

/* What becomes of the unfinished line at the end. */
enum pieces_rest {
	PIECES_WAIT,  /* it stays */
	PIECES_PAUSE, /* nothing came for a while: it is given but for what may be half a secret */
	PIECES_END,   /* nothing more comes: it is given */
};

/* Gives the texts in p to fn, cut for these rules (NULL: none); returns how many bytes they were.
 */
size_t pieces_take(const struct ff_mask_rules *mask, char *p, size_t n, enum pieces_rest rest,
	pieces_fn fn, void *ud);
