#include "core/match_own.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/arr.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define TRIES_MOST \
	64u /* patterns that are tried on one line, those of the longest literals first */
#define VICTIMS_MOST 64u /* of one kill: compared with the later lines */

/* A text whose literal stands in a line. */
struct candidate {
	size_t line;
	uint32_t text;
};

struct found {
	struct ff_hit hit;
	size_t part; /* that it stands in, NONE above the first */
	bool dropped;
};

/* A traceback within a record: the outer one of a link of the chain, or one inside its message. */
struct part {
	unsigned chain;      /* 0; in a table each row has its own */
	unsigned block;      /* link of the chain */
	enum ff_link link;   /* in front of its block */
	bool group;          /* of an exception group */
	struct ff_str ranks; /* of "(RANK 3)", "[Rank 0,1 Error Snippet]:": whose it is; or empty */
	size_t first;        /* its first line */
	size_t exception;    /* its exception line; NONE */
	size_t end;          /* behind its last line */
	size_t frame;        /* its deepest user frame; NONE */
	bool known;          /* a text says what its exception is */
	bool specific;       /* one of role primary or secondary that is not generic */
};

struct ff_matcher {
	const struct ff_catalog *catalog;
	pcre2_match_data *data;
	pcre2_match_context *ctx;
	pcre2_jit_stack *stack;
	unsigned limited; /* patterns of this run that reached the limit */
	struct candidate *candidates;
	size_t ncandidates, ccandidates;
	struct found *found;
	size_t nfound, cfound;
	struct part *parts;
	size_t nparts, cparts;
	struct ff_buf frame, path;
};

/* ---- fields */

void ff_fields_finish(struct ff_fields *f)
{
	if (!f) {
		return;
	}
	for (size_t i = 0; i < f->n; i++) {
		free(f->v[i].value);
	}
	free(f->v);
	*f = (struct ff_fields){0};
}

void ff_fields_set(struct ff_fields *f, enum ff_field_id id, struct ff_str value)
{
	size_t i = 0;
	while (i < f->n && f->v[i].id < id) {
		i++;
	}
	if (i < f->n && f->v[i].id == id) {
		free(f->v[i].value);
	} else {
		FF_ARR_ROOM(f->v, f->n, f->cap);
		memmove(f->v + i + 1, f->v + i, (f->n - i) * sizeof *f->v);
		f->n++;
	}
	f->v[i] = (struct ff_field){id, ff_xmemdup(value.p, value.n)};
}

struct ff_str ff_fields_get(const struct ff_fields *f, enum ff_field_id id)
{
	for (size_t i = 0; i < f->n && f->v[i].id <= id; i++) {
		if (f->v[i].id == id) {
			return ff_str_z(f->v[i].value);
		}
	}
	return FF_STR("");
}

/* ---- life */

struct ff_matcher *ff_matcher_create(const struct ff_catalog *c)
{
	struct ff_matcher *m = ff_xcalloc(1, sizeof *m);
	uint32_t most = 0;
	for (size_t i = 0; i < ff_catalog_ntexts(c); i++) {
		uint32_t n = 0;
		pcre2_pattern_info(ff_catalog_text(c, i)->code, PCRE2_INFO_CAPTURECOUNT, &n);
		most = n > most ? n : most;
	}
	m->catalog = c;
	m->data = pcre2_match_data_create(most + 1, NULL);
	m->ctx = pcre2_match_context_create(NULL);
	assert(m->data && m->ctx);
	pcre2_set_match_limit(m->ctx, FF_MATCH_LIMIT);
	m->stack = pcre2_jit_stack_create(32u * 1024u, 256u * 1024u, NULL);
	if (m->stack) {
		pcre2_jit_stack_assign(m->ctx, NULL, m->stack);
	}
	return m;
}

void ff_matcher_destroy(struct ff_matcher *m)
{
	if (!m) {
		return;
	}
	pcre2_match_data_free(m->data);
	pcre2_match_context_free(m->ctx);
	pcre2_jit_stack_free(m->stack);
	free(m->candidates);
	free(m->found);
	free(m->parts);
	ff_buf_finish(&m->frame);
	ff_buf_finish(&m->path);
	free(m);
}

/* ---- one pattern */

static bool match(struct ff_matcher *m, const struct ff_text *t, struct ff_str subject)
{
	size_t n = subject.n < FF_SUBJECT_MAX ? subject.n : FF_SUBJECT_MAX;
	int r = pcre2_match(
		t->code, (PCRE2_SPTR)(subject.p ? subject.p : ""), n, 0, 0, m->data, m->ctx);
	if (r < 0 && r != PCRE2_ERROR_NOMATCH) {
		m->limited++;
	}
	return r > 0;
}

int ff_matcher_try(struct ff_matcher *m, const struct ff_text *t, struct ff_str subject)
{
	unsigned before = m->limited;
	bool holds = match(m, t, subject);
	return m->limited != before ? -1 : holds;
}

/* What the last match captured; false for a group that took no part or holds no such value. */
static bool captured(
	struct ff_matcher *m, struct ff_str subject, const struct ff_group *g, struct ff_str *ret)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->data);
	PCRE2_SIZE from = at[2 * g->number], to = at[2 * g->number + 1];
	if (from == PCRE2_UNSET || to == PCRE2_UNSET || from >= to || to > subject.n) {
		return false;
	}
	int64_t number;
	*ret = ff_str_n(subject.p + from, to - from);
	return ff_field_type(g->id) != FF_FIELD_INT || ff_str_int(ff_str_trim(*ret), &number);
}

static void take_fields(
	struct ff_matcher *m, const struct ff_text *t, struct ff_str subject, struct ff_fields *ret)
{
	bool done = false; /* of several groups of one field the first that has a value counts */
	for (size_t i = 0; i < t->ngroups; i++) {
		struct ff_str value;
		done = done && i && t->groups[i].id == t->groups[i - 1].id;
		if (!done && captured(m, subject, &t->groups[i], &value)) {
			ff_fields_set(ret, t->groups[i].id, value);
			done = true;
		}
	}
}

/* ---- progress lines */

static bool is_progress(const struct ff_text *t)
{
	return t->sig->progress || t->sig->success;
}

bool ff_matcher_holds(
	struct ff_matcher *m, struct ff_str entry, const uint32_t *marks, size_t nmarks)
{
	for (size_t i = 0; i < nmarks; i++) {
		if (match(m, ff_catalog_text(m->catalog, marks[i]), entry)) {
			return true;
		}
	}
	return false;
}

enum ff_progress ff_matcher_progress(
	struct ff_matcher *m, struct ff_str entry, const uint32_t *marks, size_t nmarks)
{
	enum ff_progress ret = FF_PROGRESS_NONE;
	for (size_t i = 0; i < nmarks && ret != FF_PROGRESS_DONE; i++) {
		if (ff_catalog_is_opener(m->catalog, marks[i])) {
			continue;
		}
		const struct ff_text *t = ff_catalog_text(m->catalog, marks[i]);
		/* a second text of a step says nothing new */
		bool new = t->sig->success || ret == FF_PROGRESS_NONE;
		if (is_progress(t) && new && match(m, t, entry)) {
			ret = t->sig->success ? FF_PROGRESS_DONE : FF_PROGRESS_STEP;
		}
	}
	return ret;
}

struct marks {
	const struct ff_catalog *catalog;
	uint32_t ids[TRIES_MOST];
	size_t n;
};

static void add_mark(void *ud, struct ff_mark mark)
{
	struct marks *marks = ud;
	if (ff_catalog_is_opener(marks->catalog, mark.id) || marks->n >= TRIES_MOST ||
		!ff_catalog_text(marks->catalog, mark.id)->sig->progress) {
		return;
	}
	for (size_t i = 0; i < marks->n; i++) {
		if (marks->ids[i] == mark.id) {
			return;
		}
	}
	marks->ids[marks->n++] = mark.id;
}

int64_t ff_matcher_step(struct ff_matcher *m, struct ff_str entry)
{
	struct marks marks = {.catalog = m->catalog};
	if (entry.n > FF_LINE_MAX) {
		entry.n = FF_LINE_MAX;
	}
	ff_scan_run(ff_catalog_scan(m->catalog), entry.p, entry.n, add_mark, &marks);
	for (size_t i = 0; i < marks.n; i++) {
		const struct ff_text *t = ff_catalog_text(m->catalog, marks.ids[i]);
		if (!match(m, t, entry)) {
			continue;
		}
		struct ff_fields fields = {0};
		int64_t step;
		take_fields(m, t, entry, &fields);
		bool good = ff_str_int(ff_str_trim(ff_fields_get(&fields, FF_F_step)), &step);
		ff_fields_finish(&fields);
		if (good && step >= 0) {
			return step;
		}
	}
	return FF_UNKNOWN;
}

/* ---- which texts on which lines */

struct collect {
	struct ff_matcher *m;
	const struct ff_record *rec;
	size_t line; /* marks come in order of their ends */
};

static void add_candidate(void *ud, struct ff_mark mark)
{
	struct collect *c = ud;
	const struct ff_record *rec = c->rec;
	if (ff_catalog_is_opener(c->m->catalog, mark.id)) {
		return;
	}
	while (c->line + 1 < rec->nlines && rec->lines[c->line + 1].at < mark.end) {
		c->line++;
	}
	if (rec->lines[c->line].role != FF_LINE_TEXT ||
		is_progress(ff_catalog_text(c->m->catalog, mark.id))) {
		return;
	}
	*FF_ARR_ADD(c->m->candidates, c->m->ncandidates, c->m->ccandidates) =
		(struct candidate){c->line, mark.id};
}

static int by_line_then_rank(const void *x, const void *y, void *ud)
{
	const struct candidate *a = x, *b = y;
	const struct ff_catalog *c = ud;
	if (a->line != b->line) {
		return a->line < b->line ? -1 : 1;
	}
	const struct ff_text *s = ff_catalog_text(c, a->text), *t = ff_catalog_text(c, b->text);
	if (s->sig->generic != t->sig->generic) {
		return s->sig->generic ? 1 : -1;
	}
	if (s->literal.n != t->literal.n) {
		return s->literal.n > t->literal.n ? -1 : 1;
	}
	return (a->text > b->text) - (a->text < b->text);
}

static struct ff_str rest_of(const struct ff_record *rec, size_t line)
{
	return ff_str_skip(ff_buf_str(&rec->text), rec->lines[line].at);
}

/* The texts that hold, at most one a line. */
static void find_texts(struct ff_matcher *m, const struct ff_record *rec)
{
	struct collect collect = {m, rec, 0};
	m->ncandidates = m->nfound = 0;
	ff_scan_run(ff_catalog_scan(m->catalog), rec->text.p ? rec->text.p : "", rec->text.len,
		add_candidate, &collect);
	if (m->ncandidates > 1) {
		qsort_r(m->candidates, m->ncandidates, sizeof *m->candidates, by_line_then_rank,
			(void *)m->catalog);
	}
	size_t line = NONE;
	unsigned tries = 0;
	for (size_t i = 0; i < m->ncandidates; i++) {
		const struct candidate *c = &m->candidates[i];
		bool again = i && c->line == c[-1].line && c->text == c[-1].text;
		if (c->line != line) {
			line = c->line;
			tries = 0;
		}
		bool taken = m->nfound && m->found[m->nfound - 1].hit.line == line;
		if (again || taken || tries++ >= TRIES_MOST) {
			continue;
		}
		const struct ff_text *t = ff_catalog_text(m->catalog, c->text);
		struct ff_str subject = rest_of(rec, line);
		if (!match(m, t, subject)) {
			continue;
		}
		struct ff_hit hit = {.text = t, .line = line};
		take_fields(m, t, subject, &hit.fields);
		*FF_ARR_ADD(m->found, m->nfound, m->cfound) =
			(struct found){.hit = hit, .part = NONE};
	}
}

/* ---- the parts of a traceback */

static struct part *add_part(struct ff_matcher *m, const struct part *like, size_t line)
{
	struct part *p = FF_ARR_ADD(m->parts, m->nparts, m->cparts);
	*p = *like;
	p->first = line;
	p->end = SIZE_MAX;
	if (m->nparts > 1 && p[-1].end > line) {
		p[-1].end = line;
	}
	/* Until it has a user frame of its own, that of the traceback around it tells more than
	 * none. */
	bool inside =
		m->nparts > 1 && p[-1].block == p->block; /* blocks are counted over all chains */
	p->frame = inside ? p[-1].frame : NONE;
	return p;
}

static void end_part(struct part *p, size_t line)
{
	if (p) {
		p->end = line;
	}
}

/* "[Rank 2 Error Snippet]:" above a traceback (SOURCES.md ray-logs): whose it is. Ranks with the
 * same text share one, "[Rank 0,1 Error Snippet]:". */
static struct ff_str snippet_ranks(const struct ff_record *rec, size_t header)
{
	struct ff_str above = header ? ff_record_line_text(rec, header - 1) : FF_STR("");
	ptrdiff_t from = ff_str_find(above, FF_STR("[Rank "), 0);
	ptrdiff_t to = ff_str_find(above, FF_STR(" Error Snippet]:"), 0);
	if (from < 0 || to < from + 6) {
		return FF_STR("");
	}
	return (struct ff_str){above.p + from + 6, (size_t)(to - from) - 6};
}

/* Cuts the record into parts. Lines above the first header or frame are in none. */
static void find_parts(struct ff_matcher *m, const struct ff_record *rec)
{
	struct part next = {.exception = NONE};
	struct part *p = NULL; /* NULL also behind a link */
	m->nparts = 0;
	for (size_t i = 0; i < rec->nlines; i++) {
		enum ff_line_role role;
		struct ff_str text = ff_match_view(rec, i, &role);
		struct ff_header h;
		struct ff_frame frame;
		if (rec->kind == FF_RECORD_TABLE && ff_record_is_row(text)) {
			next.chain++;
			next.block++;
			next.link = FF_LINK_NONE;
			end_part(p, i);
			p = NULL;
		}
		switch (role) {
		case FF_LINE_HEADER:
			p = add_part(m, &next, i);
			if (ff_record_header(text, &h)) {
				p->group = h.group;
				p->ranks = h.ranks.n ? h.ranks : snippet_ranks(rec, i);
			}
			break;
		case FF_LINE_FRAME:
			if (!ff_match_frame(&m->path, rec, i, &frame)) {
				break;
			}
			if (!p || p->exception != NONE) {
				p = add_part(m, &next, i);
			}
			p->frame = ff_match_is_library(frame.path) ? p->frame : i;
			break;
		case FF_LINE_TEXT:
			if (p && p->exception == NONE) {
				p->exception = i;
			}
			break;
		case FF_LINE_LINK:
			next.block++;
			next.link = ff_record_link(text);
			end_part(p, i);
			p = NULL;
			break;
		case FF_LINE_SOURCE:
		case FF_LINE_BLANK: break;
		}
	}
}

/* Says of each hit in which part it is, and of each part what the hits say. Both are in order. */
static void assign_hits(struct ff_matcher *m)
{
	size_t part = NONE;
	for (size_t i = 0; i < m->nfound; i++) {
		struct found *f = &m->found[i];
		while (part + 1 < m->nparts && m->parts[part + 1].first <= f->hit.line) {
			part++; /* NONE + 1 is 0 */
		}
		f->part = part == NONE || f->hit.line >= m->parts[part].end ? NONE : part;
		const struct ff_signature *sig = f->hit.text->sig;
		if (f->part == NONE) {
			continue;
		}
		/* Noise and facts in the message ("Compile with ...") say nothing of the
		 * exception itself. */
		struct part *p = &m->parts[part];
		bool own = sig->role == FF_ROLE_PRIMARY || sig->role == FF_ROLE_SECONDARY;
		bool itself = f->hit.line == p->exception &&
			(sig->role == FF_ROLE_NOISE || sig->kind == FF_EVENT_EXIT);
		p->known = p->known || own || sig->role == FF_ROLE_TEARDOWN || itself;
		p->specific = p->specific || (own && !sig->generic);
	}
}

static struct ff_str class_of(const struct ff_record *rec, const struct part *p)
{
	struct ff_str cls = FF_STR(""), msg;
	enum ff_line_role role;
	if (p->exception != NONE) {
		(void)ff_record_exception(ff_match_view(rec, p->exception, &role), &cls, &msg);
	}
	return cls;
}

/* The part of a block that says why: the innermost traceback, because the outer ones only carry it
 * (DataLoader, spawn, Ray); of an exception group the first member that is no group itself; of
 * "(RANK n)" parts the first, the others are its equals. *at is the block's first part and becomes
 * the next block's. NONE if no part has an exception. */
static size_t deciding_part(const struct ff_matcher *m, const struct ff_record *rec, size_t *at)
{
	size_t ret = NONE;
	bool group = false, found = false;
	unsigned block = m->parts[*at].block;
	for (; *at < m->nparts && m->parts[*at].block == block; ++*at) {
		const struct part *p = &m->parts[*at];
		if (found || p->exception == NONE) {
			continue;
		}
		ret = *at;
		group = group || p->group;
		found = p->ranks.n ||
			(group && !ff_str_ends(class_of(rec, p), FF_STR("ExceptionGroup")));
	}
	return ret;
}

/* An exception that programs catch as part of their business: a lookup that failed, an import that
 * has a replacement, an iterator's end. */
static bool is_lookup(struct ff_str cls)
{
	static const char *const names[] = {
		"StopIteration",
		"StopAsyncIteration",
		"KeyError",
		"IndexError",
		"LookupError",
		"AttributeError",
		"ImportError",
		"ModuleNotFoundError",
		"Empty",
	};
	for (ptrdiff_t i = ff_str_chr(cls, '.', 0); i >= 0; i = ff_str_chr(cls, '.', 0)) {
		cls = ff_str_skip(cls, (size_t)i + 1);
	}
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (ff_str_eqz(cls, names[i])) {
			return true;
		}
	}
	return false;
}

/* Law 6, and its two exceptions. The first exception of a chain is the fault. But:
 * - behind "Original exception was:" stands what happened before the hook itself failed;
 * - where a mere lookup failed ("During handling of ...": KeyError, ImportError, ...) and nothing
 *   specific is known about it, while a later exception has a specific text, primary or about a
 *   peer, the later one decides: the lookup is how the program found its way to it.
 * Returns an index into parts, NONE if the chain has no exception. *at is the chain's first part
 * and becomes the next chain's. */
static size_t decide(const struct ff_matcher *m, const struct ff_record *rec, size_t *at)
{
	size_t ret = NONE;
	unsigned chain = m->parts[*at].chain;
	while (*at < m->nparts && m->parts[*at].chain == chain) {
		size_t part = deciding_part(m, rec, at);
		if (part == NONE || ret == NONE) {
			ret = part == NONE ? ret : part;
			continue;
		}
		const struct part *now = &m->parts[ret], *later = &m->parts[part];
		bool gives_way = later->link == FF_LINK_CONTEXT && later->specific &&
			!now->specific && is_lookup(class_of(rec, now));
		if (gives_way || later->link == FF_LINK_ORIGINAL) {
			ret = part;
		}
	}
	return ret;
}

/* Several that are quoted with their ranks are each a rank's own. */
static bool is_equal_part(const struct part *a, const struct part *b)
{
	return a->ranks.n && b->ranks.n && a->block == b->block;
}

/* Primaries of other parts than the deciding one are how it went on, or who carried it. */
static void drop_consequences(struct ff_matcher *m, size_t decided)
{
	const struct part *d = &m->parts[decided];
	for (size_t i = 0; i < m->nfound; i++) {
		struct found *f = &m->found[i];
		if (f->part == NONE || f->part == decided || m->parts[f->part].chain != d->chain ||
			f->hit.text->sig->role != FF_ROLE_PRIMARY) {
			continue;
		}
		const struct part *p = &m->parts[f->part];
		f->dropped = !is_equal_part(d, p);
	}
}

/* An exception that no text knows becomes a hit of its own, in its place among the others. */
static void add_unknown(struct ff_matcher *m, const struct ff_record *rec, size_t part)
{
	const struct part *p = &m->parts[part];
	struct ff_str cls, msg;
	enum ff_line_role role;
	if (p->known || p->exception == NONE ||
		!ff_record_exception(ff_match_view(rec, p->exception, &role), &cls, &msg)) {
		return;
	}
	struct found f = {.hit = {.line = p->exception}, .part = part};
	ff_fields_set(&f.hit.fields, FF_F_cls, cls);
	if (msg.n) {
		ff_fields_set(&f.hit.fields, FF_F_msg, msg);
	}
	FF_ARR_ROOM(m->found, m->nfound, m->cfound);
	size_t i = 0;
	while (i < m->nfound && m->found[i].hit.line < p->exception) {
		i++;
	}
	memmove(m->found + i + 1, m->found + i, (m->nfound - i) * sizeof *m->found);
	m->found[i] = f;
	m->nfound++;
}

static void judge_chains(struct ff_matcher *m, const struct ff_record *rec)
{
	find_parts(m, rec);
	assign_hits(m);
	for (size_t at = 0; at < m->nparts;) {
		size_t first = at, decided = decide(m, rec, &at);
		if (decided == NONE) {
			continue;
		}
		drop_consequences(m, decided);
		for (size_t i = first; i < at; i++) {
			if (i == decided || is_equal_part(&m->parts[decided], &m->parts[i])) {
				add_unknown(m, rec, i);
			}
		}
	}
}

/* ---- launchers */

static void name_launcher(struct ff_matcher *m, const struct ff_record *rec, struct found *f)
{
	const struct part *p = f->part == NONE ? NULL : &m->parts[f->part];
	bool own = p && f->hit.line == p->exception && !f->hit.quoted && !rec->handled;
	const char *name = NULL;
	if (!own) {
		return;
	}
	for (size_t i = p->first; !name && i < p->exception; i++) {
		struct ff_frame frame;
		name = ff_match_frame(&m->path, rec, i, &frame) ? ff_match_launcher(&frame) : NULL;
	}
	if (name) {
		ff_fields_set(&f->hit.fields, FF_F_launcher, ff_str_z(name));
	}
}

/* ---- the whole */

/* Whose row of torchrun's table we are in: "  rank      : 25 (local_rank: 1)". */
struct row {
	size_t line; /* the next one to look at */
	int64_t rank;
};

static void find_row(const struct ff_record *rec, struct row *row, size_t line)
{
	for (; row->line <= line; row->line++) {
		struct ff_str text = ff_record_line_text(rec, row->line);
		ptrdiff_t colon = ff_str_chr(text, ':', 0);
		if (ff_str_starts(text, FF_STR("  rank")) && ff_record_is_row(text) &&
			!ff_str_digits(
				ff_str_trim(ff_str_skip(text, (size_t)colon + 1)), &row->rank)) {
			row->rank = FF_UNKNOWN;
		}
	}
}

static bool is_own_fault(const struct ff_hit *hit)
{
	const struct ff_signature *sig = hit->text ? hit->text->sig : NULL;
	return !sig || sig->role == FF_ROLE_PRIMARY || sig->role == FF_ROLE_SECONDARY;
}

static void finish_hit(
	struct ff_matcher *m, const struct ff_record *rec, struct found *f, struct row *row)
{
	struct ff_hit *hit = &f->hit;
	struct ff_str line = ff_record_line_text(rec, hit->line);
	const struct part *p = f->part == NONE ? NULL : &m->parts[f->part];
	int64_t whose = FF_UNKNOWN;
	hit->evidence = rest_of(rec, hit->line);
	hit->quoted = rec->quoted || (p && p->ranks.n);
	if (p && p->ranks.n && !ff_str_int(p->ranks, &whose)) {
		ff_fields_set(&hit->fields, FF_F_ranks, p->ranks);
	}
	if (rec->kind == FF_RECORD_TABLE) {
		find_row(rec, row, hit->line);
		hit->quoted = ff_str_starts(line, FF_STR("  ")) && !ff_record_is_row(line);
		whose = hit->quoted ? row->rank : FF_UNKNOWN;
	}
	hit->frame = ff_match_describe(&m->frame, &m->path, rec, p ? p->frame : NONE);
	hit->copies = p && rec->copies && hit->line == p->exception ? rec->copies : 1;
	name_launcher(m, rec, f);
	if (rec->kind == FF_RECORD_BOX && is_own_fault(hit)) {
		ff_fields_set(&hit->fields, FF_F_launcher, FF_STR("mpirun"));
	}
	if (rec->mixed && is_own_fault(hit)) {
		ff_fields_set(&hit->fields, FF_F_mixed, FF_STR("1"));
	}
	/* The text says whose it is, whatever prefix it has ("(RANK 3)"). */
	if (whose != FF_UNKNOWN && !ff_fields_get(&hit->fields, FF_F_rank).n) {
		char rank[24];
		int n = snprintf(rank, sizeof rank, "%lld", (long long)whose);
		ff_fields_set(&hit->fields, FF_F_rank, ff_str_n(rank, (size_t)n));
	}
}

/* Two lines of one kill say one thing: the first keeps what both know, its cgroup and its pid. */
static void merge_kill(struct ff_matcher *m)
{
	for (size_t i = 1; i < m->nfound; i++) {
		struct ff_hit *hit = &m->found[i].hit;
		struct ff_str pid = ff_fields_get(&hit->fields, FF_F_pid);
		for (size_t k = 0; k < i && k < VICTIMS_MOST && !m->found[i].dropped; k++) {
			struct ff_hit *first = &m->found[k].hit;
			struct ff_str known = ff_fields_get(&first->fields, FF_F_pid);
			bool same = !m->found[k].dropped &&
				first->text->sig->role == FF_ROLE_PRIMARY &&
				hit->text->sig->role == FF_ROLE_PRIMARY &&
				!strcmp(first->text->sig->id, hit->text->sig->id) &&
				(!pid.n || ff_str_eq(pid, known));
			for (size_t f = 0; same && f < hit->fields.n; f++) {
				const struct ff_field *field = &hit->fields.v[f];
				if (!ff_fields_get(&first->fields, field->id).n) {
					ff_fields_set(
						&first->fields, field->id, ff_str_z(field->value));
				}
			}
			m->found[i].dropped = same;
		}
	}
}

unsigned ff_matcher_run(struct ff_matcher *m, const struct ff_record *rec, ff_hit_fn *fn, void *ud)
{
	m->limited = 0;
	m->nparts = 0;
	find_texts(m, rec);
	if (rec->kind == FF_RECORD_TRACEBACK || rec->kind == FF_RECORD_TABLE) {
		judge_chains(m, rec);
	}
	if (rec->kind == FF_RECORD_KERNEL) {
		merge_kill(m);
	}
	size_t dump =
		rec->kind == FF_RECORD_FAULTHANDLER && m->nfound ? ff_match_dump_frame(rec) : NONE;
	struct row row = {0, FF_UNKNOWN};
	for (size_t i = 0; i < m->nfound; i++) {
		struct found *f = &m->found[i];
		if (f->dropped) {
			ff_fields_finish(&f->hit.fields);
			continue;
		}
		finish_hit(m, rec, f, &row);
		if (dump != NONE) {
			f->hit.frame = ff_match_describe(&m->frame, &m->path, rec, dump);
		}
		fn(ud, rec, &f->hit);
	}
	m->nfound = 0;
	return m->limited;
}
