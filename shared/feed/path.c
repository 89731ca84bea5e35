#include "feed/path.h"

#include "base/arr.h"
#include "base/limits.h"

#include <stdlib.h>

#define VALUE_MAX 128u /* bytes of a placeholder's value */
#define PARTS_MAX 256u /* components of a path */

void ff_path_identity_finish(struct ff_path_identity *id)
{
	free(id->job);
	free(id->run);
	free(id->node);
	*id = (struct ff_path_identity){.rank = FF_UNKNOWN, .local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN};
}

/* ---- what a path says by its form */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_letter(char c)
{
	return lower(c) >= 'a' && lower(c) <= 'z';
}

/* All of s is a number below max. */
static bool read_number(struct ff_str s, int32_t max, int32_t *ret)
{
	int64_t n;
	if (!s.n || ff_str_digits(s, &n) != s.n || n >= max) {
		return false;
	}
	*ret = (int32_t)n;
	return true;
}

/* `rank[-_.]?N` anywhere in a name, as a word: "rank-3.log", "worker_rank3.txt", Open MPI's
 * "rank.3"; not "ranks", "local_rank-3" or "frank3". */
static bool find_rank(struct ff_str name, int32_t *ret)
{
	for (size_t i = 0; i + 5 <= name.n; i++) {
		if (lower(name.p[i]) != 'r' || lower(name.p[i + 1]) != 'a' ||
		    lower(name.p[i + 2]) != 'n' || lower(name.p[i + 3]) != 'k') {
			continue;
		}
		if (i && is_letter(name.p[i - 1])) {
			continue;
		}
		if (i >= 6 && ff_str_starts(ff_str_skip(name, i - 6), FF_STR("local"))) {
			continue;
		}
		struct ff_str rest = ff_str_skip(name, i + 4);
		if (rest.n && memchr("-_.", rest.p[0], 3)) {
			rest = ff_str_skip(rest, 1);
		}
		int64_t n;
		size_t digits = ff_str_digits(rest, &n);
		if (digits && n < FF_RANKS_MAX) {
			*ret = (int32_t)n;
			return true;
		}
	}
	return false;
}

static enum ff_fd find_fd(struct ff_str name)
{
	if (ff_str_find(name, FF_STR("stderr"), 0) >= 0 || ff_str_ends(name, FF_STR(".err"))) {
		return FF_FD_STDERR;
	}
	if (ff_str_find(name, FF_STR("stdout"), 0) >= 0) {
		return FF_FD_STDOUT;
	}
	return FF_FD_UNKNOWN;
}

/* The component in front of `end`, and where it begins. */
static struct ff_str part_before(struct ff_str path, size_t end, size_t *ret_start)
{
	size_t start = end;
	while (start && path.p[start - 1] != '/') {
		start--;
	}
	*ret_start = start;
	return ff_str_n(path.p + start, end - start);
}

/* torchrun: .../attempt_N/LOCAL/{stdout.log,stderr.log,error.json}, with filtered_std*.log beside
 * the LOCALs (SOURCES.md torch-elastic-logs). The number of the folder is the local rank, never
 * the global one. */
static bool read_torchrun(struct ff_str path, struct ff_str base, size_t start,
			  struct ff_path_identity *ret)
{
	size_t local_start, attempt_start;
	int32_t local = FF_UNKNOWN, attempt;
	bool filtered = ff_str_starts(base, FF_STR("filtered_std"));
	if (!start) {
		return false;
	}
	struct ff_str part = part_before(path, start - 1, &local_start);
	attempt_start = local_start;
	if (!filtered) {
		ret->error_record = ff_str_eqz(base, "error.json");
		if (!ff_str_eqz(base, "stdout.log") && !ff_str_eqz(base, "stderr.log") &&
		    !ret->error_record) {
			return false;
		}
		if (!local_start || !read_number(part, FF_RANKS_MAX, &local)) {
			ret->error_record = false;
			return false;
		}
		part = part_before(path, local_start - 1, &attempt_start);
	}
	if (!ff_str_starts(part, FF_STR("attempt_")) ||
	    !read_number(ff_str_skip(part, 8), INT32_MAX, &attempt)) {
		ret->error_record = false;
		return false;
	}
	ret->attempt = attempt;
	ret->local_rank = local;
	ret->kind = filtered ? FF_STREAM_MIXED : FF_STREAM_RANK;
	ret->kind_known = true;
	ret->filtered = filtered;
	ret->has_tree = true;
	ret->tree = attempt_start ? attempt_start - 1 : 0;
	return true;
}

void ff_path_identify(struct ff_str path, struct ff_path_identity *ret)
{
	size_t start;
	struct ff_str base = part_before(path, path.n, &start);
	*ret = (struct ff_path_identity){.rank = FF_UNKNOWN, .local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN, .kind = FF_STREAM_MIXED};
	ret->fd = find_fd(base);
	ret->no_text = ff_str_eqz(base, "error.json") || ff_str_eqz(base, "job.json");
	if (read_torchrun(path, base, start, ret)) {
		return;
	}
	/* the innermost component that names a rank: out/1/rank.3/stdout */
	for (size_t end = path.n;; end = start - 1) {
		struct ff_str part = part_before(path, end, &start);
		if (find_rank(part, &ret->rank)) {
			ret->kind = FF_STREAM_RANK;
			ret->kind_known = true;
			return;
		}
		if (!start) {
			return;
		}
	}
}

/* ---- tail patterns */

#define HOLES(X) X(job) X(run) X(attempt) X(node) X(rank) X(local_rank) X(name)

enum piece_kind {
	PIECE_TEXT,
	PIECE_STAR, /* `*`: any bytes of one component */
#define X(e) PIECE_##e,
	HOLES(X)
#undef X
};

struct piece {
	enum piece_kind kind;
	struct ff_str text; /* of PIECE_TEXT: in the pattern's own copy */
};

/* One component of a pattern; `**` stands for any number of them. */
struct part {
	struct piece *v;
	size_t n, cap;
	bool any;
};

struct ff_path_pattern {
	char *text, *root;
	struct part *v;
	size_t n, cap;
};

void ff_path_pattern_destroy(struct ff_path_pattern *p)
{
	if (!p) {
		return;
	}
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].v);
	}
	free(p->v);
	free(p->text);
	free(p->root);
	free(p);
}

static int hole_kind(struct ff_str name)
{
	static const struct {
		const char *name;
		enum piece_kind kind;
	} holes[] = {
#define X(e) {#e, PIECE_##e},
		HOLES(X)
#undef X
	};
	for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
		if (ff_str_eqz(name, holes[i].name)) {
			return (int)holes[i].kind;
		}
	}
	return -1;
}

static int parse_part(const struct ff_path_pattern *p, struct ff_str s, struct part *ret,
		      struct ff_err *err)
{
	if (ff_str_eqz(s, "**")) {
		ret->any = true;
		return 0;
	}
	if (!s.n || ff_str_eqz(s, ".") || ff_str_eqz(s, "..") ||
		ff_str_find(s, FF_STR("**"), 0) >= 0) {
		return ff_err_set(err, FF_EUSAGE, "pattern \"%s\": \"%.*s\" can't be a component",
				  p->text, FF_STR_ARG(s));
	}
	for (size_t i = 0; i < s.n;) {
		size_t start = i;
		struct piece piece = {PIECE_TEXT, {0}};
		if (s.p[i] == '*') {
			piece.kind = PIECE_STAR;
			i++;
		} else if (s.p[i] == '{') {
			ptrdiff_t close = ff_str_chr(s, '}', i);
			size_t n = close < 0 ? s.n - i : (size_t)close - i - 1;
			int kind = close < 0 ? -1 : hole_kind(ff_str_n(s.p + i + 1, n));
			if (kind < 0) {
				return ff_err_set(err, FF_EUSAGE,
					"pattern \"%s\": unknown placeholder \"%.*s\" (known: "
					"{job} {run} "
					"{attempt} {node} {rank} {local_rank} {name})",
					p->text, (int)(n + 2), s.p + i);
			}
			piece.kind = (enum piece_kind)kind;
			i = (size_t)close + 1;
		} else {
			while (i < s.n && s.p[i] != '*' && s.p[i] != '{') {
				i++;
			}
			piece.text = ff_str_n(s.p + start, i - start);
		}
		*FF_ARR_ADD(ret->v, ret->n, ret->cap) = piece;
	}
	return 0;
}

static bool is_plain(const struct part *p)
{
	return !p->any && p->n == 1 && p->v[0].kind == PIECE_TEXT;
}

static void make_root(struct ff_path_pattern *p)
{
	struct ff_buf b = {0};
	for (size_t i = 0; i + 1 < p->n && is_plain(&p->v[i]); i++) {
		ff_buf_addc(&b, '/');
		ff_buf_adds(&b, p->v[i].v[0].text);
	}
	if (!b.len) {
		ff_buf_addc(&b, '/');
	}
	p->root = ff_buf_take(&b);
}

struct ff_path_pattern *ff_path_pattern_parse(const char *text, struct ff_err *err)
{
	struct ff_path_pattern *p = ff_xcalloc(1, sizeof *p);
	struct ff_str s = ff_str_z(text);
	p->text = ff_xstrdup(text);
	if (!s.n || s.p[0] != '/') {
		(void)ff_err_set(err, FF_EUSAGE, "pattern \"%s\" does not begin with \"/\"", text);
		goto fail;
	}
	s = ff_str_skip(ff_str_z(p->text), 1);
	for (;;) {
		ptrdiff_t slash = ff_str_chr(s, '/', 0);
		struct ff_str part = slash < 0 ? s : ff_str_n(s.p, (size_t)slash);
		if (p->n == PARTS_MAX) {
			(void)ff_err_set(err, FF_EUSAGE, "pattern \"%s\" is too deep", text);
			goto fail;
		}
		struct part *made = FF_ARR_ADD(p->v, p->n, p->cap);
		*made = (struct part){0};
		if (parse_part(p, part, made, err) < 0) {
			goto fail;
		}
		if (slash < 0) {
			break;
		}
		s = ff_str_skip(s, (size_t)slash + 1);
	}
	if (p->v[p->n - 1].any) {
		(void)ff_err_set(err, FF_EUSAGE,
			"pattern \"%s\" ends in \"**\": name the files, as in "
			"\"**/*.log\"",
			text);
		goto fail;
	}
	make_root(p);
	return p;
fail:
	ff_path_pattern_destroy(p);
	return NULL;
}

const char *ff_path_pattern_root(const struct ff_path_pattern *p)
{
	return p->root;
}

/* Where the values of a match are: one for each kind of hole. */
struct values {
	struct ff_str v[PIECE_name + 1];
};

static bool is_value_byte(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || memchr("._@+-", c, 5);
}

static bool fits(enum piece_kind kind, struct ff_str s)
{
	int32_t n;
	if (!s.n || s.n > VALUE_MAX) {
		return false;
	}
	for (size_t i = 0; i < s.n; i++) {
		if (!is_value_byte(s.p[i])) {
			return false;
		}
	}
	if (kind == PIECE_rank || kind == PIECE_local_rank) {
		return read_number(s, FF_RANKS_MAX, &n);
	}
	return kind != PIECE_attempt || read_number(s, INT32_MAX, &n);
}

/* A hole takes as few bytes as it can, a number as many as it can. Steps are counted: a hostile
 * name must not cost more than a few thousand. */
static bool match_pieces(const struct piece *v, size_t n, struct ff_str s, struct values *ret,
			 unsigned *steps)
{
	if (++*steps > 20000) {
		return false;
	}
	if (!n) {
		return !s.n;
	}
	if (v->kind == PIECE_TEXT) {
		return ff_str_starts(s, v->text) &&
			match_pieces(v + 1, n - 1, ff_str_skip(s, v->text.n), ret, steps);
	}
	if (v->kind == PIECE_STAR) {
		for (size_t take = 0; take <= s.n; take++) {
			if (match_pieces(v + 1, n - 1, ff_str_skip(s, take), ret, steps)) {
				return true;
			}
		}
		return false;
	}
	size_t max = s.n < VALUE_MAX ? s.n : VALUE_MAX;
	bool number =
		v->kind == PIECE_rank || v->kind == PIECE_local_rank || v->kind == PIECE_attempt;
	for (size_t k = 1; k <= max; k++) {
		size_t take = number ? max + 1 - k : k;
		struct ff_str value = ff_str_n(s.p, take);
		if (!fits(v->kind, value)) {
			continue;
		}
		struct ff_str old = ret->v[v->kind];
		if (old.p && !ff_str_eq(old, value)) {
			continue; /* the same placeholder twice has one value */
		}
		ret->v[v->kind] = value;
		if (match_pieces(v + 1, n - 1, ff_str_skip(s, take), ret, steps)) {
			return true;
		}
		ret->v[v->kind] = old;
	}
	return false;
}

/* Splits an absolute path; false if it has empty or dot components or too many. */
static bool split(struct ff_str path, struct ff_str *parts, size_t *ret_n)
{
	size_t n = 0;
	if (!path.n || path.p[0] != '/') {
		return false;
	}
	for (struct ff_str s = ff_str_skip(path, 1);;) {
		ptrdiff_t slash = ff_str_chr(s, '/', 0);
		struct ff_str part = slash < 0 ? s : ff_str_n(s.p, (size_t)slash);
		if (!part.n || ff_str_eqz(part, ".") || ff_str_eqz(part, "..") || n == PARTS_MAX) {
			return false;
		}
		parts[n++] = part;
		if (slash < 0) {
			*ret_n = n;
			return true;
		}
		s = ff_str_skip(s, (size_t)slash + 1);
	}
}

static bool match_parts(const struct part *v, size_t n, const struct ff_str *path, size_t npath,
			struct values *ret, unsigned *steps)
{
	if (!n || *steps > 20000) {
		return !n && !npath;
	}
	if (v->any) {
		for (size_t skip = 0; skip <= npath; skip++) {
			if (match_parts(v + 1, n - 1, path + skip, npath - skip, ret, steps)) {
				return true;
			}
		}
		return false;
	}
	struct values saved = *ret;
	if (npath && match_pieces(v->v, v->n, *path, ret, steps) &&
	    match_parts(v + 1, n - 1, path + 1, npath - 1, ret, steps)) {
		return true;
	}
	*ret = saved;
	return false;
}

static char *copy_value(struct ff_str s)
{
	return s.p ? ff_xmemdup(s.p, s.n) : NULL;
}

bool ff_path_pattern_match(const struct ff_path_pattern *p, struct ff_str path,
			   struct ff_path_identity *ret)
{
	struct ff_str parts[PARTS_MAX];
	struct values found = {0};
	size_t n;
	unsigned steps = 0;
	if (!split(path, parts, &n) || !match_parts(p->v, p->n, parts, n, &found, &steps)) {
		return false;
	}
	/* what no placeholder says is taken from the path's form, below the pattern's own root */
	size_t root = strlen(p->root);
	ff_path_identify(ff_str_skip(path, root + (root > 1)), ret);
	ret->job = copy_value(found.v[PIECE_job]);
	ret->run = copy_value(found.v[PIECE_run]);
	ret->node = copy_value(found.v[PIECE_node]);
	if (found.v[PIECE_attempt].p) {
		(void)read_number(found.v[PIECE_attempt], INT32_MAX, &ret->attempt);
	}
	if (found.v[PIECE_local_rank].p) {
		(void)read_number(found.v[PIECE_local_rank], FF_RANKS_MAX, &ret->local_rank);
	}
	if (found.v[PIECE_rank].p) {
		(void)read_number(found.v[PIECE_rank], FF_RANKS_MAX, &ret->rank);
	}
	if (found.v[PIECE_rank].p || found.v[PIECE_local_rank].p) {
		ret->kind = FF_STREAM_RANK;
		ret->kind_known = true;
	}
	return true;
}

/* Can the folder's components be the front of a match? */
static bool may_match(const struct part *v, size_t n, const struct ff_str *path, size_t npath,
		      unsigned *steps)
{
	struct values found = {0};
	if (!npath || (n && v->any)) {
		return n > 0;
	}
	return n > 1 && match_pieces(v->v, v->n, *path, &found, steps) &&
		may_match(v + 1, n - 1, path + 1, npath - 1, steps);
}

bool ff_path_pattern_may_hold(const struct ff_path_pattern *p, struct ff_str folder)
{
	struct ff_str parts[PARTS_MAX];
	size_t n = 0;
	unsigned steps = 0;
	if (ff_str_eqz(folder, "/")) {
		return true;
	}
	return split(folder, parts, &n) && may_match(p->v, p->n, parts, n, &steps);
}
