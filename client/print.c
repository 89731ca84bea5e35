#include "print.h"

#include "base/arr.h"
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

static size_t columns(const struct print_table *t)
{
	size_t n = 0;
	while (t->heads[n]) {
		n++;
	}
	return n;
}

/* Characters, not bytes. */
static size_t text_width(const char *s)
{
	size_t n = 0;
	for (; *s; s++) {
		n += ((unsigned char)*s & 0xc0) != 0x80;
	}
	return n;
}

static void add_row(struct ff_buf *out, const char *const *cells, const size_t *widths, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ff_buf_addz(out, cells[i]);
		if (i + 1 < n) {
			ff_buf_addf(out, "%*s", (int)(widths[i] - text_width(cells[i]) + 2), "");
		}
	}
	ff_buf_addc(out, '\n');
}

void print_rows(const struct print_table *t, struct ff_buf *out)
{
	size_t widths[PRINT_COLUMNS] = {0}, n = columns(t);
	for (size_t i = 0; i < n; i++) {
		widths[i] = text_width(t->heads[i]);
		for (size_t k = i; k < t->n; k += n) {
			size_t w = text_width(t->cells[k]);
			widths[i] = w > widths[i] ? w : widths[i];
		}
	}
	add_row(out, t->heads, widths, n);
	for (size_t k = 0; k + n <= t->n; k += n) {
		add_row(out, (const char *const *)&t->cells[k], widths, n);
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
