#include "query.h"

#include "base/arr.h"
#include "client.h"
#include "rpc.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the newest failed run */

struct seen {
	char *job, *heard; /* heard: when anything came of it last */
	bool failed;
};

struct newest {
	struct seen *v;
	size_t n, cap;
};

static bool is_failed(const struct ff_json_node *item)
{
	const char *verdict = ff_json_string(ff_json_get(item, "verdict"));
	const char *state = ff_json_string(ff_json_get(item, "state"));
	return verdict && strcmp(verdict, "clean") != 0 && state && strcmp(state, "running") != 0;
}

static bool take_run(void *ud, const struct ff_json_node *item)
{
	struct newest *n = ud;
	const char *job = ff_json_string(ff_json_get(item, "job"));
	const char *heard = ff_json_string(ff_json_get(item, "heard"));
	if (job) {
		*FF_ARR_ADD(n->v, n->n, n->cap) = (struct seen){ff_xstrdup(job),
			ff_xstrdup(heard ? heard : ""), is_failed(item)};
	}
	return true;
}

/* The one that was heard last: `as_of` would not do, which is this moment for a run that nobody
 * ends, and null without stamps. RFC 3339 with a fixed number of decimals: bytewise order is the
 * order of time. */
static const struct seen *find_newest(const struct newest *n)
{
	const struct seen *found = NULL;
	for (size_t i = 0; i < n->n; i++) {
		if (n->v[i].failed && (!found || strcmp(n->v[i].heard, found->heard) > 0)) {
			found = &n->v[i];
		}
	}
	return found;
}

/* The list has the newest run of a job first. */
static unsigned count_later(const struct newest *n, const struct seen *than)
{
	unsigned later = 0;
	for (const struct seen *s = n->v; s != than; s++) {
		later += !strcmp(s->job, than->job);
	}
	return later;
}

int query_newest_failed(char **ret)
{
	struct newest n = {0};
	int status = rpc_each("/v1/jobs", take_run, &n);
	const struct seen *found = find_newest(&n);
	if (!status && !found) {
		status = client_fail(
			CLIENT_INPUT, "no failed job is known", "firstfault jobs lists all");
	}
	if (!status) {
		struct ff_buf b = {0};
		unsigned later = count_later(&n, found);
		ff_buf_addz(&b, found->job);
		if (later) {
			ff_buf_addf(&b, "~%u", later);
		}
		*ret = ff_buf_take(&b);
	}
	for (size_t i = 0; i < n.n; i++) {
		free(n.v[i].job);
		free(n.v[i].heard);
	}
	free(n.v);
	return status;
}

/* ---- events */

struct nth {
	int64_t left;
	char *id;
};

static bool take_nth(void *ud, const struct ff_json_node *item)
{
	struct nth *n = ud;
	const char *id = ff_json_string(ff_json_get(item, "id"));
	if (--n->left) {
		return true;
	}
	n->id = ff_xstrdup(id);
	return false;
}

static int find_nth(const char *job, int64_t number, char **ret)
{
	struct nth n = {.left = number};
	struct ff_buf path = {0};
	rpc_add_job(&path, job);
	ff_buf_addz(&path, "/events");
	int status = rpc_each(path.p, take_nth, &n);
	ff_buf_finish(&path);
	if (!status && !n.id) {
		status = client_failf(CLIENT_INPUT, "firstfault events lists them",
				      "job \"%s\" has no event %lld", job, (long long)number);
	}
	*ret = n.id;
	return status;
}

/* The event of the first initiating rank, else the first that the verdict refers to. */
static int find_first(const char *job, char **ret)
{
	struct ff_json *doc = NULL;
	struct ff_buf path = {0};
	rpc_add_job(&path, job);
	ff_buf_addz(&path, "/verdict");
	int status = rpc_get_json(path.p, &doc);
	ff_buf_finish(&path);
	if (status) {
		return status;
	}
	const struct ff_json_node *root = ff_json_root(doc);
	const struct ff_json_node *who = ff_json_first(ff_json_get(root, "initiating"));
	const struct ff_json_node *why = ff_json_first(ff_json_get(root, "why"));
	const char *id = ff_json_string(ff_json_get(who, "event"));
	if (!id) {
		id = ff_json_string(ff_json_first(ff_json_get(why, "events")));
	}
	if (!id) {
		id = ff_json_string(ff_json_get(ff_json_first(ff_json_get(root, "events")), "id"));
	}
	*ret = ff_xstrdup(id);
	if (!id) {
		status = client_failf(CLIENT_INPUT, NULL, "job \"%s\" has no first event", job);
	}
	ff_json_destroy(doc);
	return status;
}

int query_event(const char *job, const char *event, char **ret)
{
	int64_t number;
	if (!strcmp(event, "first")) {
		return find_first(job, ret);
	}
	if (ff_str_int(ff_str_z(event), &number) && number > 0) {
		return find_nth(job, number, ret);
	}
	*ret = ff_xstrdup(event);
	return CLIENT_OK;
}

/* ---- printing */

static void add_number(struct ff_buf *path, const char *key, int64_t number)
{
	char text[24];
	(void)snprintf(text, sizeof text, "%lld", (long long)number);
	rpc_add_query(path, key, text);
}

int query_print_text(struct ff_buf *path, int64_t attempt)
{
	struct rpc_answer a;
	if (attempt >= 0) {
		add_number(path, "attempt", attempt);
	}
	int status = rpc_get(path->p, true, &a);
	ff_buf_finish(path);
	if (!status) {
		status = client_print(&a.body);
		rpc_answer_finish(&a);
	}
	return status;
}

int query_print_screen(const char *job, int64_t attempt, bool brief)
{
	struct ff_buf path = {0};
	rpc_add_job(&path, job);
	ff_buf_addz(&path, "/verdict?format=text");
	ff_buf_addf(&path, "&width=%u", client_width());
	ff_buf_addz(&path, client_color() ? "&color=1" : "");
	ff_buf_addz(&path, brief ? "&brief=1" : "");
	return query_print_text(&path, attempt);
}

/* Adds a page's items behind those of the pages before it; the first page brings the head. */
static void add_page(struct ff_buf *out, const struct ff_json_node *page)
{
	const struct ff_json_node *v = ff_json_first(page);
	const struct ff_json_node *items = ff_json_get(page, "items");
	bool head = !out->len, more = !head;
	for (; head && v && v != items; v = ff_json_next(v)) {
		ff_buf_addf(out, "%c\"%s\":", out->len ? ',' : '{', ff_json_key(v));
		ff_json_render(v, out);
	}
	ff_buf_addz(out, head ? ",\"items\":[" : "");
	for (v = ff_json_first(items); v; v = ff_json_next(v), more = true) {
		ff_buf_addz(out, more ? ",\n" : "");
		ff_json_render(v, out);
	}
}

static int print_table_json(const char *path)
{
	struct ff_buf out = {0}, page = {0};
	int status = CLIENT_OK;
	ff_buf_addz(&page, path);
	for (bool more = true; more && !status;) {
		struct ff_json *doc = NULL;
		more = false;
		status = rpc_get_json(page.p, &doc);
		if (status) {
			break;
		}
		add_page(&out, ff_json_root(doc));
		const char *next = ff_json_string(ff_json_get(ff_json_root(doc), "next"));
		if (next) {
			more = true;
			ff_buf_clear(&page);
			ff_buf_addz(&page, path);
			rpc_add_query(&page, "cursor", next);
		}
		ff_json_destroy(doc);
	}
	if (!status) {
		ff_buf_addz(&out, "],\"next\":null}\n");
		status = client_print(&out);
	}
	ff_buf_finish(&out);
	ff_buf_finish(&page);
	return status;
}

struct table {
	const char *what;
	bool json;
	int64_t attempt, lines; /* 0 lines: as many as the daemon thinks fit */
};

static int print_table(const char *job, const struct table *t)
{
	struct ff_buf path = {0};
	rpc_add_job(&path, job);
	ff_buf_addf(&path, "/%s", t->what);
	if (!t->json) {
		rpc_add_query(&path, "format", "text");
		add_number(&path, "width", client_width());
		if (t->lines) {
			add_number(&path, "lines", t->lines);
		}
		return query_print_text(&path, t->attempt);
	}
	if (t->attempt >= 0) {
		add_number(&path, "attempt", t->attempt);
	}
	int status = print_table_json(path.p);
	ff_buf_finish(&path);
	return status;
}

int query_run_table(const struct client_command *self, const char *what, int argc, char **argv)
{
	struct table t = {.what = what, .attempt = -1};
	const struct ff_option options[] = {
		{"json", 'j', FF_OPTION_FLAG, &t.json, NULL, "print the list as JSON", 0, 0},
		{"attempt", 0, FF_OPTION_INT, &t.attempt, "N",
			"of this attempt (life between restarts, from 0)", 0, INT32_MAX},
		{"lines", 'n', FF_OPTION_INT, &t.lines, "N", "at most so many lines (60)", 8,
			100000},
	};
	const size_t n = sizeof options / sizeof *options;
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0) {
		status = argc - rest == 1 ? print_table(argv[rest], &t)
					  : client_usage(self, "give one JOB");
	}
	ff_option_finish(options, n);
	return status;
}
