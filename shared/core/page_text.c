#include "core/page.h"

#include "core/report_own.h"
#include "core/report_screen.h"

#include <stdlib.h>

/* A page for a screen. What the catalogue suggests stands under its own heads; lines of logs (its
 * examples) only behind `|`. */

#define INDENT 10

static void put_para(struct ff_buf *out, const char *label, const char *text, unsigned width)
{
	struct ff_str rest = ff_str_z(text);
	do {
		ptrdiff_t lf = ff_str_chr(rest, '\n', 0);
		size_t n = lf < 0 ? rest.n : (size_t)lf;
		ff_screen_para(out, label, ff_str_n(rest.p, n), INDENT, width);
		rest = ff_str_skip(rest, lf < 0 ? rest.n : n + 1);
		label = "";
	} while (rest.n);
}

static void put_member(
	struct ff_buf *out, const char *label, const struct ff_json_node *text, unsigned width)
{
	const char *z = ff_json_string(text);
	if (z && *z) {
		put_para(out, label, z, width);
	}
}

/* Each one a paragraph; of several each with a mark. */
static void put_list(
	struct ff_buf *out, const char *label, const struct ff_json_node *list, unsigned width)
{
	const struct ff_json_node *v = ff_json_first(list);
	bool several = v && ff_json_next(v);
	for (; v; v = ff_json_next(v)) {
		struct ff_buf b = {0};
		const char *z = ff_json_string(v);
		ff_buf_addf(&b, "%s%s", several ? "- " : "", z ? z : "");
		put_para(out, label, b.p, width);
		ff_buf_finish(&b);
		label = "";
	}
}

static void put_verify(struct ff_buf *out, const struct ff_json_node *list, unsigned width)
{
	const char *label = "VERIFY";
	for (const struct ff_json_node *v = ff_json_first(list); v; v = ff_json_next(v)) {
		struct ff_buf b = {0};
		const char *expect = ff_json_string(ff_json_get(v, "expect"));
		put_member(out, label, ff_json_get(v, "run"), width);
		ff_buf_addf(&b, "expect %s", expect ? expect : "-");
		put_para(out, "", b.p, width);
		ff_buf_finish(&b);
		label = "";
	}
}

/* Code, line by line as it stands. */
static void put_code(
	struct ff_buf *out, const char *label, const struct ff_json_node *text, unsigned width)
{
	struct ff_str rest = ff_str_z(ff_json_string(text));
	bool first = true;
	while (rest.n) {
		ptrdiff_t lf = ff_str_chr(rest, '\n', 0);
		size_t n = lf < 0 ? rest.n : (size_t)lf;
		ff_buf_addf(out, "%-*s", INDENT - 2, first ? label : "");
		ff_screen_quote(out, ff_str_n(rest.p, n), 0,
			width > INDENT ? width - INDENT + 2 : 2);
		rest = ff_str_skip(rest, lf < 0 ? rest.n : n + 1);
		first = false;
	}
}

static void put_words(
	struct ff_buf *out, const char *label, const struct ff_json_node *list, unsigned width)
{
	struct ff_buf b = {0};
	for (const struct ff_json_node *v = ff_json_first(list); v; v = ff_json_next(v)) {
		const char *z = ff_json_string(v);
		ff_buf_addf(&b, "%s%s", b.len ? ", " : "", z ? z : "");
	}
	if (b.len) {
		put_para(out, label, b.p, width);
	}
	ff_buf_finish(&b);
}

static void put_references(struct ff_buf *out, const struct ff_json_node *list, unsigned width)
{
	const char *label = "READ";
	for (const struct ff_json_node *v = ff_json_first(list); v; v = ff_json_next(v)) {
		put_member(out, label, ff_json_get(v, "title"), width);
		put_member(out, "", ff_json_get(v, "url"), width);
		label = "";
	}
}

/* The first line of the first example: how it looks in a log. */
static void put_looks(struct ff_buf *out, const struct ff_json_node *list, unsigned width)
{
	const char *label = "LOOKS";
	unsigned n = 0;
	for (const struct ff_json_node *v = ff_json_first(list); v && n < 3; v = ff_json_next(v)) {
		struct ff_str s = ff_str_z(ff_json_string(v));
		ptrdiff_t lf = ff_str_chr(s, '\n', 0);
		ff_buf_addf(out, "%-*s", INDENT - 2, n++ ? "" : label);
		ff_screen_quote(out, lf < 0 ? s : ff_str_n(s.p, (size_t)lf), 0,
			width > INDENT ? width - INDENT + 2 : 2);
	}
}

static const char *role_text(const char *role)
{
	static const struct {
		const char *role, *text;
	} texts[] = {
		{"primary", "primary: a process's own fault, can start a failure"},
		{"secondary", "secondary: by nature the report of somebody else's failure"},
		{"teardown", "teardown: being ended because the job is over"},
		{"noise", "noise: looks like a fault and is none"},
		{"context", "context: no fault, carries facts"},
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (!strcmp(texts[i].role, role)) {
			return texts[i].text;
		}
	}
	return role;
}

static void put_entry(struct ff_buf *out, const struct ff_page *page, unsigned width)
{
	const struct ff_json_node *e = page->entry;
	const struct ff_json_node *fix = ff_json_get(e, "example_fix");
	put_para(out, "ROLE", role_text(page->role), width);
	put_looks(out, ff_json_get(e, "examples"), width);
	put_member(out, "CAUSE", ff_json_get(e, "cause"), width);
	put_list(out, "HOW", ff_json_get(e, "mechanism"), width);
	put_list(out, "SYMPTOMS", ff_json_get(e, "symptoms"), width);
	put_list(out, "CONFIRM", ff_json_get(e, "confirm"), width);
	put_list(out, "FIX", ff_json_get(e, "fix"), width);
	put_list(out, "PREVENT", ff_json_get(e, "prevent"), width);
	put_verify(out, ff_json_get(e, "verify"), width);
	put_code(out, "BEFORE", ff_json_get(fix, "before"), width);
	put_code(out, "AFTER", ff_json_get(fix, "after"), width);
	put_words(out, "AFFECTS", ff_json_get(e, "affects"), width);
	put_words(out, "SEE ALSO", ff_json_get(e, "see_also"), width);
	put_references(out, ff_json_get(e, "references"), width);
}

void ff_page_text(const struct ff_pages *p, const char *id, unsigned width, struct ff_buf *out)
{
	const struct ff_page **pages;
	size_t n = ff_pages_of(p, id, &pages);
	struct ff_buf head = {0};
	ff_buf_addf(&head, "%s  %s", id, n ? pages[0]->title : "");
	(void)ff_report_put(out, ff_buf_str(&head), width);
	ff_buf_addc(out, '\n');
	ff_buf_clear(&head);
	ff_buf_addf(&head, "category %s, domain %s", n ? pages[0]->category : "-",
		n ? pages[0]->domain : "-");
	(void)ff_report_put(out, ff_buf_str(&head), width);
	ff_buf_addc(out, '\n');
	ff_buf_finish(&head);
	for (size_t i = 0; i < n; i++) {
		ff_buf_addc(out, '\n');
		put_entry(out, pages[i], width);
	}
	free(pages);
}
