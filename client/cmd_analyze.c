#include "client.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/mask_rules.h"
#include "core/report_ranks.h"
#include "core/report_timeline.h"
#include "feed/library.h"
#include "feed/runs.h"
#include "input.h"

#include <stdlib.h>


struct analyze {
	bool json, brief, exit_status, ranks, timeline;
	int64_t world, attempt, lines;
	char *job, *report, *catalog;
	enum ff_ticket form; /* of report */
	struct ff_option_list patterns;
	struct ff_mask_rules *mask; /* NULL */
};

/* With --job, and several jobs in the input of which it names one: only that one. */
static bool is_wanted(const struct ff_runs *runs, const struct analyze *a, const struct ff_run *run)
{
	bool named = false;
	for (size_t i = 0; a->job && i < runs->nruns; i++) {
		named = named || !strcmp(runs->runs[i]->job->facts.job, a->job);
	}
	return !named || !strcmp(run->job->facts.job, a->job);
}

static void render(const struct analyze *a, const struct ff_verdict *v, struct ff_buf *out)
{
	struct ff_report_style style = {.width = client_width(),
		.color = client_color(),
		.now_us = FF_TIME_NONE,
		.brief = a->brief,
		.lines = (unsigned)a->lines};
	if (a->ranks && a->json) {
		ff_report_ranks_json(v, 0, SIZE_MAX, out);
	} else if (a->ranks) {
		ff_report_ranks_text(v, &style, out);
	} else if (a->timeline && a->json) {
		ff_report_timeline_json(v, 0, SIZE_MAX, out);
	} else if (a->timeline) {
		ff_report_timeline_text(v, &style, out);
	} else if (a->json) {
		ff_report_json(v, out);
	} else if (a->report) {
		ff_report_ticket(v, a->form, FF_TIME_NONE, out);
	} else {
		ff_report_text(v, &style, out);
	}
}

static int judge(const struct ff_runs *runs, const struct analyze *a,
	const struct input_result *in, struct ff_buf *out)
{
	struct ff_ask ask = {.offline = true,
		.missing = (const char *const *)in->missing,
		.nmissing = in->nmissing,
		.nunread = in->nfailed,
		.now_us = FF_TIME_NONE,
		.attempt = (int32_t)a->attempt,
		.world = (int32_t)a->world};
	size_t n = 0, shown = 0;
	int status = 0;
	for (size_t i = 0; i < runs->nruns; i++) {
		n += is_wanted(runs, a, runs->runs[i]);
	}
	if (a->json && n > 1) {
		ff_buf_addc(out, '[');
	}
	for (size_t i = 0; i < runs->nruns; i++) {
		if (!is_wanted(runs, a, runs->runs[i])) {
			continue;
		}
		struct ff_verdict *v = ff_job_judge(runs->runs[i]->job, &ask);
		if (a->attempt >= v->timeline.nattempts) {
			ff_buf_clear(out);
			status = client_failf(CLIENT_INPUT, NULL,
				"the run has no attempt %d, the last is %d", (int)a->attempt,
				(int)v->timeline.nattempts - 1);
			ff_verdict_destroy(v);
			return status;
		}
		int exit = ff_verdict_exit_status(v->kind);
		status = exit > status ? exit : status;
		if (shown++) {
			ff_buf_addz(out, a->json ? ",\n" : "\n");
		}
		render(a, v, out);
		ff_verdict_destroy(v);
	}
	if (a->json) {
		ff_buf_addz(out, n > 1 ? "]\n" : "\n");
	}
	return a->exit_status ? status : CLIENT_OK;
}

static int analyze(const struct analyze *a, char *const *paths, size_t n)
{
	struct ff_err err = {0};
	struct ff_catalog *catalog;
	struct ff_runs runs;
	struct ff_buf out = {0};
	struct input_result in = {0};
	int r = ff_library_open(a->catalog, &catalog, &err);
	if (r < 0) {
		return client_catalog_fail(r, a->catalog, &err);
	}
	ff_runs_init(&runs, catalog);
	runs.mask = a->mask;
	int status = input_read(&runs, paths, n, &(struct input_options){.job = a->job}, &in);
	if (!status) {
		status = judge(&runs, a, &in, &out);
		int printed = client_print(&out);
		status = printed ? printed : in.partly ? in.partly : status;
	}
	input_finish(&in);
	ff_buf_finish(&out);
	ff_runs_finish(&runs);
	ff_catalog_destroy(catalog);
	return status;
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct analyze a = {.world = FF_UNKNOWN, .attempt = FF_UNKNOWN};
	const struct ff_option options[] = {
		{"json", 'j', FF_OPTION_FLAG, &a.json, NULL,
			"print the verdict as JSON; an array if the input holds several jobs", 0,
			0},
		{"brief", 'b', FF_OPTION_FLAG, &a.brief, NULL,
			"only what fits a pager: five lines", 0, 0},
		{"report", 0, FF_OPTION_TEXT, &a.report, "FORMAT",
			"print a report for a ticket: md or txt", 1, 8},
		{"world", 'w', FF_OPTION_INT, &a.world, "N",
			"number of ranks of the job, where the input doesn't say it", 1,
			FF_RANKS_MAX},
		{"job", 0, FF_OPTION_TEXT, &a.job, "ID",
			"name of the job (default: the first PATH's name); of several jobs in the "
			"input, "
			"show this one",
			1, FF_JOB_ID_MAX},
		{"attempt", 0, FF_OPTION_INT, &a.attempt, "N",
			"judge this attempt (life between restarts, from 0)", 0, INT32_MAX},
		{"ranks", 0, FF_OPTION_FLAG, &a.ranks, NULL,
			"show the ranks instead, those in one state as one line (see `ranks`)", 0,
			0},
		{"timeline", 0, FF_OPTION_FLAG, &a.timeline, NULL,
			"show the events in order instead, with error bars (see `timeline`)", 0, 0},
		{"lines", 0, FF_OPTION_INT, &a.lines, "N",
			"with --ranks or --timeline: at most so many lines (60)", 8, 100000},
		{"catalog", 0, FF_OPTION_TEXT, &a.catalog, "PATH",
			"a folder of own signatures (or one file), besides those built in", 1,
			4096},
		{"mask", 0, FF_OPTION_LIST, &a.patterns, "PATTERN",
			"what this PCRE2 pattern matches in a line is masked as a secret; may be "
			"repeated",
			1, 4096},
		{"exit-status", 0, FF_OPTION_FLAG, &a.exit_status, NULL,
			"make the verdict the exit status", 0, 0},
	};
	const size_t n = sizeof options / sizeof *options;
	struct ff_err err = {0};
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0 && rest == argc) {
		status = client_usage(self, "no PATH given");
	} else if (rest >= 0 && a.ranks + a.timeline + a.brief + (a.report != NULL) > 1) {
		status = client_usage(
			self, "one of --ranks, --timeline, --brief and --report at a time");
	} else if (rest >= 0 && a.job && ff_runs_check_name(ff_str_z(a.job), "job id", &err) < 0) {
		status = client_usage(self, "%s", err.text);
	} else if (rest >= 0 && a.report && !ff_ticket_parse(ff_str_z(a.report), &a.form)) {
		status = client_usage(self, "--report is md or txt");
	} else if (rest >= 0 && ff_mask_rules_create(a.patterns.v, a.patterns.n, &a.mask,
					&err) < 0) {
		status = client_usage(self, "--mask: %s", err.text);
	} else if (rest >= 0) {
		status = analyze(&a, argv + rest, (size_t)(argc - rest));
	}
	ff_mask_rules_destroy(a.mask);
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_analyze = {
	.name = "analyze",
	.local = true,
	.synopsis = "analyze [--brief | --json | --report FORMAT] [--world N] [--job ID] PATH...\n"
		    "analyze --ranks | --timeline [--json] [--lines N] PATH...",
	.summary = "read logs and say who failed first, without a daemon",
	.description = "Reads logs and prints the verdict. Nothing leaves the machine, and no "
		       "daemon is needed.\n"
		       "\n"
		       "PATH is a log file, a folder, a tar of one, a file of JSON Lines, or - for "
		       "standard input;\n"
		       "all may be compressed (gzip, zstd, xz, bzip2): their content tells. A "
		       "folder with\n"
		       "job.json holds the streams that it names. Any other is walked: torchrun's "
		       "--log-dir tree\n"
		       "tells local ranks and attempts, names such as rank-3.log or rank.3 tell "
		       "ranks, all else is\n"
		       "output of many ranks, told apart by the prefixes of its lines. All PATHs "
		       "are one job,\n"
		       "unless their own content names several.\n",
	.examples = "firstfault analyze train.log\n"
		    "firstfault analyze --json logs/4711_k2j9x0ab/ slurm-4711.out\n"
		    "kubectl logs job/train --all-containers | firstfault analyze -\n",
	.judges = true,
	.run = run,
};
