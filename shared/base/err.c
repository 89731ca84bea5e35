#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

int ff_err_set(struct ff_err *err, int code, const char *fmt, ...)
{
	if (!err || err->text[0]) {
		return code;
	}
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		snprintf(err->text, sizeof err->text, "%s", ff_strerror(code));
	}
	for (char *p = err->text; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f) {
			*p = '?'; /* quoted input keeps the text one line */
		}
	}
	if (n >= (int)sizeof err->text) {
		/* Cut in front of a character that does not fit, not within it. */
		size_t len = sizeof err->text - 1;
		size_t at = len;
		while (at && len - at < 4 && ((unsigned char)err->text[at - 1] & 0xc0) == 0x80) {
			at--;
		}
		if (at && (unsigned char)err->text[at - 1] >= 0xc0) {
			err->text[at - 1] = '\0';
		}
	}
	return code;
}

const char *ff_strerror(int code)
{
	switch (code) {
#define X(name, value, text) \
	case name: return text;
		FF_ERR_CODES(X)
#undef X
	default: /* not one of ours */ break;
	}
	if (code == INT32_MIN) {
		return "unknown error";
	}
	return strerror(code < 0 ? -code : code);
}
