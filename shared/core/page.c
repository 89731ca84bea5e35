#include "core/page.h"

#include "base/arr.h"
#include "core/fault.h"

#include <stdlib.h>

/* ---- documents */

static const char *text_of(const struct ff_json_node *entry, const char *key)
{
	const char *z = ff_json_string(ff_json_get(entry, key));
	return z ? z : "";
}

int ff_pages_add(struct ff_pages *p, const char *file, struct ff_str json, struct ff_err *err)
{
	struct ff_err why = {0};
	struct ff_json *doc = ff_json_parse(json, &why);
	if (!doc) {
		return ff_err_set(err, FF_EJSON, "%s: %s", file, why.text);
	}
	const struct ff_json_node *root = ff_json_root(doc);
	if (!ff_json_is_array(root)) {
		ff_json_destroy(doc);
		return ff_err_set(err, FF_ESCHEMA, "%s: not an array of entries", file);
	}
	FF_ARR_ROOM(p->docs, p->ndocs, p->cdocs);
	FF_ARR_ROOM(p->files, p->ndocs, p->cfiles);
	p->docs[p->ndocs] = doc;
	p->files[p->ndocs] = ff_xstrdup(file);
	size_t number = 0;
	for (const struct ff_json_node *v = ff_json_first(root); v; v = ff_json_next(v)) {
		*FF_ARR_ADD(p->v, p->n, p->cap) = (struct ff_page){
			.file = p->files[p->ndocs],
			.number = ++number,
			.id = text_of(v, "id"),
			.title = text_of(v, "title"),
			.category = text_of(v, "category"),
			.role = text_of(v, "role"),
			.domain = text_of(v, "domain"),
			.entry = v,
		};
	}
	p->ndocs++;
	return 0;
}

void ff_pages_finish(struct ff_pages *p)
{
	for (size_t i = 0; i < p->ndocs; i++) {
		ff_json_destroy(p->docs[i]);
		free(p->files[i]);
	}
	free(p->docs);
	free(p->files);
	free(p->v);
	*p = (struct ff_pages){0};
}

const struct ff_page *ff_pages_find(
	const struct ff_pages *p, const char *id, const struct ff_page *after)
{
	for (size_t i = after ? (size_t)(after - p->v) + 1 : 0; i < p->n; i++) {
		if (!strcmp(p->v[i].id, id)) {
			return &p->v[i];
		}
	}
	return NULL;
}

static int by_role(const void *a, const void *b)
{
	const struct ff_page *x = *(const struct ff_page *const *)a;
	const struct ff_page *y = *(const struct ff_page *const *)b;
	/* an unknown role is -1: last */
	unsigned r = (unsigned)ff_role_parse(ff_str_z(x->role));
	unsigned s = (unsigned)ff_role_parse(ff_str_z(y->role));
	return r != s ? (r > s) - (r < s) : (x > y) - (x < y);
}

size_t ff_pages_of(const struct ff_pages *p, const char *id, const struct ff_page ***ret)
{
	const struct ff_page *page = NULL;
	size_t n = 0, cap = 0;
	*ret = NULL;
	while ((page = ff_pages_find(p, id, page))) {
		*FF_ARR_ADD(*ret, n, cap) = page;
	}
	if (n > 1) {
		qsort(*ret, n, sizeof **ret, by_role);
	}
	return n;
}

/* ---- near by spelling */

#define WORD_MOST 64u /* bytes of an id that are compared */

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;
	return ab < c ? ab : c;
}

/* How many letters to change, add, drop or swap with their neighbour. */
static unsigned distance(struct ff_str a, struct ff_str b)
{
	unsigned rows[3][WORD_MOST + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];
	for (unsigned k = 0; k <= b.n; k++) {
		last[k] = k;
	}
	for (unsigned i = 1; i <= a.n; i++) {
		now[0] = i;
		for (unsigned k = 1; k <= b.n; k++) {
			bool same = a.p[i - 1] == b.p[k - 1];
			now[k] = least(last[k] + 1, now[k - 1] + 1, last[k - 1] + !same);
			bool swapped = i > 1 && k > 1 && a.p[i - 1] == b.p[k - 2] &&
				a.p[i - 2] == b.p[k - 1];
			if (swapped && before[k - 2] + 1 < now[k]) {
				now[k] = before[k - 2] + 1;
			}
		}
		unsigned *next = before;
		before = last;
		last = now;
		now = next;
	}
	return last[b.n];
}

static struct ff_str cut(const char *id)
{
	struct ff_str s = ff_str_z(id);
	s.n = s.n < WORD_MOST ? s.n : WORD_MOST;
	return s;
}

struct near {
	const char *id;
	unsigned far;
};

static int by_distance(const void *a, const void *b)
{
	const struct near *x = a, *y = b;
	if (x->far != y->far) {
		return x->far < y->far ? -1 : 1;
	}
	return strcmp(x->id, y->id);
}

/* A part of the other is near as well: "oom" of "cuda-oom". */
static unsigned how_far(struct ff_str asked, struct ff_str id)
{
	unsigned far = distance(asked, id), limit = 1 + (unsigned)asked.n / 4;
	if (asked.n >= 3 && ff_str_find(id, asked, 0) >= 0) {
		return 1 + far / 16;
	}
	return far <= limit ? far : UINT32_MAX;
}

bool ff_pages_has_category(const struct ff_pages *p, const char *category)
{
	bool has = false;
	for (size_t i = 0; i < p->n; i++) {
		has = has || !strcmp(p->v[i].category, category);
	}
	return has;
}

void ff_pages_categories(const struct ff_pages *p, struct ff_buf *out)
{
	const char *last = ""; /* a missing one is none */
	for (bool any = false;; any = true) {
		const char *next = NULL;
		for (size_t i = 0; i < p->n; i++) {
			const char *c = p->v[i].category;
			if (strcmp(c, last) > 0 && (!next || strcmp(c, next) < 0)) {
				next = c;
			}
		}
		if (!next) {
			return;
		}
		ff_buf_addf(out, "%s%s", any ? ", " : "", next);
		last = next;
	}
}

size_t ff_pages_near(const struct ff_pages *p, const char *id, const char **ret, size_t cap)
{
	struct near *near = ff_xcalloc(p->n + 1, sizeof *near);
	size_t n = 0, shown = 0;
	for (size_t i = 0; i < p->n; i++) {
		unsigned far = how_far(cut(id), cut(p->v[i].id));
		if (far != UINT32_MAX) {
			near[n++] = (struct near){p->v[i].id, far};
		}
	}
	qsort(near, n, sizeof *near, by_distance);
	for (size_t i = 0; i < n && shown < cap; i++) {
		if (!shown || strcmp(ret[shown - 1], near[i].id) != 0) {
			ret[shown++] = near[i].id;
		}
	}
	free(near);
	return shown;
}

/* ---- search */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool holds(const char *text, struct ff_str word)
{
	for (; *text; text++) {
		size_t i = 0;
		while (i < word.n && text[i] && lower(text[i]) == lower(word.p[i])) {
			i++;
		}
		if (i == word.n) {
			return true;
		}
	}
	return false;
}

/* Does any text below v hold the word? */
static bool holds_below(const struct ff_json_node *v, struct ff_str word)
{
	const char *z = ff_json_string(v);
	if (z) {
		return holds(z, word);
	}
	for (v = ff_json_first(v); v; v = ff_json_next(v)) {
		if (holds_below(v, word)) {
			return true;
		}
	}
	return false;
}

static uint32_t score_word(const struct ff_page *page, struct ff_str word)
{
	static const struct {
		const char *key;
		uint32_t score;
	} keys[] = {{"title", 30}, {"tags", 20}, {"category", 15}, {"match", 12}, {"examples", 10},
		{"cause", 8}, {"symptoms", 8}};
	uint32_t score = 0;
	if (ff_str_eqz(word, page->id)) {
		score += 100;
	} else if (holds(page->id, word)) {
		score += 40;
	}
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		score += holds_below(ff_json_get(page->entry, keys[i].key), word)
			? keys[i].score
			: 0;
	}
	return score ? score : holds_below(page->entry, word);
}

/* Words that stand side by side, as in a line that was copied out of a log. */
static uint32_t score_phrase(const struct ff_page *page, struct ff_str phrase)
{
	static const char *const keys[] = {"title", "match", "examples"};
	uint32_t score = 0;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		score += holds_below(ff_json_get(page->entry, keys[i]), phrase) ? 25 : 0;
	}
	return score;
}

static int by_score(const void *a, const void *b)
{
	const struct ff_page_hit *x = a, *y = b;
	if (x->score != y->score) {
		return x->score > y->score ? -1 : 1;
	}
	int c = strcmp(x->page->id, y->page->id);
	return c ? c : (x->page > y->page) - (x->page < y->page);
}

static size_t split_words(struct ff_str text, struct ff_str words[FF_SEARCH_WORDS])
{
	size_t n = 0;
	while (n < FF_SEARCH_WORDS) {
		text = ff_str_trim(text);
		if (!text.n) {
			break;
		}
		ptrdiff_t end = ff_str_chr(text, ' ', 0);
		words[n++] = ff_str_n(text.p, end < 0 ? text.n : (size_t)end);
		text = ff_str_skip(text, words[n - 1].n);
	}
	return n;
}

size_t ff_pages_search(const struct ff_pages *p, struct ff_str text, struct ff_page_hit **ret)
{
	struct ff_str words[FF_SEARCH_WORDS];
	size_t nwords = split_words(text, words), n = 0, cap = 0;
	*ret = NULL;
	for (size_t i = 0; i < p->n && nwords; i++) {
		uint32_t score = 0, one = 1;
		for (size_t k = 0; k < nwords && one; k++) {
			one = score_word(&p->v[i], words[k]);
			score += one;
		}
		if (one) {
			score += nwords > 1 ? score_phrase(&p->v[i], ff_str_trim(text)) : 0;
			*FF_ARR_ADD(*ret, n, cap) = (struct ff_page_hit){&p->v[i], score};
		}
	}
	if (n > 1) {
		qsort(*ret, n, sizeof **ret, by_score);
	}
	return n;
}

/* ---- JSON */

void ff_page_item(const struct ff_page *page, struct ff_jw *w)
{
	int64_t texts = 0;
	const struct ff_json_node *v = ff_json_first(ff_json_get(page->entry, "match"));
	for (; v; v = ff_json_next(v)) {
		texts++;
	}
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "id", page->id);
	ff_jw_kstrz(w, "title", page->title);
	ff_jw_kstrz(w, "category", page->category);
	ff_jw_kstrz(w, "role", page->role);
	ff_jw_kstrz(w, "domain", page->domain);
	ff_jw_kstrz(w, "file", page->file);
	ff_jw_kint(w, "texts", texts);
	ff_jw_close(w, '}');
}

void ff_page_json(const struct ff_pages *p, const char *id, struct ff_buf *out)
{
	const struct ff_page **pages;
	size_t n = ff_pages_of(p, id, &pages);
	struct ff_jw w;
	ff_jw_init(&w, out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "schema", "firstfault.fault/1");
	ff_jw_kstrz(&w, "id", id);
	ff_jw_kstrz(&w, "title", n ? pages[0]->title : NULL);
	ff_jw_kstrz(&w, "category", n ? pages[0]->category : NULL);
	ff_buf_addz(out, ",\"entries\":[");
	for (size_t i = 0; i < n; i++) {
		ff_buf_addz(out, i ? ",\n" : "");
		ff_json_render(pages[i]->entry, out);
	}
	free(pages);
	ff_buf_addz(out, "]");
	ff_jw_close(&w, '}');
}
