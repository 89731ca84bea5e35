/* rules: the decision table of shared/README.md 7. Each row is one function over the timeline.
 *
 * Tried in order; the first that decides wins. A rule reads the timeline and writes a finding; it
 * never changes the timeline. Adding a rule is one function, one line in FF_RULES and its table of
 * tests. A test switches each off (ff_ask.rules_off) and shows a case that then becomes wrong.
 *
 * A wrong accusation is worse than no answer: a rule that needs an order or a rank that nobody
 * states does not decide.
 */
#pragma once

#include "core/timeline.h"

#define FF_VERDICTS(X) \
	X(RANK, "rank", 10) X(NODE, "node", 11) X(COMMON, "common", 12) \
	X(EXTERNAL, "external", 13) \
	X(UNDETERMINED, "undetermined", 14) X(CLEAN, "clean", 0)

enum ff_verdict_kind {
#define X(e, name, exit) FF_VERDICT_##e,
	FF_VERDICTS(X)
#undef X
};

enum ff_confidence { FF_CERTAIN, FF_LIKELY, FF_POSSIBLE, FF_NO_CONFIDENCE };

#define FF_RULES(X) \
	X(clean, "clean") \
	X(external, "external") \
	X(hardware, "hardware") \
	X(common, "same-fault-everywhere") \
	X(on_a_node, "same-fault-on-a-node") \
	X(on_some, "same-fault-on-some") \
	X(own, "own-fault-first") \
	X(several, "several") \
	X(killed, "killed") \
	X(silent_exit, "silent-exit") \
	X(handled, "handled-fault") \
	X(accused, "accused") \
	X(mismatch, "odd-collective") \
	X(late, "did-not-arrive") \
	X(early, "early-exit") \
	X(node_gone, "silent-node") \
	X(silent, "silent") \
	X(undetermined, "undetermined")

enum ff_rule_id {
#define X(id, name) FF_RULE_##id,
	FF_RULES(X)
#undef X
	FF_RULE_COUNT
};

/* What a rule found. Strings and arrays are of the timeline's arena. */
struct ff_finding {
	enum ff_rule_id rule;
	enum ff_verdict_kind kind;
	enum ff_confidence confidence;
	const struct ff_sighting **proof; /* the initiating events, in order of rank */
	size_t nproof;
	int32_t *ranks; /* initiating ranks, ascending */
	size_t nranks;
	const char *node;  /* for verdict node */
	const char *fault; /* fault id of the verdict, NULL */
	const struct ff_sighting *cause; /* the event whose fault that is; NULL */
	const char *text;  /* why, one sentence */
	int32_t *candidates; /* ranks that could not be told apart (undetermined), ascending */
	size_t ncandidates;
	const char **missing; /* what would decide or is lacking; NULL-terminated or NULL */
};

const char *ff_rule_name(enum ff_rule_id id);
/* Runs the table; always finds something (undetermined is the last row). */
void ff_rules_run(struct ff_timeline *t, uint64_t rules_off, struct ff_finding *ret);
