/* native: the dialect of firstfault's own senders, protocol "firstfault/1"
 * (shared/README.md 6.3): lines to structs and back, for both ends. No sockets, no clock; framing
 * by LF is the caller's.
 *
 * Data line: `<capture us> <k><c> <text>`, k the index of a stream in the hello (one digit), c `.`
 * if the source had a newline after the text, `-` if not. A line that begins with `{` is a control
 * object. Offsets count the source's raw bytes: the text, plus 1 for `.`.
 *
 * Ownership: strings in what parse functions return are borrowed from the document or the line.
 */
#pragma once

#include "base/json.h"
#include "base/limits.h"

#define FF_NATIVE_VERSION "firstfault/1"
#define FF_NATIVE_WHOLE_MAX (((int64_t)1 << 53) - 1) /* of a number in a control object */

/* What an error line says; then the connection is closed. */
#define FF_NATIVE_ERRORS(X) \
	X(PROTOCOL, "protocol") X(AUTH, "auth") X(JOB_NAME, "job-name") X(RANK, "rank") \
	X(TOO_LONG, "too-long") X(BUSY, "busy")

enum ff_native_error {
#define X(e, name) FF_NATIVE_##e,
	FF_NATIVE_ERRORS(X)
#undef X
};

const char *ff_native_error_name(enum ff_native_error e);

struct ff_native_data {
	ff_usec stamp;       /* FF_TIME_NONE for 0: the text was there before anybody read it */
	unsigned k;          /* index in the hello's streams */
	bool newline;        /* the source had LF behind the text */
	struct ff_str text;  /* without LF */
};

/* A line without its LF. False if it is no data line. */
bool ff_native_data_parse(struct ff_str line, struct ff_native_data *ret);
/* Adds the line with its LF. text has no LF. */
void ff_native_data_render(struct ff_buf *out, const struct ff_native_data *d);

struct ff_native_hello {
	const char *job, *source;
	const char *node, *kind, *run, *token; /* NULL: not said */
	size_t nstreams;                        /* 1 to FF_WIRE_STREAMS */
	const char *streams[FF_WIRE_STREAMS];
	const char *fds[FF_WIRE_STREAMS];       /* "stdout", "stderr" or NULL */
	int64_t rank, local_rank, world_size, attempt, pid; /* -1: not said */
	bool collector; /* stamps are of the collector's clock, not of the node's */
	bool live;
	bool plain;     /* the rest of the connection is plain text of the first stream */
};

#define FF_NATIVE_HELLO_INIT \
	((struct ff_native_hello){.rank = -1, .local_rank = -1, .world_size = -1, .attempt = -1, \
		.pid = -1})

/* Returns 0, or FF_EPROTO with err and the code for the peer in *ret_error. The names of job and
 * run are checked by the receiver. */
int ff_native_hello_parse(const struct ff_json_node *doc, struct ff_native_hello *ret,
			  enum ff_native_error *ret_error, struct ff_err *err);
void ff_native_hello_render(struct ff_buf *out, const struct ff_native_hello *h);

/* The other control lines, each with its LF. */
void ff_native_welcome_render(struct ff_buf *out, const uint64_t *offsets, size_t n,
			      uint64_t max_unacked);
void ff_native_ack_render(struct ff_buf *out, const uint64_t *resume, const uint64_t *done,
	size_t n, uint64_t controls);
void ff_native_end_render(struct ff_buf *out, const uint64_t *offsets, size_t n);
/* What lies before these offsets and was not sent is lost: the streams go on there. */
void ff_native_gap_render(struct ff_buf *out, const uint64_t *offsets, size_t n);
void ff_native_ping_render(struct ff_buf *out, ff_usec t1);
void ff_native_pong_render(struct ff_buf *out, ff_usec t1, ff_usec t2, ff_usec t3);
void ff_native_clock_render(struct ff_buf *out, ff_usec t1, ff_usec t2, ff_usec t3, ff_usec t4);
void ff_native_error_render(struct ff_buf *out, enum ff_native_error code, const char *text);

/* An array of n whole numbers from 0 under this key. False if it is anything else. */
bool ff_native_offsets_parse(const struct ff_json_node *doc, const char *key, size_t n,
			     uint64_t *ret);
/* t1 .. up to t4, as many as n says. */
bool ff_native_times_parse(const struct ff_json_node *doc, size_t n, ff_usec *ret);

/* What a sender is told. */
enum ff_native_reply_kind {
	FF_NATIVE_REPLY_OTHER, /* a kind of a later version: to be ignored */
	FF_NATIVE_REPLY_WELCOME, FF_NATIVE_REPLY_ACK, FF_NATIVE_REPLY_PONG, FF_NATIVE_REPLY_ERROR,
};

struct ff_native_reply {
	enum ff_native_reply_kind kind;
	uint64_t offsets[FF_WIRE_STREAMS]; /* welcome; ack: resume */
	uint64_t done[FF_WIRE_STREAMS];    /* ack */
	uint64_t max_unacked, controls;
	ff_usec t[3];                      /* pong */
	const char *code, *text;           /* error: borrowed from the document */
};

/* n: streams of the hello. FF_EPROTO with err if it is none of the forms. */
int ff_native_reply_parse(const struct ff_json_node *doc, size_t n, struct ff_native_reply *ret,
			  struct ff_err *err);
