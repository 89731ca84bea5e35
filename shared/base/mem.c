#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *ff_xmalloc(size_t n)
{
	void *p = malloc(n ? n : 1);
	if (!p) {
		abort();
	}
	return p;
}

void *ff_xcalloc(size_t nmemb, size_t size)
{
	void *p = nmemb && size ? calloc(nmemb, size) : calloc(1, 1);
	if (!p) {
		abort();
	}
	return p;
}

void *ff_xrealloc(void *p, size_t nmemb, size_t size)
{
	if (size && nmemb > SIZE_MAX / size) {
		abort();
	}
	size_t n = nmemb * size;
	void *q = realloc(p, n ? n : 1);
	if (!q) {
		abort();
	}
	return q;
}

char *ff_xstrdup(const char *s)
{
	return s ? ff_xmemdup(s, strlen(s)) : NULL;
}

char *ff_xmemdup(const void *p, size_t n)
{
	if (n == SIZE_MAX) {
		abort();
	}
	char *s = ff_xmalloc(n + 1);
	if (n) {
		memcpy(s, p, n);
	}
	s[n] = '\0';
	return s;
}
