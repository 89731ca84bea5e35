/* status: what `GET /v1/status` says: every counter, what is kept, the store, queues, listeners,
 * connections, the process, and what is full. metrics.h says the same to Prometheus.
 *
 * Nothing here waits for a disk: sizes are those that the daemon knows, and /proc is memory.
 */
#pragma once

#include "daemon.h"

/* One JSON object (schema/json/status.schema.json). each_connection: those too, one by one. */
void status_render(struct daemon *d, bool each_connection, struct ff_buf *out);
/* The same as lines for a screen; counters that are not 0 with their meanings. */
void status_text(struct daemon *d, struct ff_buf *out);
/* What a counter of the daemon or of streams counts; NULL: there is none of that name. */
const char *status_count_text(const char *name);
