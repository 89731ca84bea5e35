#include "client.h"

#include "base/json.h"
#include "rpc.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* The daemon has another working folder. */
static int make_absolute(const char *path, struct ff_buf *out)
{
	char folder[PATH_MAX];
	if (*path != '/') {
		if (!getcwd(folder, sizeof folder)) {
			return client_failf(CLIENT_IO, NULL, "cannot tell the working folder: %s",
				ff_strerror(-errno));
		}
		ff_buf_addf(out, "%s/", folder);
	}
	ff_buf_addz(out, path);
	return CLIENT_OK;
}

static int print_answer(const struct rpc_answer *a, bool as_json)
{
	struct ff_buf out = {0};
	struct ff_json *doc = ff_json_parse_text(ff_buf_str(&a->body), NULL);
	const struct ff_json_node *root = doc ? ff_json_root(doc) : NULL;
	const char *path = ff_json_string(ff_json_get(root, "path"));
	int64_t bytes = 0, runs = 0, missing = 0;
	(void)ff_json_int(ff_json_get(root, "bytes"), &bytes);
	(void)ff_json_int(ff_json_get(root, "runs"), &runs);
	(void)ff_json_int(ff_json_get(root, "missing"), &missing);
	if (as_json) {
		ff_buf_adds(&out, ff_buf_str(&a->body));
	} else {
		ff_buf_addf(&out, "%s: %lld runs, %lld bytes\n", path ? path : "?",
			(long long)runs, (long long)bytes);
	}
	int status = client_print(&out);
	if (missing) {
		client_warn("%lld text files of runs were gone or damaged, and are not in it",
			(long long)missing);
	}
	ff_buf_finish(&out);
	ff_json_destroy(doc);
	return status;
}

static int backup(const char *file, bool as_json)
{
	struct ff_buf path = {0}, body = {0};
	struct rpc_answer a;
	struct ff_jw w;
	int status = make_absolute(file, &path);
	if (!status) {
		ff_jw_init(&w, &body);
		ff_jw_open(&w, '{');
		ff_jw_kstrz(&w, "path", path.p);
		ff_jw_close(&w, '}');
		status = rpc_ask("/v1/backup", &body, false, &a);
	}
	ff_buf_finish(&path);
	ff_buf_finish(&body);
	if (!status) {
		status = a.http < 200 || a.http > 299 ? client_fail(CLIENT_IO, a.why, NULL)
						      : print_answer(&a, as_json);
		rpc_answer_finish(&a);
	}
	return status;
}

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
	return argc - rest == 1 ? backup(argv[rest], json)
				: client_usage(self, "give one FILE that does not exist");
}

const struct client_command cmd_backup = {
	.name = "backup",
	.synopsis = "backup FILE",
	.summary = "write all that the daemon keeps into one tar file",
	.description =
		"The daemon writes FILE, as its own user and with mode 0600: its store and all "
		"text, "
		"as of one\nmoment, while it goes on. Nothing is overwritten, and FILE is there "
		"only "
		"when it is whole.\nOnly root and the daemon's own user may ask for it, one at a "
		"time.\n\nUnpacked into an empty folder it is a state folder: tar -xf FILE -C "
		"FOLDER, then\nfirstfaultd --state FOLDER, with this version or a newer one.\n",
	.examples = "firstfault backup /backup/firstfault-$(date +%F).tar\n",
	.run = run,
};
