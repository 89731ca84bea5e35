#include "print.h"

#include "base/arr.h"
#include "client.h"
#include "shell/log.h"

#include <stdlib.h>

void print_text(struct ff_buf *out, const char *text, size_t width)
{
	struct ff_buf raw = {0}, safe = {0};
	ff_json_add_text(&raw, text);
	for (size_t i = 0; i < raw.len; i++) {
		raw.p[i] = raw.p[i] == '\t' ? ' ' : raw.p[i];
	}
	ff_log_escape(ff_buf_str(&raw), &safe);
	if (width > 2 && safe.len > width) {
		size_t n = width - 2;
		while (n && ((unsigned char)safe.p[n] & 0xc0) == 0x80) {
			n--; /* not in the middle of a character */
		}
		ff_buf_add(out, safe.p, n);
		ff_buf_addz(out, "..");
	} else {
		ff_buf_adds(out, ff_buf_str(&safe));
	}
	ff_buf_finish(&raw);
	ff_buf_finish(&safe);
}

static void add_value(struct ff_buf *out, const struct ff_json_node *v)
{
	int64_t n;
	bool b;
	if (ff_json_string(v)) {
		print_text(out, ff_json_string(v), 0);
	} else if (ff_json_int(v, &n)) {
		ff_buf_addf(out, "%lld", (long long)n);
	} else if (ff_json_bool(v, &b)) {
		ff_buf_addz(out, b ? "yes" : "no");
	} else {
		ff_buf_addc(out, '-');
	}
}

void print_member(struct ff_buf *out, const struct ff_json_node *item, const char *key)
{
	const struct ff_json_node *v = ff_json_get(item, key);
	if (!ff_json_is_array(v)) {
		add_value(out, v);
		return;
	}
	size_t before = out->len;
	for (v = ff_json_first(v); v; v = ff_json_next(v)) {
		ff_buf_addz(out, out->len > before ? "," : "");
		add_value(out, v);
	}
	if (out->len == before) {
		ff_buf_addc(out, '-');
	}
}

void print_cell(struct print_table *t, struct ff_buf *b)
{
	*FF_ARR_ADD(t->cells, t->n, t->cap) = ff_buf_take(b);
}

void print_rows(const struct print_table *t, struct ff_buf *out)
{
	const char *const *cells = (const char *const *)t->cells;
	struct ff_screen_table screen = {
		.columns = t->columns, .n = t->ncolumns, .width = client_width()};
	for (size_t k = 0; k + screen.n <= t->n; k += screen.n) {
		ff_screen_table_fit(&screen, cells + k);
	}
	ff_screen_table_head(&screen, out);
	for (size_t k = 0; k + screen.n <= t->n; k += screen.n) {
		ff_screen_table_row(&screen, cells + k, out);
	}
}

void print_finish(struct print_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->cells[i]);
	}
	free(t->cells);
	t->cells = NULL;
	t->n = t->cap = 0;
}
