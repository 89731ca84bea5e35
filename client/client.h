/* client: what the commands of `firstfault` share: their table, their exit statuses, how they say
 * what went wrong, and what their screen looks like.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "shell/option.h"

/* sysexits(3), as shared/README.md 6.1 names them. */
#define CLIENT_OK 0
#define CLIENT_USAGE 64
#define CLIENT_INPUT 65
#define CLIENT_NO_DAEMON 69
#define CLIENT_INTERNAL 70
#define CLIENT_IO 74

struct client_command {
	const char *name;
	const char *synopsis;    /* behind "firstfault "; one form a line */
	const char *summary;     /* one line, lower case */
	const char *description; /* paragraphs */
	const char *examples;    /* lines, NULL if none */
	bool judges;             /* takes --exit-status: its help lists these too */
	bool local;              /* asks no daemon: has no --token-file */
	/* argv[0] is the command's name. Returns the exit status. */
	int (*run)(const struct client_command *self, int argc, char **argv);
};

extern const struct client_command cmd_analyze, cmd_ship, cmd_why, cmd_jobs, cmd_events, cmd_logs,
	cmd_job, cmd_export, cmd_report, cmd_status, cmd_ranks, cmd_timeline, cmd_explain,
	cmd_forget, cmd_backup, cmd_catalog, cmd_watch;

/* Reads the options of a command; answers --help and --version itself. Returns the index of the
 * first argument that is no option; -1: the command is over, with *ret_status. */
int client_options(const struct client_command *c, const struct ff_option *o, size_t n, int argc,
		   char **argv, int *ret_status);

/* `firstfault: TEXT` on standard error, and the hint (NULL: none) on a line of its own. Returns
 * status. Control characters in the text are escaped. */
int client_fail(int status, const char *text, const char *hint);
int client_failf(int status, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A warning: the same form, the program goes on. */
void client_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The exit status that an error code means. */
int client_status(int code);
/* Usage error of this command, with the way to its help as hint. */
int client_usage(const struct client_command *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The message for a catalogue that did not load: `path` is the user's own part, NULL if there is
 * none. Returns the exit status. */
int client_catalog_fail(int code, const char *path, const struct ff_err *err);
/* All of b to standard output. CLIENT_OK or, with its message, CLIENT_IO. */
int client_print(const struct ff_buf *b);
/* Is standard output a terminal that wants colour? (NO_COLOR, TERM=dumb) */
bool client_color(void);
/* Columns of the screen: at most 100, at least 60. */
unsigned client_width(void);
