#include "api.h"

#include "base/limits.h"
#include "base/mem.h"
#include "clock.h"
#include "feed/intake.h"
#include "feeder.h"
#include "gunzip.h"
#include "server.h"
#include "wire/otlp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* google.rpc.Code (googleapis google/rpc/code.proto), which clients only show. */
enum code { CODE_INVALID = 3, CODE_EXHAUSTED = 8, CODE_UNIMPLEMENTED = 12, CODE_UNAVAILABLE = 14 };

struct api_otlp {
	struct daemon *d;
	struct ff_intake *intake;    /* made by the first request */
	struct access_peer who;      /* whose words it holds */
};

struct api_otlp *api_otlp_create(struct daemon *d)
{
	struct api_otlp *o = ff_xcalloc(1, sizeof *o);
	o->d = d;
	return o;
}

void api_otlp_destroy(struct api_otlp *o)
{
	if (o && o->intake) {
		feeder_release(o->d->ledger, o->intake);
		ff_intake_destroy(o->intake);
	}
	free(o);
}

void api_otlp_drop_run(struct api_otlp *o, const struct ff_run *run)
{
	if (o->intake) {
		ff_intake_forget_run(o->intake, run);
	}
}

/* ---- what the intake says */

static void on_opened(void *ud, struct ff_run *run, struct ff_stream *s)
{
	const struct api_otlp *o = ud;
	feeder_open(ledger_stream(o->d->ledger, run, s), &o->who);
}

static void on_text(void *ud, struct ff_run *run, struct ff_stream *s, const struct ff_chunk *chunk)
{
	const struct api_otlp *o = ud;
	ledger_text(o->d->ledger, run, s, chunk);
}

static void on_changed(void *ud, struct ff_run *run)
{
	const struct api_otlp *o = ud;
	access_claim(&o->who, run, ledger_run(o->d->ledger, run));
	ledger_changed(o->d->ledger, run);
}

/* The headers have said who asks. */
static bool on_admit(void *ud, struct ff_str token, const char *job)
{
	const struct api_otlp *o = ud;
	return access_may_job(&o->who, &o->d->runs, job);
}

static bool on_may_feed(void *ud, const struct ff_run *run)
{
	const struct api_otlp *o = ud;
	return access_may(&o->who, run);
}

static const struct ff_intake_ops intake_ops = {
	.opened = on_opened,
	.text = on_text,
	.changed = on_changed,
	.admit = on_admit,
	.may_feed = on_may_feed,
};

static void begin(struct api_otlp *o, const struct request *r)
{
	char peer[32];
	(void)snprintf(peer, sizeof peer, "uid-%lld", (long long)r->who.uid);
	o->who = r->who;
	o->intake = ff_intake_create(&o->d->runs,
		&(struct ff_intake_options){
			.default_job = o->d->config->default_job,
			.peer = peer,
			.trusted = r->who.trusted,
			.uid = r->who.uid,
		},
		&intake_ops, o);
}

/* ---- answers */

static void fail(struct request *r, unsigned status, enum code code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void fail(struct request *r, unsigned status, enum code code, const char *fmt, ...)
{
	char text[600];
	struct ff_buf out = {0};
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ff_otlp_status_render(&out, code, text);
	r->retry_s = status == 503 ? 1 : 0;
	r->d->counts[DAEMON_COUNT_requests_bad]++;
	request_json(r, status, &out);
}

static void on_stored(struct request *r, bool stored)
{
	struct ff_buf out = {0};
	if (!stored) {
		fail(r, 503, CODE_UNAVAILABLE, "the store does not take it: see status");
		return;
	}
	ff_otlp_answer_render(&out, r->rejected,
		"records need a body (or exception.stacktrace), and a job that you may write to");
	request_json(r, 200, &out);
}

/* ---- the body */

/* The body as it was before it was packed; false: an answer was made. */
static bool open_body(struct request *r, struct ff_buf *unpacked, struct ff_str *ret)
{
	*ret = ff_buf_str(&r->body);
	if (!r->is_gzip) {
		return true;
	}
	int e = gunzip(*ret, FF_OTLP_BODY, unpacked);
	if (e == FF_ELIMIT) {
		fail(r, 413, CODE_EXHAUSTED, "a body has at most %u bytes, unpacked too",
			FF_OTLP_BODY);
	} else if (e < 0) {
		fail(r, 400, CODE_INVALID, "the body is no gzip, or cut off");
	}
	*ret = ff_buf_str(unpacked);
	return e == 0;
}

/* False: an answer was made. */
static bool check_head(struct request *r)
{
	if (r->too_large) {
		fail(r, 413, CODE_EXHAUSTED, "a body has at most %u bytes", FF_OTLP_BODY);
	} else if (!r->is_json) {
		fail(r, 415, CODE_UNIMPLEMENTED,
			"the body has to be application/json: set the exporter's protocol to "
			"http/json");
	} else if (r->is_coded && !r->is_gzip) {
		fail(r, 415, CODE_UNIMPLEMENTED, "of content codings only gzip is known");
	} else if (r->crowded || !r->feeder || (r->d->server && r->d->server->held)) {
		r->d->counts[DAEMON_COUNT_otlp_busy]++;
		fail(r, 503, CODE_UNAVAILABLE, "the daemon takes no more at the moment");
	}
	return !r->answered;
}

void api_otlp_post(struct request *r)
{
	struct ff_buf unpacked = {0};
	struct ff_err err = {0};
	struct ff_str body;
	if (!check_head(r)) {
		return;
	}
	if (open_body(r, &unpacked, &body)) {
		struct api_otlp *o = r->feeder;
		bool other = o->who.uid != r->who.uid || o->who.trusted != r->who.trusted;
		if (o->intake && other) { /* a proxy's: it speaks for several */
			feeder_release(o->d->ledger, o->intake);
			ff_intake_destroy(o->intake);
			o->intake = NULL;
		}
		if (!o->intake) {
			begin(o, r);
		}
		int e = ff_intake_otlp(o->intake, body, clock_wall(), &r->rejected, &err);
		if (e < 0) {
			fail(r, 400, CODE_INVALID, "%s", err.text);
		} else {
			r->stored = on_stored;
			api_wait(r, NULL, false, 0);
		}
	}
	ff_buf_finish(&unpacked);
}
