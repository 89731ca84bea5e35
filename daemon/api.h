/* api: the HTTP API (shared/README.md 6.7): libmicrohttpd by its epoll
 * descriptor in the loop.
 *
 * MHD_run is called when its descriptor is readable, when its timeout is due, and after anything
 * here changed its state. Handlers (api_*.c) see a struct request and no HTTP library.
 */
#pragma once

#include "request.h"

struct watchers;

/* The socket is there afterwards. Returns 0 or a negative code with err. */
int api_open(struct daemon *d, struct api **ret, struct ff_err *err);
/* Adds how it is, as an object. */
void api_describe(const struct api *api, struct ff_jw *w);
/* The answer of a pending request is there. */
void api_finish(struct request *r);
/* A POST told something: its answer comes after the drain (end) and the commit. */
void api_wait(struct request *r, struct ff_run *run, bool end, ff_usec wait_us);
/* Adds the addresses of `api-listen`, as they are bound: an array. */
void api_describe_listeners(const struct api *api, struct ff_jw *w);
/* Other tokens hold: connections of who lost the rights that it came with are closed, whatever they
 * wait for. */
void api_look_at_rights(struct api *api);
/* A run goes: who waits for it is told. */
void api_drop_run(struct api *api, const struct ff_run *run);
/* Answers what is pending and closes all; api_destroy after the loop has run out. */
void api_close(struct api *api);
void api_destroy(struct api *api);

/* api_routes.c: sets r->route by the method and the path; answers, by its handler or a problem. */
void api_routes_find(struct request *r);
void api_routes_dispatch(struct request *r);

/* The request goes on later: fn is called once the loop has looked after everything else. It
 * answers or calls this again. */
void api_later(struct request *r, void (*fn)(struct request *r));

/* The request waits: fn is called in a moment. It answers, lets a thread answer, or calls this. */
void api_tick(struct request *r, void (*fn)(struct request *r));
/* A request with `pull` has something more to say, or is over. */
void api_wake(struct request *r);
/* Has its peer gone? MHD does not look while there is nothing to say. */
bool api_is_gone(const struct request *r);

/* api_watch.c: all who watch; made, closed and destroyed with the API. */
struct watchers *api_watchers(const struct api *api);
struct watchers *api_watch_create(struct daemon *d);
void api_watch_close(struct watchers *w);
void api_watch_destroy(struct watchers *w);
size_t api_watch_count(const struct watchers *w);

/* api_kept.h */
struct api_kept *api_kept(const struct api *api);

/* Handlers. */
void api_jobs_one(struct request *r);
/* Adds whose run it is: "owner", null if it is no user's. */
void api_jobs_owner(struct ff_jw *w, const struct ff_run *run);
void api_jobs_verdict(struct request *r);
void api_jobs_events(struct request *r);
void api_tables_ranks(struct request *r);
void api_tables_timeline(struct request *r);
void api_faults_list(struct request *r);
void api_faults_one(struct request *r);
void api_list_jobs(struct request *r);
/* The request goes while its list is being made. */
void api_list_orphan(struct request *r);
/* `logs?follow=`: what comes from now on, or behind a cursor. */
void api_follow_get(struct request *r, struct ff_run *run, const char *cursor, int64_t rank);
void api_follow_orphan(struct request *r);
void api_logs_get(struct request *r);
/* The request goes while a thread reads for it. */
void api_logs_orphan(struct request *r);
/* A run as JSON Lines, page by page: the last object of each is {"next":CURSOR}, null at the end.
 * The loop only names what is wanted, and whoever reads a page waits for the disk. */
void api_export_get(struct request *r);
void api_export_orphan(struct request *r);
/* DELETE of a run: answered when it is gone, or says that it is still at work. */
void api_keep_forget(struct request *r);
/* Writes a backup of everything to the path in the body. */
void api_backup_post(struct request *r);
void api_backup_orphan(struct request *r);
/* The daemon is ending: what is being written is given up. */
void api_backup_stop(struct daemon *d);
void api_keep_orphan(struct request *r);
/* POST /v1/logs: OTLP. A connection's requests are one sender: what they bring of a stream is one
 * text, and its streams end with the connection. */
struct api_otlp *api_otlp_create(struct daemon *d);
void api_otlp_destroy(struct api_otlp *o);
/* The run goes: nothing that it holds may speak of it. */
void api_otlp_drop_run(struct api_otlp *o, const struct ff_run *run);
void api_otlp_post(struct request *r);
void api_watch_get(struct request *r);
/* The watcher goes; slow: because it did not read. */
void api_watch_orphan(struct request *r, bool slow);
void api_post_start(struct request *r);
void api_post_end(struct request *r);
/* What a pending POST waited for has come, or will not. */
void api_post_answer(struct request *r, bool stored);
