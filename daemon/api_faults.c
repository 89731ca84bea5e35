#include "api.h"

#include "base/mem.h"

#include <stdlib.h>

#define NEAR 5 /* ids that are suggested */

/* Documents that a catalogue was made of are good; they are parsed once more for their pages only
 * if somebody asks. NULL: a problem was answered. */
static const struct ff_pages *get_pages(struct request *r)
{
	struct ff_err err = {0};
	struct daemon *d = r->d;
	if (!d->pages.n && ff_library_pages(&d->own, &d->pages, &err) < 0) {
		request_problem(r, 500, "%s", err.text);
		return NULL;
	}
	return &d->pages;
}

static bool are_known(
	struct request *r, const struct ff_pages *pages, const char *category, const char *role)
{
	struct ff_buf all = {0};
	bool good = !category || ff_pages_has_category(pages, category);
	if (!good) {
		ff_pages_categories(pages, &all);
		request_problem(r, 400, "no category \"%s\"; there are %s", category, all.p);
	} else if (role && ff_role_parse(ff_str_z(role)) < 0) {
		request_problem(r, 400,
			"no role \"%s\": it is primary, secondary, teardown, noise or context",
			role);
		good = false;
	}
	ff_buf_finish(&all);
	return good;
}

void api_faults_list(struct request *r)
{
	const struct ff_pages *pages = get_pages(r);
	char *category = request_query(r, "category"), *role = request_query(r, "role");
	struct ff_buf out = {0};
	struct ff_jw w;
	if (pages && are_known(r, pages, category, role)) {
		request_list_open(&w, &out, "firstfault.catalog/1");
		for (size_t i = 0; i < pages->n; i++) {
			const struct ff_page *p = &pages->v[i];
			if ((!category || !strcmp(category, p->category)) &&
				(!role || !strcmp(role, p->role))) {
				ff_page_item(p, &w);
			}
		}
		request_list_close(&w, NULL);
		request_json(r, 200, &out);
	}
	free(category);
	free(role);
}

static void unknown_fault(struct request *r, const struct ff_pages *pages)
{
	const char *near[NEAR];
	struct ff_buf b = {0};
	size_t n = ff_pages_near(pages, r->parts[2], near, NEAR);
	for (size_t i = 0; i < n; i++) {
		ff_buf_addf(&b, "%s%s", i ? ", " : "; nearest by spelling: ", near[i]);
	}
	request_problem(r, 404, "the catalogue has no fault \"%s\"%s", r->parts[2],
		n ? b.p : "");
	ff_buf_finish(&b);
}

void api_faults_one(struct request *r)
{
	const struct ff_pages *pages = get_pages(r);
	struct ff_buf out = {0};
	if (!pages) {
		return;
	}
	if (!ff_pages_find(pages, r->parts[2], NULL)) {
		unknown_fault(r, pages);
		return;
	}
	ff_page_json(pages, r->parts[2], &out);
	ff_buf_addc(&out, '\n');
	request_json(r, 200, &out);
}
