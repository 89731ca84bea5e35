#include "files.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/map.h"
#include "client.h"
#include "feed/runs.h"
#include "shell/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOB_FILE_MAX (16u * 1024u * 1024u)
#define NOTES_MAX 64u
#define FRONT 4096u /* bytes of a file that are looked at */

void files_note(struct files *f, const char *fmt, ...)
{
	struct ff_buf b = {0};
	va_list ap;
	if (f->nnotes == NOTES_MAX) {
		return;
	}
	va_start(ap, fmt);
	ff_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	*FF_ARR_ADD(f->notes, f->nnotes, f->cnotes) = ff_buf_take(&b);
}

static struct files_item *add_item(struct files *f, char *path, char *name, size_t folder)
{
	struct files_item *it = FF_ARR_ADD(f->v, f->n, f->cap);
	*it = (struct files_item){.path = path,
		.name = name,
		.folder = folder,
		.archive = FILES_NONE,
		.world = FF_UNKNOWN,
		.origin = {.source = "0",
			.rank = FF_UNKNOWN,
			.local_rank = FF_UNKNOWN,
			.attempt = FF_UNKNOWN,
			.pid = FF_UNKNOWN,
			.kind = FF_STREAM_MIXED}};
	ff_path_identify(FF_STR(""), &it->id);
	return it;
}

static void identify(struct files_item *it)
{
	ff_path_identity_finish(&it->id);
	ff_path_identify(ff_str_z(it->below), &it->id);
	it->origin.kind = it->id.kind;
	it->origin.kind_declared = it->id.kind_known;
	it->origin.rank = it->id.rank;
	it->origin.local_rank = it->id.local_rank;
	it->origin.attempt = it->id.attempt;
	it->origin.fd = it->id.fd;
	it->origin.filtered = it->id.filtered;
}

static bool trusts(enum ff_stream_kind kind)
{
	return kind == FF_STREAM_KERNEL || kind == FF_STREAM_SCHEDULER;
}

static char *plain(const char *path)
{
	struct ff_buf b = {0};
	unpack_plain(ff_str_z(path), &b);
	return ff_buf_take(&b);
}

/* The streams that job.json names. */
static int add_listed(struct files *f, const char *folder, struct ff_str text, size_t index)
{
	struct ff_jobfile job;
	struct ff_err err = {0};
	int r = ff_jobfile_parse(text, &job, &err);
	if (r < 0) {
		return client_failf(client_status(r), NULL, "%s: %s", folder, err.text);
	}
	for (size_t i = 0; i < job.nstreams; i++) {
		char *name = plain(job.streams[i].name);
		struct files_item *it = add_item(f, ff_file_join(folder, name), name, index);
		it->listed = true;
		it->job = job.job;
		it->run = job.run;
		it->world = job.world;
		it->origin = job.streams[i];
		it->origin.trusted = it->origin.kind_declared && trusts(it->origin.kind);
	}
	*FF_ARR_ADD(f->jobs, f->njobs, f->cjobs) = job;
	return CLIENT_OK;
}

static int load_listed(struct files *f, const char *folder, const char *file, size_t index)
{
	struct ff_buf text = {0};
	struct ff_err err = {0};
	int r = ff_file_load(file, JOB_FILE_MAX, &text, &err);
	int status = r < 0 ? client_failf(client_status(r), NULL, "%s: %s", folder, err.text) :
		add_listed(f, folder, ff_buf_str(&text), index);
	ff_buf_finish(&text);
	return status;
}

/* torchrun's attempt_N says something even where it is itself what was given. */
static bool says_attempt(struct ff_str folder)
{
	int64_t n;
	struct ff_str number = ff_str_skip(folder, 8);
	return ff_str_starts(folder, FF_STR("attempt_")) && number.n &&
		ff_str_digits(number, &n) == number.n;
}

static int add_walked(struct files *f, const char *folder, size_t index)
{
	struct ff_file_list l;
	struct ff_err err = {0};
	int r = ff_file_walk(folder, &l, &err);
	if (r < 0) {
		return client_fail(CLIENT_IO, err.text, NULL);
	}
	if (l.trouble.text[0]) {
		f->partly = client_fail(CLIENT_IO, l.trouble.text, NULL);
	}
	if (l.skipped) {
		client_warn("%zu entries of \"%s\" are no files, too deep or too many, ignoring",
			l.skipped, folder);
	}
	struct ff_str base = ff_file_base(folder);
	struct ff_buf front = {0};
	if (says_attempt(base)) {
		ff_buf_addf(&front, "%.*s/", FF_STR_ARG(base));
	}
	for (size_t i = 0; i < l.n; i++) {
		struct ff_buf below = {0};
		ff_buf_adds(&below, ff_buf_str(&front));
		ff_buf_addz(&below, l.v[i].below);
		struct files_item *it =
			add_item(f, ff_xstrdup(l.v[i].path), ff_xstrdup(below.p), index);
		it->below = ff_buf_take(&below);
		it->above = strlen(it->path) - strlen(l.v[i].below) - front.len;
		it->walked = true;
		it->empty = !l.v[i].size;
		identify(it);
	}
	ff_buf_finish(&front);
	ff_file_list_finish(&l);
	return CLIENT_OK;
}

int files_add(struct files *f, const char *path, size_t index)
{
	if (!strcmp(path, "-")) {
		struct files_item *it = add_item(f, NULL, ff_xstrdup("-"), index);
		it->first = true;
		return CLIENT_OK;
	}
	if (!*path) {
		return client_failf(CLIENT_INPUT, NULL, "a PATH is empty");
	}
	if (ff_file_is_folder(path)) {
		char *file = ff_file_join(path, "job.json");
		int r = access(file, F_OK) == 0 ? load_listed(f, path, file, index) :
			add_walked(f, path, index);
		free(file);
		return r;
	}
	struct ff_str base = ff_file_base(path);
	struct files_item *it = add_item(f, ff_xstrdup(path), ff_xmemdup(base.p, base.n), index);
	it->below = ff_xstrdup(path);
	identify(it);
	return CLIENT_OK;
}

static void use_path(struct files_item *it)
{
	free(it->name);
	it->name = ff_xstrdup(it->path);
}

/* A file that was given twice is read once. */
static void drop_repeats(struct files *f)
{
	struct ff_map seen = {0};
	for (size_t i = 0; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		struct ff_buf key = {0};
		struct stat st;
		bool real = it->path && it->archive == FILES_NONE && stat(it->path, &st) == 0 &&
			S_ISREG(st.st_mode);
		if (real) {
			ff_buf_addf(&key, "%llu:%llu", (unsigned long long)st.st_dev,
				(unsigned long long)st.st_ino);
		} else {
			ff_buf_addz(&key, it->path ? it->path : "-");
		}
		if (it->name[0] && ff_map_put(&seen, ff_buf_str(&key), it)) {
			if (it->listed) {
				client_warn(
					"job.json lists \"%s\" twice, the first holds", it->name);
			}
			it->name[0] = '\0';
		}
		ff_buf_finish(&key);
	}
	ff_map_finish(&seen);
}

/* Files of equal names below different PATHs: the whole path tells them apart. Of a file and a
 * packed one of the same name the packed one keeps its own. */
static void name_apart(struct files *f)
{
	struct ff_map seen = {0};
	for (size_t i = 0; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		struct files_item *other = NULL;
		if (it->name[0]) {
			other = ff_map_put(&seen, ff_str_z(it->name), it);
		}
		if (!other || !it->path || !other->path) {
			continue;
		}
		if (other->folder != it->folder) {
			use_path(it);
			if (strcmp(other->name, other->path) != 0) {
				use_path(other);
			}
		} else if (it->below && other->below) {
			struct files_item *packed = it->packed ? it : other;
			free(packed->name);
			packed->name = ff_xstrdup(packed->path + packed->above);
		}
	}
	ff_map_finish(&seen);
}

/* ---- torchrun's trees: one a launcher, so one a node */

struct tree {
	struct ff_str path; /* of the folder that holds attempt_N, as opened */
	struct ff_str node; /* what the node is called: a component of path */
};

static struct ff_str tree_path(const struct files_item *it)
{
	size_t n = it->above + it->id.tree;
	while (n > 1 && it->path[n - 1] == '/') {
		n--;
	}
	return ff_str_n(it->path, n);
}

static struct ff_str last_part(struct ff_str path)
{
	size_t start = path.n;
	while (start && path.p[start - 1] != '/') {
		start--;
	}
	return ff_str_skip(path, start);
}

static struct ff_str parent(struct ff_str path)
{
	size_t n = path.n - last_part(path).n;
	return ff_str_n(path.p, n ? n - 1 : 0);
}

static size_t find_trees(const struct files *f, struct tree **ret)
{
	struct tree *v = NULL;
	struct ff_map seen = {0};
	size_t n = 0, cap = 0;
	for (size_t i = 0; i < f->n; i++) {
		const struct files_item *it = &f->v[i];
		if (!it->id.has_tree || !it->path) {
			continue;
		}
		struct ff_str path = tree_path(it);
		if (!ff_map_put(&seen, path, &f->v[i])) {
			*FF_ARR_ADD(v, n, cap) = (struct tree){.path = path};
		}
	}
	ff_map_finish(&seen);
	*ret = v;
	return n;
}

/* Does one (attempt, local rank) stand in two trees? Then these are two nodes. */
static bool overlap(const struct files *f)
{
	struct ff_map seen = {0};
	bool found = false;
	for (size_t i = 0; i < f->n && !found; i++) {
		const struct files_item *it = &f->v[i];
		struct ff_buf key = {0};
		if (!it->id.has_tree || it->id.local_rank == FF_UNKNOWN || !it->path) {
			continue;
		}
		ff_buf_addf(&key, "%d.%d", it->id.attempt, it->id.local_rank);
		const struct files_item *other = ff_map_put(&seen, ff_buf_str(&key), &f->v[i]);
		found = other && !ff_str_eq(tree_path(other), tree_path(it));
		ff_buf_finish(&key);
	}
	ff_map_finish(&seen);
	return found;
}

/* The innermost component, counted from the tree, that all trees have and no two share. */
static bool name_trees(struct tree *v, size_t n)
{
	for (unsigned up = 0; up < 8; up++) {
		struct ff_map seen = {0};
		bool apart = true;
		for (size_t i = 0; i < n; i++) {
			struct ff_str path = v[i].path;
			for (unsigned k = 0; k < up; k++) {
				path = parent(path);
			}
			v[i].node = last_part(path);
			apart = apart && v[i].node.n && v[i].node.n <= FF_JOB_ID_MAX &&
				!ff_map_put(&seen, v[i].node, &v[i]);
		}
		ff_map_finish(&seen);
		/* the tree's own name is RUNID_RANDOM: a folder above it says more */
		if (apart && (up || ff_str_chr(v[0].node, '_', 0) < 0)) {
			return true;
		}
	}
	return false;
}

static void set_nodes(struct files *f)
{
	struct tree *v;
	size_t n = find_trees(f, &v);
	if (n < 2 || !overlap(f)) {
		free(v);
		return;
	}
	if (!name_trees(v, n)) {
		for (size_t i = 0; i < n; i++) {
			v[i].node = last_part(v[i].path);
		}
	}
	/* the folder that gave the name, and all that lies below it */
	struct ff_map named = {0};
	for (size_t k = 0; k < n; k++) {
		size_t up = (size_t)(v[k].node.p - v[k].path.p) + v[k].node.n;
		(void)ff_map_put(&named, ff_str_n(v[k].path.p, up), &v[k]);
	}
	for (size_t i = 0; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		for (size_t up = it->path ? strlen(it->path) : 0; up && !it->listed && !it->node;) {
			const struct tree *t = it->path[--up] != '/' ? NULL :
				ff_map_get(&named, ff_str_n(it->path, up));
			if (t) {
				struct ff_str node = unpack_stem(t->node); /* of an archive */
				it->node = ff_xmemdup(node.p, node.n);
				it->origin.node = it->node;
			}
		}
	}
	ff_map_finish(&named);
	free(v);
}

/* torchrun's filtered_*.log hold copies of lines of the ranks' own files beside them. */
static void drop_copies(struct files *f)
{
	struct ff_map whole = {0};
	for (size_t i = 0; i < f->n; i++) {
		const struct files_item *it = &f->v[i];
		if (it->id.has_tree && !it->id.filtered && it->path && it->name[0]) {
			(void)ff_map_put(&whole, tree_path(it), &f->v[i]);
		}
	}
	for (size_t i = 0; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		if (it->walked && it->id.filtered && ff_map_get(&whole, tree_path(it))) {
			it->name[0] = '\0';
		}
	}
	ff_map_finish(&whole);
}

/* ---- what is in them */

/* What one look at a file gives: itself, or the files that it holds. */
struct look {
	struct files *f;
	size_t index;              /* of the item */
	size_t from;               /* index of the first member */
	struct ff_buf job_text;    /* of a member job.json */
	char *job_name;            /* its name within; NULL: there is none */
	struct place {
		size_t tar, inner; /* as in unpack.h */
	} *places;                 /* of each member */
	size_t nplaces, cplaces;
	bool failed;
};

static bool begins_json(struct ff_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!memchr(" \t\r\n\xef\xbb\xbf", s.p[i], 7)) {
			return s.p[i] == '{';
		}
	}
	return false;
}

static void strip_end(char *name)
{
	struct ff_str stem = unpack_stem(ff_str_z(name));
	name[stem.n] = '\0';
}

static bool is_job_file(struct ff_str name)
{
	ptrdiff_t slash = ff_str_chr(name, '/', 0);
	struct ff_str rest = slash < 0 ? name : ff_str_skip(name, (size_t)slash + 1);
	return ff_str_eqz(rest, "job.json");
}

static void load_job_text(struct look *l, const struct unpack_file *file)
{
	ff_buf_clear(&l->job_text);
	for (;;) {
		char *to = ff_buf_reserve(&l->job_text, SOURCE_FRONT);
		ssize_t got = source_read(file->source, to, SOURCE_FRONT, NULL);
		if (got <= 0 || l->job_text.len + (size_t)got > JOB_FILE_MAX) {
			break;
		}
		l->job_text.len += (size_t)got;
	}
	free(l->job_name);
	l->job_name = ff_xstrdup(file->name);
}

static int look_at(void *ud, const struct unpack_file *file)
{
	struct look *l = ud;
	struct files_item *it = &l->f->v[l->index];
	struct ff_str front = source_front(file->source, FRONT);
	if (!file->member) {
		it->packed = file->packed;
		it->empty = !front.n;
		it->first = begins_json(front);
		return CLIENT_OK;
	}
	if (it->listed) {
		return CLIENT_OK; /* it is no stream: said when it is read */
	}
	bool top = !it->walked;
	it->holds = true;
	if (top && is_job_file(ff_str_z(file->name))) {
		load_job_text(l, file);
	}
	char *path = ff_file_join(it->path, file->written);
	size_t folder = it->folder, index = l->index;
	*FF_ARR_ADD(l->places, l->nplaces, l->cplaces) = (struct place){file->tar, file->inner};
	it = add_item(l->f, path, ff_xstrdup(file->name), folder); /* moves the others */
	it->archive = index;
	it->ordinal = file->ordinal;
	it->walked = true;
	it->packed = file->packed;
	it->empty = !front.n;
	it->first = begins_json(front);
	return CLIENT_OK;
}

static void look_failed(void *ud, const char *name, const char *text)
{
	struct look *l = ud;
	const char *path = files_shown(&l->f->v[l->index]);
	l->failed = true;
	client_warn("\"%s%s%s\": %s", path, *name ? "/" : "", name, text);
	files_note(l->f, "a part of %s%s%s: %s", path, *name ? "/" : "", name, text);
}

/* The one folder that all members lie in, with its slash; 0: there is none. */
static size_t top_folder(const struct look *l)
{
	const char *name = l->from < l->f->n ? l->f->v[l->from].name : "";
	const char *slash = strchr(name, '/');
	size_t n = slash ? (size_t)(slash - name) + 1 : 0;
	for (size_t i = l->from; i < l->f->n && n; i++) {
		n = strncmp(l->f->v[i].name, name, n) == 0 ? n : 0;
	}
	return n && !says_attempt(ff_str_n(name, n - 1)) ? n : 0;
}

static void erase(char *text, size_t at, size_t n)
{
	memmove(text + at, text + at + n, strlen(text + at + n) + 1);
}

/* An archive in an archive is the one folder that all it holds lies in, too. */
static void drop_inner_tops(struct look *l)
{
	struct files_item *v = l->f->v + l->from;
	size_t above = strlen(l->f->v[l->index].path) + 1;
	for (size_t i = 0, end; i < l->nplaces; i = end) {
		const struct place *p = &l->places[i];
		const char *front = v[i].name + p->inner, *slash = strchr(front, '/');
		size_t n = slash ? (size_t)(slash - front) + 1 : 0;
		for (end = i; end < l->nplaces && l->places[end].tar == p->tar; end++) {
			n = strncmp(v[end].name + p->inner, front, n) == 0 ? n : 0;
		}
		if (!p->inner || !n || says_attempt(ff_str_n(front, n - 1))) {
			continue;
		}
		for (size_t k = i; k < end; k++) {
			erase(v[k].path, above + p->inner, n);
			erase(v[k].name, p->inner, n);
		}
	}
}

static int compare_names(const void *a, const void *b)
{
	const struct files_item *x = a, *y = b;
	int r = strcmp(x->name, y->name);
	return r ? r : x->ordinal < y->ordinal ? -1 : 1;
}

/* The members as if they had been found in a folder: by name, each once (the last one holds). */
static void place_members(struct look *l, size_t top)
{
	struct files *f = l->f;
	const struct files_item *holder = &f->v[l->index];
	size_t skip = strlen(holder->path) + 1; /* of a member's path: its name as written */
	struct ff_buf front = {0}; /* the folder that an archive in a folder stands for */
	if (holder->walked) {
		struct ff_str stem = unpack_stem(ff_str_z(holder->below));
		ff_buf_addf(&front, "%.*s/", FF_STR_ARG(stem));
	}
	qsort(&f->v[l->from], f->n - l->from, sizeof *f->v, compare_names);
	for (size_t i = l->from; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		struct ff_buf below = {0}, path = {0};
		bool again = i + 1 < f->n && !strcmp(it->name, it[1].name);
		ff_buf_adds(&below, ff_buf_str(&front));
		ff_buf_addz(&below, it->name + top);
		it->above = skip + top;
		if (front.len) {
			it->above = holder->above;
			ff_buf_add(&path, holder->path, holder->above);
			ff_buf_adds(&path, ff_buf_str(&front));
			ff_buf_addz(&path, it->path + skip + top);
			free(it->path);
			it->path = ff_buf_take(&path);
		}
		free(it->name);
		it->below = ff_buf_take(&below);
		it->name = ff_xstrdup(again ? "" : it->below);
		identify(it);
	}
	ff_buf_finish(&front);
}

/* job.json says who it is: as in a folder, its path says nothing beside. */
static void take_origin(struct files_item *it, const struct files_item *from)
{
	it->listed = true;
	it->walked = false;
	it->job = from->job;
	it->run = from->run;
	it->world = from->world;
	it->origin = from->origin;
	ff_path_identity_finish(&it->id);
	ff_path_identify(FF_STR(""), &it->id);
}

/* job.json in an archive: the members that it names, and only they. */
static int list_members(struct look *l, size_t members)
{
	struct files *f = l->f;
	const struct files_item *holder = &f->v[l->index];
	size_t listed = f->n;
	struct ff_map by_name = {0};
	char *shown = ff_xstrdup(holder->path);
	int status = add_listed(f, shown, ff_buf_str(&l->job_text), holder->folder);
	for (size_t i = members; i < listed; i++) {
		if (f->v[i].name[0]) {
			(void)ff_map_put(&by_name, ff_str_z(f->v[i].name),
				(void *)(uintptr_t)(i + 1));
		}
		f->v[i].name[0] = '\0';
	}
	for (size_t i = listed; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		uintptr_t k = (uintptr_t)ff_map_get(&by_name, ff_str_z(it->name));
		if (!k) {
			client_warn("\"%s\": job.json lists \"%s\", which is not in it", shown,
				it->name);
			files_note(f, "%s, which job.json lists: give it too", it->name);
			f->partly = CLIENT_IO;
		} else if (f->v[k - 1].listed) {
			client_warn("job.json lists \"%s\" twice, the first holds", it->name);
		} else {
			struct files_item *member = &f->v[k - 1];
			free(member->name);
			member->name = ff_xstrdup(it->name);
			take_origin(member, it);
		}
		it->name[0] = '\0';
	}
	ff_map_finish(&by_name);
	free(shown);
	return status;
}

static int look_into(struct files *f, size_t index, int fd)
{
	static const struct unpack_ops ops = {look_at, look_failed};
	struct look l = {.f = f, .index = index, .from = f->n};
	struct source *s = source_file(fd, f->v[index].path);
	size_t left_out = 0;
	int status = unpack(s, FRONT, &ops, &l, &left_out);
	struct files_item *it = &f->v[index];
	if (left_out) {
		client_warn("%zu entries of \"%s\" are no files, hidden, too deep or too many, "
			    "ignoring",
			left_out, it->path);
	}
	drop_inner_tops(&l);
	size_t top = top_folder(&l), members = l.from;
	bool jobs = l.job_name && (!strchr(l.job_name, '/') || top);
	if (it->packed && !it->listed) {
		strip_end(it->name);
		strip_end(it->below);
		identify(it);
	}
	if (it->holds) {
		if (!it->folder && !it->walked && !f->job_name && top) {
			f->job_name = ff_xmemdup(f->v[members].name, top - 1);
		}
		it->name[0] = '\0';
		place_members(&l, top);
		status = jobs ? list_members(&l, members) : status;
	} else if (l.failed) {
		f->partly = CLIENT_IO;
	}
	it = &f->v[index];
	bool given = !it->folder && !it->walked && !it->listed;
	if (given && !f->job_name && (it->holds || it->packed)) {
		struct ff_str stem = unpack_stem(ff_file_base(it->path));
		f->job_name = ff_xmemdup(stem.p, stem.n);
	}
	free(l.job_name);
	free(l.places);
	ff_buf_finish(&l.job_text);
	source_destroy(s);
	return status;
}

/* Only a file that can be read again: not a pipe. What can't be opened is said when it is read. */
static int look(struct files *f, size_t index)
{
	const struct files_item *it = &f->v[index];
	struct stat st;
	bool again = it->path && it->name[0] && stat(it->path, &st) == 0 && S_ISREG(st.st_mode);
	int fd = again ? ff_file_open(it->path, NULL) : -1;
	if (fd < 0) {
		return CLIENT_OK;
	}
	int status = look_into(f, index, fd);
	(void)close(fd);
	return status;
}

static void make_process(const struct files_item *it, struct ff_buf *ret)
{
	struct ff_str tree = tree_path(it);
	ff_buf_clear(ret);
	ff_buf_addf(ret, "%d %d %.*s", it->id.attempt, it->id.local_rank, FF_STR_ARG(tree));
}

/* What a rank raised stands in its error.json and, as a rule, in its stderr too: a copy, unless it
 * has no text of its own. */
static void judge_records(struct files *f)
{
	struct ff_map speaks = {0};
	struct ff_buf process = {0};
	for (size_t i = 0; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		if (it->id.has_tree && !it->id.no_text && !it->empty && it->name[0] && it->path) {
			make_process(it, &process);
			(void)ff_map_put(&speaks, ff_buf_str(&process), it);
		}
	}
	for (size_t i = 0; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		if (it->walked && it->id.error_record && it->path && !it->empty) {
			make_process(it, &process);
			it->record = !ff_map_get(&speaks, ff_buf_str(&process));
		}
	}
	ff_map_finish(&speaks);
	ff_buf_finish(&process);
}

/* What says nothing and belongs to nobody is no second stream. */
static void drop_mute(struct files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		bool mute = it->id.no_text || (it->empty && it->id.kind != FF_STREAM_RANK);
		if (it->walked && mute && !it->record) {
			it->name[0] = '\0';
		}
		it->first = it->first && !it->record;
	}
}

int files_settle(struct files *f)
{
	int status = CLIENT_OK;
	drop_repeats(f);
	for (size_t i = 0, n = f->n; i < n && !status; i++) {
		status = look(f, i);
	}
	judge_records(f);
	drop_mute(f);
	drop_copies(f);
	set_nodes(f);
	name_apart(f);
	return status;
}

void files_finish(struct files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->v[i].path);
		free(f->v[i].name);
		free(f->v[i].below);
		free(f->v[i].node);
		ff_path_identity_finish(&f->v[i].id);
	}
	for (size_t i = 0; i < f->njobs; i++) {
		ff_jobfile_finish(&f->jobs[i]);
	}
	for (size_t i = 0; i < f->nnotes; i++) {
		free(f->notes[i]);
	}
	free(f->v);
	free(f->jobs);
	free(f->notes);
	free(f->job_name);
	*f = (struct files){0};
}

const char *files_shown(const struct files_item *it)
{
	return it->path ? it->path : "standard input";
}
