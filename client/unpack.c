#include "unpack.h"

#include "base/limits.h"
#include "shell/file.h"

struct walk {
	const struct unpack_ops *ops;
	void *ud;
	size_t front, files, tars;
	size_t left_out; /* members that are no files, hidden, too deep, too many */
};

static const struct {
	const char *end;
	bool tar; /* the name says that a tar is inside */
} ends[] = {
	{".gz", false}, {".zst", false}, {".xz", false}, {".bz2", false},
	{".tgz", true}, {".tzst", true}, {".txz", true}, {".tbz2", true},
};

static struct ff_str without(struct ff_str name, const char *end)
{
	size_t n = strlen(end);
	bool has = name.n > n && ff_str_ends(name, ff_str_z(end)) && name.p[name.n - n - 1] != '/';
	return ff_str_n(name.p, name.n - (has ? n : 0));
}

struct ff_str unpack_stem(struct ff_str name)
{
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct ff_str stem = without(name, ends[i].end);
		if (stem.n < name.n) {
			return ends[i].tar ? stem : without(stem, ".tar");
		}
	}
	return without(name, ".tar");
}

void unpack_plain(struct ff_str path, struct ff_buf *out)
{
	size_t before = out->len;
	while (path.n) {
		ptrdiff_t slash = ff_str_chr(path, '/', 0);
		struct ff_str part = slash < 0 ? path : ff_str_n(path.p, (size_t)slash);
		if (part.n && !ff_str_eqz(part, ".") && !ff_str_eqz(part, "..")) {
			if (out->len > before) {
				ff_buf_addc(out, '/');
			}
			ff_buf_adds(out, part);
		}
		path = ff_str_skip(path, part.n + 1);
	}
}

/* As a folder's walk has it: hidden names and what is too deep are left out. */
static bool is_wanted(struct ff_str name)
{
	size_t depth = 0;
	bool start = true, hidden = false;
	for (size_t i = 0; i < name.n; i++) {
		hidden = hidden || (start && name.p[i] == '.');
		start = name.p[i] == '/';
		depth += start;
	}
	return name.n && name.n <= FF_NAME_MAX && depth <= FF_FILE_DEPTH && !hidden;
}

static int walk(struct walk *w, const struct unpack_file *as, unsigned depth);

static void trouble(struct walk *w, const char *name, const char *text)
{
	if (w->ops->trouble) {
		w->ops->trouble(w->ud, name, text);
	}
}

static int walk_members(struct walk *w, const struct unpack_file *as, unsigned depth)
{
	struct source *tar = source_tar(as->source);
	struct ff_buf name = {0};
	struct ff_err err = {0};
	struct ff_str stem = unpack_stem(ff_str_z(as->name)), raw;
	int status = 0, more = 0;
	size_t number = ++w->tars;
	while (!status && (more = source_next(tar, &raw, &err)) > 0) {
		ff_buf_clear(&name);
		ff_buf_adds(&name, stem);
		ff_buf_adds(&name, stem.n ? FF_STR("/") : FF_STR(""));
		size_t before = name.len;
		unpack_plain(raw, &name);
		bool wanted = is_wanted(ff_buf_str(&name)) && name.len > before;
		if (!wanted || w->files >= FF_FILE_MAX) {
			w->left_out++;
			continue;
		}
		struct unpack_file f = {
			.name = name.p, .written = name.p, .member = true, .tar = number,
			.inner = before, .source = tar};
		status = walk(w, &f, depth + 1);
	}
	if (more < 0) {
		trouble(w, as->name, err.text);
	}
	w->left_out += source_passed(tar);
	ff_buf_finish(&name);
	source_destroy(tar);
	return status;
}

static int walk_packed(struct walk *w, const struct unpack_file *as, unsigned depth)
{
	struct ff_buf name = {0};
	struct ff_str stem = ff_str_z(as->name);
	ff_buf_addz(&name, ""); /* never NULL */
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct ff_str without_end = without(stem, ends[i].end);
		if (without_end.n < stem.n) {
			ff_buf_adds(&name, without_end);
			ff_buf_addz(&name, ends[i].tar ? ".tar" : "");
			break;
		}
	}
	if (!name.len) {
		ff_buf_adds(&name, stem);
	}
	struct unpack_file f = *as;
	f.name = name.p;
	f.packed = true;
	f.source = source_expand(as->source, as->kind);
	int status = walk(w, &f, depth + 1);
	source_destroy(f.source);
	ff_buf_finish(&name);
	return status;
}

static int walk(struct walk *w, const struct unpack_file *as, unsigned depth)
{
	struct unpack_file f = *as;
	f.kind = source_kind(f.source, w->front);
	if (depth < UNPACK_DEPTH && f.kind == SOURCE_TAR) {
		return walk_members(w, &f, depth);
	}
	if (depth < UNPACK_DEPTH && source_is_packed(f.kind)) {
		return walk_packed(w, &f, depth);
	}
	f.ordinal = w->files++;
	source_is_member(f.source);
	return w->ops->file(w->ud, &f);
}

int unpack(struct source *s, size_t front, const struct unpack_ops *ops, void *ud,
	   size_t *ret_left_out)
{
	struct walk w = {.ops = ops, .ud = ud, .front = front};
	int status = walk(&w, &(struct unpack_file){.name = "", .written = "", .source = s}, 0);
	if (ret_left_out) {
		*ret_left_out = w.left_out;
	}
	return status;
}
