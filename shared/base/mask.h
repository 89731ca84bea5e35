/* Masking of secrets in log text, in place and without changing its length.
 *
 * A secret becomes `<secret:KIND:HASH>` (kind and a short unkeyed hash of it), cut or filled up
 * with '*' to the secret's own length, so that every offset stays the raw one. The kinds and what
 * they look like stand in mask.c. Text that is masked already holds no secret.
 *
 * What comes in pieces: the front of a secret at the end of a piece is not known for one, so the
 * caller keeps the bytes that ff_mask_open counts and puts them before the next piece.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define FF_MASK_OPEN_MAX 8192u /* bytes that are ever kept back; a longer one is no secret known */

/* Masks every whole secret in p[0..n), which may hold several lines; returns how many. */
size_t ff_mask(char *p, size_t n);
/* Masks a line, without its LF, of a text whose lines are masked one after the other: a private key
 * goes over many. Begin with {0}. What stands between its lines may be left out. */
struct ff_mask_lines {
	size_t key;    /* bytes in which lines of a key whose BEGIN was seen may follow */
	bool key_line; /* the last one was a key's */
};
size_t ff_mask_line(struct ff_mask_lines *m, char *p, size_t n);
/* How many bytes at the end of p[0..n) may be the front of a secret, or one that goes on; at most
 * FF_MASK_OPEN_MAX. A word that isn't finished is always open. */
size_t ff_mask_open(const char *p, size_t n);
/* May p[0..n), the last bytes of a text that broke off, hold part of a secret? Then they are not to
 * be shown: unlike a whole one a half isn't masked. */
bool ff_mask_is_front(const char *p, size_t n);
/* p[0..n) is masked and its rest is left out: makes '*' of what may be the front of a secret at its
 * end. */
void ff_mask_cut(char *p, size_t n);
/* Makes `<secret:KIND:HASH>` of p[0..n). */
void ff_mask_put(char *p, size_t n, const char *kind);
