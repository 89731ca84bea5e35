#include "core/check.h"

#include "base/arr.h"
#include "base/limits.h"
#include "core/match.h"

#include <stdlib.h>

#define EXAMPLE_SHOWN 100 /* bytes of an example in a message */
#define PRINTABLE 256     /* room for each character once, and a literal */

/* A text that holds on a line. */
struct holder {
	size_t line;
	uint32_t text;
};

struct check {
	const struct ff_catalog *c;
	const struct ff_pages *pages;
	size_t from;
	struct ff_matcher *m;
	size_t *first; /* by page: its first text; one more at the end */
	ff_check_fn *fn;
	void *ud;
	size_t defects;
	/* of one example */
	struct ff_str example;
	size_t *lines; /* where each line begins */
	size_t nlines, clines;
	struct holder *holders;
	size_t nholders, cholders;
};

__attribute__((format(printf, 3, 4))) static void bad(
	struct check *k, const struct ff_page *page, const char *fmt, ...)
{
	struct ff_buf b = {0};
	va_list ap;
	ff_buf_addf(&b, "%s: entry %zu (%s): ", page->file, page->number, page->id);
	va_start(ap, fmt);
	ff_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	k->defects++;
	k->fn(k->ud, b.p);
	ff_buf_finish(&b);
}

static struct ff_str shown(struct ff_str example)
{
	example.n = example.n < EXAMPLE_SHOWN ? example.n : EXAMPLE_SHOWN;
	return example;
}

/* ---- what holds on an example */

static void split(struct check *k)
{
	k->nlines = 0;
	*FF_ARR_ADD(k->lines, k->nlines, k->clines) = 0;
	for (size_t i = 0; i < k->example.n; i++) {
		if (k->example.p[i] == '\n') {
			*FF_ARR_ADD(k->lines, k->nlines, k->clines) = i + 1;
		}
	}
}

static void on_mark(void *ud, struct ff_mark mark)
{
	struct check *k = ud;
	if (ff_catalog_is_opener(k->c, mark.id)) {
		return;
	}
	size_t line = k->nlines - 1;
	while (k->lines[line] >= mark.end) {
		line--;
	}
	for (size_t i = 0; i < k->nholders; i++) {
		if (k->holders[i].line == line && k->holders[i].text == mark.id) {
			return;
		}
	}
	const struct ff_text *t = ff_catalog_text(k->c, mark.id);
	if (ff_matcher_try(k->m, t, ff_str_skip(k->example, k->lines[line])) > 0) {
		*FF_ARR_ADD(k->holders, k->nholders, k->cholders) =
			(struct holder){line, mark.id};
	}
}

static void find_holders(struct check *k, const char *example)
{
	k->example = ff_str_z(example);
	k->nholders = 0;
	split(k);
	ff_scan_run(ff_catalog_scan(k->c), k->example.p, k->example.n, on_mark, k);
}

static bool is_of(const struct check *k, uint32_t text, size_t page)
{
	return text >= k->first[page] && text < k->first[page + 1];
}

/* ---- rules */

/* Of one line only texts of one rank compete; a generic one gives way to a specific one. */
static void check_rivals(struct check *k, size_t page)
{
	bool own = page >= k->from;
	for (size_t i = 0; i < k->nholders; i++) {
		const struct ff_text *a = ff_catalog_text(k->c, k->holders[i].text);
		bool specific = false;
		for (size_t j = 0; j < k->nholders && a->sig->generic; j++) {
			const struct ff_text *b = ff_catalog_text(k->c, k->holders[j].text);
			specific = specific ||
				(k->holders[j].line == k->holders[i].line && !b->sig->generic);
		}
		for (size_t j = i + 1; j < k->nholders && !specific; j++) {
			const struct ff_text *b = ff_catalog_text(k->c, k->holders[j].text);
			bool later = a->index >= k->first[k->from] || b->index >= k->first[k->from];
			if (k->holders[j].line == k->holders[i].line &&
				a->sig->generic == b->sig->generic && (own || later)) {
				bad(k, &k->pages->v[page],
					"%s and %s both hold on a line of the example \"%.*s\"",
					a->index < b->index ? a->name : b->name,
					a->index < b->index ? b->name : a->name,
					FF_STR_ARG(shown(k->example)));
			}
		}
	}
}

static void check_examples(struct check *k, size_t page)
{
	const struct ff_page *p = &k->pages->v[page];
	size_t n = k->first[page + 1] - k->first[page];
	bool *met = ff_xcalloc(n + 1, sizeof *met);
	const struct ff_json_node *v = ff_json_first(ff_json_get(p->entry, "examples"));
	for (; v; v = ff_json_next(v)) {
		bool any = false;
		if (!ff_json_string(v)) {
			bad(k, p, "\"examples\" holds something that is no text");
			continue;
		}
		find_holders(k, ff_json_string(v));
		for (size_t i = 0; i < k->nholders; i++) {
			if (is_of(k, k->holders[i].text, page)) {
				met[k->holders[i].text - k->first[page]] = true;
				any = true;
			}
		}
		if (!any && page >= k->from) {
			bad(k, p, "no text of it holds on the example \"%.*s\"",
				FF_STR_ARG(shown(k->example)));
		}
		check_rivals(k, page);
	}
	for (size_t i = 0; i < n && page >= k->from; i++) {
		if (!met[i]) {
			bad(k, p, "%s has no example",
				ff_catalog_text(k->c, k->first[page] + i)->name);
		}
	}
	free(met);
}

static void check_counterexamples(struct check *k, size_t page)
{
	const struct ff_page *p = &k->pages->v[page];
	const struct ff_json_node *v = ff_json_first(ff_json_get(p->entry, "counterexamples"));
	for (; v; v = ff_json_next(v)) {
		if (!ff_json_string(v)) {
			bad(k, p, "\"counterexamples\" holds something that is no text");
			continue;
		}
		find_holders(k, ff_json_string(v));
		for (size_t i = 0; i < k->nholders; i++) {
			if (is_of(k, k->holders[i].text, page)) {
				bad(k, p, "%s holds on the counterexample \"%.*s\"",
					ff_catalog_text(k->c, k->holders[i].text)->name,
					FF_STR_ARG(shown(k->example)));
			}
		}
	}
}

static void repeat(struct ff_buf *b, struct ff_str s, const char *behind, size_t n)
{
	for (size_t i = 0; i < n && b->len < FF_SUBJECT_MAX - PRINTABLE; i++) {
		ff_buf_adds(b, s);
		ff_buf_addz(b, behind);
	}
}

/* Lines made to let a pattern go astray: its literal again and again, or with a long tail. */
static void check_steps(struct check *k, size_t page)
{
	static const struct {
		const char *behind, *tail;
		size_t times;
	} hostile[] = {{"", "", 400}, {"", " ", 1}, {"", "0", 1}, {"", "[1, ", 1}, {"\n", "", 300}};
	for (size_t t = k->first[page]; t < k->first[page + 1]; t++) {
		const struct ff_text *text = ff_catalog_text(k->c, t);
		bool astray = false;
		for (size_t i = 0; i < sizeof hostile / sizeof *hostile && !astray; i++) {
			struct ff_buf b = {0};
			repeat(&b, text->literal, hostile[i].behind, hostile[i].times);
			if (*hostile[i].tail) {
				repeat(&b, ff_str_z(hostile[i].tail), "", FF_SUBJECT_MAX);
			}
			for (char c = 0x20; c < 0x7f; c++) {
				ff_buf_addc(&b, c); /* or a byte that it needs ends it at once */
			}
			astray = ff_matcher_try(k->m, text, ff_buf_str(&b)) < 0;
			ff_buf_finish(&b);
		}
		if (astray) {
			bad(k, &k->pages->v[page], "%s: the pattern needs more than %u steps",
				text->name, FF_MATCH_LIMIT);
		}
	}
}

static bool is_list_of_texts(const struct ff_json_node *list)
{
	for (const struct ff_json_node *v = ff_json_first(list); v; v = ff_json_next(v)) {
		if (!ff_json_string(v) || !*ff_json_string(v)) {
			return false;
		}
	}
	return ff_json_is_array(list);
}

static bool has_both(const struct ff_json_node *obj, const char *a, const char *b)
{
	const char *x = ff_json_string(ff_json_get(obj, a));
	const char *y = ff_json_string(ff_json_get(obj, b));
	return x && *x && y && *y;
}

/* What the page of a fault is made of, and judging does not need. */
static void check_form(struct check *k, size_t page)
{
	static const char *const lists[] = {"symptoms", "confirm", "prevent", "affects", "see_also",
		"tags"};
	const struct ff_page *p = &k->pages->v[page];
	const struct ff_json_node *fix = ff_json_get(p->entry, "example_fix"), *v;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		v = ff_json_get(p->entry, lists[i]);
		if (v && !is_list_of_texts(v)) {
			bad(k, p, "\"%s\" is not a list of texts", lists[i]);
		}
	}
	if (fix && !has_both(fix, "before", "after")) {
		bad(k, p, "\"example_fix\" needs before and after");
	}
	v = ff_json_get(p->entry, "references");
	if (v && !ff_json_is_array(v)) {
		bad(k, p, "\"references\" is not a list");
	}
	for (v = ff_json_first(v); v; v = ff_json_next(v)) {
		const char *url = ff_json_string(ff_json_get(v, "url"));
		if (!has_both(v, "title", "url") ||
			(strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)) {
			bad(k, p, "a reference needs title and url");
		}
	}
	if (!ff_json_get(p->entry, "cause")) {
		bad(k, p, "no cause");
	}
	bool helped = ff_json_first(ff_json_get(p->entry, "fix")) &&
		ff_json_first(ff_json_get(p->entry, "verify"));
	if (!strcmp(p->role, "primary") && !helped) {
		bad(k, p, "a primary needs fix and verify");
	}
	v = ff_json_first(ff_json_get(p->entry, "see_also"));
	for (; v; v = ff_json_next(v)) {
		const char *id = ff_json_string(v);
		if (id && !ff_pages_find(k->pages, id, NULL)) {
			bad(k, p, "\"see_also\" names %s, which is no fault", id);
		}
	}
}

/* Texts are numbered in the order of the pages. */
static void number_texts(struct check *k)
{
	size_t n = 0;
	k->first = ff_xcalloc(k->pages->n + 2, sizeof *k->first);
	for (size_t i = 0; i < k->pages->n; i++) {
		const struct ff_json_node *match = ff_json_get(k->pages->v[i].entry, "match");
		k->first[i] = n;
		for (const struct ff_json_node *v = ff_json_first(match); v; v = ff_json_next(v)) {
			n++;
		}
	}
	k->first[k->pages->n] = n;
}

size_t ff_catalog_check(const struct ff_catalog *c, const struct ff_pages *pages, size_t from,
	ff_check_fn *fn, void *ud)
{
	struct check k = {.c = c, .pages = pages, .from = from, .fn = fn, .ud = ud};
	k.m = ff_matcher_create(c);
	number_texts(&k);
	for (size_t i = 0; i < pages->n; i++) {
		check_examples(&k, i);
		if (i >= from) {
			check_counterexamples(&k, i);
			check_steps(&k, i);
			check_form(&k, i);
		}
	}
	ff_matcher_destroy(k.m);
	free(k.first);
	free(k.lines);
	free(k.holders);
	return k.defects;
}
