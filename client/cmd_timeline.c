#include "client.h"

#include "query.h"

static int run(const struct client_command *self, int argc, char **argv)
{
	struct query_table t = {.what = "timeline", .attempt = -1};
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

const struct client_command cmd_timeline = {
	.name = "timeline",
	.synopsis = "timeline JOB [--attempt N] [--lines N] [--json]",
	.summary = "show a job's faults and exits in order, with error bars",
	.description = "One line an event, or for all that are the same: its number, its distance "
		       "from the event\n"
		       "that started it, how far that may be wrong, both drawn as a bar; ranks, "
		       "node, role, fault.\n"
		       "`>` started it, `~` can't be ordered with the line above: stamps of "
		       "different clocks are\n"
		       "never compared, those show the time of day instead of a distance. "
		       "--json has every event.\n"
		       "`analyze --timeline` does the same with files.\n",
	.examples = "firstfault timeline 48211\n",
	.run = run,
};
