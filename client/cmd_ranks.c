#include "client.h"

#include "query.h"

static int run(const struct client_command *self, int argc, char **argv)
{
	struct query_table t = {.what = "ranks", .attempt = -1};
	const struct ff_option options[] = {
		{"json", 'j', FF_OPTION_FLAG, &t.json, NULL, "print the list as JSON", 0, 0},
		{"attempt", 0, FF_OPTION_INT, &t.attempt, "N",
			"of this attempt (life between restarts, from 0)", 0, INT32_MAX},
		{"lines", 'n', FF_OPTION_INT, &t.lines, "N", "at most so many lines (60)", 8,
			100000},
	};
	const size_t n = sizeof options / sizeof *options;
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0) {
		status = argc - rest == 1 ? query_print_table(argv[rest], &t)
					  : client_usage(self, "give one JOB");
	}
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_ranks = {
	.name = "ranks",
	.synopsis = "ranks JOB [--attempt N] [--lines N] [--json]",
	.summary = "list a job's ranks, those in one state as one line, the odd ones first",
	.description = "One line for all ranks that are in the same state: status in the verdict, "
		       "last step (`<`:\n"
		       "behind the others), last line, how they were heard (silent: a steady "
		       "habit broke; quiet:\n"
		       "no habit, proves nothing; unheard: no output), whether their standard "
		       "error was captured\n"
		       "to its end, exit, and the first fault of their own. Texts that differ in "
		       "numbers,\n"
		       "addresses and own paths only are the same. --json has each rank, with "
		       "lines and bytes of\n"
		       "each of its streams. `analyze --ranks` does the same with files.\n",
	.examples = "firstfault ranks 48211\n"
		    "firstfault ranks 48211 --json | jq '.items[] | select(.behind)'\n",
	.run = run,
};
