/* segment: the text of a run's network streams in files, as it came, secrets masked.
 *
 * STATE/segments/RUN/NNNNNNNNNN.seg; RUN and N are numbers, never names. A file is a row of frames:
 *
 *	@LLLLLLLL STREAM OFFSET C[ KIND VALUE ATTEMPT]LF     header
 *	STAMP 0C TEXTLF ...                                  LLLLLLLL (hex) bytes of data lines
 *
 * STREAM is the stream's number in its run, OFFSET the place of the first text byte in it. C names
 * the clock of the stamps: a (arrived), c (captured), - (none; the stamps are 0). KIND, VALUE and
 * ATTEMPT are the tag that JSON Lines gave to these lines (numbers; left out if none). Data lines
 * are those of the native protocol (shared/README.md 6.3): `.` behind the index if LF followed the
 * text, `-` if not. So a segment is its own replay, and the bytes of a stream are the texts put
 * together.
 *
 * The writer side is memory only: the store's thread writes what it gives, at the place it says, so
 * that a repeated write changes nothing. Committed is what the run's row says (number of the last
 * file and its length); a restart cuts the files to that. Files of FF_SEGMENT_BYTES,
 * FF_SEGMENTS_MAX a run; the oldest is dropped, counted.
 */
#pragma once

#include "base/err.h"
#include "core/stream.h"

struct segment_frame {
	uint32_t stream;
	uint64_t offset;
	enum ff_clock clock;
	struct ff_line_tags tags;
};

/* Collects the text of one stream until it is put into a segment. A zeroed struct is empty. */
struct segment_writer {
	struct ff_buf buf;          /* whole frames */
	size_t open;                /* where the frame begins that may still grow, if buf.len > 0 */
	struct segment_frame frame; /* its head */
	uint64_t next;              /* offset behind it */
	uint64_t first;             /* offset where the first frame begins */
};

void segment_writer_finish(struct segment_writer *w);
/* Adds a chunk of the stream. */
void segment_writer_put(struct segment_writer *w, uint32_t stream, const struct ff_chunk *c);

/* Takes a whole frame off the front of *in: its head, and its data lines (borrowed from in).
 * False if there is none: the end, or damaged bytes. */
bool segment_take_frame(struct ff_str *in, struct segment_frame *ret, struct ff_str *ret_lines);

struct segment_line {
	ff_usec us; /* FF_TIME_NONE */
	bool whole; /* LF followed the text */
	struct ff_str text;
};

bool segment_take_line(struct ff_str *lines, struct segment_line *ret);

/* A place in a run's text. */
struct segment_place {
	uint32_t number; /* of the file, from 1 */
	uint64_t at;     /* bytes into it */
};

bool segment_is_before(struct segment_place a, struct segment_place b);

/* Whoever reads for some streams looks up whose a frame is: the element of v, which is ordered by
 * its first member, the uint32_t number of a stream; NULL if there is none. */
void *segment_find(void *v, size_t n, size_t size, uint32_t number);

struct segment_range {
	uint32_t first;           /* oldest file that is there */
	struct segment_place end; /* behind the last committed byte */
};

/* The folder of a run's files, and one of them; both add to out. */
void segment_folder(const char *state, uint32_t run, struct ff_buf *out);
void segment_path(const char *state, uint32_t run, uint32_t number, struct ff_buf *out);

/* Calls fn for each frame from `from` (the beginning of a frame) to the end of the range, until it
 * returns false. Returns 0; -ENOENT if a file is gone; FF_EINPUT if one is damaged; or negative
 * errno. */
typedef bool segment_fn(void *ud, const struct segment_frame *frame, struct ff_str lines,
	struct segment_place place);
int segment_scan(const char *state, uint32_t run, struct segment_range range,
	struct segment_place from, segment_fn *fn, void *ud);

/* A restart: cuts the last file to its committed length and removes files outside the range. */
int segment_cut(const char *state, uint32_t run, struct segment_range range, struct ff_err *err);
/* Writes n bytes at the place; makes folder and file. The caller syncs the descriptor *fd, which is
 * kept between calls for one file (-1: opened here). Returns 0 or negative errno. */
int segment_write(
	const char *state, uint32_t run, struct segment_place place, struct ff_str bytes, int *fd);
/* Removes some of a run's files, and its folder behind the last one; adds their bytes to *freed.
 * Returns 1: there may be more; 0: there are none; or negative errno. */
int segment_remove_some(const char *state, uint32_t run, unsigned max, uint64_t *freed);
void segment_remove(const char *state, uint32_t run, uint32_t number);
