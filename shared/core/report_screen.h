/* report_screen: tables, quoted lines and paragraphs for a terminal. What comes from logs is
 * hostile (law 11): every byte goes through ff_report_put().
 *
 * Widths are columns as report_own.h counts them. Nothing fails.
 */
#pragma once

#include "base/buf.h"

#define FF_SCREEN_COLUMNS 12
#define FF_SCREEN_GAP 2 /* columns between two cells */

struct ff_screen_column {
	const char *head;
	unsigned most; /* a longer cell is cut */
	bool right;    /* numbers: aligned at their right */
};

/* A table whose columns are as wide as their widest cell, and whose lines never exceed `width`: the
 * last column has what the others leave. Zeroed but for the first three; texts are borrowed. */
struct ff_screen_table {
	const struct ff_screen_column *columns;
	size_t n; /* of them, at most FF_SCREEN_COLUMNS */
	unsigned width;
	unsigned widths[FF_SCREEN_COLUMNS];
};

/* Makes room for a row's cells (n of them); all rows that will be shown come here first. */
void ff_screen_table_fit(struct ff_screen_table *t, const char *const *cells);
void ff_screen_table_head(const struct ff_screen_table *t, struct ff_buf *out);
void ff_screen_table_row(const struct ff_screen_table *t, const char *const *cells,
			 struct ff_buf *out);
/* "    | TEXT": a line of a log, cut to the width, with its line feed. */
void ff_screen_quote(struct ff_buf *out, struct ff_str text, unsigned indent, unsigned width);
/* A paragraph, wrapped at blanks in lines of `width` columns, the first one behind `label`, all
 * indented by `indent` columns. */
void ff_screen_para(struct ff_buf *out, const char *label, struct ff_str text, unsigned indent,
		    unsigned width);
