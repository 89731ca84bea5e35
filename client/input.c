#include "input.h"

#include "base/limits.h"
#include "base/mem.h"
#include "client.h"
#include "feed/nodes.h"
#include "feed/intake.h"
#include "files.h"
#include "gaps.h"
#include "kind.h"
#include "shell/file.h"
#include "wire/jsonl.h"
#include "wrapped.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct input {
	struct ff_runs *runs;
	const struct input_options *o;
	struct files files;
	char *default_job;
	uint64_t usable;
	int partly;
	size_t nfailed; /* notes about what could not be read */
	char *piece; /* SOURCE_FRONT bytes to read into */
};

/* Says that input can't be read as a log. */
static int refuse(const struct files_item *it, enum source_kind kind)
{
	const char *shown = files_shown(it);
	switch (kind) {
	case SOURCE_EMPTY: return client_failf(CLIENT_INPUT, NULL, "\"%s\" is empty", shown);
	case SOURCE_TAR:
		return client_failf(CLIENT_INPUT, "save it, and give the file",
			"\"%s\" is a tar, which is read twice", shown);
	case SOURCE_UTF16:
		return client_failf(CLIENT_INPUT,
			"iconv -f UTF-16 -t UTF-8 FILE | firstfault analyze -",
			"\"%s\" is UTF-16, not text in bytes", shown);
	case SOURCE_GZIP:
	case SOURCE_ZSTD:
	case SOURCE_XZ:
	case SOURCE_BZIP2:
		return client_failf(CLIENT_INPUT, "unpack it and give the file",
			"\"%s\" is compressed more than %u times", shown, UNPACK_DEPTH);
	case SOURCE_TEXT:
	case SOURCE_BINARY: break;
	}
	return client_failf(CLIENT_INPUT, NULL, "\"%s\" is not text", shown);
}

/* ---- reading */

static const char *default_job(const struct input *in)
{
	const char *job = NULL;
	for (size_t i = 0; i < in->runs->nruns; i++) {
		const char *name = in->runs->runs[i]->job->facts.job;
		if (job && strcmp(job, name) != 0) {
			return in->default_job;
		}
		job = name;
	}
	return job && !in->o->job ? job : in->default_job;
}

/* The first job that JSON Lines name in their first piece: the one that all else in them belongs
 * to. malloc'd, NULL if none does. */
static char *front_job(const struct input *in, const struct files_item *it, struct ff_str s)
{
	struct ff_jsonl o = {0};
	char *job = NULL;
	while (s.n && !job && !it->listed && !in->o->job) {
		ptrdiff_t lf = ff_str_chr(s, '\n', 0);
		size_t n = lf < 0 ? s.n : (size_t)lf;
		if (ff_jsonl_parse(&o, ff_str_n(s.p, n)) < 0) {
			break;
		}
		if (o.job.p && ff_runs_check_name(o.job, "job id", NULL) == 0) {
			job = ff_xmemdup(o.job.p, o.job.n);
		}
		s = ff_str_skip(s, n + 1);
	}
	ff_jsonl_finish(&o);
	return job;
}

/* Who its lines are, as far as path and form of the text say; host: room for a name. */
static struct ff_origin origin_of(const struct files_item *it, struct ff_str front, char *host)
{
	struct ff_origin o = it->origin;
	o.name = it->name;
	if (o.kind_declared || o.rank != FF_UNKNOWN || o.local_rank != FF_UNKNOWN) {
		return o;
	}
	struct kind_guess g = kind_of_text(front);
	o.kind = g.kind;
	if (!o.node && g.host.n && g.host.n <= FF_JOB_ID_MAX) {
		(void)snprintf(host, FF_JOB_ID_MAX + 1, "%.*s", FF_STR_ARG(g.host));
		o.node = host;
	}
	return o;
}

static struct ff_intake *open_intake(struct input *in, const struct files_item *it, const char *job,
	const struct ff_origin *origin)
{
	/* a rank's own file is text, even where its program prints objects of its own */
	bool names_a_rank = origin->rank != FF_UNKNOWN || origin->local_rank != FF_UNKNOWN;
	struct ff_intake_options o = {.offline = true, .peer = "analyze", .name = it->name,
		.trusted = true, .run = it->run, .default_job = job, .origin = origin,
		.guess = !it->listed && !names_a_rank};
	return ff_intake_create(in->runs, &o, NULL, NULL);
}

/* Returns 0, or the error with which the source stopped. */
static ssize_t feed_all(struct input *in, struct source *s, struct wrapped *w, struct ff_intake *to,
	struct ff_err *err)
{
	struct ff_buf out = {0};
	ssize_t n;
	while ((n = source_read(s, in->piece, SOURCE_FRONT, err)) > 0) {
		if (!w) {
			ff_intake_feed(to, in->piece, (size_t)n, FF_TIME_NONE);
			continue;
		}
		ff_buf_clear(&out);
		wrapped_feed(w, ff_str_n(in->piece, (size_t)n), &out);
		ff_intake_feed(to, out.p, out.len, FF_TIME_NONE);
	}
	if (w) {
		ff_buf_clear(&out);
		wrapped_close(w, &out);
		ff_intake_feed(to, out.p, out.len, FF_TIME_NONE);
	}
	ff_buf_finish(&out);
	return n;
}

/* What came of a source that failed is judged all the same; that the rest is missing is said. */
static int read_source(struct input *in, const struct files_item *it, struct source *s)
{
	struct ff_err err = {0};
	char host[FF_JOB_ID_MAX + 1];
	struct ff_str front = source_front(s, SOURCE_FRONT);
	char *said = front_job(in, it, front);
	const char *job = it->job ? it->job : said ? said : default_job(in);
	struct ff_origin origin = origin_of(it, front, host);
	struct wrapped *w = wrapped_open(front, &origin, job);
	struct ff_intake_options plain = {.offline = true, .peer = "analyze", .name = it->name,
		.trusted = true, .run = it->run, .default_job = job};
	struct ff_intake *intake = w ? ff_intake_create(in->runs, &plain, NULL, NULL) :
		open_intake(in, it, job, &origin);
	ssize_t r = feed_all(in, s, w, intake, &err);
	free(said);
	if (r < 0) {
		ff_intake_cut(intake);
	}
	ff_intake_end(intake, FF_TIME_NONE);
	in->usable += ff_intake_usable(intake);
	ff_intake_destroy(intake);
	if (r < 0) {
		files_note(&in->files, "%s: %s", it->name, err.text);
		return client_failf(CLIENT_IO, NULL, "\"%s\": %s", files_shown(it), err.text);
	}
	return CLIENT_OK;
}

#define RECORD_MAX (1024u * 1024u)

static int read_record(struct input *in, const struct files_item *it, struct source *s)
{
	struct ff_buf text = {0}, out = {0};
	ssize_t n;
	while (text.len < RECORD_MAX &&
	       (n = source_read(s, in->piece, SOURCE_FRONT, NULL)) > 0) {
		ff_buf_add(&text, in->piece, (size_t)n);
	}
	if (wrapped_error_record(ff_buf_str(&text), &out)) {
		struct ff_origin origin = it->origin;
		origin.name = it->name;
		struct ff_intake *intake = open_intake(in, it, default_job(in), &origin);
		ff_intake_feed(intake, out.p, out.len, FF_TIME_NONE);
		ff_intake_end(intake, FF_TIME_NONE);
		in->usable += ff_intake_usable(intake);
		ff_intake_destroy(intake);
	}
	ff_buf_finish(&text);
	ff_buf_finish(&out);
	return CLIENT_OK;
}

static int read_text(struct input *in, const struct files_item *it, struct source *s)
{
	struct ff_err err = {0};
	char none;
	enum source_kind kind = source_kind(s, SOURCE_FRONT);
	bool known = it->listed || it->walked; /* an empty file of a folder is a silent rank */
	if (kind == SOURCE_EMPTY && source_read(s, &none, 1, &err) < 0) {
		files_note(&in->files, "%s: %s", it->name, err.text);
		return client_failf(CLIENT_IO, NULL, "\"%s\": %s", files_shown(it), err.text);
	}
	if (kind == SOURCE_TEXT && it->record) {
		return read_record(in, it, s);
	}
	if (kind == SOURCE_TEXT || (kind == SOURCE_EMPTY && known)) {
		return read_source(in, it, s);
	}
	if (!known) {
		return refuse(it, kind);
	}
	client_warn("\"%s\" is not text, ignoring", it->path);
	return CLIENT_OK;
}

/* One pass over an item: itself, or those of its files whose turn it is. */
struct reading {
	struct input *in;
	size_t index;
	const size_t *members; /* by ordinal: index of the item + 1 */
	size_t nmembers, left;
	bool first;
};

static int read_file(void *ud, const struct unpack_file *file)
{
	struct reading *r = ud;
	struct input *in = r->in;
	const struct files_item *it = &in->files.v[r->index];
	if (file->member && !it->holds) {
		if (it->listed || it->walked) {
			client_warn("\"%s\" is an archive, ignoring", files_shown(it));
			return -1;
		}
		return refuse(it, SOURCE_TAR);
	}
	if (it->holds) {
		size_t k = file->ordinal < r->nmembers ? r->members[file->ordinal] : 0;
		if (!k) {
			return CLIENT_OK;
		}
		it = &in->files.v[k - 1];
		r->left--;
	}
	int status = read_text(in, it, file->source);
	if (status == CLIENT_IO) { /* the rest still speaks */
		in->partly = status;
		status = CLIENT_OK;
	}
	return status || (r->members && !r->left) ? (status ? status : -1) : CLIENT_OK;
}

static int unpack_item(struct input *in, struct reading *r)
{
	static const struct unpack_ops ops = {read_file, NULL};
	const struct files_item *it = &in->files.v[r->index];
	struct ff_err err = {0};
	int fd = it->path ? ff_file_open(it->path, &err) : STDIN_FILENO;
	if (fd < 0) {
		files_note(&in->files, "%s", err.text);
		return client_fail(CLIENT_IO, err.text, NULL);
	}
	struct source *s = source_file(fd, files_shown(it));
	int status = unpack(s, SOURCE_FRONT, &ops, r, NULL);
	source_destroy(s);
	if (it->path) {
		(void)close(fd);
	}
	return status < 0 ? CLIENT_OK : status;
}

/* JSON Lines first: they may name the job that all else belongs to. */
static int read_item(struct input *in, size_t index, bool first)
{
	const struct files *f = &in->files;
	struct reading r = {.in = in, .index = index, .first = first};
	if (!f->v[index].holds) {
		return f->v[index].name[0] && f->v[index].first == first ? unpack_item(in, &r) : 0;
	}
	size_t *members = NULL;
	for (size_t i = index + 1; i < f->n; i++) {
		const struct files_item *it = &f->v[i];
		if (it->archive != index || !it->name[0] || it->first != first) {
			continue;
		}
		if (!members) {
			r.nmembers = FF_FILE_MAX;
			members = ff_xcalloc(r.nmembers, sizeof *members);
		}
		members[it->ordinal] = i + 1;
		r.left++;
	}
	r.members = members;
	int status = members ? unpack_item(in, &r) : CLIENT_OK;
	free(members);
	return status;
}

static int read_items(struct input *in)
{
	int status = CLIENT_OK;
	for (int first = 1; first >= 0; first--) {
		for (size_t i = 0; i < in->files.n && !status; i++) {
			const struct files_item *it = &in->files.v[i];
			if (it->archive != FILES_NONE) {
				continue;
			}
			status = read_item(in, i, first == 1);
			if (status == CLIENT_IO && (it->walked || it->listed)) {
				/* the rest of the folder still speaks */
				in->partly = status;
				status = CLIENT_OK;
			}
		}
	}
	return status;
}

/* The base name of a path, as a job id may be; malloc'd. */
static char *job_name(const struct files *f, const char *path)
{
	char *real = !strcmp(path, "-") ? NULL : realpath(path, NULL);
	struct ff_str base = f->job_name ? ff_str_z(f->job_name) :
		real ? ff_file_base(real) : FF_STR("stdin");
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

static int tell_jobs(struct input *in)
{
	for (size_t i = 0; i < in->files.njobs; i++) {
		const struct ff_jobfile *f = &in->files.jobs[i];
		struct ff_err err = {0};
		struct ff_run *run;
		struct ff_str name = ff_str_z(f->run);
		const char *job = f->job ? f->job : in->default_job;
		int r = ff_runs_resolve(in->runs, ff_str_z(job), f->run ? &name : NULL, NULL,
			FF_RUN_FEED, FF_TIME_NONE, &run, &err);
		if (r == 0) {
			r = ff_intake_control(run, "job-start", f->job_start, &err);
		}
		if (r == 0 && f->job_end) {
			r = ff_intake_control(run, "job-end", f->job_end, &err);
		}
		if (r < 0) {
			return client_failf(client_status(r), NULL, "job.json: %s", err.text);
		}
	}
	return CLIENT_OK;
}

static int read_all(struct input *in, char *const *paths, size_t n)
{
	int status = CLIENT_OK;
	for (size_t i = 0; i < n && !status; i++) {
		status = files_add(&in->files, paths[i], i);
	}
	status = status ? status : files_settle(&in->files);
	if (status) {
		return status;
	}
	in->partly = in->files.partly;
	in->default_job = in->o->job ? ff_xstrdup(in->o->job) : job_name(&in->files, paths[0]);
	status = tell_jobs(in);
	status = status ? status : read_items(in);
	/* nothing but nodes' own logs: they are what is asked about */
	if (!in->runs->nruns && in->runs->nnodes) {
		struct ff_run *run;
		(void)ff_runs_resolve(in->runs, ff_str_z(default_job(in)), NULL, NULL, FF_RUN_FEED,
			FF_TIME_NONE, &run, NULL);
	}
	ff_nodes_join_all(in->runs);
	in->nfailed = in->files.nnotes;
	gaps_note(&in->files, in->runs);
	if (!status && !in->usable && !in->files.njobs) {
		return in->partly ? in->partly :
			client_failf(CLIENT_INPUT, NULL, "no line to read in \"%s\"", paths[0]);
	}
	return status;
}

int input_read(struct ff_runs *runs, char *const *paths, size_t n, const struct input_options *o,
	       struct input_result *ret)
{
	struct input in = {.runs = runs, .o = o, .partly = CLIENT_OK};
	in.piece = ff_xmalloc(SOURCE_FRONT);
	int status = read_all(&in, paths, n);
	*ret = (struct input_result){
		.partly = in.partly, .missing = in.files.notes, .nmissing = in.files.nnotes,
		.nfailed = in.nfailed};
	in.files.notes = NULL;
	in.files.nnotes = 0;
	files_finish(&in.files);
	free(in.default_job);
	free(in.piece);
	return status;
}

void input_finish(struct input_result *r)
{
	for (size_t i = 0; i < r->nmissing; i++) {
		free(r->missing[i]);
	}
	free(r->missing);
	*r = (struct input_result){0};
}
