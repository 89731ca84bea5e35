/* line_piece: lines that are parts of one, and lines that are several.
 *
 * Parts. A container runtime cuts a long line into parts of 16 KiB and marks all but the last with
 * `P` (SOURCES.md cri-logs): `TIME stderr P front`, `TIME stderr F rest`. Those of stdout and
 * stderr stand between each other. They become one line again: its offset, number, stamp and
 * prefix are the first part's, its text what the parts say. A part whose rest does not come (the
 * container ended) is a line at the end of the stream, or once it lies FF_PART_SPAN bytes back;
 * more than FF_LINE_MAX bytes become several lines.
 *
 * Pieces. Torchrun's tailer, Open MPI and hydra set their tag before whatever they read, also in
 * mid-line, and a traceback begins where another rank's half line stands (SOURCES.md
 * torch-tail-prefix, ompi-iof, hydra-prefix, real-runs). Such a line is several, each with its own
 * offset and one number; where the tag is the one that the piece before has, it is that one's rest.
 *
 * Pure; what is handed out is borrowed until the callback returns.
 */
#pragma once

#include "core/line.h"

struct ff_part {
	bool open;
	struct ff_buf text; /* of the parts so far, with the first one's prefix */
	struct ff_line line; /* the first part; its text is not set */
	uint64_t own;       /* bytes of the stream that are its parts' */
};

struct ff_parts {
	struct ff_part fd[2]; /* stdout, stderr */
};

void ff_parts_finish(struct ff_parts *p);
/* Takes a line; calls fn for each line that is whole now, in order of ends. All of them have the
 * line's end as theirs: only now are they digested. */
void ff_parts_take(struct ff_parts *p, const struct ff_line *line, ff_line_fn *fn, void *ud);
/* Nothing more comes: what is open are lines that end at `end`. */
void ff_parts_end(struct ff_parts *p, uint64_t end, ff_line_fn *fn, void *ud);
/* The open part that began first, NULL if none is open. */
const struct ff_part *ff_parts_oldest(const struct ff_parts *p);

typedef void ff_piece_fn(void *ud, const struct ff_line *line, const struct ff_entry *entry);

/* Calls fn for each piece of the line, for most lines for the line itself, with its prefixes taken
 * off. buf: memory for pieces that are put together. */
void ff_line_pieces(const struct ff_line *line, struct ff_buf *buf, ff_piece_fn *fn, void *ud);
