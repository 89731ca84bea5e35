/* hook_say: what a hook is told about a run: pure functions of a verdict.
 *
 * The body is schema/json/hook.schema.json; a command has its main values in FIRSTFAULT_* too.
 */
#pragma once

#include "base/usec.h"
#include "core/verdict.h"

/* Why somebody is told. The numbers are stored: only appended to. X(NAME, word) */
#define HOOK_EVENTS(X) \
	X(VERDICT, "verdict")   /* of a run that has ended, or another in substance */ \
	X(FAULT, "fault")       /* a running one has a fault that it did not recover from */ \
	X(WITHDRAWN, "withdrawn") /* and goes on after all */

enum hook_event {
#define X(name, word) HOOK_##name,
	HOOK_EVENTS(X)
#undef X
	HOOK_EVENT_COUNT
};

const char *hook_event_name(enum hook_event e);

/* What two verdicts have to differ in so that it is worth another message: kind, confidence,
 * attempt, who, node, fault, and what is to be done. Never 0. */
uint64_t hook_substance(const struct ff_verdict *v);
/* JOB/RUN/EVENT/SUBSTANCE: the same for each try of one message. */
void hook_id(const struct ff_verdict *v, enum hook_event e, uint64_t substance, struct ff_buf *out);
/* The body. at: when it came to this, by the wall clock. */
void hook_body(const struct ff_verdict *v, enum hook_event e, const char *id, uint32_t version,
	ff_usec at, struct ff_buf *out);
/* The environment of a command, NULL-terminated; all malloc'd, freed by hook_environment_free. Out
 * of environ without NOTIFY_SOCKET and the like, which are the daemon's own. */
char **hook_environment(
	const struct ff_verdict *v, enum hook_event e, const char *id, char *const *environ);
void hook_environment_free(char **env);
/* How long to wait before the next try, after so many that failed: 1 s, 2 s, 4 s ... 5 min. */
ff_usec hook_backoff(unsigned tries);
