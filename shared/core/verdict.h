/* verdict: the answer, as shared/README.md 6.5 has it: one C struct whose fields are the JSON's
 * keys.
 *
 * Filled by rules.c over a timeline, printed by report.c. All memory is the verdict's arena;
 * `events` borrow the job's events. Null in JSON is NULL, FF_UNKNOWN, FF_TIME_NONE or `has_*`
 * false.
 */
#pragma once

#include "core/rules.h"

#define FF_STATUSES(X) \
	X(INITIATING, "initiating") X(COLLATERAL, "collateral") X(TORN_DOWN, "torn-down") \
	X(SILENT, "silent") X(QUIET, "quiet") X(MISSING, "missing") X(CLEAN, "clean") \
	X(SPARE, "spare") X(UNKNOWN, "unknown")

enum ff_status {
#define X(e, name) FF_STATUS_##e,
	FF_STATUSES(X)
#undef X
};

#define FF_ACTIONS(X) \
	X(NONE, "none") X(EXCLUDE_NODE, "exclude-node") X(FIX_CODE, "fix-code") \
	X(FIX_CONFIG, "fix-config") X(FIX_DATA, "fix-data") X(RAISE_MEMORY, "raise-memory") \
	X(FREE_DISK, "free-disk") X(CONTACT_ADMIN, "contact-admin")

enum ff_action_kind {
#define X(e, name) FF_ACTION_##e,
	FF_ACTIONS(X)
#undef X
};

const char *ff_verdict_kind_name(enum ff_verdict_kind k);
int ff_verdict_exit_status(enum ff_verdict_kind k); /* of --exit-status */
const char *ff_confidence_name(enum ff_confidence c); /* NULL for FF_NO_CONFIDENCE */
const char *ff_status_name(enum ff_status s);
const char *ff_action_name(enum ff_action_kind a);
const char *ff_run_state_name(enum ff_run_state s);

struct ff_who {
	int32_t rank, local_rank;
	const char *node;
	const char *event; /* id, NULL */
};

struct ff_collateral {
	int32_t rank; /* FF_UNKNOWN only if node is all that is known */
	enum ff_status status;
	const char *fault, *event; /* NULL */
	bool has_after;
	ff_usec after_us;
	const char *because;
};

struct ff_rank_status {
	int32_t rank;
	enum ff_status status;
};

struct ff_why {
	const char *rule, *text;
	const char **events; /* NULL-terminated ids */
};

struct ff_why_not {
	int32_t rank; /* or FF_UNKNOWN */
	const char *text;
};

struct ff_attempt {
	int32_t attempt, restart_count;
	enum ff_verdict_kind verdict;
	int32_t *initiating;
	size_t ninitiating;
	const char *fault;
};

struct ff_action {
	enum ff_action_kind kind;
	bool retry;
	enum ff_confidence confidence;
	const char **nodes; /* NULL-terminated */
	const char *text;
};

struct ff_verdict {
	struct ff_arena arena;
	const char *job, *run;
	int32_t attempt;
	ff_usec as_of;
	int32_t world_size;
	enum ff_run_state state;
	bool final;
	enum ff_verdict_kind kind;
	enum ff_confidence confidence;
	struct ff_who *initiating;
	size_t ninitiating;
	const int32_t *candidates; /* undetermined: ranks that could not be told apart */
	size_t ncandidates;
	const char *node;
	const char *fault, *title, *category, *signature; /* fault NULL: null */
	const char *did; /* verb phrase of the fault ("ran out of GPU memory"), NULL */
	const char *summary, *cause;
	const char **fix;               /* NULL-terminated */
	const struct ff_verify *verify;
	size_t nverify;
	struct ff_action action;
	struct ff_collateral *collateral;
	size_t ncollateral;
	struct ff_rank_status *ranks;
	size_t nranks;
	const char **missing;           /* NULL-terminated, by text */
	struct ff_why *why;
	size_t nwhy;
	struct ff_why_not *why_not;
	size_t nwhy_not;
	struct ff_attempt *attempts;
	size_t nattempts;
	const struct ff_sighting **events; /* those referred to, in 6.5's order */
	size_t nevents;
	struct ff_clocks clock;
	const char *const *catalog; /* "sha256:...", NULL-terminated; of the catalogue */
	bool unfolded;       /* report each rank by itself, however many (?full=1): the caller's */
	struct ff_timeline timeline; /* what it was made from; owns provisional events */
};

/* Judges: builds the timeline, runs the rules on the right attempt, fills every field. */
struct ff_verdict *ff_verdict_create(const struct ff_facts *facts, struct ff_stream *const *streams,
				     size_t nstreams, const struct ff_digest *digest,
				     const struct ff_ask *ask);
void ff_verdict_destroy(struct ff_verdict *v);
