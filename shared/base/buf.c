#include "base/buf.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

void ff_buf_finish(struct ff_buf *b)
{
	if (!b) {
		return;
	}
	free(b->p);
	*b = (struct ff_buf){0};
}

void ff_buf_clear(struct ff_buf *b)
{
	b->len = 0;
	if (b->p) {
		b->p[0] = '\0';
	}
}

char *ff_buf_reserve(struct ff_buf *b, size_t n)
{
	if (n >= SIZE_MAX / 4 || b->len >= SIZE_MAX / 4) {
		abort();
	}
	size_t need = b->len + n + 1;
	if (need > b->cap) {
		size_t cap = b->cap ? b->cap : 64;
		while (cap < need) {
			cap *= 2;
		}
		b->p = ff_xrealloc(b->p, cap, 1);
		b->cap = cap;
		b->p[b->len] = '\0';
	}
	return b->p + b->len;
}

void ff_buf_add(struct ff_buf *b, const void *p, size_t n)
{
	char *to = ff_buf_reserve(b, n);
	if (n) {
		memcpy(to, p, n);
	}
	b->len += n;
	b->p[b->len] = '\0';
}

void ff_buf_adds(struct ff_buf *b, struct ff_str s)
{
	ff_buf_add(b, s.p, s.n);
}

void ff_buf_addz(struct ff_buf *b, const char *z)
{
	ff_buf_add(b, z, strlen(z));
}

void ff_buf_addc(struct ff_buf *b, char c)
{
	ff_buf_add(b, &c, 1);
}

void ff_buf_addf(struct ff_buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	ff_buf_vaddf(b, fmt, ap);
	va_end(ap);
}

void ff_buf_vaddf(struct ff_buf *b, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	char *to = ff_buf_reserve(b, 0);
	int n = vsnprintf(to, b->cap - b->len, fmt, ap);
	if (n > 0 && (size_t)n >= b->cap - b->len) {
		to = ff_buf_reserve(b, (size_t)n);
		n = vsnprintf(to, b->cap - b->len, fmt, again);
	}
	va_end(again);
	if (n > 0) {
		b->len += (size_t)n;
	}
	b->p[b->len] = '\0';
}

void ff_buf_consume(struct ff_buf *b, size_t n)
{
	if (n >= b->len) {
		ff_buf_clear(b);
		return;
	}
	if (n) {
		memmove(b->p, b->p + n, b->len - n + 1);
		b->len -= n;
		b->p[b->len] = '\0';
	}
}

struct ff_str ff_buf_str(const struct ff_buf *b)
{
	return (struct ff_str){b->p, b->len};
}

char *ff_buf_take(struct ff_buf *b)
{
	ff_buf_reserve(b, 0);
	b->p[b->len] = '\0';
	char *p = b->p;
	*b = (struct ff_buf){0};
	return p;
}

void ff_buf_addhex(struct ff_buf *b, struct ff_str bytes)
{
	static const char digits[] = "0123456789abcdef";
	char *p = ff_buf_reserve(b, bytes.n * 2);
	for (size_t i = 0; i < bytes.n; i++) {
		*p++ = digits[(unsigned char)bytes.p[i] >> 4];
		*p++ = digits[(unsigned char)bytes.p[i] & 15];
	}
	*p = '\0';
	b->len += bytes.n * 2;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ff_buf_addunhex(struct ff_buf *b, struct ff_str hex)
{
	for (size_t i = 0; i + 1 < hex.n; i += 2) {
		int high = hex_digit(hex.p[i]), low = hex_digit(hex.p[i + 1]);
		if (high < 0 || low < 0) {
			return false;
		}
		ff_buf_addc(b, (char)(high * 16 + low));
	}
	return hex.n % 2 == 0;
}
