#include "client.h"

#include "core/stream.h"
#include "print.h"
#include "rpc.h"

/* Counters that are not 0, each with its meaning. */
static void add_counters(struct ff_buf *out, const struct ff_json_node *v)
{
	bool any = false;
	for (int c = 0; c < FF_COUNT_COUNT; c++) {
		const char *name = ff_count_name((enum ff_count)c);
		int64_t n;
		if (ff_json_int(ff_json_get(v, name), &n) && n) {
			ff_buf_addf(out, "  %s: %lld  (%s)\n", name, (long long)n,
				    ff_count_text((enum ff_count)c));
			any = true;
		}
	}
	ff_buf_addz(out, any ? "" : "  all 0 (--json lists them)\n");
}

/* Members of an object, indented; objects in it below their name. */
static void add_members(struct ff_buf *out, const struct ff_json_node *v, int indent)
{
	for (v = ff_json_first(v); v; v = ff_json_next(v)) {
		if (!ff_json_key(v) || !strcmp(ff_json_key(v), "schema")) {
			continue;
		}
		ff_buf_addf(out, "%*s", indent, "");
		print_text(out, ff_json_key(v), 0);
		if (ff_json_is_object(v)) {
			ff_buf_addz(out, ":\n");
			if (!strcmp(ff_json_key(v), "counters")) {
				add_counters(out, v);
			} else if (indent < 16) {
				add_members(out, v, indent + 2);
			}
			continue;
		}
		ff_buf_addz(out, ": ");
		struct ff_buf raw = {0};
		if (ff_json_string(v)) {
			ff_buf_addz(&raw, ff_json_string(v));
		} else {
			ff_json_render(v, &raw);
		}
		print_text(out, raw.p, 0);
		ff_buf_finish(&raw);
		ff_buf_addc(out, '\n');
	}
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
	if (rest < argc) {
		return client_usage(self, "unexpected \"%s\"", argv[rest]);
	}
	struct ff_json *doc = NULL;
	status = rpc_get_json("/v1/status", &doc);
	if (!status) {
		struct ff_buf out = {0};
		if (json) {
			ff_json_render(ff_json_root(doc), &out);
			ff_buf_addc(&out, '\n');
		} else {
			add_members(&out, ff_json_root(doc), 0);
		}
		status = client_print(&out);
		ff_buf_finish(&out);
		ff_json_destroy(doc);
	}
	return status;
}

const struct client_command cmd_status = {
	.name = "status",
	.synopsis = "status [--json]",
	.summary = "how the daemon is: its listeners, queues and counters",
	.description =
		"Whatever the daemon cut, skipped, refused or dropped has a counter here, shown "
		"with its\nmeaning once it is not 0; --json has all of them.\n",
	.run = run,
};
