/* report_table: what the tables of ranks and events share. Private to core/report_*.c.
 *
 * Texts that are returned are borrowed from the event or constant.
 */
#pragma once

#include "base/json.h"
#include "core/job.h"

/* The first line of an event's evidence; empty if it has none. */
struct ff_str ff_report_line(const struct ff_sighting *s);
/* That line as a key: equal for one fault on two ranks. Numbers, addresses, and the rank's own
 * node, peer and paths are replaced; at most 256 bytes of it count. */
void ff_report_alike(const struct ff_sighting *s, struct ff_buf *out);
/* What makes a fault weigh less: ", went on" (its rank made progress afterwards), ", a copy",
 * ", handled"; or nothing. */
const char *ff_report_weight(const struct ff_sighting *s);
/* "1", "SIGKILL", "signal 40"; "-" for FF_EXIT_UNKNOWN. */
void ff_report_exit(int32_t code, struct ff_buf *out);
/* A node's name, "32 nodes", "-"; names (n of them, NULL where unknown) are sorted here. */
void ff_report_nodes(const char **names, size_t n, struct ff_buf *out);
/* How far to both sides of its `us` a time may lie. */
ff_usec ff_report_bound(const struct ff_when *w);
/* {"time","clock","bound_us"}, or null. */
void ff_report_when(struct ff_jw *w, const char *key, const struct ff_when *when);
/* The number, or null for FF_UNKNOWN. */
void ff_report_number(struct ff_jw *w, const char *key, int64_t number);
/* The head of a list about one attempt of a run, up to and with "items":[ */
void ff_report_list_open(struct ff_jw *w, struct ff_buf *out, const char *schema,
			 const struct ff_verdict *v);
/* ] and "next": the cursor of the next page (report_cursor.h); empty: null. */
void ff_report_list_close(struct ff_jw *w, const struct ff_buf *next);
