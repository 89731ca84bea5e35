/* Masking of secrets in log text, in place and without changing its length.
 *
 * A secret becomes `<secret:KIND:HASH>` (kind and a short unkeyed hash of it), cut or filled up
 * with
 * '*' to the secret's own length, so that every offset stays the raw one. Kinds: "hf" (Hugging Face
 * tokens, hf_ and 30 or more letters and digits) and "aws" (access key ids, AKIA or ASIA and 16).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Masks every whole secret in p[0..n); returns how many. */
size_t ff_mask(char *p, size_t n);
/* May p[0..n), a word of letters, digits and '_' (or its end), go on as a secret or be one? */
bool ff_mask_is_front(const char *p, size_t n);
