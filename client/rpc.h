/* rpc: questions to firstfaultd over its HTTP API (shared/README.md 6.7), by libcurl on a unix
 * socket or TCP.
 *
 * One question at a time; the answer is read whole, at most RPC_BODY_MAX. Over TCP the user's token
 * (token.h) is sent along.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

#define RPC_BODY_MAX (256u * 1024u * 1024u)

struct rpc_answer {
	long http;          /* status code */
	struct ff_buf body;
	/* of an error: what could not be done, or problem details' detail, else title, else the
	 * code */
	char why[640];
};

void rpc_answer_finish(struct rpc_answer *a);

struct rpc_question {
	const char *path;          /* begins with "/v1/" */
	const struct ff_buf *post; /* the body of a POST, NULL for a GET */
	const char *method;        /* NULL: GET or, with a body, POST */
	bool text;                 /* text, not JSON */
	/* an answer without end (server-sent events): */
	bool (*fn)(void *ud, struct ff_str bytes); /* false: no more of it. NULL: read it whole */
	void *ud;
	const char *last_id; /* the id that came last, NULL */
};

/* Asks once and says nothing. CLIENT_OK: there is an answer of whatever code, all of it read or
 * taken by fn. Else the exit status, with ret->why; CLIENT_NO_DAEMON also when it broke off. */
int rpc_try(const struct rpc_question *q, struct rpc_answer *ret);
/* The same for who follows: a daemon that is restarted is waited for, up to 60 s; then it fails
 * with a message. Not for fn. */
int rpc_patient(const struct rpc_question *q, struct rpc_answer *ret);
/* path begins with "/v1/". post: the body of a POST, NULL for a GET. text: ask for text, not JSON.
 * Returns CLIENT_OK when there is an answer of whatever code, else the exit status after its
 * message (CLIENT_NO_DAEMON). */
int rpc_ask(const char *path, const struct ff_buf *post, bool text, struct rpc_answer *ret);
/* A DELETE; else as rpc_ask. */
int rpc_delete(const char *path, struct rpc_answer *ret);
/* The same, and an answer other than 2xx is a failure too, said in a message. */
int rpc_get(const char *path, bool text, struct rpc_answer *ret);
/* The message for an answer that is none; returns the exit status. */
int rpc_fail(const struct rpc_answer *a);
/* Asks for JSON and parses it: *ret is the caller's to destroy. */
int rpc_get_json(const char *path, struct ff_json **ret);
/* Follows `next` through all pages of a list; fn is called for each item and returns false to stop.
 */
int rpc_each(const char *path, bool (*fn)(void *ud, const struct ff_json_node *item), void *ud);

/* Adds "/v1/jobs/" and the job, percent-encoded ("~" stays: JOB~1). */
void rpc_add_job(struct ff_buf *path, const char *job);
/* Adds "?key=value" or "&key=value", percent-encoded. */
void rpc_add_query(struct ff_buf *path, const char *key, const char *value);
