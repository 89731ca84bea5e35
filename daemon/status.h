/* status: what `GET /v1/status` says: every counter, the store, queues, listeners, connections, and
 * what is full. */
#pragma once

#include "daemon.h"

void status_render(struct daemon *d, struct ff_buf *out);
