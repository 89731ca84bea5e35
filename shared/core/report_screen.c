#include "core/report_screen.h"
#include "core/report_own.h"

/* ---- tables */

static void add_blanks(struct ff_buf *out, unsigned n)
{
	ff_buf_addf(out, "%*s", (int)n, "");
}

void ff_screen_table_fit(struct ff_screen_table *t, const char *const *cells)
{
	struct ff_buf b = {0};
	for (size_t i = 0; i < t->n; i++) {
		const struct ff_screen_column *c = &t->columns[i];
		unsigned head = (unsigned)strlen(c->head);
		ff_buf_clear(&b);
		unsigned used = ff_report_put(&b, ff_str_z(cells[i]), c->most);
		used = used > head ? used : head;
		t->widths[i] = used > t->widths[i] ? used : t->widths[i];
	}
	ff_buf_finish(&b);
}

static void add_row(const struct ff_screen_table *t, const char *const *cells, struct ff_buf *out)
{
	struct ff_buf cell = {0};
	unsigned column = 0, pending = 0; /* blanks that are written if anything follows */
	for (size_t i = 0; i < t->n && column + pending < t->width; i++) {
		bool last = i + 1 == t->n;
		unsigned room = t->width - column - pending;
		room = !last && t->widths[i] < room ? t->widths[i] : room;
		ff_buf_clear(&cell);
		unsigned used = ff_report_put(&cell, ff_str_z(cells[i]), room);
		unsigned left = !last && t->widths[i] > used ? t->widths[i] - used : 0;
		if (used) {
			add_blanks(out, pending + (t->columns[i].right ? left : 0));
			ff_buf_adds(out, ff_buf_str(&cell));
			column += pending + used + (t->columns[i].right ? left : 0);
			pending = t->columns[i].right ? 0 : left;
		} else {
			pending += left;
		}
		pending += FF_SCREEN_GAP;
	}
	ff_buf_addc(out, '\n');
	ff_buf_finish(&cell);
}

void ff_screen_table_head(const struct ff_screen_table *t, struct ff_buf *out)
{
	const char *heads[FF_SCREEN_COLUMNS];
	for (size_t i = 0; i < t->n; i++) {
		heads[i] = t->columns[i].head;
	}
	add_row(t, heads, out);
}

void ff_screen_table_row(
	const struct ff_screen_table *t, const char *const *cells, struct ff_buf *out)
{
	add_row(t, cells, out);
}

void ff_screen_quote(struct ff_buf *out, struct ff_str text, unsigned indent, unsigned width)
{
	ff_buf_addf(out, "%*s| ", (int)indent, "");
	(void)ff_report_put(out, text, width > indent + 2 ? width - indent - 2 : 2);
	ff_buf_addc(out, '\n');
}

void ff_screen_para(
	struct ff_buf *out, const char *label, struct ff_str text, unsigned indent, unsigned width)
{
	unsigned room = width > indent + 20 ? width - indent : 20;
	bool first = true;
	do {
		size_t take = ff_report_break(text, room);
		ff_buf_addf(out, "%-*s", (int)indent, first ? label : "");
		(void)ff_report_put(out, ff_str_n(text.p, take), room);
		ff_buf_addc(out, '\n');
		text = ff_str_trim(ff_str_skip(text, take));
		first = false;
	} while (text.n);
}
