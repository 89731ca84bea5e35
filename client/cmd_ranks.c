#include "client.h"

#include "query.h"

static int run(const struct client_command *self, int argc, char **argv)
{
	return query_run_table(self, "ranks", argc, argv);
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
