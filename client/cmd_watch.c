#include "client.h"

#include "base/mem.h"
#include "print.h"
#include "rpc.h"
#include "sse.h"

#include <stdlib.h>
#include <time.h>

#define TRIES 240 /* to reach a daemon that is restarted */
#define PAUSE_MS 250

struct watch {
	bool json;
	const char *job; /* NULL: all */
	struct sse sse;
	struct ff_buf run; /* of the job, the one that ends it */
	bool begun;        /* the stream stands for the first time */
	bool heard;        /* anything since it was connected */
	bool over;
	int status;
};

/* "15:43:49Z  4711/0  verdict  " */
static void add_head(struct ff_buf *out, const struct ff_json_node *v, const char *type)
{
	const char *time = ff_json_string(ff_json_get(v, "time"));
	const char *t = time ? strchr(time, 'T') : NULL;
	if (t) {
		ff_buf_add(out, t + 1, strspn(t + 1, "0123456789:"));
		ff_buf_addz(out, "Z  ");
	}
	print_member(out, v, "job");
	ff_buf_addc(out, '/');
	print_member(out, v, "run");
	ff_buf_addf(out, "  %-9s  ", type);
}

/* "ended, rank, certain, cuda-oom: rank 5 ran out of GPU memory" */
static void add_verdict(struct ff_buf *out, const struct ff_json_node *is)
{
	static const char *const keys[] = {"state", "verdict", "confidence", "fault"};
	const char *summary = ff_json_string(ff_json_get(is, "summary"));
	size_t before = out->len;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const char *text = ff_json_string(ff_json_get(is, keys[i]));
		if (text) {
			ff_buf_addz(out, out->len > before ? ", " : "");
			print_text(out, text, 0);
		}
	}
	if (summary) {
		ff_buf_addz(out, ": ");
		print_text(out, summary, 0);
	}
}

static void add_words(struct ff_buf *out, const struct ff_json_node *v, const char *type)
{
	const struct ff_json_node *is = ff_json_get(v, "is");
	if (ff_json_is_object(is)) {
		add_verdict(out, is);
	} else if (!strcmp(type, "state")) {
		print_member(out, v, "was");
		ff_buf_addz(out, " -> ");
		print_member(out, v, "state");
	} else if (!strcmp(type, "withdrawn")) {
		print_member(out, v, "was");
	} else if (ff_json_get(v, "text")) {
		print_member(out, v, "text");
	}
}

static bool is_final(const struct ff_json_node *is)
{
	bool final = false;
	const char *state = ff_json_string(ff_json_get(is, "state"));
	return state && !strcmp(state, "ended") && ff_json_bool(ff_json_get(is, "final"), &final) &&
		final;
}

/* How the job is at this moment: said at the beginning, and when something was missed. */
static bool show_now(struct watch *w)
{
	struct ff_buf path = {0}, out = {0};
	struct ff_json *doc = NULL;
	rpc_add_job(&path, w->job);
	w->status = rpc_get_json(path.p, &doc);
	if (!w->status) {
		const struct ff_json_node *root = ff_json_root(doc);
		const char *run = ff_json_string(ff_json_get(root, "run"));
		ff_buf_clear(&w->run);
		ff_buf_addz(&w->run, run ? run : "");
		w->over = is_final(root);
		if (w->json) {
			ff_json_render(root, &out);
		} else {
			add_head(&out, root, "now");
			add_verdict(&out, root);
		}
		ff_buf_addc(&out, '\n');
		w->status = client_print(&out);
		ff_json_destroy(doc);
	}
	ff_buf_finish(&path);
	ff_buf_finish(&out);
	return !w->status && !w->over;
}

static bool show_event(struct watch *w, const struct sse_event *e, const struct ff_json_node *v)
{
	struct ff_buf out = {0};
	const char *run = ff_json_string(ff_json_get(v, "run"));
	if (w->json) {
		ff_buf_addz(&out, e->data);
	} else if (!ff_json_get(v, "job")) {
		ff_buf_addf(&out, "%s: ", e->type);
		add_words(&out, v, e->type);
	} else {
		add_head(&out, v, e->type);
		add_words(&out, v, e->type);
	}
	ff_buf_addc(&out, '\n');
	w->status = client_print(&out);
	ff_buf_finish(&out);
	w->over = w->job && run && ff_str_eqz(ff_buf_str(&w->run), run) &&
		is_final(ff_json_get(v, "is"));
	return !w->status && !w->over;
}

static bool on_event(void *ud, const struct sse_event *e)
{
	struct watch *w = ud;
	w->heard = true;
	if (!*e->data) { /* connected: an id, or a sign of life */
		bool first = !w->begun;
		w->begun = true;
		return !first || !w->job || show_now(w);
	}
	struct ff_json *doc = ff_json_parse_text(ff_str_z(e->data), NULL);
	bool more = !doc || show_event(w, e, ff_json_root(doc));
	ff_json_destroy(doc);
	if (more && !strcmp(e->type, "resync") && w->job) {
		more = show_now(w);
	}
	return more;
}

static bool on_bytes(void *ud, struct ff_str bytes)
{
	struct watch *w = ud;
	return sse_feed(&w->sse, bytes);
}

/* Connects again and again, with the id of what came last, until a daemon is away for too long. */
static int follow(struct watch *w)
{
	const struct timespec pause = {0, PAUSE_MS * 1000000L};
	struct ff_buf path = {0};
	int status = CLIENT_OK;
	ff_buf_addz(&path, "/v1/watch");
	if (w->job) {
		rpc_add_query(&path, "job", w->job);
	}
	for (unsigned failed = 0; !w->over && !w->status && !status;) {
		struct rpc_answer a;
		const struct rpc_question q = {
			.path = path.p, .fn = on_bytes, .ud = w, .last_id = w->sse.last_id};
		w->heard = false;
		int r = rpc_try(&q, &a);
		failed = w->heard ? 0 : failed + 1;
		bool starting = !r && a.http == 503 && w->begun;
		if (w->over || w->status) {
			status = CLIENT_OK;
		} else if (!r && a.http != 200 && !starting) {
			status = rpc_fail(&a);
		} else if ((r && r != CLIENT_NO_DAEMON) || !w->begun || failed > TRIES) {
			status = client_fail(r ? r : CLIENT_NO_DAEMON,
				r ? a.why : "the daemon ended the answer",
				"is firstfaultd running? FIRSTFAULT_API says where it answers");
		} else {
			sse_break(&w->sse);
			(void)nanosleep(&pause, NULL);
		}
		rpc_answer_finish(&a);
	}
	ff_buf_finish(&path);
	return w->status ? w->status : status;
}

static int run(const struct client_command *self, int argc, char **argv)
{
	struct watch w = {0};
	const struct ff_option options[] = {
		{"json", 'j', FF_OPTION_FLAG, &w.json, NULL, "print a JSON object a line", 0, 0},
	};
	int status;
	int rest = client_options(self, options, 1, argc, argv, &status);
	if (rest < 0) {
		return status;
	}
	if (argc - rest > 1) {
		return client_usage(self, "unexpected \"%s\"", argv[rest + 1]);
	}
	w.job = rest < argc ? argv[rest] : NULL;
	w.sse = (struct sse){.fn = on_event, .ud = &w};
	status = follow(&w);
	sse_finish(&w.sse);
	ff_buf_finish(&w.run);
	return status;
}

const struct client_command cmd_watch = {
	.name = "watch",
	.synopsis = "watch [JOB] [--json]",
	.summary = "say what happens to runs, as it happens",
	.description =
		"A line when a run begins, when its state changes, when a fault counts (or is "
		"withdrawn,\nbecause the run made progress after it) and for each new version of a "
		"verdict. With JOB it\nsays first how that job is, and ends when its verdict is "
		"final. A daemon that is restarted\nis waited for, up to a minute; what was missed "
		"meanwhile is said to be.\n",
	.examples = "firstfault watch 48211\nfirstfault watch --json | my-pager\n",
	.run = run,
};
