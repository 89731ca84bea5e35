/* config: the options of firstfaultd: one table for flags, configuration file, help and
 * --print-config.
 *
 * Flags win over the file; `listen` and `tail` add up. Defaults are the places of shell/addr.h.
 */
#pragma once

#include "shell/option.h"

struct config {
	char *state;         /* folder of the store */
	char *ingest_socket; /* path */
	char *api_socket;
	struct ff_option_list listen; /* HOST:PORT */
	struct ff_option_list tail;   /* patterns (feed/path.h) */
	char *default_job;            /* NULL */
	char *token_file;             /* NULL */
	char *catalog;                /* folder of own signatures; NULL */
	bool allow_open_tcp;
	/* flags only */
	char *file;
	bool check, print, help, version;
};

/* Reads flags and the file they name, fills in the defaults and checks every value. Returns 0;
 * FF_EUSAGE with err for a bad flag, key or value; negative errno with err if the file can't be
 * read. With help or version set nothing else is looked at. */
int config_read(struct config *c, int argc, char **argv, struct ff_err *err);
void config_finish(struct config *c);
void config_help(struct ff_buf *out);
/* HOST and PORT of a value of `listen`; both malloc'd. FF_EUSAGE with err. */
int config_split_listen(const char *text, char **ret_host, char **ret_port, struct ff_err *err);
/* Adds what a configuration file would have to say. */
void config_print(const struct config *c, struct ff_buf *out);
