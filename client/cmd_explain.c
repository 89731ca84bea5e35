#include "client.h"

#include "base/mem.h"
#include "core/page.h"
#include "core/report_screen.h"
#include "feed/library.h"
#include "query.h"
#include "rpc.h"

#include <stdlib.h>

#define NEAR 5         /* ids that are suggested */
#define TEXT_LINES 12u /* of an event's evidence */

struct explain {
	bool json;
	char *job, *path;
};

/* ---- a fault of the catalogue */

static int unknown_fault(const struct ff_pages *pages, const char *id)
{
	const char *near[NEAR];
	struct ff_buf hint = {0};
	size_t n = ff_pages_near(pages, id, near, NEAR);
	for (size_t i = 0; i < n; i++) {
		ff_buf_addf(&hint, "%s%s", i ? ", " : "nearest by spelling: ", near[i]);
	}
	if (!n) {
		ff_buf_addz(&hint, "firstfault catalog search WORDS");
	}
	int status = client_failf(CLIENT_INPUT, hint.p, "the catalogue has no fault \"%s\"", id);
	ff_buf_finish(&hint);
	return status;
}

static int explain_fault(const struct explain *e, const char *id)
{
	struct ff_library own = {0};
	struct ff_pages pages = {0};
	struct ff_err err = {0};
	struct ff_buf out = {0};
	int r = e->path ? ff_library_read(&own, e->path, &err) : 0;
	r = r ? r : ff_library_pages(&own, &pages, &err);
	int status = r ? client_catalog_fail(r, e->path, &err) : CLIENT_OK;
	if (!status && !ff_pages_find(&pages, id, NULL)) {
		status = unknown_fault(&pages, id);
	} else if (!status) {
		if (e->json) {
			ff_page_json(&pages, id, &out);
			ff_buf_addc(&out, '\n');
		} else {
			ff_page_text(&pages, id, client_width(), &out);
		}
		status = client_print(&out);
	}
	ff_buf_finish(&out);
	ff_pages_finish(&pages);
	ff_library_finish(&own);
	return status;
}

/* ---- an event of a job */

struct wanted {
	const char *id;
	struct ff_buf item; /* as JSON; empty: not found */
};

static bool take(void *ud, const struct ff_json_node *item)
{
	struct wanted *w = ud;
	const char *id = ff_json_string(ff_json_get(item, "id"));
	if (!id || strcmp(id, w->id) != 0) {
		return true;
	}
	ff_json_render(item, &w->item);
	return false;
}

/* The fault whose page tells of the event: its own, or that of the text that made a fact or exit of
 * it ("rank-map/1"). malloc'd, NULL if none does. */
static char *page_of(const struct ff_json_node *event)
{
	const char *fault = ff_json_string(ff_json_get(event, "fault"));
	const char *signature = ff_json_string(ff_json_get(event, "signature"));
	if (fault) {
		return ff_xstrdup(fault);
	}
	return signature ? ff_xmemdup(signature, strcspn(signature, "/")) : NULL;
}

static void add_value(struct ff_buf *out, const struct ff_json_node *v)
{
	const char *z = ff_json_string(v);
	if (z) {
		ff_json_add_text(out, z);
	} else {
		ff_json_render(v, out);
	}
}

/* "event 12  rank-5.log@18234", whose it is, and when. */
static void put_head(struct ff_buf *out, const struct explain *e, const struct ff_json_node *event,
	unsigned width)
{
	static const char *const keys[] = {"number", "id", "kind", "role", "rank", "node",
		"attempt", "count", "arrived", "captured", "claimed"};
	struct ff_buf b = {0};
	ff_buf_addf(&b, "%s", e->job);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const struct ff_json_node *v = ff_json_get(event, keys[i]);
		if (!ff_json_is_null(v)) {
			ff_buf_addf(&b, "  %s ", keys[i]);
			add_value(&b, v);
		}
	}
	ff_screen_para(out, "EVENT", ff_buf_str(&b), 10, width);
	ff_buf_finish(&b);
}

/* Everything that comes from a log: only behind `|`. */
static void put_log(struct ff_buf *out, const struct ff_json_node *event, unsigned width)
{
	const char *text = ff_json_string(ff_json_get(event, "text"));
	struct ff_buf whole = {0};
	ff_json_add_text(&whole, text ? text : "");
	struct ff_str rest = ff_buf_str(&whole);
	for (unsigned i = 0; i < TEXT_LINES && rest.n; i++) {
		ptrdiff_t lf = ff_str_chr(rest, '\n', 0);
		size_t n = lf < 0 ? rest.n : (size_t)lf;
		ff_buf_addf(out, "%-8s", i ? "" : "TEXT");
		ff_screen_quote(out, ff_str_n(rest.p, n), 0, width - 8);
		rest = ff_str_skip(rest, lf < 0 ? rest.n : n + 1);
	}
	ff_buf_finish(&whole);
	const char *label = "FIELDS";
	const struct ff_json_node *v = ff_json_first(ff_json_get(event, "fields"));
	for (; v; v = ff_json_next(v)) {
		struct ff_buf b = {0};
		ff_buf_addf(&b, "%s = ", ff_json_key(v));
		add_value(&b, v);
		ff_buf_addf(out, "%-8s", label);
		ff_screen_quote(out, ff_buf_str(&b), 0, width - 8);
		ff_buf_finish(&b);
		label = "";
	}
}

/* The page as the daemon has it: it may know signatures that are not built in. No page is no
 * failure: fault stays empty. */
static int ask_page(const char *id, struct ff_buf *fault)
{
	struct ff_buf path = {0};
	struct rpc_answer a;
	ff_buf_addz(&path, "/v1/faults/");
	ff_buf_addz(&path, id);
	int status = rpc_ask(path.p, NULL, false, &a);
	ff_buf_finish(&path);
	if (status) {
		return status;
	}
	if (a.http == 200) {
		ff_buf_adds(fault, ff_str_trim(ff_buf_str(&a.body)));
		while (fault->len && fault->p[fault->len - 1] == '\n') {
			fault->len--;
		}
	} else if (a.http != 404) {
		status = rpc_fail(&a);
	}
	rpc_answer_finish(&a);
	return status;
}

static int put_page(struct ff_buf *out, const char *id, const struct ff_buf *fault, unsigned width)
{
	struct ff_err err = {0};
	struct ff_pages pages = {0};
	struct ff_buf entries = {0};
	struct ff_json *doc = ff_json_parse_text(ff_buf_str(fault), &err);
	if (!doc) {
		return client_fail(CLIENT_INTERNAL, err.text, NULL);
	}
	ff_json_render(ff_json_get(ff_json_root(doc), "entries"), &entries);
	int r = ff_pages_add(&pages, "daemon", ff_buf_str(&entries), &err);
	if (!r) {
		ff_page_text(&pages, id, width, out);
	}
	ff_pages_finish(&pages);
	ff_buf_finish(&entries);
	ff_json_destroy(doc);
	return r ? client_fail(CLIENT_INTERNAL, err.text, NULL) : CLIENT_OK;
}

static int print_event(const struct explain *e, const struct ff_buf *item)
{
	struct ff_err err = {0};
	struct ff_buf out = {0}, fault = {0};
	struct ff_json *doc = ff_json_parse_text(ff_buf_str(item), &err);
	if (!doc) {
		return client_fail(CLIENT_INTERNAL, err.text, NULL);
	}
	const struct ff_json_node *event = ff_json_root(doc);
	unsigned width = client_width();
	char *id = page_of(event);
	int status = id ? ask_page(id, &fault) : CLIENT_OK;
	if (!status && e->json) {
		ff_buf_addz(&out, "{\"schema\":\"firstfault.explain/1\",\"job\":");
		struct ff_jw w;
		ff_jw_init(&w, &out);
		ff_jw_strz(&w, e->job);
		ff_buf_addf(&out, ",\"event\":%s,\"fault\":%s}\n", item->p,
			fault.len ? fault.p : "null");
	} else if (!status) {
		put_head(&out, e, event, width);
		put_log(&out, event, width);
		ff_buf_addc(&out, '\n');
		if (fault.len) {
			status = put_page(&out, id, &fault, width);
		} else {
			ff_buf_addz(&out, "the catalogue has no page about it\n");
		}
	}
	status = status ? status : client_print(&out);
	free(id);
	ff_buf_finish(&out);
	ff_buf_finish(&fault);
	ff_json_destroy(doc);
	return status;
}

static int explain_event(const struct explain *e, const char *event)
{
	char *id = NULL;
	struct wanted w = {0};
	struct ff_buf path = {0};
	int status = query_event(e->job, event, &id);
	if (status) {
		return status;
	}
	w.id = id;
	rpc_add_job(&path, e->job);
	ff_buf_addz(&path, "/events");
	status = rpc_each(path.p, take, &w);
	if (!status && !w.item.len) {
		status = client_failf(CLIENT_INPUT, "firstfault events lists them",
			"job \"%s\" has no event \"%s\"", e->job, id);
	}
	status = status ? status : print_event(e, &w.item);
	free(id);
	ff_buf_finish(&path);
	ff_buf_finish(&w.item);
	return status;
}

/* ---- */

/* An event is "first", a number, or has the "@" of an event's id; all else is a fault. */
static bool is_event(const char *word)
{
	int64_t number;
	return !strcmp(word, "first") || ff_str_int(ff_str_z(word), &number) ||
		strchr(word, '@');
}

static int explain(struct explain *e, const char *word)
{
	if (!is_event(word)) {
		return explain_fault(e, word);
	}
	int status = e->job ? CLIENT_OK : query_newest_failed(&e->job);
	return status ? status : explain_event(e, word);
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct explain e = {0};
	const struct ff_option options[] = {
		{"json", 'j', FF_OPTION_FLAG, &e.json, NULL, "print it as JSON", 0, 0},
		{"job", 0, FF_OPTION_TEXT, &e.job, "JOB",
			"explain an event of this job (default for an event: the newest failed "
			"one)",
			1, 512},
		{"catalog", 0, FF_OPTION_TEXT, &e.path, "PATH",
			"a folder of own signatures (or one file), besides those built in", 1,
			4096},
	};
	const size_t n = sizeof options / sizeof *options;
	int status;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0) {
		status = argc - rest == 1 ? explain(&e, argv[rest])
					  : client_usage(self, "give one FAULT or EVENT");
	}
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_explain = {
	.name = "explain",
	.synopsis = "explain FAULT [--catalog PATH] [--json]\n"
		    "explain EVENT [--job JOB] [--json]",
	.summary = "say what a fault means: cause, how to confirm it, fix, and how to verify that",
	.description = "FAULT is an id as verdicts name it (cuda-oom); its page is read from the "
		       "catalogue that is\n"
		       "built in, without a daemon. EVENT is `first` (the event that started it), "
		       "the number that\n"
		       "`events` and `timeline` print, or an event's id: it is shown with its text "
		       "and fields, and\n"
		       "then the page of its fault as the daemon has it.\n",
	.examples = "firstfault explain nccl-timeout\n"
		    "firstfault explain first --job 48211\n",
	.run = run,
};
