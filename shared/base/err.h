/* Error codes and error texts.
 *
 * Functions that can fail in more than one way return 0 or a positive value for success and a
 * negative code: an errno value negated, or one of ours from -5000 down. Functions that a user can
 * make fail take a `struct ff_err *err` last: one line, complete, naming the object, untouched on
 * success, never overwritten on the way up (ff_err_set keeps the first text).
 */
#pragma once

#include "base/str.h"

#define FF_ERR_CODES(X) \
	X(FF_EUSAGE, -5001, "bad usage") \
	X(FF_EINPUT, -5002, "bad input") \
	X(FF_EJSON, -5003, "not valid JSON") \
	X(FF_ESCHEMA, -5004, "a value has the wrong type or range") \
	X(FF_EREGEX, -5005, "not a valid pattern") \
	X(FF_EDB, -5006, "the store failed") \
	X(FF_ELIMIT, -5007, "a limit was reached") \
	X(FF_EVERSION, -5008, "written by a newer version") \
	X(FF_EPROTO, -5009, "protocol error") \
	X(FF_ENAME, -5010, "not a valid name") \
	X(FF_EDAMAGE, -5011, "the store is damaged")

enum ff_err_code {
#define X(name, value, text) name = (value),
	FF_ERR_CODES(X)
#undef X
};

struct ff_err {
	char text[512]; /* empty: none; NUL-terminated; one line */
};

/* Sets the text unless there is one already, and returns code. err may be NULL. */
int ff_err_set(struct ff_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The text of a code of ours, else strerror of the errno; a constant or static string. */
const char *ff_strerror(int code);
