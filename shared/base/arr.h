/* Growing arrays of any type, by macros.
 *
 *	struct ff_line *lines = NULL; size_t nlines = 0, clines = 0;
 *	*FF_ARR_ADD(lines, nlines, clines) = (struct ff_line){...};
 *	free(lines);
 *
 * The three variables belong together and start as NULL, 0, 0. New elements are not zeroed.
 */
#pragma once

#include "base/mem.h"

#define FF_ARR_ROOM(p, n, cap) \
	((n) < (cap) ? (void)0 \
		     : (void)((cap) = (cap) ? (cap) * 2 : 8, \
			      (p) = ff_xrealloc((p), (cap), sizeof *(p))))
#define FF_ARR_ADD(p, n, cap) (FF_ARR_ROOM(p, n, cap), &(p)[(n)++])
