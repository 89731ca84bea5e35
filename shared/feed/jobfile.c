#include "feed/jobfile.h"

#include "base/limits.h"
#include "base/mem.h"
#include "feed/runs.h"

#include <stdio.h>
#include <stdlib.h>

static bool get_count(const struct ff_json_node *doc, const char *key, int64_t min, int64_t max,
		      int32_t *ret)
{
	const struct ff_json_node *v = ff_json_get(doc, key);
	int64_t n;
	if (ff_json_is_null(v)) {
		return true;
	}
	if (!ff_json_int(v, &n) || n < min || n > max) {
		return false;
	}
	*ret = (int32_t)n;
	return true;
}

static bool get_text(const struct ff_json_node *doc, const char *key, const char **ret)
{
	const struct ff_json_node *v = ff_json_get(doc, key);
	const char *s = ff_json_string(v);
	if (!s && !ff_json_is_null(v)) {
		return false;
	}
	*ret = s;
	return true;
}

/* Below the folder: relative, no component is "..", and not the folder itself. */
static bool is_below(const char *path)
{
	struct ff_str s = ff_str_z(path);
	bool names = false;
	if (!s.n || s.n > FF_NAME_MAX || s.p[0] == '/') {
		return false;
	}
	for (;;) {
		ptrdiff_t slash = ff_str_chr(s, '/', 0);
		struct ff_str part = slash < 0 ? s : ff_str_n(s.p, (size_t)slash);
		if (ff_str_eqz(part, "..")) {
			return false;
		}
		names = names || (part.n && !ff_str_eqz(part, "."));
		if (slash < 0) {
			return names;
		}
		s = ff_str_skip(s, (size_t)slash + 1);
	}
}

static int parse_stream(const struct ff_json_node *v, size_t index, struct ff_origin *ret,
			struct ff_err *err)
{
	struct ff_origin o = {.source = "0", .rank = FF_UNKNOWN, .local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN, .pid = FF_UNKNOWN, .kind = FF_STREAM_MIXED};
	const char *kind = NULL, *fd = NULL;
	char what[FF_NAME_MAX + 32];
	(void)snprintf(what, sizeof what, "stream %zu", index);
	if (!ff_json_is_object(v)) {
		return ff_err_set(err, FF_ESCHEMA, "job.json: %s is no object", what);
	}
	o.name = ff_json_string(ff_json_get(v, "path"));
	if (!o.name || !is_below(o.name)) {
		return ff_err_set(
			err, FF_ESCHEMA, "job.json: %s: path is no path below the folder", what);
	}
	(void)snprintf(what, sizeof what, "stream \"%s\"", o.name);
	if (!get_text(v, "kind", &kind) || (kind && ff_stream_kind_parse(ff_str_z(kind)) < 0)) {
		return ff_err_set(err, FF_ESCHEMA, "job.json: %s: unknown kind", what);
	}
	if (!get_text(v, "fd", &fd) || (fd && ff_fd_parse(ff_str_z(fd)) == FF_FD_UNKNOWN)) {
		return ff_err_set(err, FF_ESCHEMA, "job.json: %s: fd is stdout or stderr", what);
	}
	if (!get_count(v, "rank", 0, FF_RANKS_MAX - 1, &o.rank) ||
	    !get_count(v, "local_rank", 0, FF_RANKS_MAX - 1, &o.local_rank) ||
	    !get_count(v, "attempt", 0, INT32_MAX, &o.attempt)) {
		return ff_err_set(err, FF_ESCHEMA,
			"job.json: %s: a rank, local_rank or attempt is no number in range", what);
	}
	if (!get_text(v, "node", &o.node) || (o.node && strlen(o.node) > FF_JOB_ID_MAX)) {
		return ff_err_set(err, FF_ESCHEMA, "job.json: %s: node is no name", what);
	}
	o.node = o.node && *o.node ? o.node : NULL;
	o.kind_declared = kind != NULL;
	o.kind = kind ? (enum ff_stream_kind)ff_stream_kind_parse(ff_str_z(kind)) :
		o.rank != FF_UNKNOWN ? FF_STREAM_RANK : FF_STREAM_MIXED;
	o.fd = fd ? ff_fd_parse(ff_str_z(fd)) : FF_FD_UNKNOWN;
	*ret = o;
	return 0;
}

static int parse_streams(
	const struct ff_json_node *list, struct ff_jobfile *ret, struct ff_err *err)
{
	size_t n = 0;
	if (!ff_json_is_array(list)) {
		return ff_err_set(err, FF_ESCHEMA, "job.json: without a list of streams");
	}
	for (const struct ff_json_node *v = ff_json_first(list); v; v = ff_json_next(v)) {
		n++;
	}
	if (n > FF_STREAMS_MAX) {
		return ff_err_set(err, FF_ELIMIT, "job.json: more than %u streams", FF_STREAMS_MAX);
	}
	ret->streams = ff_xcalloc(n ? n : 1, sizeof *ret->streams);
	for (const struct ff_json_node *v = ff_json_first(list); v; v = ff_json_next(v)) {
		int r = parse_stream(v, ret->nstreams + 1, &ret->streams[ret->nstreams], err);
		if (r < 0) {
			return r;
		}
		ret->nstreams++;
	}
	return 0;
}

static int parse_end(const struct ff_json_node *end, struct ff_err *err)
{
	int64_t n;
	const struct ff_json_node *code = ff_json_get(end, "exit_code");
	const struct ff_json_node *state = ff_json_get(end, "state");
	if (!ff_json_is_object(end)) {
		return ff_err_set(err, FF_ESCHEMA, "job.json: job_end is no object");
	}
	if (!ff_json_is_null(code) && (!ff_json_int(code, &n) || n < INT32_MIN || n > INT32_MAX)) {
		return ff_err_set(err, FF_ESCHEMA, "job.json: exit_code is no number");
	}
	if (!ff_json_is_null(state) && !ff_json_string(state)) {
		return ff_err_set(err, FF_ESCHEMA, "job.json: state is no text");
	}
	return 0; /* keys that nobody reads are a scheduler's own: counted when it is told */
}

static int parse_document(
	const struct ff_json_node *doc, struct ff_jobfile *ret, struct ff_err *err)
{
	if (!ff_json_is_object(doc)) {
		return ff_err_set(err, FF_ESCHEMA, "job.json: not an object");
	}
	if (!get_text(doc, "job", &ret->job) || !get_text(doc, "run", &ret->run)) {
		return ff_err_set(err, FF_ESCHEMA, "job.json: job or run is no text");
	}
	if ((ret->job && ff_runs_check_name(ff_str_z(ret->job), "job id", err) < 0) ||
	    (ret->run && ff_runs_check_name(ff_str_z(ret->run), "run id", err) < 0)) {
		return FF_ESCHEMA;
	}
	if (!get_count(doc, "world_size", 1, FF_RANKS_MAX, &ret->world)) {
		return ff_err_set(err, FF_ESCHEMA, "job.json: world_size is no number from 1 to %d",
				  FF_RANKS_MAX);
	}
	const struct ff_json_node *end = ff_json_get(doc, "job_end");
	if (!ff_json_is_null(end)) {
		int r = parse_end(end, err);
		if (r < 0) {
			return r;
		}
		ret->job_end = end;
	}
	ret->job_start = doc;
	return parse_streams(ff_json_get(doc, "streams"), ret, err);
}

int ff_jobfile_parse(struct ff_str text, struct ff_jobfile *ret, struct ff_err *err)
{
	struct ff_jobfile f = {.world = FF_UNKNOWN};
	struct ff_err why = {0};
	f.doc = ff_json_parse(text, &why);
	if (!f.doc) {
		return ff_err_set(err, FF_EJSON, "job.json: %.400s", why.text);
	}
	int r = parse_document(ff_json_root(f.doc), &f, err);
	if (r < 0) {
		ff_jobfile_finish(&f);
		return r;
	}
	*ret = f;
	return 0;
}

void ff_jobfile_finish(struct ff_jobfile *f)
{
	if (!f) {
		return;
	}
	free(f->streams);
	ff_json_destroy(f->doc);
	*f = (struct ff_jobfile){.world = FF_UNKNOWN};
}
