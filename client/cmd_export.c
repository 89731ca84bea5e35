#include "client.h"

#include "base/json.h"
#include "base/mem.h"
#include "rpc.h"

#include <stdlib.h>

/* The last line of a page says where the next one begins: taken off. *ret is malloc'd, NULL for the
 * last page. False: it is not there. */
static bool take_next(struct ff_buf *page, char **ret)
{
	size_t from = page->len ? page->len - 1 : 0; /* in front of its newline */
	while (from && page->p[from - 1] != '\n') {
		from--;
	}
	struct ff_json *doc = ff_json_parse_text(ff_str_n(page->p + from, page->len - from), NULL);
	const struct ff_json_node *root = doc ? ff_json_root(doc) : NULL;
	const struct ff_json_node *next = ff_json_get(root, "next");
	const char *cursor = ff_json_string(next);
	bool found = next != NULL;
	*ret = cursor ? ff_xstrdup(cursor) : NULL;
	ff_json_destroy(doc);
	page->len = from;
	return found;
}

static int show(const char *job)
{
	struct ff_buf path = {0};
	char *cursor = NULL;
	bool more = true;
	int status = CLIENT_OK;
	while (more && !status) {
		struct rpc_answer a;
		ff_buf_clear(&path);
		rpc_add_job(&path, job);
		ff_buf_addz(&path, "/export");
		if (cursor) {
			rpc_add_query(&path, "cursor", cursor);
		}
		free(cursor);
		cursor = NULL;
		status = rpc_get(path.p, false, &a);
		if (status) {
			break;
		}
		if (!take_next(&a.body, &cursor)) {
			status = client_fail(
				CLIENT_INTERNAL, "the daemon's answer has no end", NULL);
		} else {
			status = client_print(&a.body);
		}
		more = cursor != NULL;
		rpc_answer_finish(&a);
	}
	free(cursor);
	ff_buf_finish(&path);
	return status;
}

static int run(const struct client_command *self, int argc, char **argv)
{
	int status;
	int rest = client_options(self, NULL, 0, argc, argv, &status);
	if (rest >= 0) {
		status = argc - rest == 1 ? show(argv[rest]) : client_usage(self, "give one JOB");
	}
	return status;
}

const struct client_command cmd_export = {
	.name = "export",
	.synopsis = "export JOB",
	.summary = "write a run as JSON Lines that `analyze -` reads",
	.description =
		"Writes all that the daemon has of a run: what was told of it, who its streams "
		"are, their lines\n"
		"with offsets and stamps, secrets masked, and how it ended. `firstfault analyze "
		"--json -` judges\n"
		"it to the same bytes as `why --json`, given the daemon's --catalog if it has one. "
		"Where that\n"
		"can't be (files that are tailed, text that was dropped, a run that goes on) the "
		"first object's\n"
		"`export` says so; verdict, initiating and fault are the same all the same. That "
		"kernel logs\n"
		"are trusted is kept for root only.\n",
	.examples = "firstfault export 48211 > 48211.jsonl\n"
		    "firstfault export 48211 | firstfault analyze -\n",
	.run = run,
};
