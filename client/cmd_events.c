#include "client.h"

#include "base/limits.h"
#include "print.h"
#include "query.h"
#include "rpc.h"

#include <stdio.h>

#define ID_WIDTH 30

struct events {
	bool json;
	int64_t rank;
	char *role;
	struct print_table table;
	struct ff_buf out;
	size_t shown;
};

/* The time of day: arrived, else captured, else claimed, and whose clock if it is not arrived. */
static void add_time(struct ff_buf *b, const struct ff_json_node *item)
{
	static const char *const keys[] = {"arrived", "captured", "claimed"};
	for (size_t i = 0; i < 3; i++) {
		const char *s = ff_json_string(ff_json_get(item, keys[i]));
		if (s) {
			const char *t = strchr(s, 'T'); /* Thh:mm:ss.ffffffZ */
			size_t n = t ? strspn(t + 1, "0123456789:.") : strlen(s);
			ff_buf_add(b, t ? t + 1 : s, t && n > 12 ? 12 : n);
			ff_buf_addz(b, i == 1 ? " node" : i == 2 ? " line" : "");
			return;
		}
	}
	ff_buf_addc(b, '-');
}

/* The end of a long id tells more than its front. */
static void add_id(struct ff_buf *b, const struct ff_json_node *item)
{
	struct ff_buf id = {0};
	print_member(&id, item, "id");
	size_t skip = id.len > ID_WIDTH ? id.len - ID_WIDTH + 2 : 0;
	while (skip && skip < id.len && ((unsigned char)id.p[skip] & 0xc0) == 0x80) {
		skip++; /* not in the middle of a character */
	}
	ff_buf_addf(b, "%s%s", skip ? ".." : "", id.p + skip);
	ff_buf_finish(&id);
}

static void add_line(struct ff_buf *b, const struct ff_json_node *item)
{
	const char *text = ff_json_string(ff_json_get(item, "text"));
	struct ff_buf first = {0};
	if (text) {
		text += strspn(text, " \t");
		ff_buf_add(&first, text, strcspn(text, "\n"));
		print_text(b, first.p, 160);
	}
	ff_buf_finish(&first);
}

static bool take(void *ud, const struct ff_json_node *item)
{
	static const char *const plain[] = {"rank", "role", "fault"};
	struct events *e = ud;
	struct ff_buf b = {0};
	e->shown++;
	if (e->json) {
		ff_json_render(item, &b);
		ff_buf_addf(&e->out, "%s%s", e->shown > 1 ? ",\n" : "", b.p);
		ff_buf_finish(&b);
		return true;
	}
	/* of the whole list, not of the part that is shown: `logs --around` takes it */
	print_member(&b, item, "number");
	print_cell(&e->table, &b);
	add_time(&b, item);
	print_cell(&e->table, &b);
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		print_member(&b, item, plain[i]);
		print_cell(&e->table, &b);
	}
	add_id(&b, item);
	print_cell(&e->table, &b);
	add_line(&b, item);
	print_cell(&e->table, &b);
	return true;
}

static int list(struct events *e, const char *job)
{
	static const struct ff_screen_column columns[] = {
		{"N", 6, true},
		{"TIME", 18, false},
		{"RANK", 6, true},
		{"ROLE", 9, false},
		{"FAULT", 24, false},
		{"EVENT", ID_WIDTH, false},
		{"TEXT", 100, false},
	};
	struct ff_buf path = {0};
	char number[24];
	e->table.columns = columns;
	e->table.ncolumns = sizeof columns / sizeof *columns;
	rpc_add_job(&path, job);
	ff_buf_addz(&path, "/events");
	if (e->rank >= 0) {
		(void)snprintf(number, sizeof number, "%lld", (long long)e->rank);
		rpc_add_query(&path, "rank", number);
	}
	if (e->role) {
		rpc_add_query(&path, "role", e->role);
	}
	if (e->json) {
		ff_buf_addz(&e->out, "{\"schema\":\"firstfault.events/1\",\"items\":[");
	}
	int status = rpc_each(path.p, take, e);
	if (!status) {
		if (e->json) {
			ff_buf_addz(&e->out, "],\"next\":null}\n");
		} else if (e->shown) {
			print_rows(&e->table, &e->out);
		} else {
			ff_buf_addz(&e->out, "no events\n");
		}
		status = client_print(&e->out);
	}
	ff_buf_finish(&path);
	ff_buf_finish(&e->out);
	print_finish(&e->table);
	return status;
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct events e = {.rank = -1};
	const struct ff_option options[] = {
		{"json", 'j', FF_OPTION_FLAG, &e.json, NULL, "print the events as JSON", 0, 0},
		{"rank", 'r', FF_OPTION_INT, &e.rank, "N", "only those of this rank", 0,
			FF_RANKS_MAX - 1},
		{"role", 0, FF_OPTION_TEXT, &e.role, "ROLE",
			"only this role: primary, secondary, teardown, noise, context", 1, 32},
	};
	const size_t n = sizeof options / sizeof *options;
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0) {
		status = argc - rest == 1 ? list(&e, argv[rest])
					  : client_usage(self, "give one JOB");
	}
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_events = {
	.name = "events",
	.synopsis = "events JOB [--rank N] [--role ROLE] [--json]",
	.summary = "list what was found in a job's logs, in order of time",
	.description = "One line an event, cut to the screen: its number, its time of day in UTC "
		       "(node: the\n"
		       "node's clock, line: written in the line itself), its rank, role, fault and "
		       "id. `logs\n"
		       "--around` takes the number or the id.\n",
	.examples = "firstfault events 48211 --role primary\n",
	.run = run,
};
