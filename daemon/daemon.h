/* daemon: what the parts of firstfaultd share, and in which order they live.
 *
 *	config  catalogue  runs  access  nodes  ledger  hook  store  api  server  tail  retain  kmsg
 *
 * They are made in this order. They end in another (main.c): who speaks to peers first, the store
 * once all is committed.
 *
 * Everything here belongs to the loop's thread. Threads besides it: the store's writer (store.h),
 * one for each file system that is tailed (tail_files.h), libuv's pool for reading text back
 * (api_logs.c, api_follow.c, api_export.c), a backup (backup.h) and what SIGHUP reads (reload.h).
 */
#pragma once

#include "config.h"
#include "feed/library.h"
#include "feed/runs.h"
#include "hook.h"

#include <uv.h>

/* What the daemon itself drops, refuses or closes; the counters of shared/core/count.def are those
 * of streams and runs. X(name, meaning) */
#define DAEMON_COUNTS(X) \
	X(connections, "connections accepted") \
	X(connections_refused, \
		"connections beyond 4,096, the limit of files, or a user's share") \
	X(connections_slow, \
		"connections closed because the peer did not read its acknowledgements") \
	X(connections_idle, \
		"connections that never said anything, closed to make room for others") \
	X(connections_broken, "connections that broke off instead of ending") \
	X(files_short, "times that nobody could be accepted because no file could be opened") \
	X(tokens_bad, "tokens shown that are none of ours") \
	X(rights_lost, \
		"connections closed because a reload took their token or rights away") \
	X(taken_over, "connections closed because their stream came over another one") \
	X(segments_dropped, "segment files dropped at the cap of a run") \
	X(segments_damaged, "runs whose segment files were found damaged or gone") \
	X(tail_refused, "files that match a pattern and are no regular file with one name") \
	X(tail_foreign, "tailed files refused because they are not of their run's owner") \
	X(tail_waiting, "files that had to wait because as many are open as may be") \
	X(tail_failed, "files and folders that could not be read") \
	X(tail_unwatched, "limits of inotify that were met: folders are polled instead") \
	X(tail_holes, "holes of NUL bytes in tailed files that were skipped") \
	X(tail_changed, "tailed files that shrank, were rewritten or replaced") \
	X(runs_aged, "runs deleted because nothing was heard of them for keep-age") \
	X(runs_over, "runs deleted because more was kept than keep-size") \
	X(runs_forgotten, "runs deleted because somebody asked for it") \
	X(bytes_given_back, "bytes that the disk got back from deleted runs") \
	X(backups, "backups written") \
	X(backups_failed, "backups that could not be written") \
	X(tail_let_go, "files of deleted runs that were met again and not read") \
	X(kernel_lost, "records of the kernel log that were overwritten before they were read") \
	X(requests, "HTTP requests") \
	X(answers_kept, "answers about ended runs given again, as nothing had changed") \
	X(requests_bad, "HTTP requests answered with an error") \
	X(otlp_busy, \
		"OTLP requests told to come again: no room, or nothing is read now") \
	X(reloads, "times that SIGHUP had configuration and catalogue taken over") \
	X(reloads_refused, "times that they were bad and what was before held") \
	X(hooks_delivered, "messages that hooks delivered") \
	X(hooks_failed, "tries to deliver one that failed") \
	X(hooks_given_up, "messages given up after a day of tries") \
	X(hooks_full, "times that a message had to wait because 1,024 or 16 MiB did") \
	X(log_omitted, "lines of the log that were left out as repeats") \
	X(watchers, "watchers that came") \
	X(watchers_refused, "watchers beyond 64") \
	X(watchers_slow, "watchers dropped because they did not read what they were told") \
	X(watchers_resync, "watchers told that they missed something") \
	X(watch_events, "events told to watchers, each counted once") \
	X(unknown_jobs, "posted job ends of jobs that are not known")

enum daemon_count {
#define X(name, text) DAEMON_COUNT_##name,
	DAEMON_COUNTS(X)
#undef X
	DAEMON_COUNT_COUNT
};

struct access;
struct ledger;
struct run_state;
struct store;
struct server;
struct tail;
struct api;
struct retain;
struct saving;
struct reload;
struct watch;
struct nodes;
struct kmsg;
struct hook;

struct daemon {
	uv_loop_t loop;
	const struct config *config;
	struct ff_library own; /* the folder `catalog`, as it was read */
	struct ff_catalog *catalog;
	struct ff_pages pages; /* of both; made when somebody first asks */
	struct ff_runs runs;
	struct ff_map let_go; /* daemon/tail.h */
	struct access *access;
	struct ledger *ledger;
	struct store *store;
	struct server *server;
	struct tail *tail;
	struct api *api;
	struct retain *retain;
	struct reload *reload;
	struct watch *watch; /* of the API */
	struct nodes *nodes;
	struct kmsg *kmsg; /* NULL: not read */
	struct hook *hook;
	ff_usec hook_since[HOOK_TARGETS]; /* wall clock: when each was configured; 0: it is not */
	uint64_t counts[DAEMON_COUNT_COUNT];
	struct saving *saving; /* the backup that a thread of libuv's pool writes; NULL: none */
	unsigned reading;   /* answers that a thread of libuv's pool reads for */
	ff_usec started_us; /* wall clock */
	bool ready;         /* restored, all listeners up */
	bool stopping;
	int status; /* exit status */
};

/* Begins to end: bounded to 5 s. May be called again. */
void daemon_stop(struct daemon *d, int status);
/* Reading stops everywhere, or goes on. */
void daemon_hold(struct daemon *d, bool hold);
