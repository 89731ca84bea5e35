/* A growing byte buffer; always NUL-terminated behind its len bytes once anything was added.
 *
 * A zeroed struct is an empty buffer. finish() frees and zeroes; it may be called twice.
 */
#pragma once

#include "base/str.h"

#include <stdarg.h>

struct ff_buf {
	char *p;
	size_t len;
	size_t cap;
};

void ff_buf_finish(struct ff_buf *b);
void ff_buf_clear(struct ff_buf *b); /* len = 0, memory kept */
/* Room for n more bytes and a NUL; returns where they go. The caller adds to len what it wrote and,
 * if it wants the NUL, writes that too. */
char *ff_buf_reserve(struct ff_buf *b, size_t n);
void ff_buf_add(struct ff_buf *b, const void *p, size_t n);
void ff_buf_adds(struct ff_buf *b, struct ff_str s);
void ff_buf_addz(struct ff_buf *b, const char *z);
void ff_buf_addc(struct ff_buf *b, char c);
void ff_buf_addf(struct ff_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ff_buf_vaddf(struct ff_buf *b, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* Adds the bytes as hexadecimal digits; and back: false, and some of it added, if they are none. */
void ff_buf_addhex(struct ff_buf *b, struct ff_str bytes);
bool ff_buf_addunhex(struct ff_buf *b, struct ff_str hex);
/* Take n bytes off the front. */
void ff_buf_consume(struct ff_buf *b, size_t n);
struct ff_str ff_buf_str(const struct ff_buf *b);
/* The bytes as a malloc'd string of the caller's (never NULL); the buffer is empty afterwards. */
char *ff_buf_take(struct ff_buf *b);
