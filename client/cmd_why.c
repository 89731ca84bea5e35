#include "client.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/json.h"
#include "core/verdict.h"
#include "print.h"
#include "query.h"
#include "rpc.h"

#include <stdio.h>
#include <stdlib.h>

struct why {
	bool json, brief, action, exit_status;
	int64_t not_rank, attempt;
};

static void add_verdict_path(struct ff_buf *path, const char *job, int64_t attempt)
{
	char number[24];
	rpc_add_job(path, job);
	ff_buf_addz(path, "/verdict");
	if (attempt >= 0) {
		(void)snprintf(number, sizeof number, "%lld", (long long)attempt);
		rpc_add_query(path, "attempt", number);
	}
}

/* ---- --action: one line for a shell, and an exit status by kind */

static const struct {
	const char *kind;
	int status;
} actions[] = {
	{"exclude-node", 21},
	{"fix-code", 22},
	{"fix-config", 22},
	{"fix-data", 22},
	{"raise-memory", 23},
	{"free-disk", 23},
	{"contact-admin", 25},
};

#define ACTION_RETRY 20
#define ACTION_NONE 24
#define ACTION_NOT_FINAL 30
#define ACTION_UNKNOWN_JOB 31

/* Whatever a name holds, the line can be given to a shell. */
static void add_safe(struct ff_buf *out, const char *s)
{
	for (; s && *s; s++) {
		bool safe = (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') ||
			(*s >= 'A' && *s <= 'Z') || memchr("._@:+-", *s, 6);
		ff_buf_addc(out, safe ? *s : '_');
	}
}

static int print_action(const struct ff_json_node *v)
{
	const struct ff_json_node *action = ff_json_get(v, "action");
	const struct ff_json_node *node = ff_json_first(ff_json_get(action, "nodes"));
	const char *kind = ff_json_string(ff_json_get(action, "kind"));
	bool retry = false, final = false;
	struct ff_buf out = {0};
	(void)ff_json_bool(ff_json_get(action, "retry"), &retry);
	(void)ff_json_bool(ff_json_get(v, "final"), &final);
	ff_buf_addz(&out, "action=");
	add_safe(&out, kind ? kind : "none");
	ff_buf_addz(&out, " exclude=");
	for (bool more = false; node; node = ff_json_next(node), more = true) {
		ff_buf_addz(&out, more ? "," : "");
		add_safe(&out, ff_json_string(node));
	}
	ff_buf_addf(&out, " retry=%d confidence=", retry);
	add_safe(&out, ff_json_string(ff_json_get(v, "confidence")));
	ff_buf_addf(&out, " final=%d fault=", final);
	add_safe(&out, ff_json_string(ff_json_get(ff_json_get(v, "fault"), "id")));
	ff_buf_addc(&out, '\n');
	int status = client_print(&out);
	ff_buf_finish(&out);
	if (status) {
		return status;
	}
	if (!final) {
		return ACTION_NOT_FINAL;
	}
	for (size_t i = 0; kind && i < sizeof actions / sizeof *actions; i++) {
		if (!strcmp(kind, actions[i].kind)) {
			return actions[i].status;
		}
	}
	return retry ? ACTION_RETRY : ACTION_NONE;
}

/* ---- --not RANK: why this one isn't it */

/* An entry's `rank`, or, where equal ones are folded, one of its `ranks`: "0-4,6-15". */
static bool is_of_rank(const struct ff_json_node *v, int64_t rank)
{
	const char *p = ff_json_string(ff_json_get(v, "ranks"));
	int64_t r;
	if (ff_json_int(ff_json_get(v, "rank"), &r) && r == rank) {
		return true;
	}
	while (p && *p >= '0' && *p <= '9') {
		char *end;
		long long first = strtoll(p, &end, 10), last = first;
		if (*end == '-') {
			last = strtoll(end + 1, &end, 10);
		}
		if (rank >= first && rank <= last) {
			return true;
		}
		p = *end == ',' ? end + 1 : NULL;
	}
	return false;
}

static const struct ff_json_node *find_rank(const struct ff_json_node *list, int64_t rank)
{
	for (const struct ff_json_node *v = ff_json_first(list); v; v = ff_json_next(v)) {
		if (is_of_rank(v, rank)) {
			return v;
		}
	}
	return NULL;
}

static void add_line(struct ff_buf *out, const char *before, const char *text)
{
	if (text) {
		ff_buf_addz(out, before);
		print_text(out, text, 0);
		ff_buf_addc(out, '\n');
	}
}

/* The event that shows best what became of it: fault, how long after, place, first line. */
static void add_event(
	struct ff_buf *out, const struct ff_json_node *v, const struct ff_json_node *entry)
{
	const char *id = ff_json_string(ff_json_get(entry, "event"));
	const struct ff_json_node *e = ff_json_first(ff_json_get(v, "events"));
	int64_t after;
	while (e && id && strcmp(ff_json_string(ff_json_get(e, "id")), id) != 0) {
		e = ff_json_next(e);
	}
	if (!id || !e) {
		return;
	}
	const char *kind = ff_json_string(ff_json_get(e, "kind"));
	const char *fault = ff_json_string(ff_json_get(e, "fault"));
	fault = kind && !strcmp(kind, "fault") ? fault : NULL;
	int64_t code;
	if (fault) {
		ff_buf_addz(out, "  shows ");
		print_text(out, fault, 0);
	} else if (ff_json_int(ff_json_get(ff_json_get(e, "fields"), "exit_code"), &code)) {
		ff_buf_addf(out, "  is said to have left with exit code %lld", (long long)code);
	} else {
		ff_buf_addz(out, "  is said to have ended");
	}
	if (ff_json_int(ff_json_get(entry, "after_us"), &after)) {
		ff_buf_addc(out, ' ');
		ff_usec_render_span(out, after < 0 ? -after : after);
		ff_buf_addz(out, after < 0 ? " before the proof" : " after the first fault");
	}
	ff_buf_addz(out, ": ");
	print_text(out, id, 0);
	ff_buf_addc(out, '\n');
	const char *text = ff_json_string(ff_json_get(e, "text"));
	if (text && fault) {
		struct ff_buf line = {0};
		ff_buf_add(&line, text, strcspn(text, "\n"));
		ff_buf_addz(out, "  | ");
		print_text(out, line.len ? line.p : "", client_width() - 4);
		ff_buf_addc(out, '\n');
		ff_buf_finish(&line);
	}
}

/* What would make it this one. */
static const char *would_take(const char *status)
{
	static const struct {
		const char *status, *text;
	} rows[] = {
		{"missing", "nothing of it was heard: a fault in its output could change this"},
		{"unknown", "nothing of it was heard: a fault in its output could change this"},
		{"quiet",
			"a fault of its own, or other ranks that waited for it alone, would change "
			"this"},
		{"silent",
			"a fault of its own, or other ranks that waited for it alone, would "
			"change this"},
		{"collateral",
			"a fault of its own before the others', on clocks that can be "
			"compared, would change this"},
		{"torn-down", "a fault of its own before it was ended would change this"},
		{"clean",
			"it ended well: only an end before its peers were done would change this"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!strcmp(rows[i].status, status)) {
			return rows[i].text;
		}
	}
	return NULL;
}

static int print_not(const struct ff_json_node *v, int64_t rank)
{
	struct ff_buf out = {0};
	const struct ff_json_node *entry = find_rank(ff_json_get(v, "ranks"), rank);
	const struct ff_json_node *shown = find_rank(ff_json_get(v, "collateral"), rank);
	const char *status = ff_json_string(ff_json_get(entry, "status"));
	const char *kind = ff_json_string(ff_json_get(v, "verdict"));
	if (!entry || !status || !kind) {
		return client_failf(CLIENT_INPUT, "firstfault why JOB --json lists the ranks",
			"the job has no rank %lld", (long long)rank);
	}
	ff_buf_addf(&out, "rank %lld ", (long long)rank);
	if (!strcmp(status, "initiating")) {
		ff_buf_addz(&out,
			strcmp(kind, "common") ? "is one that started it:\n"
					       : "failed by itself, like the others:\n");
	} else if (!strcmp(kind, "undetermined")) {
		ff_buf_addf(&out, "is neither accused nor cleared (%s):\n", status);
	} else {
		ff_buf_addf(&out, "did not start it, as far as the logs tell (%s):\n", status);
	}
	for (const struct ff_json_node *w = ff_json_first(ff_json_get(v, "why_not")); w;
		w = ff_json_next(w)) {
		add_line(&out, "  ",
			is_of_rank(w, rank) ? ff_json_string(ff_json_get(w, "text")) : NULL);
	}
	add_line(&out, "  ", ff_json_string(ff_json_get(shown, "because")));
	add_event(&out, v, shown);
	add_line(&out, "  ", strcmp(status, "initiating") ? would_take(status) : NULL);
	add_line(&out, "verdict: ", ff_json_string(ff_json_get(v, "summary")));
	int status_out = client_print(&out);
	ff_buf_finish(&out);
	return status_out;
}

/* ---- */

static int verdict_status(const struct ff_json_node *v)
{
	const char *kind = ff_json_string(ff_json_get(v, "verdict"));
	static const struct {
		const char *name;
		int status;
	} kinds[] = {
#define X(e, name, exit) {name, exit},
		FF_VERDICTS(X)
#undef X
	};
	for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++) {
		if (!strcmp(kinds[i].name, kind)) {
			return kinds[i].status;
		}
	}
	return CLIENT_INTERNAL;
}

static int ask_json(const struct why *w, const char *path)
{
	struct rpc_answer a;
	struct ff_err err = {0};
	int status = rpc_ask(path, NULL, false, &a);
	if (status) {
		return status;
	}
	if (a.http < 200 || a.http > 299) {
		status = rpc_fail(&a);
		status = w->action && a.http == 404 ? ACTION_UNKNOWN_JOB : status;
		rpc_answer_finish(&a);
		return status;
	}
	struct ff_json *doc = ff_json_parse_text(ff_buf_str(&a.body), &err);
	if (!doc) {
		status = client_failf(
			CLIENT_INTERNAL, NULL, "the daemon's answer is no JSON: %s", err.text);
	} else if (w->action) {
		status = print_action(ff_json_root(doc));
	} else if (w->not_rank >= 0) {
		status = print_not(ff_json_root(doc), w->not_rank);
	} else if (w->json) {
		if (a.body.p[a.body.len - 1] != '\n') {
			ff_buf_addc(&a.body, '\n');
		}
		status = client_print(&a.body);
	}
	if (!status && w->exit_status && !w->action) {
		status = verdict_status(ff_json_root(doc));
	}
	ff_json_destroy(doc);
	rpc_answer_finish(&a);
	return status;
}

static int why(const struct why *w, const char *job)
{
	struct ff_buf path = {0};
	int status = CLIENT_OK;
	bool screen = !w->json && !w->action && w->not_rank < 0;
	add_verdict_path(&path, job, w->attempt);
	if (screen) {
		status = query_print_screen(job, w->attempt, w->brief);
	}
	if (!status && (!screen || w->exit_status)) {
		status = ask_json(w, path.p);
	}
	ff_buf_finish(&path);
	return status;
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct why w = {.not_rank = -1, .attempt = -1};
	const struct ff_option options[] = {
		{"json", 'j', FF_OPTION_FLAG, &w.json, NULL, "print the verdict as JSON", 0, 0},
		{"brief", 'b', FF_OPTION_FLAG, &w.brief, NULL, "only what fits a pager: five lines",
			0, 0},
		{"not", 0, FF_OPTION_INT, &w.not_rank, "RANK", "say why it is not this rank", 0,
			FF_RANKS_MAX - 1},
		{"action", 0, FF_OPTION_FLAG, &w.action, NULL,
			"print what to do as one line for a shell; exits 21 exclude-node, 22 "
			"fix-*, 23 "
			"raise-memory or free-disk, 25 contact-admin, else 20 retry or 24; 30 not "
			"final, 31 "
			"unknown job",
			0, 0},
		{"attempt", 0, FF_OPTION_INT, &w.attempt, "N",
			"judge this attempt (life between restarts, from 0)", 0, INT32_MAX},
		{"exit-status", 0, FF_OPTION_FLAG, &w.exit_status, NULL,
			"make the verdict the exit status", 0, 0},
	};
	const size_t n = sizeof options / sizeof *options;
	char *job = NULL;
	int status = CLIENT_OK;
	int rest = client_options(self, options, n, argc, argv, &status);
	if (rest >= 0 && argc - rest > 1) {
		status = client_usage(self, "one JOB at a time");
	} else if (rest >= 0) {
		if (rest < argc) {
			job = ff_xstrdup(argv[rest]);
		} else {
			status = query_newest_failed(&job);
		}
		status = status ? status : why(&w, job);
	}
	free(job);
	ff_option_finish(options, n);
	return status;
}

const struct client_command cmd_why = {
	.name = "why",
	.synopsis = "why [JOB] [--brief] [--not RANK] [--attempt N]\n"
		    "why [JOB] --json | --action",
	.summary = "say which rank of a job failed first, and why",
	.description = "Asks firstfaultd for the verdict of a job's latest run and prints it: who "
		       "started it, what\n"
		       "to do now, the proof, what is collateral, who looks guilty and is not. "
		       "JOB~1 is the run\n"
		       "before; a unique prefix of a job id is enough. Without JOB: the newest "
		       "failed one.\n",
	.examples = "firstfault why 48211\n"
		    "eval \"$(firstfault why --action 48211)\"; echo \"$action $exclude\"\n",
	.judges = true,
	.run = run,
};
