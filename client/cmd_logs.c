#include "client.h"

#include "base/limits.h"
#include "base/mem.h"
#include "print.h"
#include "query.h"
#include "rpc.h"

#include <stdio.h>
#include <stdlib.h>

struct logs {
	bool json;
	int64_t rank, lines;
	char *around;
	char *last; /* the stream that was printed last */
	struct ff_buf out;
	bool any;
};

static bool take(void *ud, const struct ff_json_node *item)
{
	struct logs *l = ud;
	const char *stream = ff_json_string(ff_json_get(item, "stream"));
	const char *text = ff_json_string(ff_json_get(item, "text"));
	bool gone = false;
	(void)ff_json_bool(ff_json_get(item, "gone"), &gone);
	if (l->json) {
		struct ff_buf b = {0};
		ff_json_render(item, &b);
		ff_buf_addf(&l->out, "%s%s", l->any ? ",\n" : "", b.p);
		ff_buf_finish(&b);
		l->any = true;
		return true;
	}
	if (stream && (!l->last || strcmp(l->last, stream) != 0)) {
		ff_buf_addf(&l->out, "%s== ", l->any ? "\n" : "");
		print_text(&l->out, stream, 0);
		ff_buf_addz(&l->out, " ==\n");
		free(l->last);
		l->last = ff_xstrdup(stream);
	}
	l->any = true;
	struct ff_buf line = {0};
	print_member(&line, item, "line");
	ff_buf_addf(&l->out, "%8s | ", line.p);
	ff_buf_finish(&line);
	if (gone || !text) {
		ff_buf_addz(&l->out, "(gone: the text was dropped)");
	} else {
		print_text(&l->out, text, 0);
	}
	ff_buf_addc(&l->out, '\n');
	return true;
}

static int show(struct logs *l, const char *job)
{
	struct ff_buf path = {0};
	char number[24];
	char *event = NULL;
	int status = l->around ? query_event(job, l->around, &event) : CLIENT_OK;
	rpc_add_job(&path, job);
	ff_buf_addz(&path, "/logs");
	if (l->rank >= 0) {
		(void)snprintf(number, sizeof number, "%lld", (long long)l->rank);
		rpc_add_query(&path, "rank", number);
	}
	if (event) {
		rpc_add_query(&path, "around", event);
	}
	(void)snprintf(number, sizeof number, "%lld", (long long)l->lines);
	rpc_add_query(&path, "lines", number);
	if (l->json) {
		ff_buf_addz(&l->out, "{\"schema\":\"firstfault.logs/1\",\"items\":[");
	}
	status = status ? status : rpc_each(path.p, take, l);
	if (!status) {
		if (l->json) {
			ff_buf_addz(&l->out, "],\"next\":null}\n");
		} else if (!l->any) {
			ff_buf_addz(&l->out, "no lines\n");
		}
		status = client_print(&l->out);
	}
	free(event);
	free(l->last);
	ff_buf_finish(&path);
	ff_buf_finish(&l->out);
	return status;
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct logs l = {.rank = -1, .lines = 20};
	const struct ff_option options[] = {
		{"json", 'j', FF_OPTION_FLAG, &l.json, NULL, "print the lines as JSON", 0, 0},
		{"rank", 'r', FF_OPTION_INT, &l.rank, "N", "only streams of this rank", 0,
			FF_RANKS_MAX - 1},
		{"around", 'a', FF_OPTION_TEXT, &l.around, "EVENT",
			"the lines before and after this event: first, its number in `events`, or "
			"its id",
			1, 2048},
		{"lines", 'n', FF_OPTION_INT, &l.lines, "N", "so many lines before and after (20)",
			1, 10000},
	};
	const size_t n = sizeof options / sizeof *options;
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0) {
		status = argc - rest == 1 ? show(&l, argv[rest])
					  : client_usage(self, "give one JOB");
	}
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_logs = {
	.name = "logs",
	.synopsis = "logs JOB [--rank N] [--around EVENT] [--lines N] [--json]",
	.summary = "show a job's own lines, around an event",
	.description = "Shows log text as the daemon keeps it, with secrets masked: the end of "
		       "each stream, or what\n"
		       "precedes and follows an event. Where text was dropped it says `gone`.\n",
	.examples = "firstfault logs 48211 --rank 137 --around first\n",
	.run = run,
};
