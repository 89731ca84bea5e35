#include "files.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/map.h"
#include "client.h"
#include "feed/runs.h"
#include "shell/file.h"

#include <stdlib.h>
#include <unistd.h>

#define JOB_FILE_MAX (16u * 1024u * 1024u)

static struct files_item *add_item(struct files *f, char *path, char *name, size_t folder)
{
	struct files_item *it = FF_ARR_ADD(f->v, f->n, f->cap);
	*it = (struct files_item){.path = path,
		.name = name,
		.folder = folder,
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

/* The streams that job.json names. */
static int add_listed(struct files *f, const char *folder, const char *file, size_t index)
{
	struct ff_buf text = {0};
	struct ff_jobfile job;
	struct ff_err err = {0};
	int r = ff_file_load(file, JOB_FILE_MAX, &text, &err);
	if (r == 0) {
		r = ff_jobfile_parse(ff_buf_str(&text), &job, &err);
	}
	ff_buf_finish(&text);
	if (r < 0) {
		return client_failf(client_status(r), NULL, "%s: %s", folder, err.text);
	}
	for (size_t i = 0; i < job.nstreams; i++) {
		struct files_item *it = add_item(f, ff_file_join(folder, job.streams[i].name),
						 ff_xstrdup(job.streams[i].name), index);
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
	for (size_t i = 0; i < l.n; i++) {
		struct files_item *it =
			add_item(f, ff_xstrdup(l.v[i].path), ff_xstrdup(l.v[i].below), index);
		it->below = ff_xstrdup(l.v[i].below);
		it->walked = true;
		identify(it);
		/* what says nothing and belongs to nobody is no second stream */
		if (it->id.no_text || (!l.v[i].size && it->id.kind != FF_STREAM_RANK)) {
			it->name[0] = '\0';
		}
	}
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
		int r = access(file, F_OK) == 0 ? add_listed(f, path, file, index) :
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
		const char *key = it->path ? it->path : "-";
		if (it->name[0] && ff_map_put(&seen, ff_str_z(key), it)) {
			if (it->listed) {
				client_warn(
					"job.json lists \"%s\" twice, the first holds", it->name);
			}
			it->name[0] = '\0';
		}
	}
	ff_map_finish(&seen);
}

/* Files of equal names below different PATHs: the whole path tells them apart. */
static void name_apart(struct files *f)
{
	struct ff_map seen = {0};
	for (size_t i = 0; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		struct files_item *other = NULL;
		if (it->name[0]) {
			other = ff_map_put(&seen, ff_str_z(it->name), it);
		}
		if (other && other->folder != it->folder && it->path && other->path) {
			use_path(it);
			if (strcmp(other->name, other->path) != 0) {
				use_path(other);
			}
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
	size_t above = strlen(it->path) - strlen(it->below);
	size_t n = above + it->id.tree;
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
	size_t n = 0, cap = 0;
	for (size_t i = 0; i < f->n; i++) {
		const struct files_item *it = &f->v[i];
		if (!it->id.has_tree || !it->path) {
			continue;
		}
		struct ff_str path = tree_path(it);
		if (!n || !ff_str_eq(v[n - 1].path, path)) { /* items are sorted by path */
			*FF_ARR_ADD(v, n, cap) = (struct tree){.path = path};
		}
	}
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
	for (size_t i = 0; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		for (size_t k = 0; k < n && it->path && !it->listed && !it->node; k++) {
			/* the folder that gave the name, and all that lies below it */
			size_t up = (size_t)(v[k].node.p - v[k].path.p) + v[k].node.n;
			struct ff_str front = ff_str_n(v[k].path.p, up);
			if (ff_str_starts(ff_str_z(it->path), front) && it->path[up] == '/') {
				it->node = ff_xmemdup(v[k].node.p, v[k].node.n);
				it->origin.node = it->node;
			}
		}
	}
	free(v);
}

/* torchrun's filtered_*.log hold copies of lines of the ranks' own files beside them. */
static void drop_copies(struct files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct files_item *it = &f->v[i];
		for (size_t k = 0; it->walked && it->id.filtered && k < f->n; k++) {
			const struct files_item *other = &f->v[k];
			if (other->id.has_tree && !other->id.filtered && other->path &&
			    ff_str_eq(tree_path(other), tree_path(it))) {
				it->name[0] = '\0';
				break;
			}
		}
	}
}

void files_settle(struct files *f)
{
	drop_repeats(f);
	drop_copies(f);
	set_nodes(f);
	name_apart(f);
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
	free(f->v);
	free(f->jobs);
	*f = (struct files){0};
}

const char *files_shown(const struct files_item *it)
{
	return it->path ? it->path : "standard input";
}

char *files_job_name(const char *path)
{
	char *real = !strcmp(path, "-") ? NULL : realpath(path, NULL);
	struct ff_str base = real ? ff_file_base(real) : FF_STR("stdin");
	char *name = ff_xmemdup(base.p, base.n < FF_JOB_ID_MAX ? base.n : FF_JOB_ID_MAX);
	for (char *p = name; *p; p++) {
		unsigned char c = (unsigned char)*p;
		*p = c < 0x20 || c == 0x7f || c == '/' || c == '~' ? '_' : *p;
	}
	if (ff_runs_check_name(ff_str_z(name), "job id", NULL) < 0) {
		free(name);
		name = ff_xstrdup("job");
	}
	free(real);
	return name;
}
