/* reach: which events of a node's own logs (kernel, scheduler) concern a run: by node, by time, by
 * job id, pid and device.
 *
 * In: a job, and one event at a time with the node of its stream. Out: how well the event fits, so
 * that of several runs the one that it fits best can be told (feed/nodes.c). Pure.
 *
 * Time. Each of a run's streams spans some time on some clock; an event is compared only with the
 * spans of its own clock (law 3; core/clock.h), else nobody knows. On each clock a run lasts at
 * least as long as on any other. It fits in the span, or near it: FF_REACH_BEFORE before; after
 * an end FF_REACH_AFTER (kernels and schedulers speak late), of a run that has not ended
 * FF_REACH_OPEN. What nobody knows the time of fits by a proof only.
 *
 * Proofs. A job id in the line (a field `job`, "job_4711" in a cgroup path, slurmd's
 * "[4711.0] "): the run's own, as its id or as its own lines call it. A pid or a PCI address that
 * the run's lines say is a rank's on that node, if the time is known: both are used again. A line
 * that names another job, or other nodes only, does not fit.
 *
 * Ownership: borrows the job, which must not change while it lives. The nodes are read at once, all
 * else when it is first asked for.
 */
#pragma once

#include "core/job.h"

#define FF_REACH_BEFORE (10 * FF_SECOND)
#define FF_REACH_AFTER (300 * FF_SECOND)
#define FF_REACH_OPEN (3600 * FF_SECOND)

/* In ascending order: the better fit takes the event from the others. */
enum ff_fit {
	FF_FIT_NONE,
	FF_FIT_UNTIMED, /* nothing is against it: for a run that all of an input belongs to */
	FF_FIT_NEAR,
	FF_FIT_IN,
	FF_FIT_NAMED_UNTIMED,
	FF_FIT_NAMED_NEAR,
	FF_FIT_NAMED_IN,
};

struct ff_reach;

struct ff_reach *ff_reach_create(struct ff_job *job);
void ff_reach_destroy(struct ff_reach *r);
/* Changes whenever what a reach of this job would say may have changed. */
uint64_t ff_reach_state(const struct ff_job *job);
/* The run's own spelling of this host ("gpu07" for "gpu07.example.org" and the other way round);
 * NULL: not one of its nodes. */
const char *ff_reach_node(const struct ff_reach *r, struct ff_str host);
/* Does the event name this very job, by the id that it has, not by what its own lines call it? */
bool ff_reach_is_named(
	const struct ff_reach *r, enum ff_stream_kind kind, const struct ff_event *e);
/* host: of the event's stream; empty if nobody declared it. */
enum ff_fit ff_reach_fit(struct ff_reach *r, struct ff_str host, enum ff_stream_kind kind,
	const struct ff_event *e);
