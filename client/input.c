#include "input.h"

#include "base/mem.h"
#include "client.h"
#include "feed/intake.h"
#include "files.h"
#include "shell/file.h"
#include "wire/jsonl.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK 65536u

struct input {
	struct ff_runs *runs;
	const struct input_options *o;
	struct files files;
	char *default_job;
	uint64_t usable;
	int partly;
};

/* ---- what is in them */

enum content { CONTENT_TEXT, CONTENT_EMPTY, CONTENT_GZIP, CONTENT_ZSTD, CONTENT_TAR, CONTENT_UTF16,
	       CONTENT_BINARY };

/* Text with a few strange bytes stays text: programs print escape sequences and worse, and a
 * rotated log begins with a hole of NULs (SOURCES.md torch-elastic-logs). */
static bool looks_binary(struct ff_str s)
{
	size_t control = 0, other = 0;
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool fine = c >= 0x20 || (c >= 0x07 && c <= 0x0d) || c == 0x1b;
		control += c && !fine;
		other += c != 0;
	}
	return control * 20 > other;
}

static enum content judge_content(struct ff_str s)
{
	if (!s.n) {
		return CONTENT_EMPTY;
	}
	if (ff_str_starts(s, FF_STR("\x1f\x8b"))) {
		return CONTENT_GZIP;
	}
	if (ff_str_starts(s, FF_STR("\x28\xb5\x2f\xfd"))) {
		return CONTENT_ZSTD;
	}
	if (s.n > 262 && ff_str_starts(ff_str_skip(s, 257), FF_STR("ustar"))) {
		return CONTENT_TAR;
	}
	if (ff_str_starts(s, FF_STR("\xff\xfe")) || ff_str_starts(s, FF_STR("\xfe\xff"))) {
		return CONTENT_UTF16;
	}
	return looks_binary(s) ? CONTENT_BINARY : CONTENT_TEXT;
}

/* The message for input that can't be read as a log. */
static int refuse(const struct files_item *it, enum content c)
{
	switch (c) {
	case CONTENT_EMPTY:
		return client_failf(CLIENT_INPUT, NULL, "\"%s\" is empty", files_shown(it));
	case CONTENT_GZIP:
		return client_failf(CLIENT_INPUT, "zcat FILE | firstfault analyze -",
				    "\"%s\" is compressed with gzip", files_shown(it));
	case CONTENT_ZSTD:
		return client_failf(CLIENT_INPUT, "zstdcat FILE | firstfault analyze -",
				    "\"%s\" is compressed with zstd", files_shown(it));
	case CONTENT_TAR:
		return client_failf(CLIENT_INPUT, "unpack it and give the folder",
				    "\"%s\" is a tar archive", files_shown(it));
	case CONTENT_UTF16:
		return client_failf(CLIENT_INPUT,
			"iconv -f UTF-16 -t UTF-8 FILE | firstfault analyze -",
			"\"%s\" is UTF-16, not text in bytes", files_shown(it));
	case CONTENT_TEXT:
	case CONTENT_BINARY: break;
	}
	return client_failf(CLIENT_INPUT, NULL, "\"%s\" is not text", files_shown(it));
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

static struct ff_intake *open_intake(struct input *in, const struct files_item *it, const char *job)
{
	struct ff_origin origin = it->origin;
	origin.name = it->name;
	/* a rank's own file is text, even where its program prints objects of its own */
	bool names_a_rank = origin.rank != FF_UNKNOWN || origin.local_rank != FF_UNKNOWN;
	struct ff_intake_options o = {.offline = true, .peer = "analyze", .name = it->name,
		.trusted = true, .run = it->run,
		.default_job = it->job ? it->job : job ? job : default_job(in), .origin = &origin,
		.guess = !it->listed && !names_a_rank};
	return ff_intake_create(in->runs, &o, NULL, NULL);
}

/* Fills the first piece as far as it goes: a pipe gives little at a time. */
static ssize_t read_front(int fd, const struct files_item *it, char *p, struct ff_err *err)
{
	size_t n = 0;
	while (n < CHUNK) {
		ssize_t got = ff_file_read(fd, files_shown(it), p + n, CHUNK - n, err);
		if (got < 0) {
			return got;
		}
		if (!got) {
			break;
		}
		n += (size_t)got;
	}
	return (ssize_t)n;
}

static int read_rest(struct ff_intake *intake, int fd, const struct files_item *it, char *p,
	ssize_t n, struct ff_err *err)
{
	while (n > 0) {
		ff_intake_feed(intake, p, (size_t)n, FF_TIME_NONE);
		n = ff_file_read(fd, files_shown(it), p, CHUNK, err);
	}
	return n < 0 ? CLIENT_IO : CLIENT_OK;
}

static int read_open(struct input *in, const struct files_item *it, int fd, char *p)
{
	struct ff_err err = {0};
	ssize_t n = read_front(fd, it, p, &err);
	if (n < 0) {
		return client_fail(CLIENT_IO, err.text, NULL);
	}
	enum content c = judge_content(ff_str_n(p, (size_t)n));
	bool known = it->listed || it->walked; /* an empty file of a folder is a silent rank */
	if (c != CONTENT_TEXT && !(c == CONTENT_EMPTY && known)) {
		if (known) {
			client_warn("\"%s\" is not text, ignoring", it->path);
			return CLIENT_OK;
		}
		return refuse(it, c);
	}
	char *job = front_job(in, it, ff_str_n(p, (size_t)n));
	struct ff_intake *intake = open_intake(in, it, job);
	free(job);
	int status = read_rest(intake, fd, it, p, n, &err);
	ff_intake_end(intake, FF_TIME_NONE);
	in->usable += ff_intake_usable(intake);
	ff_intake_destroy(intake);
	return status ? client_fail(status, err.text, NULL) : status;
}

static int read_item(struct input *in, const struct files_item *it, char *p)
{
	struct ff_err err = {0};
	int fd = it->path ? ff_file_open(it->path, &err) : STDIN_FILENO;
	if (fd < 0) {
		return client_fail(CLIENT_IO, err.text, NULL);
	}
	int status = read_open(in, it, fd, p);
	if (it->path) {
		(void)close(fd);
	}
	return status;
}

/* JSON Lines first: they may name the job that all else belongs to. */
static void find_json(struct files_item *it)
{
	char front[256];
	struct ff_err err = {0};
	struct stat st;
	/* only a file that can be read again: not a pipe */
	bool again = it->path && !it->listed && it->name[0] && stat(it->path, &st) == 0 &&
		S_ISREG(st.st_mode);
	int fd = again ? ff_file_open(it->path, &err) : -1;
	if (fd < 0) {
		return;
	}
	ssize_t n = ff_file_read(fd, it->path, front, sizeof front, &err);
	for (ssize_t i = 0; i < n; i++) {
		if (!memchr(" \t\r\n\xef\xbb\xbf", front[i], 7)) {
			it->first = front[i] == '{';
			break;
		}
	}
	(void)close(fd);
}

static int read_items(struct input *in)
{
	char *p = ff_xmalloc(CHUNK);
	int status = CLIENT_OK;
	for (int first = 1; first >= 0; first--) {
		for (size_t i = 0; i < in->files.n && !status; i++) {
			const struct files_item *it = &in->files.v[i];
			if (it->first != (first == 1) || !it->name[0]) {
				continue;
			}
			status = read_item(in, it, p);
			if (status == CLIENT_IO && (it->walked || it->listed)) {
				/* the rest of the folder still speaks */
				in->partly = status;
				status = CLIENT_OK;
			}
		}
	}
	free(p);
	return status;
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

int input_read(struct ff_runs *runs, char *const *paths, size_t n, const struct input_options *o,
	       int *ret_partly)
{
	struct input in = {.runs = runs, .o = o, .partly = CLIENT_OK};
	int status = CLIENT_OK;
	in.default_job = o->job ? ff_xstrdup(o->job) : files_job_name(paths[0]);
	for (size_t i = 0; i < n && !status; i++) {
		status = files_add(&in.files, paths[i], i);
	}
	if (!status) {
		files_settle(&in.files);
		for (size_t i = 0; i < in.files.n; i++) {
			find_json(&in.files.v[i]);
		}
		in.partly = in.files.partly;
		status = tell_jobs(&in);
	}
	if (!status) {
		status = read_items(&in);
	}
	if (!status && !in.usable && !in.files.njobs) {
		status = in.partly ? in.partly :
			client_failf(CLIENT_INPUT, NULL, "no line to read in \"%s\"", paths[0]);
	}
	*ret_partly = in.partly;
	files_finish(&in.files);
	free(in.default_job);
	return status;
}
