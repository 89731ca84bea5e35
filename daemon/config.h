/* config: the options of firstfaultd: one table for flags, configuration file, help and
 * --print-config. The keys are rows of config.def.
 *
 * Flags win over the file; lists add up. Defaults of the places are those of shell/addr.h.
 */
#pragma once

#include "base/limits.h"
#include "shell/option.h"

#define CONFIG_PATH 4096 /* bytes of a path, a pattern or an address */

/* the C type of a key's field */
#define CONFIG_FLAG bool
#define CONFIG_TEXT char * /* NULL: not given */
#define CONFIG_LIST struct ff_option_list
#define CONFIG_INT int64_t
#define CONFIG_SIZE int64_t /* bytes */
#define CONFIG_SPAN int64_t /* microseconds */

struct config {
#define KEY(field, name, type, arg, initial, min, max, change, help) CONFIG_##type field;
#include "config.def"
#undef KEY
	/* flags only */
	char *file;
	bool set_aside, check, print, help, version;
};

/* Reads flags and the file they name, fills in the defaults and checks every value. Returns 0;
 * FF_EUSAGE with err for a bad flag, key or value; negative errno with err if the file can't be
 * read. With help or version set nothing else is looked at. */
int config_read(struct config *c, int argc, char **argv, struct ff_err *err);
void config_finish(struct config *c);
/* Do the values go together? config_read has asked. 0, or FF_EUSAGE with err. */
int config_check(const struct config *c, struct ff_err *err);
/* For a running daemon: keys of fresh that only a restart changes get the value that they have now;
 * the names of those that differed are added to ret, as "a, b". The result has to be checked. */
void config_keep(struct config *fresh, const struct config *now, struct ff_buf *ret);
void config_help(struct ff_buf *out);
/* HOST and PORT of a value of `listen` or another key of this form; both malloc'd. FF_EUSAGE with
 * err. */
int config_split_listen(const char *key, const char *text, char **ret_host, char **ret_port,
	struct ff_err *err);
/* Adds what a configuration file would have to say. */
void config_print(const struct config *c, struct ff_buf *out);
