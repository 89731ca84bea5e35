/* feeder: what every intake of the daemon does with its streams, whoever its peer is: a connection
 * of the ingest listener (conn.h) or of the HTTP API (api_otlp.h).
 *
 * A stream whose source is "0" is nobody's alone: what several bring is appended, and it ends when
 * the last of them goes.
 */
#pragma once

#include "access.h"
#include "ledger.h"

struct ff_intake;

bool feeder_is_shared(const struct stream_state *ss);
/* The intake speaks for this stream from now on. */
void feeder_open(struct stream_state *ss, const struct access_peer *who);
/* The peer says whose run it is (access_name): what follows from that. */
bool feeder_name(
	struct daemon *d, const struct access_peer *who, int64_t uid, struct ff_run *run);
/* It speaks for nobody any more: its streams have ended or vanished, but for those that others go
 * on with. Once for each intake. */
void feeder_release(struct ledger *l, struct ff_intake *in);
