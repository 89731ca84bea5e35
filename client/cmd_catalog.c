#include "client.h"

#include "base/mem.h"
#include "core/check.h"
#include "core/fault.h"
#include "core/report_screen.h"
#include "feed/library.h"
#include "shell/log.h"

#include <stdlib.h>

struct catalog {
	bool json;
	char *category, *role, *path;
	struct ff_library own;
	struct ff_pages pages;
};

/* ---- list and search */

static bool is_wanted(const struct catalog *c, const struct ff_page *page)
{
	return (!c->category || !strcmp(c->category, page->category)) &&
		(!c->role || !strcmp(c->role, page->role));
}

static int print_json(const struct ff_page *const *pages, size_t n)
{
	struct ff_buf out = {0};
	struct ff_jw w;
	ff_jw_init(&w, &out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "schema", "firstfault.catalog/1");
	ff_jw_key(&w, "items");
	ff_jw_open(&w, '[');
	for (size_t i = 0; i < n; i++) {
		ff_page_item(pages[i], &w);
	}
	ff_jw_close(&w, ']');
	ff_jw_knull(&w, "next");
	ff_jw_close(&w, '}');
	ff_buf_addc(&out, '\n');
	int status = client_print(&out);
	ff_buf_finish(&out);
	return status;
}

static void fill_cells(const struct ff_page *page, const char *cells[4])
{
	cells[0] = page->id;
	cells[1] = page->role;
	cells[2] = page->category;
	cells[3] = page->title;
}

static int print_table(const struct ff_page *const *pages, size_t n)
{
	static const struct ff_screen_column columns[] = {
		{"FAULT", 34, false},
		{"ROLE", 9, false},
		{"CATEGORY", 12, false},
		{"TITLE", 100, false},
	};
	struct ff_screen_table t = {.columns = columns, .n = 4, .width = client_width()};
	const char *cells[4];
	struct ff_buf out = {0};
	for (size_t i = 0; i < n; i++) {
		fill_cells(pages[i], cells);
		ff_screen_table_fit(&t, cells);
	}
	if (n) {
		ff_screen_table_head(&t, &out);
	} else {
		ff_buf_addz(&out, "nothing in the catalogue fits\n");
	}
	for (size_t i = 0; i < n; i++) {
		fill_cells(pages[i], cells);
		ff_screen_table_row(&t, cells, &out);
	}
	int status = client_print(&out);
	ff_buf_finish(&out);
	return status;
}

static int by_id(const void *a, const void *b)
{
	const struct ff_page *x = *(const struct ff_page *const *)a;
	const struct ff_page *y = *(const struct ff_page *const *)b;
	int c = strcmp(x->category, y->category);
	c = c ? c : strcmp(x->id, y->id);
	return c ? c : (x > y) - (x < y);
}

static int print_pages(const struct catalog *c, const struct ff_page **pages, size_t n)
{
	return c->json ? print_json(pages, n) : print_table(pages, n);
}

static int list(const struct catalog *c)
{
	const struct ff_page **pages = ff_xcalloc(c->pages.n + 1, sizeof *pages);
	size_t n = 0;
	for (size_t i = 0; i < c->pages.n; i++) {
		if (is_wanted(c, &c->pages.v[i])) {
			pages[n++] = &c->pages.v[i];
		}
	}
	if (n > 1) {
		qsort(pages, n, sizeof *pages, by_id);
	}
	int status = print_pages(c, pages, n);
	free(pages);
	return status;
}

static int search(const struct catalog *c, char *const *words, size_t nwords)
{
	struct ff_buf text = {0};
	struct ff_page_hit *hits;
	for (size_t i = 0; i < nwords; i++) {
		ff_buf_addf(&text, "%s ", words[i]);
	}
	size_t n = 0, found = ff_pages_search(&c->pages, ff_buf_str(&text), &hits);
	const struct ff_page **pages = ff_xcalloc(found + 1, sizeof *pages);
	for (size_t i = 0; i < found; i++) {
		if (is_wanted(c, hits[i].page)) {
			pages[n++] = hits[i].page;
		}
	}
	int status = print_pages(c, pages, n);
	free(pages);
	free(hits);
	ff_buf_finish(&text);
	return status;
}

/* ---- check */

struct report {
	struct ff_buf out;
	size_t defects;
};

static void add_defect(struct report *r, const char *text)
{
	ff_log_escape(ff_str_z(text), &r->out);
	ff_buf_addc(&r->out, '\n');
	r->defects++;
}

static void on_bad_entry(void *ud, const struct ff_err *err)
{
	add_defect(ud, err->text);
}

static void on_defect(void *ud, const char *text)
{
	add_defect(ud, text);
}

/* The form of every entry first; examples only say something of entries that have one. */
static int check_own(const struct catalog *c, struct report *r)
{
	struct ff_catalog *catalog = ff_catalog_create();
	struct ff_err err = {0};
	int status = 0;
	for (size_t i = 0; i < ff_catalog_files_count && !status; i++) {
		const struct ff_embedded *f = &ff_catalog_files[i];
		status = ff_catalog_add(catalog, f->name, ff_str_n(f->data, f->len), &err);
	}
	for (size_t i = 0; i < c->own.n; i++) {
		const struct ff_embedded *f = &c->own.files[i];
		(void)ff_catalog_add_each(
			catalog, f->name, ff_str_n(f->data, f->len), on_bad_entry, r);
	}
	status = status ? status : ff_catalog_seal(catalog, ff_catalog_files_sha256, &err);
	if (!status && !r->defects) {
		struct ff_pages pages = {0};
		status = ff_library_pages(NULL, &pages, &err);
		size_t from = c->own.n ? pages.n : 0;
		for (size_t i = 0; i < c->own.n && !status; i++) {
			const struct ff_embedded *f = &c->own.files[i];
			status = ff_pages_add(&pages, f->name, ff_str_n(f->data, f->len), &err);
		}
		if (!status) {
			(void)ff_catalog_check(catalog, &pages, from, on_defect, r);
		}
		ff_pages_finish(&pages);
	}
	ff_catalog_destroy(catalog);
	return status ? client_catalog_fail(status, NULL, &err) : CLIENT_OK;
}

static int check(struct catalog *c, char *const *paths, size_t n)
{
	struct report r = {0};
	struct ff_err err = {0};
	for (size_t i = 0; i < n; i++) {
		int e = ff_library_read(&c->own, paths[i], &err);
		if (e < 0) {
			return client_catalog_fail(e, paths[i], &err);
		}
	}
	int status = check_own(c, &r);
	if (!status) {
		ff_buf_addf(&r.out, "%s: %zu %s\n", n ? "catalogue" : "built-in catalogue",
			r.defects, r.defects == 1 ? "defect" : "defects");
		status = client_print(&r.out);
		status = status ? status : r.defects ? CLIENT_INPUT : CLIENT_OK;
	}
	ff_buf_finish(&r.out);
	return status;
}

/* ---- */

static int load(struct catalog *c)
{
	struct ff_err err = {0};
	int r = c->path ? ff_library_read(&c->own, c->path, &err) : 0;
	r = r ? r : ff_library_pages(&c->own, &c->pages, &err);
	return r ? client_catalog_fail(r, c->path, &err) : CLIENT_OK;
}

/* Loads what is listed or searched; an unknown category shows nothing anywhere. */
static int load_some(const struct client_command *self, struct catalog *c)
{
	int status = load(c);
	if (!status && c->category && !ff_pages_has_category(&c->pages, c->category)) {
		struct ff_buf all = {0};
		ff_pages_categories(&c->pages, &all);
		status = client_usage(
			self, "no category \"%s\"; there are %s", c->category, all.p);
		ff_buf_finish(&all);
	}
	return status;
}

static int act(const struct client_command *self, struct catalog *c, int argc, char **argv)
{
	const char *action = argc ? argv[0] : "";
	int status = CLIENT_OK;
	if (c->role && ff_role_parse(ff_str_z(c->role)) < 0) {
		return client_usage(
			self, "ROLE is primary, secondary, teardown, noise or context");
	}
	if (!strcmp(action, "check")) {
		return c->path || c->json || c->role || c->category
			? client_usage(self, "check takes files and folders, and no option")
			: check(c, argv + 1, (size_t)argc - 1);
	}
	if (!strcmp(action, "list") && argc == 1) {
		status = load_some(self, c);
		return status ? status : list(c);
	}
	if (!strcmp(action, "search") && argc > 1) {
		status = load_some(self, c);
		return status ? status : search(c, argv + 1, (size_t)argc - 1);
	}
	return client_usage(self, "give list, search WORDS or check [PATH]...");
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct catalog c = {0};
	const struct ff_option options[] = {
		{"json", 'j', FF_OPTION_FLAG, &c.json, NULL, "print the list as JSON", 0, 0},
		{"category", 0, FF_OPTION_TEXT, &c.category, "C",
			"only this category (a wrong one lists them)", 1, 64},
		{"role", 0, FF_OPTION_TEXT, &c.role, "ROLE",
			"only this role: primary, secondary, teardown, noise, context", 1, 32},
		{"catalog", 0, FF_OPTION_TEXT, &c.path, "PATH",
			"a folder of own signatures (or one file), besides those built in", 1,
			4096},
	};
	const size_t n = sizeof options / sizeof *options;
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0) {
		status = act(self, &c, argc - rest, argv + rest);
	}
	ff_pages_finish(&c.pages);
	ff_library_finish(&c.own);
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_catalog = {
	.name = "catalog",
	.local = true,
	.synopsis = "catalog list [--category C] [--role ROLE] [--catalog PATH] [--json]\n"
		    "catalog search WORDS... [--category C] [--role ROLE] [--catalog PATH] "
		    "[--json]\n"
		    "catalog check [PATH]...",
	.summary = "list and search the known faults, check signatures of one's own",
	.description = "`list` shows every fault that has a signature, `search` those that have "
		       "all the words,\n"
		       "the best first: in their id, title, tags, in the lines they match or in "
		       "their text.\n"
		       "\n"
		       "`check` reads files or folders of own signatures (*.json, the form of "
		       "schema/json/\n"
		       "catalog.schema.json) together with those built in and prints each defect "
		       "with file, entry\n"
		       "and id: bad JSON or pattern, an unknown field, an example without a match, "
		       "a text without\n"
		       "example, an example that a second text of equal rank takes, a "
		       "counterexample that matches.\n"
		       "It exits with 65 if there is one. Without PATH it checks what is built "
		       "in.\n",
	.examples = "firstfault catalog search out of memory\n"
		    "firstfault catalog check ~/signatures\n",
	.run = run,
};
