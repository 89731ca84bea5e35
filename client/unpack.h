/* unpack: the files of a source, whatever it is packed in: itself, what it expands to, the members
 * of a tar, and again of those, down to UNPACK_DEPTH layers. What is packed is told by content.
 *
 * Two walks over one source meet the same files in the same order, so that one can look and the
 * next can read. Nothing is written anywhere: names are names. They are made plain: no empty, `.`
 * or `..` components; what is packed loses the end of its name that says so (a.log.gz: a.log;
 * n0.tar.gz: the folder n0).
 *
 * Caps: UNPACK_DEPTH layers, FF_FILE_MAX files and FF_FILE_DEPTH folders as in a folder's walk,
 * source.h's. What is over is left out and said.
 */
#pragma once

#include "source.h"

#include "base/buf.h"

#define UNPACK_DEPTH 4u

struct unpack_file {
	const char *name;  /* within the archive; "" for one that is none */
	const char *written; /* the same with the end that says what it is packed in */
	size_t ordinal;    /* counted over the walk */
	size_t tar;        /* which tar holds it, from 1; 0: none does */
	size_t inner;      /* where in name its name in that tar begins */
	bool member;       /* of a tar */
	bool packed;       /* its bytes are expanded ones */
	enum source_kind kind;
	struct source *source; /* at its start; may be left unread */
};

struct unpack_ops {
	/* Not 0 ends the walk with that. */
	int (*file)(void *ud, const struct unpack_file *file);
	/* Something can't be read, in part or at all: the archive's (or a layer's) name within, and
	 * a clause about it. NULL allowed. */
	void (*trouble)(void *ud, const char *name, const char *text);
};

/* front: how much of each file may be looked at to tell its kind. *ret_left_out (NULL allowed):
 * entries that are no files, hidden, too deep or too many. */
int unpack(struct source *s, size_t front, const struct unpack_ops *ops, void *ud,
	   size_t *ret_left_out);

/* A name without the end that says what it is packed in, at most one tar and what that is in:
 * "a.log.gz", "a.tar.gz", "a.tgz". */
struct ff_str unpack_stem(struct ff_str name);
/* A path without empty, `.` and `..` components, added to out. */
void unpack_plain(struct ff_str path, struct ff_buf *out);
