/* nodes: logs that belong to a node, in the daemon (feed/nodes.h): when runs are joined with them
 * and when they are forgotten.
 *
 * Whoever feeds a node's stream says so (ledger.c). A moment later, outside of the intake, runs
 * that what came may be about are joined; those that changed are told to the ledger, so that
 * whoever watches a run hears of it. A verdict joins its run once more. What is too old or too much
 * goes at the same time, and each ten minutes.
 */
#pragma once

#include "ledger.h"

struct nodes;

struct nodes *nodes_create(struct daemon *d);
/* Something came of this node. */
void nodes_heard(struct nodes *n, struct ff_run *node);
/* Brings the run up to date, for a verdict. Never inside a callback of an intake. */
void nodes_join(struct nodes *n, struct ff_run *run);
/* Adds an object for `status`. */
struct ff_jw;
void nodes_describe(const struct nodes *n, struct ff_jw *w);
/* Closes its timer; the memory goes with nodes_destroy after the loop has run out. */
void nodes_close(struct nodes *n);
void nodes_destroy(struct nodes *n);
