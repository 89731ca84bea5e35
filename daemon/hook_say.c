#include "hook_say.h"

#include "base/arr.h"
#include "base/json.h"
#include "core/report.h"

#include <stdlib.h>

#define BACKOFF_MAX (300 * FF_SECOND)
#define VALUE_MAX 4096u /* bytes of a value in the environment */

const char *hook_event_name(enum hook_event e)
{
	static const char *const names[] = {
#define X(name, word) [HOOK_##name] = (word),
		HOOK_EVENTS(X)
#undef X
	};
	return names[e];
}

ff_usec hook_backoff(unsigned tries)
{
	ff_usec wait = FF_SECOND;
	for (unsigned i = 1; i < tries && wait < BACKOFF_MAX; i++) {
		wait *= 2;
	}
	return wait < BACKOFF_MAX ? wait : BACKOFF_MAX;
}

static void add_word(struct ff_buf *b, const char *word)
{
	ff_buf_addz(b, word ? word : "-");
	ff_buf_addc(b, '\0');
}

uint64_t hook_substance(const struct ff_verdict *v)
{
	struct ff_buf b = {0};
	add_word(&b, ff_verdict_kind_name(v->kind));
	add_word(&b, ff_confidence_name(v->confidence));
	ff_buf_addf(&b, "%d", (int)v->attempt);
	add_word(&b, v->fault);
	add_word(&b, v->node);
	for (size_t i = 0; i < v->ninitiating; i++) {
		ff_buf_addf(&b, "%d ", (int)v->initiating[i].rank);
		add_word(&b, v->initiating[i].node);
	}
	ff_buf_addf(&b, "%s %d ", ff_action_name(v->action.kind), v->action.retry);
	for (const char **node = v->action.nodes; node && *node; node++) {
		add_word(&b, *node);
	}
	uint64_t hash = ff_str_hash(ff_buf_str(&b), FF_HASH_INIT);
	ff_buf_finish(&b);
	return hash ? hash : 1;
}

void hook_id(const struct ff_verdict *v, enum hook_event e, uint64_t substance, struct ff_buf *out)
{
	ff_buf_addf(out, "%s/%s/%s/%016llx", v->job, v->run, hook_event_name(e),
		(unsigned long long)substance);
}

void hook_body(const struct ff_verdict *v, enum hook_event e, const char *id, uint32_t version,
	ff_usec at, struct ff_buf *out)
{
	struct ff_jw w;
	ff_jw_init(&w, out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "schema", "firstfault.hook/1");
	ff_jw_kstrz(&w, "id", id);
	ff_jw_kstrz(&w, "event", hook_event_name(e));
	ff_jw_ktime(&w, "at", at);
	ff_jw_kstrz(&w, "job", v->job);
	ff_jw_kstrz(&w, "run", v->run);
	ff_jw_kint(&w, "version", version);
	ff_jw_key(&w, "verdict");
	ff_report_json(v, out);
	ff_buf_addz(out, "}\n");
}

/* ---- environment */

struct environment {
	char **v;
	size_t n, cap;
};

/* Controls would be another line of somebody's shell script. */
static void set(struct environment *env, const char *name, struct ff_str value)
{
	struct ff_buf b = {0};
	ff_buf_addf(&b, "FIRSTFAULT_%s=", name);
	for (size_t i = 0; i < value.n && i < VALUE_MAX; i++) {
		unsigned char c = (unsigned char)value.p[i];
		ff_buf_addc(&b, c < 0x20 || c == 0x7f ? ' ' : (char)c);
	}
	*FF_ARR_ADD(env->v, env->n, env->cap) = ff_buf_take(&b);
}

static void setz(struct environment *env, const char *name, const char *value)
{
	set(env, name, ff_str_z(value ? value : ""));
}

static void set_initiating(struct environment *env, const struct ff_verdict *v)
{
	struct ff_buf ranks = {0}, nodes = {0};
	for (size_t i = 0; i < v->ninitiating; i++) {
		if (v->initiating[i].rank != FF_UNKNOWN) {
			ff_buf_addf(&ranks, "%s%d", ranks.len ? "," : "", v->initiating[i].rank);
		}
	}
	for (const char **node = v->action.nodes; node && *node; node++) {
		ff_buf_addf(&nodes, "%s%s", nodes.len ? "," : "", *node);
	}
	set(env, "RANKS", ff_buf_str(&ranks));
	set(env, "EXCLUDE", ff_buf_str(&nodes));
	ff_buf_finish(&ranks);
	ff_buf_finish(&nodes);
}

/* What systemd gave to the daemon and to nobody else. */
static bool is_own(const char *entry)
{
	static const char *const fronts[] = {"FIRSTFAULT_", "NOTIFY_SOCKET=", "WATCHDOG_",
		"LISTEN_", "JOURNAL_STREAM=", "INVOCATION_ID=", "CREDENTIALS_DIRECTORY="};
	for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++) {
		if (!strncmp(entry, fronts[i], strlen(fronts[i]))) {
			return true;
		}
	}
	return false;
}

char **hook_environment(
	const struct ff_verdict *v, enum hook_event e, const char *id, char *const *environ)
{
	struct environment env = {0};
	for (; *environ; environ++) {
		if (!is_own(*environ)) {
			*FF_ARR_ADD(env.v, env.n, env.cap) = ff_xstrdup(*environ);
		}
	}
	setz(&env, "EVENT", hook_event_name(e));
	setz(&env, "ID", id);
	setz(&env, "JOB", v->job);
	setz(&env, "RUN", v->run);
	setz(&env, "STATE", ff_run_state_name(v->state));
	setz(&env, "VERDICT", ff_verdict_kind_name(v->kind));
	setz(&env, "CONFIDENCE", ff_confidence_name(v->confidence));
	setz(&env, "FAULT", v->fault);
	setz(&env, "NODE", v->node);
	set_initiating(&env, v);
	setz(&env, "ACTION", ff_action_name(v->action.kind));
	setz(&env, "RETRY", v->action.retry ? "1" : "0");
	setz(&env, "SUMMARY", v->summary);
	*FF_ARR_ADD(env.v, env.n, env.cap) = NULL;
	return env.v;
}

void hook_environment_free(char **env)
{
	for (char **p = env; p && *p; p++) {
		free(*p);
	}
	free(env);
}
