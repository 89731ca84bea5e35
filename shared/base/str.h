/* A borrowed view of bytes: not NUL-terminated, perhaps not UTF-8, valid as long as its owner says.
 *
 * Input text is always a struct ff_str; `char *` is for paths, names and APIs. Print it with
 * "%.*s" and FF_STR_ARG.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ff_str {
	const char *p;
	size_t n;
};

#define FF_STR(literal) ((struct ff_str){(literal), sizeof(literal) - 1})
#define FF_STR_ARG(s) (int)(s).n, (s).p

static inline struct ff_str ff_str_z(const char *z)
{
	return (struct ff_str){z, z ? strlen(z) : 0};
}

static inline struct ff_str ff_str_n(const void *p, size_t n)
{
	return (struct ff_str){(const char *)p, n};
}

bool ff_str_eq(struct ff_str a, struct ff_str b);
bool ff_str_eqz(struct ff_str a, const char *z);
/* Bytewise order: <0, 0, >0. */
int ff_str_cmp(struct ff_str a, struct ff_str b);
bool ff_str_starts(struct ff_str s, struct ff_str prefix);
bool ff_str_ends(struct ff_str s, struct ff_str suffix);
/* Position of the first needle at or after from, or -1. */
ptrdiff_t ff_str_find(struct ff_str s, struct ff_str needle, size_t from);
ptrdiff_t ff_str_chr(struct ff_str s, char c, size_t from);
/* s without its first n bytes (all of it when it is shorter). */
struct ff_str ff_str_skip(struct ff_str s, size_t n);
/* s without blanks and tabs at both ends. */
struct ff_str ff_str_trim(struct ff_str s);
/* All of s is a decimal number that fits: true and *ret. An optional '-' is taken. */
bool ff_str_int(struct ff_str s, int64_t *ret);
/* Decimal digits at the front of s: how many (0: none), the value in *ret, at most 18 digits. */
size_t ff_str_digits(struct ff_str s, int64_t *ret);
/* 64-bit FNV-1a of the bytes, going on from h (start with FF_HASH_INIT). */
#define FF_HASH_INIT 14695981039346656037ull
uint64_t ff_str_hash(struct ff_str s, uint64_t h);
