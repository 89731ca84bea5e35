/* nodes: logs that belong to a node and not to a job (a kernel's, a scheduler's), and how what they
 * say gets to the runs that it is about.
 *
 *	line without job ─▶ the node's own streams ─▶ events ─▶ join ─▶ copies in a run ─▶ verdict
 *	                    kept 48 h, capped                  (when it is judged)
 *
 * A node's logs are kept as a run of no job is: the same intake, streams, offsets, masking, store
 * and restart. But they are in a list of their own, so that nothing that goes through runs meets
 * them, and they are never judged.
 *
 * Joining copies events one way: from the node's streams into a stream of the run that has the
 * node, the name and `joined`. It is part of the run's input like any other stream: stored with it,
 * exported with it, there when the node's own has long forgotten. So a verdict stays a function of
 * its run alone (law 2), and the core never sees two runs. Which events a run gets is worked out
 * anew at each verdict (core/reach.h) while the node still has them: what comes late joins late and
 * makes a new version, what turns out to be another job's goes again.
 *
 * Only events: of a machine's healthy lines nothing concerns a job, and what an event proves is its
 * evidence, which it carries. Of the text itself only as much is kept as a restart reads again.
 *
 * Of several runs that a line fits, the one with a proof (job id, pid, device) gets it alone; then
 * those in whose time it lies; then those near it. Between runs of different owners only the job's
 * own id decides so: what a stranger's run says of itself (node, time, pid, device, other ids)
 * makes a line shared, and takes it from no run that it fits too. If it fits several alike, each
 * gets it with the field `jobs`: how many. Such a line decides nothing while the run's own evidence
 * does, and makes `possible` at most (core/rules.c).
 *
 * Who may speak. What root, the daemon's user or an administrator says of a node is trusted (law
 * 11) and joins any run. Another user's words are kept apart under that user and join only runs of
 * that user.
 *
 * At most FF_NODE_FITS times in a join another run is asked; events behind that are shared too.
 *
 * Limits: FF_NODE_LOGS_MAX nodes, further ones are refused, and of users who are not believed
 * FF_NODE_LOGS_USER each and FF_NODE_LOGS_OTHERS in all; FF_NODE_EVENTS a stream and
 * FF_NODE_EVENTS_ALL in all, the oldest goes, what is not believed first; FF_NODE_HOURS by the
 * daemon's clock of receipt, after a restart by the stamps. Each counted. Offline nothing expires.
 */
#pragma once

#include "feed/runs.h"

#define FF_NODE_TRUSTED INT64_MIN /* owner of what is believed: no uid, nor a word for none */

/* The logs of a node, made if it is new. owner: FF_NODE_TRUSTED, else the uid that speaks, -1 if
 * nobody knows. An empty name: no node was named (a controller's log). Returns 0, FF_ENAME,
 * FF_ELIMIT (counted). */
int ff_nodes_resolve(struct ff_runs *r, struct ff_str node, int64_t owner, ff_usec now_us,
	struct ff_run **ret, struct ff_err *err);
/* Restore: in ascending number; job and run as ff_nodes_resolve made them. NULL: no such names. */
struct ff_run *ff_nodes_restore(struct ff_runs *r, struct ff_str job, struct ff_str run);
void ff_node_destroy(struct ff_node *node);
bool ff_node_is_trusted(const struct ff_run *node);

/* Brings what the run has of its nodes' logs up to date. True if that changed. now_us: the daemon's
 * clock, to leave out runs that ended long before; FF_TIME_NONE offline. Never inside a callback of
 * an intake. */
bool ff_nodes_join(struct ff_runs *r, struct ff_run *run, ff_usec now_us);
/* The same for every run, at the end of an input. */
void ff_nodes_join_all(struct ff_runs *r);
/* Has this node events that it had not when this was asked last? */
bool ff_node_has_news(struct ff_run *node);
/* Joins the runs that news of these nodes may be about, from this run's number on. changed is
 * called after each, with NULL if nothing changed; it feeds nothing, and says whether to go on.
 * Returns the number to go on with, whatever runs come and go until then; UINT32_MAX behind the
 * last. */
typedef bool ff_nodes_fn(void *ud, struct ff_run *run);
uint32_t ff_nodes_news(struct ff_runs *r, uint32_t from, struct ff_run *const *nodes, size_t n,
	ff_usec now_us, ff_nodes_fn *changed, void *ud);
/* Forgets what is too old or too much. True if anything went: node->job->streams are dirty then. */
bool ff_node_expire(struct ff_runs *r, struct ff_run *node, ff_usec now_us);
