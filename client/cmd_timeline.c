#include "client.h"

#include "query.h"

static int run(const struct client_command *self, int argc, char **argv)
{
	return query_run_table(self, "timeline", argc, argv);
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
