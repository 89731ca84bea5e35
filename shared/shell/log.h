/* log: what a daemon tells its operator, one line a message, on standard error.
 *
 * Form: `warn: group=conn peer=... what happened`; where standard error is systemd's journal
 * (JOURNAL_STREAM names its device and inode: systemd.exec(5)) the level is a prefix such as "<4>"
 * (sd-daemon(3)). Log where an error is handled, once. Untrusted text is escaped here: control
 * characters and bytes that aren't UTF-8 leave as \xNN. Messages are cut at 2,048 bytes.
 *
 * Repeats. Each place in the code says at most FF_LOG_BURST messages in FF_LOG_WINDOW, and one text
 * again only after FF_LOG_AGAIN. What is left out is counted and said with the next message of that
 * place, or by ff_log_tick. Levels below the least one cost nothing and count nowhere.
 *
 * For several threads: one lock, one write a message.
 */
#pragma once

#include "base/buf.h"
#include "base/usec.h"

#define FF_LOG_BURST 20u
#define FF_LOG_WINDOW (10 * FF_SECOND)
#define FF_LOG_AGAIN (60 * FF_SECOND)
#define FF_LOG_KEPT 200u /* bytes of the last text that was left out */

enum ff_log_level {
	FF_LOG_ERROR, /* the operator must act */
	FF_LOG_WARN,  /* degraded; ends with ", ignoring" or ", retrying" */
	FF_LOG_INFO,  /* life of daemon, job, connection */
	FF_LOG_DEBUG, /* each request, file and hook */
};

/* A place in the code that logs, and what it said lately. Made by the macros below. */
struct ff_log_place {
	enum ff_log_level level;
	const char *group;
	bool known; /* in the list of those that left something out */
	struct ff_log_place *next;
	ff_usec since;    /* of the present window */
	unsigned said;    /* in it */
	uint64_t last;    /* hash of the text that was said last */
	ff_usec last_at;
	uint64_t omitted; /* not said yet that they were left out */
	ff_usec omitted_at; /* the first of them */
	char kept[FF_LOG_KEPT]; /* the last of them */
};

/* The least level, and the clock for repeats (monotonic); before that, info and no limit. */
void ff_log_open(enum ff_log_level least, ff_usec (*now)(void));
/* "error", "warn", "info", "debug"; false for anything else. */
bool ff_log_level_parse(struct ff_str s, enum ff_log_level *ret);
/* Says what was left out for FF_LOG_AGAIN; all: whatever was left out. To be called each few
 * seconds, and at the end. */
void ff_log_tick(bool all);
/* Messages that were left out since the start. */
uint64_t ff_log_omitted(void);

void ff_log(struct ff_log_place *place, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* group: a word such as "conn", "store", "tail", "api". */
#define FF_LOG_AT(level_, group_, ...) \
	do { \
		static struct ff_log_place ff_log_here = {.level = (level_), .group = (group_)}; \
		ff_log(&ff_log_here, __VA_ARGS__); \
	} while (0)
#define ff_log_error(group, ...) FF_LOG_AT(FF_LOG_ERROR, group, __VA_ARGS__)
#define ff_log_warn(group, ...) FF_LOG_AT(FF_LOG_WARN, group, __VA_ARGS__)
#define ff_log_info(group, ...) FF_LOG_AT(FF_LOG_INFO, group, __VA_ARGS__)
#define ff_log_debug(group, ...) FF_LOG_AT(FF_LOG_DEBUG, group, __VA_ARGS__)

/* Adds text with everything escaped that could move a terminal's cursor or end the line: controls
 * and bytes that aren't UTF-8 as \xNN, a backslash as \\. */
void ff_log_escape(struct ff_str text, struct ff_buf *out);
