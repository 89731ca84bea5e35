/* file: files and folders of the user's for whom the program runs. (Tailed files of other users are
 * opened by daemon/tail.c, which trusts nobody.)
 *
 * Paths are NUL-terminated. Errors are negative errno with a complete text: `cannot read "x":
 * Permission denied`.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

/* Opens for reading, close-on-exec. Returns the descriptor. A folder is -EISDIR. */
int ff_file_open(const char *path, struct ff_err *err);
/* Reads at most n bytes, again after EINTR. Returns how many (0: end), or negative errno with err.
 */
ssize_t ff_file_read(int fd, const char *path, void *p, size_t n, struct ff_err *err);
/* Writes all of it. Returns 0 or negative errno. */
int ff_file_write(int fd, const void *p, size_t n);
/* Adds the whole file to out; FF_ELIMIT with err if it has more than max bytes. */
int ff_file_load(const char *path, size_t max, struct ff_buf *out, struct ff_err *err);

/* The last component ("/a/b/" gives "b", "/" gives "/"): borrowed from path. */
struct ff_str ff_file_base(const char *path);
/* folder, "/" and name; malloc'd. */
char *ff_file_join(const char *folder, const char *name);
bool ff_file_is_folder(const char *path);

/* What a walk finds. */
struct ff_file_entry {
	char *path;     /* to open it */
	char *below;    /* relative to the folder */
	uint64_t size;
};

struct ff_file_list {
	struct ff_file_entry *v; /* by `below`, bytewise */
	size_t n, cap;
	size_t skipped; /* folders too deep, files beyond the cap, neither file nor folder */
	struct ff_err trouble; /* the first folder that could not be read; empty: none */
};

#define FF_FILE_DEPTH 16u
#define FF_FILE_MAX 65536u

/* All regular files below folder, at most FF_FILE_MAX of them and FF_FILE_DEPTH folders deep.
 * Hidden ones are left out; links to files are followed, links to folders are not. Returns 0, or
 * negative errno with err if the folder itself can't be read. */
int ff_file_walk(const char *folder, struct ff_file_list *ret, struct ff_err *err);
void ff_file_list_finish(struct ff_file_list *l);

/* Makes the folder and those above it, mode 0700 for new ones. 0 or negative errno with err. */
int ff_file_make_folder(const char *path, struct ff_err *err);
