/* option: one table of options for a program or a command: flags, configuration file and help.
 *
 *	bool json = false; char *job = NULL; int64_t world = -1;
 *	const struct ff_option options[] = {
 *		{"json", 0, FF_OPTION_FLAG, &json, NULL, "print the verdict as JSON", 0, 0},
 *		{"job", 0, FF_OPTION_TEXT, &job, "ID", "name of the job", 1, FF_JOB_ID_MAX},
 *		{"world", 'w', FF_OPTION_INT, &world, "N", "number of ranks", 1, FF_RANKS_MAX},
 *	};
 *	int rest = ff_option_args(options, 3, argc, argv, &err);
 *	...
 *	ff_option_finish(options, 3);
 *
 * The same rows read `key = value` lines of a configuration file. A value that is set again
 *replaces the one before, except in a list, which grows. Every number has a least and a greatest
 *value. Ownership: the targets are the caller's; texts and lists in them are malloc'd and freed by
 *finish.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

enum ff_option_type {
	FF_OPTION_FLAG, /* bool: --name; in a file and as --name=: yes, no, true, false, on, off */
	FF_OPTION_TEXT, /* char *: min to max bytes (max 0: any length) */
	FF_OPTION_LIST, /* struct ff_option_list: one more text each time */
	FF_OPTION_INT,  /* int64_t: a whole number from min to max */
	FF_OPTION_SIZE, /* int64_t: bytes; 4096, 64KiB, 4MiB, 1GiB */
	FF_OPTION_SPAN, /* int64_t: microseconds; 250ms, 2s, 5m, 1h, 7d; a bare number is seconds */
};

struct ff_option_list {
	char **v;
	size_t n, cap;
};

struct ff_option {
	const char *name;  /* without "--" */
	char letter;       /* of a short form, 0: none */
	enum ff_option_type type;
	void *target;      /* of the type's kind */
	const char *arg;   /* name of its argument in the help; NULL for a flag */
	const char *help;  /* one sentence, lower case, without full stop; NULL: not shown */
	int64_t min, max;
};

/* Reads argv[1..argc): `--name value`, `--name=value`, `-l value`, `-lvalue`; `--` ends the
 * options; what is no option is moved to the end in its order. Returns the index of the first of
 * these (argc if there is none), or FF_EUSAGE with err. */
int ff_option_args(const struct ff_option *o, size_t n, int argc, char **argv, struct ff_err *err);
/* Reads `key = value` lines; `#` begins a comment at the start of a line or behind a blank. file is
 * its name for err. An unknown key is an error. */
int ff_option_file(const struct ff_option *o, size_t n, const char *file, struct ff_str text,
		   struct ff_err *err);
/* Sets one option as a configuration file would. 0, or FF_EUSAGE with err. */
int ff_option_set(const struct ff_option *o, struct ff_str value, struct ff_err *err);
/* Adds the table of options for --help: two columns, wrapped at 100. */
void ff_option_help(const struct ff_option *o, size_t n, struct ff_buf *out);
/* Adds `key = value` lines of the present values, as a configuration file would have them. */
void ff_option_print(const struct ff_option *o, size_t n, struct ff_buf *out);
/* Frees texts and lists; their targets are empty afterwards. */
void ff_option_finish(const struct ff_option *o, size_t n);
