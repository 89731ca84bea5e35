/* log: what a daemon tells its operator, one line a message, on standard error.
 *
 * Form: `group=conn peer=... what happened`; under systemd (JOURNAL_STREAM) with its <3> prefixes,
 * else with the level's name. Log where an error is handled, once. Untrusted text is escaped here:
 * control characters and bytes that aren't UTF-8 leave as \xNN. Not for several threads at once
 * unless each call fits one write (PIPE_BUF); messages are cut at 2,048 bytes.
 */
#pragma once

#include "base/buf.h"

enum ff_log_level {
	FF_LOG_ERROR, /* the operator must act */
	FF_LOG_WARN,  /* degraded; ends with ", ignoring" or ", retrying" */
	FF_LOG_INFO,  /* life of daemon, job, connection */
};

/* group: a word such as "conn", "store", "tail", "api". */
void ff_log(enum ff_log_level level, const char *group, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define ff_log_error(group, ...) ff_log(FF_LOG_ERROR, group, __VA_ARGS__)
#define ff_log_warn(group, ...) ff_log(FF_LOG_WARN, group, __VA_ARGS__)
#define ff_log_info(group, ...) ff_log(FF_LOG_INFO, group, __VA_ARGS__)

/* Adds text with everything escaped that could move a terminal's cursor or end the line: controls
 * and bytes that aren't UTF-8 as \xNN, a backslash as \\. */
void ff_log_escape(struct ff_str text, struct ff_buf *out);
