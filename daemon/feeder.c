#include "feeder.h"

#include "clock.h"
#include "feed/intake.h"
#include "tail.h"

bool feeder_is_shared(const struct stream_state *ss)
{
	return !strcmp(ss->stream->origin.source, "0");
}

void feeder_open(struct stream_state *ss, const struct access_peer *who)
{
	ss->speakers += feeder_is_shared(ss);
	access_claim(who, ss->run->run, ss->run);
}

bool feeder_name(
	struct daemon *d, const struct access_peer *who, int64_t uid, struct ff_run *run)
{
	struct run_state *rs = ledger_run(d->ledger, run);
	int64_t before = rs->owner;
	if (!access_name(d->access, who, uid, run, rs)) {
		return false;
	}
	if (before != uid) {
		ledger_changed(d->ledger, run);
		tail_offer(d->tail, uid);
	}
	return true;
}

void feeder_release(struct ledger *l, struct ff_intake *in)
{
	size_t n;
	const struct ff_intake_stream *streams = ff_intake_streams(in, &n);
	for (size_t i = 0; i < n; i++) {
		struct stream_state *ss = streams[i].stream ? streams[i].stream->user : NULL;
		if (ss && feeder_is_shared(ss) && ss->speakers && --ss->speakers) {
			ff_intake_forget(in, streams[i].stream); /* others go on */
		}
	}
	ff_intake_end(in, clock_wall());
	streams = ff_intake_streams(in, &n);
	for (size_t i = 0; i < n; i++) {
		if (streams[i].stream) {
			ledger_touch(l, streams[i].run, streams[i].stream);
		}
	}
}
