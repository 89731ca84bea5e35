/* reader: JSON in a line or a body, value by value, for what quotes logs: text keeps its NULs and
 * bytes that aren't UTF-8, and control characters may stand in it as they are. Nothing is built in
 * memory: a value is a view, that of an object or array is checked for its form and may be read
 * again from its own bytes. Depth at most FF_JSON_DEPTH. No I/O.
 *
 *	struct ff_reader c = ff_reader_of(text);
 *	bool first = true;
 *	if (ff_reader_take(&c, '{')) {
 *		while (ff_reader_member(&c, &first, &name, &value) == 1) { ... }
 *	}
 */
#pragma once

#include "base/buf.h"

struct ff_reader {
	const char *p, *end;
};

enum ff_value_type {
	FF_VALUE_STRING,
	FF_VALUE_NUMBER,
	FF_VALUE_TRUE,
	FF_VALUE_FALSE,
	FF_VALUE_NULL,
	FF_VALUE_NESTED,
};

struct ff_value {
	enum ff_value_type type;
	struct ff_str raw; /* as it stands there; for a string without its quotes */
	bool escaped;      /* raw holds a backslash */
};

/* From the first byte of s, which is borrowed; the empty one may be null. */
struct ff_reader ff_reader_of(struct ff_str s);
void ff_reader_blank(struct ff_reader *c);
/* The byte, if it is the next one. */
bool ff_reader_take(struct ff_reader *c, char byte);
/* A string, behind its opening quote. False: it is none. */
bool ff_reader_string(struct ff_reader *c, struct ff_value *ret);
/* Any value, with blanks before it; depth: of what it stands in. False: it is none. */
bool ff_reader_value(struct ff_reader *c, int depth, struct ff_value *ret);
/* Behind '{' or '[': the next member or element. *first is true before the first one. 1, 0 at the
 * closing bracket, which is taken, -1: bad. */
int ff_reader_member(struct ff_reader *c, bool *first, struct ff_value *ret_name,
		     struct ff_value *ret_value);
/* The same, up to the value, which the caller reads before the next call. */
int ff_reader_name(struct ff_reader *c, bool *first, struct ff_value *ret_name);
int ff_reader_item(struct ff_reader *c, bool *first);
/* The string's bytes: a view of raw if nothing is escaped, else of mem, which the caller has given
 * room for all of them (no escape is longer unescaped), so that no view moves. A lone \udc80 to
 * \udcff is the byte that Python's surrogateescape made it from. */
struct ff_str ff_reader_text(struct ff_buf *mem, const struct ff_value *v);
