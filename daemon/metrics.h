/* metrics: what `GET /metrics` says: the numbers of status, for Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats/, text format 0.0.4).
 *
 * Every counter is firstfault_NAME_total, with its meaning as help. No label ever holds the name of
 * a job, user or node: what is said is bounded by the program, not by what it is fed.
 */
#pragma once

#include "daemon.h"

void metrics_render(struct daemon *d, struct ff_buf *out);
