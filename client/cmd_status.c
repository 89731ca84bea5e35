#include "client.h"

#include "rpc.h"

static int run(const struct client_command *self, int argc, char **argv)
{
	bool json = false;
	const struct ff_option options[] = {
		{"json", 'j', FF_OPTION_FLAG, &json, NULL, "print the answer as JSON", 0, 0},
	};
	int status;
	int rest = client_options(self, options, 1, argc, argv, &status);
	if (rest < 0) {
		return status;
	}
	if (rest < argc) {
		return client_usage(self, "unexpected \"%s\"", argv[rest]);
	}
	struct rpc_answer a;
	status = rpc_get("/v1/status", !json, &a);
	if (!status) {
		status = client_print(&a.body);
		rpc_answer_finish(&a);
	}
	return status;
}

const struct client_command cmd_status = {
	.name = "status",
	.synopsis = "status [--json]",
	.summary = "how the daemon is: its listeners, queues and counters",
	.description =
		"What is kept, what waits, who speaks; and whatever the daemon cut, skipped, "
		"refused or\ndropped: each has a counter, shown with its meaning once it is not "
		"0. GET /metrics has\nthe same numbers for Prometheus.\n",
	.run = run,
};
