#include "client.h"

#include "base/limits.h"
#include "base/mem.h"
#include "print.h"
#include "query.h"
#include "rpc.h"

#include <stdio.h>
#include <stdlib.h>

#define WAIT_SECONDS 20 /* an answer waits so long for something new */

struct logs {
	bool json, follow;
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

/* ---- as they come */

static void add_item(struct logs *l, const struct ff_json_node *item)
{
	const char *stream = ff_json_string(ff_json_get(item, "stream"));
	const char *text = ff_json_string(ff_json_get(item, "text"));
	if (l->json) {
		ff_json_render(item, &l->out);
		ff_buf_addc(&l->out, '\n');
		return;
	}
	if (stream && (!l->last || strcmp(l->last, stream) != 0)) {
		ff_buf_addz(&l->out, l->last ? "\n== " : "== ");
		print_text(&l->out, stream, 0);
		ff_buf_addz(&l->out, " ==\n");
		free(l->last);
		l->last = ff_xstrdup(stream);
	}
	if (text) {
		print_text(&l->out, text, 0);
	} else {
		ff_buf_addz(&l->out, "(gone: the text was dropped)");
	}
	ff_buf_addc(&l->out, '\n');
}

/* Prints a page; *next is where the following one begins, NULL: there is none. A page is printed
 * whole before that is known, so that nothing is shown twice or left out. */
static int take_page(struct logs *l, const struct ff_buf *body, char **next)
{
	struct ff_err err = {0};
	struct ff_json *doc = ff_json_parse_text(ff_buf_str(body), &err);
	if (!doc) {
		return client_failf(
			CLIENT_INTERNAL, NULL, "the daemon's answer is no JSON: %s", err.text);
	}
	const struct ff_json_node *root = ff_json_root(doc);
	const struct ff_json_node *v = ff_json_first(ff_json_get(root, "items"));
	for (; v; v = ff_json_next(v)) {
		add_item(l, v);
	}
	free(*next);
	*next = ff_xstrdup(ff_json_string(ff_json_get(root, "next")));
	int status = client_print(&l->out);
	ff_buf_clear(&l->out);
	ff_json_destroy(doc);
	return status;
}

static void add_number(struct ff_buf *path, const char *key, int64_t number)
{
	char text[24];
	(void)snprintf(text, sizeof text, "%lld", (long long)number);
	rpc_add_query(path, key, text);
}

/* "== 4711: ended, rank: rank 5 ran out of GPU memory ==" */
static int show_end(struct logs *l, const char *job)
{
	struct ff_buf path = {0};
	struct ff_json *doc = NULL;
	rpc_add_job(&path, job);
	int status = rpc_get_json(path.p, &doc);
	if (!status && !l->json) {
		static const char *const keys[] = {"state", "verdict", "summary"};
		ff_buf_addz(&l->out, l->last ? "\n== " : "== ");
		print_member(&l->out, ff_json_root(doc), "job");
		for (size_t i = 0; i < 3; i++) {
			ff_buf_addz(&l->out, i ? ", " : ": ");
			print_member(&l->out, ff_json_root(doc), keys[i]);
		}
		ff_buf_addz(&l->out, " ==\n");
		status = client_print(&l->out);
	} else if (!status) {
		ff_json_render(ff_json_root(doc), &l->out);
		ff_buf_addc(&l->out, '\n');
		status = client_print(&l->out);
	}
	ff_json_destroy(doc);
	ff_buf_finish(&path);
	return status;
}

/* Asks again and again behind what came last, until the run's verdict is final. */
static int follow(struct logs *l, const char *job)
{
	char *next = ff_xstrdup("now");
	int status = CLIENT_OK;
	while (next && !status) {
		struct rpc_answer a;
		struct ff_buf path = {0};
		rpc_add_job(&path, job);
		ff_buf_addz(&path, "/logs");
		rpc_add_query(&path, "follow", next);
		add_number(&path, "wait", WAIT_SECONDS);
		add_number(&path, "lines", l->around ? 0 : l->lines);
		if (l->rank >= 0) {
			add_number(&path, "rank", l->rank);
		}
		const struct rpc_question q = {.path = path.p};
		status = rpc_patient(&q, &a);
		if (!status && a.http != 200) {
			status = rpc_fail(&a);
		}
		status = status ? status : take_page(l, &a.body, &next);
		rpc_answer_finish(&a);
		ff_buf_finish(&path);
	}
	free(next);
	return status ? status : show_end(l, job);
}

/* ---- as they are */

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
	ff_buf_finish(&path);
	ff_buf_clear(&l->out);
	return status;
}

static int act(struct logs *l, const char *job)
{
	int status = l->follow && !l->around ? CLIENT_OK : show(l, job);
	if (!status && l->follow) {
		status = follow(l, job);
	}
	free(l->last);
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
		{"follow", 'f', FF_OPTION_FLAG, &l.follow, NULL,
			"go on with what comes, until the run's verdict is final", 0, 0},
	};
	const size_t n = sizeof options / sizeof *options;
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0) {
		status = argc - rest == 1 ? act(&l, argv[rest])
					  : client_usage(self, "give one JOB");
	}
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_logs = {
	.name = "logs",
	.synopsis = "logs JOB [--rank N] [--around EVENT] [--lines N] [-f] [--json]",
	.summary = "show a job's own lines, around an event",
	.description = "Shows log text as the daemon keeps it, with secrets masked: the end of "
		       "each stream, or what\n"
		       "precedes and follows an event. Where text was dropped it says `gone`.\n"
		       "\n"
		       "With -f it goes on with each line that is complete, of streams that appear "
		       "later too (with\n"
		       "--json an object a line), and says at the end how the run ended. A daemon "
		       "that is restarted\n"
		       "is waited for, up to a minute; no line is shown twice or left out.\n",
	.examples = "firstfault logs 48211 --rank 137 --around first\n",
	.run = run,
};
