#include "client.h"

#include "base/limits.h"
#include "rpc.h"

struct forget {
	bool json, force;
	char *run;
};

static int print_answer(const struct rpc_answer *a, bool as_json)
{
	struct ff_buf out = {0};
	struct ff_json *doc = ff_json_parse_text(ff_buf_str(&a->body), NULL);
	const struct ff_json_node *root = doc ? ff_json_root(doc) : NULL;
	const char *job = ff_json_string(ff_json_get(root, "job"));
	const char *run = ff_json_string(ff_json_get(root, "run"));
	int64_t bytes = 0;
	(void)ff_json_int(ff_json_get(root, "bytes"), &bytes);
	if (as_json) {
		ff_buf_adds(&out, ff_buf_str(&a->body));
	} else if (a->http == 202) {
		ff_buf_addf(&out, "%s run %s: forgotten; its room is still being given back\n",
			job ? job : "?", run ? run : "?");
	} else {
		ff_buf_addf(&out, "%s run %s: forgotten, %lld bytes given back\n", job ? job : "?",
			run ? run : "?", (long long)bytes);
	}
	int status = client_print(&out);
	ff_buf_finish(&out);
	ff_json_destroy(doc);
	return status;
}

static int forget(const struct forget *f, const char *job)
{
	struct ff_buf path = {0};
	struct rpc_answer a;
	rpc_add_job(&path, job);
	if (f->run) {
		rpc_add_query(&path, "run", f->run);
	}
	if (f->force) {
		rpc_add_query(&path, "force", "1");
	}
	int status = rpc_delete(path.p, &a);
	ff_buf_finish(&path);
	if (!status) {
		status = a.http < 200 || a.http > 299 ? rpc_fail(&a) : print_answer(&a, f->json);
		rpc_answer_finish(&a);
	}
	return status;
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct forget f = {0};
	const struct ff_option options[] = {
		{"run", 0, FF_OPTION_TEXT, &f.run, "R", "this run, not the latest one", 1,
			FF_JOB_ID_MAX},
		{"force", 0, FF_OPTION_FLAG, &f.force, NULL, "also a job that goes on", 0, 0},
		{"json", 'j', FF_OPTION_FLAG, &f.json, NULL, "print the answer as JSON", 0, 0},
	};
	const size_t n = sizeof options / sizeof *options;
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0) {
		status = argc - rest == 1 ? forget(&f, argv[rest])
					  : client_usage(self, "give one JOB, by its whole id");
	}
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_forget = {
	.name = "forget",
	.synopsis = "forget JOB [--run R] [--force]",
	.summary = "delete all that the daemon keeps of a job's run",
	.description =
		"The run's text, events and facts leave the memory, the store and the segment "
		"files of the\ndaemon, and what they stood on is overwritten or removed. Its "
		"owner, "
		"root and administrators\nmay do this. JOB is the latest run, JOB~1 the one "
		"before; "
		"a part of an id will not do.\n\n"
		"A job takes --force while a sender is connected for it, or a stream goes on and "
		"no "
		"end was\ntold. Senders that are connected are told and closed (those of JSON "
		"Lines and syslog go on);\nwhat they send afterwards begins another run. Files "
		"that the daemon follows are left alone and\nnot read again until they are "
		"replaced.\n",
	.examples = "firstfault forget 4711\n"
		    "firstfault forget 4711 --run 0\n",
	.run = run,
};
