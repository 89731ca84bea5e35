#include "client.h"

#include "base/mem.h"
#include "core/report.h"
#include "query.h"
#include "rpc.h"

#include <stdlib.h>

struct report {
	char *format;
	int64_t attempt;
};

static int print_report(const struct report *p, const char *job)
{
	struct ff_buf path = {0};
	rpc_add_job(&path, job);
	ff_buf_addz(&path, "/verdict");
	rpc_add_query(&path, "format", p->format ? p->format : "txt");
	return query_print_text(&path, p->attempt);
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct report p = {.attempt = -1};
	const struct ff_option options[] = {
		{"format", 'f', FF_OPTION_TEXT, &p.format, "FORMAT", "txt (default) or md", 1, 8},
		{"attempt", 0, FF_OPTION_INT, &p.attempt, "N",
			"judge this attempt (life between restarts, from 0)", 0, INT32_MAX},
	};
	const size_t n = sizeof options / sizeof *options;
	enum ff_ticket form;
	char *job = NULL;
	int status = CLIENT_OK;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0 && argc - rest > 1) {
		status = client_usage(self, "one JOB at a time");
	} else if (rest >= 0 && p.format && !ff_ticket_parse(ff_str_z(p.format), &form)) {
		status = client_usage(self, "--format is txt or md");
	} else if (rest >= 0) {
		if (rest < argc) {
			job = ff_xstrdup(argv[rest]);
		} else {
			status = query_newest_failed(&job);
		}
		status = status ? status : print_report(&p, job);
	}
	free(job);
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_report = {
	.name = "report",
	.synopsis = "report [JOB] [--format txt|md] [--attempt N]",
	.summary = "print all about a job's failure, ready for a ticket",
	.description =
		"The verdict with its proof, the first events, what the other ranks show, why "
		"and why not,\n"
		"cause, fix and what is missing: fewer than 200 lines, secrets masked. As "
		"Markdown log text\n"
		"stands in fences. Without JOB: the newest failed one.\n",
	.examples = "firstfault report 48211 --format md >ticket.md\n",
	.run = run,
};
