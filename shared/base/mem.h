/* Memory that cannot fail: these abort when there is none.
 *
 * Anything whose size comes from outside is checked against base/limits.h first, so that input can
 * not reach the abort. What they return is the caller's, freed with free().
 */
#pragma once

#include <stddef.h>

void *ff_xmalloc(size_t n);
/* nmemb * size zeroed bytes; aborts on overflow too. */
void *ff_xcalloc(size_t nmemb, size_t size);
/* nmemb * size bytes; p may be NULL. */
void *ff_xrealloc(void *p, size_t nmemb, size_t size);
/* A NUL-terminated copy; NULL of NULL. */
char *ff_xstrdup(const char *s);
/* A copy of n bytes with a NUL behind them. */
char *ff_xmemdup(const void *p, size_t n);
