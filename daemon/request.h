/* request: one HTTP request: what was asked, and the answer that is being made. Knows no HTTP
 * library (api.c does) and no JSON of its own but that of errors (RFC 9457).
 *
 * A handler answers at once with request_json(), request_text() or request_problem(), or sets
 * `pending` and answers later; api_finish() then sends it.
 *
 * Ownership: a request belongs to the API's list; it lives until its connection is done with it,
 * which is never before a pending one was answered.
 */
#pragma once

#include "access.h"
#include "base/json.h"
#include "ledger.h"

#define REQUEST_PARTS 16u /* parts of a path */

enum request_method { REQUEST_GET, REQUEST_POST, REQUEST_DELETE, REQUEST_OTHER };

/* Who may ask for a route at all; whose a run is, its handler looks at (request_run). */
enum request_who {
	REQUEST_ANYBODY, /* whoever reaches the socket */
	REQUEST_USER,    /* who is known */
	REQUEST_ADMIN,   /* root and the daemon's own user, on the socket: no group, no token */
};

struct request;

/* A row of the table in api_routes.c. */
struct request_route {
	enum request_method method;
	const char *path; /* a part in braces is any one */
	void (*fn)(struct request *r);
	size_t body; /* bytes of a body at most; 0: it has none, and needs no content type */
	enum request_who who;
};

/* What a pending POST waits for. */
enum request_stage {
	REQUEST_DRAIN,  /* for the last lines of a job that has ended */
	REQUEST_COMMIT, /* for what was told to be stored */
	REQUEST_REFUSAL, /* for the answer to a wrong token */
};

struct request {
	struct api *api;
	struct daemon *d;
	void *connection;        /* MHD's */
	struct api_otlp *feeder; /* the connection's; NULL */
	struct request *prev, *next;
	enum request_method method;        /* HEAD is GET */
	const struct request_route *route; /* NULL: there is none */
	char allow[64];                    /* then: what the path takes; "": it is none */
	char *uri;                         /* as it came */
	char **parts;                      /* of the path, decoded */
	size_t nparts, cparts;
	struct ff_buf body;
	bool begun; /* its headers have come */
	bool too_large;
	size_t thrown;          /* bytes of its body that were thrown away */
	bool is_json;           /* its body says so */
	bool wants_text;        /* Accept: text/plain */
	char *if_none_match;    /* NULL */
	bool is_gzip, is_coded; /* its body is compressed; in some way */
	bool crowded;           /* there was no room for its body beside others */
	char *last_event_id;    /* NULL */
	struct access_peer who;
	unsigned refused;    /* the status that it gets, whatever it asks; 0 */
	bool slow;           /* it gets that a second later */
	/* the answer */
	bool answered, pending, suspended;
	unsigned status;
	const char *type; /* constant */
	struct ff_buf out;
	uint32_t version; /* ETag; 0: none */
	unsigned retry_s; /* Retry-After; 0: none */
	void *listing;    /* of api_list.c: the list that is being made */
	void *watching;   /* of api_watch.c: a watcher */
	void *following;  /* of api_follow.c: it waits for lines, or a thread reads them */
	/* An answer without end: fills buf and returns how much; 0: nothing
	 * now (api_wake); -1: over */
	ssize_t (*pull)(struct request *r, char *buf, size_t max);
	void *reading;                    /* of api_logs.c: a thread reads for it */
	void *saving;                     /* of api_backup.c: a backup is written for it */
	void *forgetting;                 /* of api_keep.c: waits for a run to be gone */
	void *exporting;                  /* of api_export.c: the same */
	void (*later)(struct request *r); /* goes on with it, NULL: nothing to do */
	void (*tick)(struct request *r);  /* looks after it in a moment, NULL: nothing to do */
	/* a pending POST */
	struct ff_run *run;
	enum request_stage stage;
	bool end;                      /* of job end; else start */
	ff_usec began_us, deadline_us; /* the loop's time */
	struct ledger_wait wait;
	bool waits;                                     /* in the ledger's list */
	void (*stored)(struct request *r, bool stored); /* makes the answer then, or too late */
	uint64_t rejected;                              /* of api_otlp.c */
};

/* A method's name; HEAD is GET. */
enum request_method request_method_parse(const char *name);
/* Splits and decodes the URI. False if it, or what it asks for behind "?", is malformed. */
bool request_parse(struct request *r, const char *uri);
void request_finish(struct request *r);
/* The decoded value of a query parameter, malloc'd; NULL if it is not there. */
char *request_query(const struct request *r, const char *name);
/* A whole number in [min, max]; def if it is not there. False if it is something else: a problem
 * was answered. */
bool request_number(
	struct request *r, const char *name, int64_t min, int64_t max, int64_t def, int64_t *ret);
/* The parameter is there and neither "0" nor "no". */
bool request_flag(const struct request *r, const char *name);
/* `format=text`, or without `format` an Accept of text/plain. */
bool request_wants_text(const struct request *r);

void request_json(struct request *r, unsigned status, struct ff_buf *body); /* takes the bytes */
void request_text(struct request *r, unsigned status, struct ff_buf *body);
void request_problem(struct request *r, unsigned status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The run that parts[index] names. NULL: a problem was answered. exact: no prefix will do. */
struct ff_run *request_run(struct request *r, size_t index, bool exact);
/* The same by a name that stands elsewhere. */
struct ff_run *request_run_named(struct request *r, const char *name, bool exact);
/* Is the peer one of those? False: a problem was answered. */
bool request_admit(struct request *r, enum request_who who);
/* May the peer read and write this run? (access.h) */
bool request_may(const struct request *r, const struct ff_run *run);

/* Begins and ends an answer that is a list. */
void request_list_open(struct ff_jw *w, struct ff_buf *out, const char *schema);
void request_list_close(struct ff_jw *w, const char *next); /* NULL: no more */
