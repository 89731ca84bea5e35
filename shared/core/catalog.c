#include "core/catalog.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/arena.h"
#include "base/arr.h"
#include "base/json.h"
#include "base/map.h"

#include <assert.h>
#include <stdlib.h>

#define LITERAL_LEAST 4u
#define LITERAL_MOST 255u
#define ORIGINS 4 /* besides the first */

/* What is known of one fault id. */
struct fault {
	uint32_t ntexts;
	const struct ff_signature *first, *first_with_cause;
	const struct ff_signature *general; /* generic, primary, with a cause */
};

struct ff_catalog {
	struct ff_arena arena; /* all but what is named below */
	struct ff_text *texts;
	size_t ntexts, ctexts;
	pcre2_compile_context *ctx;
	struct ff_map faults; /* id -> struct fault, of the arena */
	struct ff_scan *scan;
	const char *hashes[ORIGINS + 2]; /* the first is set last; NULL-terminated */
	size_t nalso;
};

/* ---- life */

struct ff_catalog *ff_catalog_create(void)
{
	struct ff_catalog *c = ff_xcalloc(1, sizeof *c);
	c->ctx = pcre2_compile_context_create(NULL);
	assert(c->ctx);
	pcre2_set_newline(c->ctx, PCRE2_NEWLINE_LF);
	return c;
}

void ff_catalog_destroy(struct ff_catalog *c)
{
	if (!c) {
		return;
	}
	for (size_t i = 0; i < c->ntexts; i++) {
		pcre2_code_free((pcre2_code *)c->texts[i].code);
	}
	free(c->texts);
	pcre2_compile_context_free(c->ctx);
	ff_scan_destroy(c->scan);
	ff_map_finish(&c->faults);
	ff_arena_finish(&c->arena);
	free(c);
}

/* ---- one entry */

/* Where in the documents we are, for errors. */
struct place {
	const char *file;
	size_t entry;   /* from 1 */
	const char *id; /* NULL until it is known */
	struct ff_err *err;
};

__attribute__((format(printf, 3, 4))) static int bad(
	const struct place *at, int code, const char *fmt, ...)
{
	struct ff_buf text = {0};
	va_list ap;
	va_start(ap, fmt);
	ff_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	ff_err_set(at->err, code, "%s: entry %zu (%s): %s", at->file, at->entry,
		at->id ? at->id : "without id", text.p);
	ff_buf_finish(&text);
	return code;
}

static bool is_word(const char *z)
{
	bool letter = false;
	for (; *z; z++) {
		bool good = (*z >= 'a' && *z <= 'z') || (*z >= '0' && *z <= '9');
		if (!good && (*z != '-' || !letter)) {
			return false;
		}
		letter = good;
	}
	return letter;
}

static bool is_known_key(const char *key, const char *const *keys)
{
	for (; *keys; keys++) {
		if (!strcmp(key, *keys)) {
			return true;
		}
	}
	return false;
}

static int check_keys(
	const struct ff_json_node *obj, const char *const *keys, const struct place *at)
{
	for (const struct ff_json_node *v = ff_json_first(obj); v; v = ff_json_next(v)) {
		if (!is_known_key(ff_json_key(v), keys)) {
			return bad(at, FF_ESCHEMA, "unknown key \"%s\"", ff_json_key(v));
		}
	}
	return 0;
}

/* A text that has to be there and not be empty. */
static int get_text(struct ff_catalog *c, const struct ff_json_node *obj, const char *key,
	const struct place *at, const char **ret)
{
	const char *z = ff_json_string(ff_json_get(obj, key));
	if (!z || !*z) {
		return bad(at, FF_ESCHEMA, "\"%s\" is not a text", key);
	}
	*ret = ff_arena_strdup(&c->arena, z);
	return 0;
}

static int get_texts(struct ff_catalog *c, const struct ff_json_node *obj, const char *key,
	const struct place *at, const char ***ret)
{
	const struct ff_json_node *list = ff_json_get(obj, key);
	size_t n = 0;
	if (list && !ff_json_is_array(list)) {
		return bad(at, FF_ESCHEMA, "\"%s\" is not a list", key);
	}
	for (const struct ff_json_node *v = ff_json_first(list); v; v = ff_json_next(v)) {
		n++;
	}
	const char **texts = FF_ARENA_ARR(&c->arena, const char *, n + 1);
	n = 0;
	for (const struct ff_json_node *v = ff_json_first(list); v; v = ff_json_next(v)) {
		if (!ff_json_string(v)) {
			return bad(at, FF_ESCHEMA, "\"%s\" holds something that is no text", key);
		}
		texts[n++] = ff_arena_strdup(&c->arena, ff_json_string(v));
	}
	*ret = texts;
	return 0;
}

static int get_verify(struct ff_catalog *c, const struct ff_json_node *obj, const struct place *at,
	struct ff_signature *sig)
{
	static const char *const keys[] = {"run", "expect", NULL};
	const struct ff_json_node *list = ff_json_get(obj, "verify");
	size_t n = 0;
	if (list && !ff_json_is_array(list)) {
		return bad(at, FF_ESCHEMA, "\"verify\" is not a list");
	}
	for (const struct ff_json_node *v = ff_json_first(list); v; v = ff_json_next(v)) {
		n++;
	}
	struct ff_verify *verify = FF_ARENA_ARR(&c->arena, struct ff_verify, n + 1);
	n = 0;
	for (const struct ff_json_node *v = ff_json_first(list); v; v = ff_json_next(v), n++) {
		int r = ff_json_is_object(v)
			? check_keys(v, keys, at)
			: bad(at, FF_ESCHEMA, "\"verify\" is not a list of objects");
		r = r ? r : get_text(c, v, "run", at, &verify[n].run);
		r = r ? r : get_text(c, v, "expect", at, &verify[n].expect);
		if (r) {
			return r;
		}
	}
	sig->verify = verify;
	sig->nverify = n;
	return 0;
}

static int get_number(const struct ff_json_node *obj, const char *key, int (*parse)(struct ff_str),
	const struct place *at, int *ret)
{
	const char *z = ff_json_string(ff_json_get(obj, key));
	int v = z ? parse(ff_str_z(z)) : -1;
	if (v < 0) {
		return bad(at, FF_ESCHEMA, "\"%s\" is \"%s\", which is none of its values", key,
			z ? z : "");
	}
	*ret = v;
	return 0;
}

static int get_closed_sets(
	const struct ff_json_node *obj, const struct place *at, struct ff_signature *sig)
{
	int role = 0, domain = 0, kind = FF_EVENT_FAULT;
	int r = get_number(obj, "role", ff_role_parse, at, &role);
	r = r ? r : get_number(obj, "domain", ff_domain_parse, at, &domain);
	if (!r && ff_json_get(obj, "kind")) {
		r = get_number(obj, "kind", ff_event_kind_parse, at, &kind);
	}
	const struct ff_json_node *generic = ff_json_get(obj, "generic");
	if (!r && generic && !ff_json_bool(generic, &sig->generic)) {
		r = bad(at, FF_ESCHEMA, "\"generic\" is not true or false");
	}
	sig->role = (enum ff_role)role;
	sig->domain = (enum ff_domain)domain;
	sig->kind = (enum ff_event_kind)kind;
	return r;
}

static struct fault *get_fault(struct ff_catalog *c, const char *id)
{
	struct fault *f = ff_map_get(&c->faults, ff_str_z(id));
	if (!f) {
		f = FF_ARENA_NEW(&c->arena, struct fault);
		ff_map_put(&c->faults, ff_str_z(id), f);
	}
	return f;
}

/* ---- one text */

static int by_field(const void *x, const void *y)
{
	const struct ff_group *a = x, *b = y;
	if (a->id != b->id) {
		return a->id < b->id ? -1 : 1;
	}
	return (a->number > b->number) - (a->number < b->number);
}

/* Names of groups become field ids, once. */
static int get_groups(struct ff_catalog *c, struct ff_text *t, const struct place *at)
{
	const pcre2_code *code = t->code;
	uint32_t n = 0, size = 0;
	PCRE2_SPTR table = NULL;
	pcre2_pattern_info(code, PCRE2_INFO_NAMECOUNT, &n);
	pcre2_pattern_info(code, PCRE2_INFO_NAMEENTRYSIZE, &size);
	pcre2_pattern_info(code, PCRE2_INFO_NAMETABLE, &table);
	struct ff_group *groups = FF_ARENA_ARR(&c->arena, struct ff_group, (size_t)n + 1);
	for (uint32_t i = 0; i < n; i++) {
		PCRE2_SPTR row = table + (size_t)i * size;
		const char *name = (const char *)row + 2;
		int id = ff_field_parse(ff_str_z(name));
		if (id < 0) {
			return bad(at, FF_ESCHEMA, "%s: group \"%s\" is no field", t->name, name);
		}
		groups[i] = (struct ff_group){(uint32_t)row[0] << 8 | row[1], (enum ff_field_id)id};
	}
	if (n > 1) {
		qsort(groups, n, sizeof *groups, by_field);
	}
	t->groups = groups;
	t->ngroups = n;
	return 0;
}

static int compile(struct ff_catalog *c, struct ff_text *t, const struct place *at)
{
	/* A match begins in the line of its literal (FIRSTLINE); another line has its own mark. */
	uint32_t flags = PCRE2_MULTILINE | PCRE2_FIRSTLINE | PCRE2_DUPNAMES | PCRE2_NEVER_UTF |
		PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C;
	int code = 0;
	PCRE2_SIZE where = 0;
	pcre2_code *re = pcre2_compile(
		(PCRE2_SPTR)t->pattern, PCRE2_ZERO_TERMINATED, flags, &code, &where, c->ctx);
	if (!re) {
		PCRE2_UCHAR text[160] = "";
		pcre2_get_error_message(code, text, sizeof text);
		return bad(at, FF_EREGEX, "%s: pattern: %s at byte %zu", t->name, (char *)text,
			(size_t)where);
	}
	/* Without JIT (no memory that may be run) it is slower and matches the same. */
	(void)pcre2_jit_compile(re, PCRE2_JIT_COMPLETE);
	t->code = re;
	return get_groups(c, t, at);
}

static int add_text(struct ff_catalog *c, const struct ff_json_node *obj, struct fault *f,
	struct ff_signature *sig, const struct place *at)
{
	static const char *const keys[] = {
		"literal",
		"pattern",
		"component",
		"since",
		"source",
		NULL,
	};
	const char *literal = NULL;
	struct ff_text t = {.index = (uint32_t)c->ntexts, .sig = sig};
	if (!ff_json_is_object(obj)) {
		return bad(at, FF_ESCHEMA, "\"match\" holds something that is no object");
	}
	t.name = ff_arena_fmt(&c->arena, "%s/%u", sig->id, f->ntexts + 1);
	int r = check_keys(obj, keys, at);
	r = r ? r : get_text(c, obj, "literal", at, &literal);
	r = r ? r : get_text(c, obj, "pattern", at, &t.pattern);
	if (r) {
		return r;
	}
	t.literal = ff_str_z(literal);
	if (t.literal.n < LITERAL_LEAST || t.literal.n > LITERAL_MOST ||
		ff_str_chr(t.literal, '\n', 0) >= 0 || ff_str_chr(t.literal, '\r', 0) >= 0) {
		return bad(at, FF_ESCHEMA, "%s: a literal has %u to %u bytes and no LF or CR",
			t.name, LITERAL_LEAST, LITERAL_MOST);
	}
	r = compile(c, &t, at);
	if (r) {
		pcre2_code_free((pcre2_code *)t.code);
		return r;
	}
	for (size_t i = 0; i < t.ngroups && sig->role == FF_ROLE_CONTEXT; i++) {
		sig->progress = sig->progress || t.groups[i].id == FF_F_step;
		sig->success = sig->success || t.groups[i].id == FF_F_done;
	}
	f->ntexts++;
	*FF_ARR_ADD(c->texts, c->ntexts, c->ctexts) = t;
	return 0;
}

static int add_entry(struct ff_catalog *c, const struct ff_json_node *obj, struct place *at)
{
	static const char *const keys[] = {
		"id",
		"title",
		"did",
		"category",
		"role",
		"domain",
		"kind",
		"generic",
		"match",
		"cause",
		"mechanism",
		"symptoms",
		"confirm",
		"fix",
		"prevent",
		"verify",
		"example_fix",
		"affects",
		"see_also",
		"references",
		"tags",
		"examples",
		"counterexamples",
		NULL,
	};
	if (!ff_json_is_object(obj)) {
		return bad(at, FF_ESCHEMA, "not an object");
	}
	struct ff_signature *sig = FF_ARENA_NEW(&c->arena, struct ff_signature);
	int r = get_text(c, obj, "id", at, &sig->id);
	if (r) {
		return r;
	}
	if (!is_word(sig->id)) {
		return bad(at, FF_ESCHEMA, "\"id\" has other bytes than a-z, 0-9 and single -");
	}
	at->id = sig->id;
	r = check_keys(obj, keys, at);
	r = r ? r : get_text(c, obj, "title", at, &sig->title);
	r = r ? r : get_text(c, obj, "category", at, &sig->category);
	r = r ? r : get_closed_sets(obj, at, sig);
	if (!r && ff_json_get(obj, "did")) {
		r = get_text(c, obj, "did", at, &sig->did);
	}
	if (!r && ff_json_get(obj, "cause")) {
		r = get_text(c, obj, "cause", at, &sig->cause);
	}
	r = r ? r : get_texts(c, obj, "mechanism", at, &sig->mechanism);
	r = r ? r : get_texts(c, obj, "fix", at, &sig->fix);
	r = r ? r : get_verify(c, obj, at, sig);
	if (r) {
		return r;
	}
	const struct ff_json_node *match = ff_json_get(obj, "match");
	if (!ff_json_is_array(match) || !ff_json_first(match)) {
		return bad(at, FF_ESCHEMA, "\"match\" is not a list of texts");
	}
	struct fault *f = get_fault(c, sig->id);
	for (const struct ff_json_node *v = ff_json_first(match); v && !r; v = ff_json_next(v)) {
		r = add_text(c, v, f, sig, at);
	}
	f->first = f->first ? f->first : sig;
	f->first_with_cause = f->first_with_cause || !sig->cause ? f->first_with_cause : sig;
	bool general = sig->generic && sig->cause && sig->role == FF_ROLE_PRIMARY;
	f->general = f->general || !general ? f->general : sig;
	return r;
}

static int parse_document(
	const char *file, struct ff_str json, struct ff_json **ret, struct ff_err *err)
{
	struct ff_err why = {0};
	*ret = ff_json_parse(json, &why);
	if (!*ret) {
		return ff_err_set(err, FF_EJSON, "%s: %s", file, why.text);
	}
	if (!ff_json_is_array(ff_json_root(*ret))) {
		ff_json_destroy(*ret);
		return ff_err_set(err, FF_ESCHEMA, "%s: not an array of entries", file);
	}
	return 0;
}

int ff_catalog_add(struct ff_catalog *c, const char *file, struct ff_str json, struct ff_err *err)
{
	struct place at = {.file = file, .err = err};
	struct ff_json *doc;
	assert(!c->scan);
	int r = parse_document(file, json, &doc, err);
	if (r) {
		return r;
	}
	const struct ff_json_node *v = ff_json_first(ff_json_root(doc));
	for (; v && !r; v = ff_json_next(v)) {
		at.entry++;
		at.id = NULL;
		r = add_entry(c, v, &at);
	}
	ff_json_destroy(doc);
	return r;
}

size_t ff_catalog_add_each(struct ff_catalog *c, const char *file, struct ff_str json,
	ff_catalog_bad_fn *fn, void *ud)
{
	struct ff_err err = {0};
	struct place at = {.file = file, .err = &err};
	struct ff_json *doc;
	size_t wrong = 0;
	assert(!c->scan);
	if (parse_document(file, json, &doc, &err)) {
		fn(ud, &err);
		return 1;
	}
	for (const struct ff_json_node *v = ff_json_first(ff_json_root(doc)); v;
		v = ff_json_next(v)) {
		at.entry++;
		at.id = NULL;
		if (add_entry(c, v, &at)) {
			fn(ud, &err);
			err = (struct ff_err){0};
			wrong++;
		}
	}
	ff_json_destroy(doc);
	return wrong;
}

void ff_catalog_also(struct ff_catalog *c, const char *sha256)
{
	assert(!c->scan && c->nalso < ORIGINS);
	c->hashes[++c->nalso] = ff_arena_fmt(&c->arena, "sha256:%s", sha256);
}

int ff_catalog_seal(struct ff_catalog *c, const char *sha256, struct ff_err *err)
{
	assert(!c->scan);
	if (c->ntexts > UINT32_MAX / 2) {
		return ff_err_set(err, FF_ELIMIT, "the catalogue has too many texts");
	}
	c->scan = ff_scan_create();
	for (size_t i = 0; i < c->ntexts; i++) {
		ff_scan_add(c->scan, c->texts[i].literal, (uint32_t)i);
	}
	for (size_t i = 0; i < ff_record_nopeners; i++) {
		ff_scan_add(c->scan, ff_record_openers[i], (uint32_t)(c->ntexts + i));
	}
	ff_scan_seal(c->scan);
	c->hashes[0] = ff_arena_fmt(&c->arena, "sha256:%s", sha256);
	return 0;
}

int ff_catalog_load(const struct ff_embedded *files, size_t n, const char *sha256,
	struct ff_catalog **ret, struct ff_err *err)
{
	struct ff_catalog *c = ff_catalog_create();
	int r = 0;
	for (size_t i = 0; i < n && !r; i++) {
		r = ff_catalog_add(c, files[i].name, ff_str_n(files[i].data, files[i].len), err);
	}
	r = r ? r : ff_catalog_seal(c, sha256, err);
	if (r) {
		ff_catalog_destroy(c);
		return r;
	}
	*ret = c;
	return 0;
}

/* ---- questions */

const struct ff_scan *ff_catalog_scan(const struct ff_catalog *c)
{
	return c->scan;
}

size_t ff_catalog_ntexts(const struct ff_catalog *c)
{
	return c->ntexts;
}

const struct ff_text *ff_catalog_text(const struct ff_catalog *c, size_t i)
{
	return &c->texts[i];
}

bool ff_catalog_is_opener(const struct ff_catalog *c, uint32_t id)
{
	return id >= c->ntexts;
}

const struct ff_signature *ff_catalog_find(const struct ff_catalog *c, const char *fault)
{
	const struct fault *f = fault ? ff_map_get(&c->faults, ff_str_z(fault)) : NULL;
	if (!f) {
		return NULL;
	}
	return f->general ? f->general : f->first_with_cause ? f->first_with_cause : f->first;
}

const char *const *ff_catalog_hashes(const struct ff_catalog *c)
{
	return c->hashes;
}
