/* print: lists on a screen: columns of text from the daemon's answers, safe for a terminal. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "core/report_screen.h"

/* A text as a screen may show it: tabs as blanks, controls and bad bytes as \xNN; at most width
 * bytes with ".." for the rest (0: all of it). */
void print_text(struct ff_buf *out, const char *text, size_t width);
/* The member as text: a string, a number, "-" for null; arrays as "a,b". Appended, escaped. */
void print_member(struct ff_buf *out, const struct ff_json_node *item, const char *key);

struct print_table {
	const struct ff_screen_column *columns;
	size_t ncolumns;
	char **cells; /* row by row */
	size_t n, cap;
};

/* The next cell, moved to the table's memory; b is empty afterwards. */
void print_cell(struct print_table *t, struct ff_buf *b);
/* All rows under their heads, cut to the screen's width. */
void print_rows(const struct print_table *t, struct ff_buf *out);
void print_finish(struct print_table *t);
