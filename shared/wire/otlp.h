/* otlp: OTLP/HTTP logs in their JSON form (ExportLogsServiceRequest), record by record.
 *
 * Form: opentelemetry-proto, docs/specification.md ("OTLP/HTTP", "JSON Protobuf Encoding") and
 * opentelemetry/proto/logs/v1/logs.proto: resourceLogs[] {resource {attributes[]}, scopeLogs[]
 * {logRecords[] {timeUnixNano, observedTimeUnixNano, body, attributes[], ...}}}; 64-bit numbers are
 * strings or numbers; keys that are not known are passed over.
 *
 * Who speaks is said by attributes, of the record or else of the resource (shared/README.md 6.7 has
 * the list; names beyond ours are OpenTelemetry's semantic conventions and Kubernetes' labels).
 *
 * In: a whole body. Out: struct ff_otlp_record, whose views are valid during the call. No I/O, no
 * clock; memory is that of one record.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/usec.h"

struct ff_otlp_record {
	bool has_text;
	struct ff_str text; /* the body, then exception.stacktrace on a line of its own; a body that
			     * is no string: its member message, log or msg, else itself as JSON */
	ff_usec time;       /* timeUnixNano, else observedTimeUnixNano; FF_TIME_NONE */
	/* absent: p is NULL, -1 */
	struct ff_str job, run, node, stream, kind, fd;
	int64_t rank, local_rank, attempt;
	unsigned bad; /* values that could not be used: taken as absent */
};

typedef void (*ff_otlp_fn)(void *ud, const struct ff_otlp_record *r);

/* FF_EJSON with err if the body has another form: nothing was called then. */
int ff_otlp_parse(struct ff_str body, ff_otlp_fn fn, void *ud, struct ff_err *err);
/* The answer: {} if nothing was rejected; then why is not looked at. */
void ff_otlp_answer_render(struct ff_buf *out, uint64_t rejected, const char *why);
/* google.rpc.Status, the body of every other answer. */
void ff_otlp_status_render(struct ff_buf *out, int code, const char *text);
