/* pieces: feeds runs to the objects that daemon and client drive, cut and mixed in many ways, and
 * compares the verdicts byte for byte. Driven by test_pieces.py, which makes the input:
 *
 *	pieces SEED FOLDER...
 *
 * Each FOLDER is one job: `0.jsonl`, whose verdict when fed whole is the one to get; further
 * `N.jsonl`, the same objects in another order; `N.native`, one native connection a stream, which
 * are fed side by side. Prints a line for each difference; exit status 1 if there was one.
 */
#include "base/mem.h"
#include "core/report.h"
#include "feed/intake.h"
#include "shell/file.h"

#include "../unit/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INPUT_MAX (64u << 20)
#define PARTS_MAX 4096u

struct part { /* one connection or file */
	struct ff_intake *intake;
	struct ff_buf bytes;
	size_t fed;
};

/* Sizes that hit the middle of tags, numbers and UTF-8, and a buffer's usual size. */
enum cut { CUT_WHOLE, CUT_BYTES, CUT_SMALL, CUT_LARGE };

static size_t piece(struct random *r, enum cut cut, size_t left)
{
	size_t n = left;
	switch (cut) {
	case CUT_WHOLE: break;
	case CUT_BYTES: n = 1; break;
	case CUT_SMALL: n = 1 + random_below(r, 97); break;
	case CUT_LARGE: n = 1 + random_below(r, 70000); break;
	}
	return n < left ? n : left;
}

static void load(const char *folder, const char *name, struct ff_buf *out)
{
	struct ff_err err = {0};
	char *path = ff_file_join(folder, name);
	if (ff_file_load(path, INPUT_MAX, out, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	free(path);
}

static void end_part(struct part *p)
{
	ff_intake_end(p->intake, FF_TIME_NONE);
	ff_intake_destroy(p->intake);
	ff_buf_finish(&p->bytes);
}

/* Feeds all parts a piece at a time, the next part drawn; an ended one is closed at once. */
static void feed(struct random *r, enum cut cut, struct part *parts, size_t n)
{
	while (n) {
		struct part *p = &parts[random_below(r, (uint32_t)n)];
		size_t some = piece(r, cut, p->bytes.len - p->fed);
		ff_intake_feed(p->intake, p->bytes.p + p->fed, some, FF_TIME_NONE);
		p->fed += some;
		if (p->fed == p->bytes.len) {
			end_part(p);
			*p = parts[--n];
		}
	}
}

static void judge(const struct ff_runs *runs, struct ff_buf *out)
{
	struct ff_ask ask = {.offline = true, .now_us = FF_TIME_NONE, .attempt = FF_UNKNOWN,
		.world = FF_UNKNOWN};
	for (size_t i = 0; i < runs->nruns; i++) {
		struct ff_verdict *v = ff_job_judge(runs->runs[i]->job, &ask);
		ff_report_json(v, out);
		ff_buf_addc(out, '\n');
		ff_verdict_destroy(v);
	}
}

static void verdict_of(const struct ff_catalog *catalog, struct random *r, enum cut cut,
		       const char *folder, const char *const *names, size_t n, struct ff_buf *out)
{
	static struct part parts[PARTS_MAX];
	struct ff_intake_options o = {.offline = true, .trusted = true, .peer = "analyze",
		.name = "-", .default_job = "job"};
	struct ff_runs runs;
	ff_runs_init(&runs, catalog);
	for (size_t i = 0; i < n; i++) {
		parts[i] = (struct part){.intake = ff_intake_create(&runs, &o, NULL, NULL)};
		load(folder, names[i], &parts[i].bytes);
	}
	feed(r, cut, parts, n);
	judge(&runs, out);
	ff_runs_finish(&runs);
}

struct trial {
	const struct ff_catalog *catalog;
	struct random random;
	size_t compared, different;
};

static void compare(struct trial *t, const char *folder, const char *what, enum cut cut,
		    const char *const *names, size_t n, const struct ff_buf *want)
{
	static const char *const cuts[] = {"whole", "bytes", "small pieces", "large pieces"};
	struct ff_buf got = {0};
	verdict_of(t->catalog, &t->random, cut, folder, names, n, &got);
	t->compared++;
	if (!ff_str_eq(ff_buf_str(&got), ff_buf_str(want))) {
		t->different++;
		printf("%s: %s, %s\n  %s  %s", folder, what, cuts[cut], want->p, got.p);
	}
	ff_buf_finish(&got);
}

/* The names N.SUFFIX that exist, from 0 on. */
static size_t collect(const char *folder, const char *suffix, char names[][32])
{
	for (size_t n = 0;; n++) {
		(void)snprintf(names[n], sizeof names[n], "%zu.%s", n, suffix);
		char *path = ff_file_join(folder, names[n]);
		bool there = access(path, R_OK) == 0;
		free(path);
		if (!there || n + 1 == PARTS_MAX) {
			return n;
		}
	}
}

static void try_folder(struct trial *t, const char *folder)
{
	static char files[PARTS_MAX][32];
	static const char *names[PARTS_MAX];
	struct ff_buf want = {0};
	for (size_t i = 0; i < PARTS_MAX; i++) {
		names[i] = files[i];
	}
	size_t n = collect(folder, "jsonl", files);
	verdict_of(t->catalog, &t->random, CUT_WHOLE, folder, names, 1, &want);
	for (enum cut cut = CUT_BYTES; cut <= CUT_LARGE; cut++) {
		compare(t, folder, "JSON Lines", cut, names, 1, &want);
	}
	for (size_t i = 1; i < n; i++) {
		compare(t, folder, files[i], CUT_WHOLE, names + i, 1, &want);
	}
	n = collect(folder, "native", files);
	for (enum cut cut = CUT_BYTES; n && cut <= CUT_LARGE; cut++) {
		compare(t, folder, "native", cut, names, n, &want);
	}
	ff_buf_finish(&want);
}

int main(int argc, char **argv)
{
	struct ff_err err = {0};
	struct ff_catalog *catalog;
	if (argc < 3) {
		(void)fprintf(stderr, "usage: pieces SEED FOLDER...\n");
		return 64;
	}
	if (ff_catalog_load(ff_catalog_files, ff_catalog_files_count, ff_catalog_files_sha256,
			    &catalog, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	(void)setenv("FF_SEED", argv[1], 1);
	struct trial t = {.catalog = catalog, .random = random_init(0)};
	for (int i = 2; i < argc; i++) {
		try_folder(&t, argv[i]);
	}
	ff_catalog_destroy(catalog);
	printf("%zu verdicts compared, %zu different\n", t.compared, t.different);
	return t.different > 0;
}
