/* joiner: keeps the open record of each lane and says when it is complete.
 *
 * One per lane. In: the lane's entries in order. Out: at each entry, a record that is now
 * complete (by content or distance only: never by a timer), and whether the entry was taken into
 * the open one. The joiner does no matching.
 *
 *	traceback   [log line, "Exception in thread"] header (frame source*)* final message* [chain]
 *	            or what rich draws as a box, or IPython's, up to its final line; headers of
 *	            several processes among each other's frames make one record that is mixed
 *	faulthandler  "Fatal Python error" blank | thread | frame ...
 *	cxx         c10 head or "terminate called", then what(), NCCL's and CUDA's lines, frames
 *	signal      glog's or absl's block, its addresses, the line that names the signal
 *	kernel      who asked for memory, tasks and memory, who was killed, what died with it
 *	table       border, "x FAILED", rows, border
 *	box         what mpirun or hydra says, up to a border; torchrun's rendezvous result
 *
 * A log line that no traceback follows, and a border that no table follows, become a record of
 * kind line. Blank lines are held and belong to the record only if it goes on behind them.
 *
 * Limits: FF_RECORD_LINES, FF_RECORD_BYTES, FF_RECORD_IDLE, FF_RECORD_SPAN; 40 message lines
 * behind one exception line.
 */
#pragma once

#include "core/catalog.h"

#define FF_JOINER_HELD 3u    /* blank lines that a record may have in a row */
#define FF_JOINER_MARGIN 128u /* bytes of a log prefix that each line of a record repeats */

enum ff_joiner_state {
	FF_JOINER_INTRO,   /* a log line, or who printed it: a header must follow */
	FF_JOINER_FRAMES,  /* behind a header */
	FF_JOINER_MESSAGE, /* behind the exception line */
	FF_JOINER_LINK,    /* behind "During handling of ..." */
	FF_JOINER_GROUP,   /* in an exception group */
	FF_JOINER_RICH,    /* in the box that rich draws */
	FF_JOINER_CELL,    /* in a traceback of IPython */
	FF_JOINER_STACK,   /* behind "Call stack:" of logging's own error */
	FF_JOINER_FAULT,   /* in a faulthandler dump */
	FF_JOINER_OOM,    /* in the kernel's report about an out-of-memory kill */
	FF_JOINER_KILLED, /* behind "Killed process" */
	FF_JOINER_SIGNAL, /* in a failure block of glog or absl */
	FF_JOINER_CXX,
	FF_JOINER_LAST_ERROR, /* behind "Last error:" or another colon: any one line follows */
	FF_JOINER_BORDER,     /* behind what may be a table's first border */
	FF_JOINER_TABLE,
	FF_JOINER_BOX,
	FF_JOINER_RESULT, /* behind "Rendezvous complete for workers. Result:" */
	FF_JOINER_DONE,
};

/* What of the joiner a single line changes. */
struct ff_joiner_place {
	enum ff_joiner_state state;
	enum ff_intro intro;
	unsigned loose;     /* message lines since the exception line */
	bool lead;          /* the last line announces a traceback inside the message */
	bool framed;        /* a frame was seen */
	unsigned heads;     /* headers of several processes, one in the frames of the other */
	unsigned indent;    /* blanks before each line of a traceback that is printed indented */
	bool repeats;       /* the margin stands before each line, not only before the header */
	bool undecided;     /* whether it does: the next line shows */
	unsigned margin_len;
	char border;        /* that closes the table */
};

struct ff_joiner {
	struct ff_record rec; /* valid if open */
	bool open;
	bool capped;          /* complete because of FF_RECORD_LINES or FF_RECORD_BYTES */
	uint64_t first, last; /* offsets of the open record's first line, end of its last line */
	uint64_t low;         /* the least offset of its lines: one that was put together from parts
			       * may begin before the record's first line */
	int64_t low_number;   /* number of that line */
	struct ff_joiner_place at;
	char margin[FF_JOINER_MARGIN];
	struct ff_line held[FF_JOINER_HELD]; /* blank lines; their text is empty */
	unsigned nheld;
};

void ff_joiner_finish(struct ff_joiner *j);

enum ff_join {
	FF_JOIN_TAKEN,  /* the entry belongs to the open record */
	FF_JOIN_OPENED, /* the entry began a record */
	FF_JOIN_NONE,   /* the entry is a record of its own, or nothing */
};

/* Offers an entry of the lane; text is a view into line->text. If *ret_closed is set true, the
 * record in j->rec was complete before this entry: the caller matches it and calls ff_joiner_clear,
 * then offers the entry again. */
enum ff_join ff_joiner_feed(struct ff_joiner *j, const struct ff_line *line, struct ff_str text,
			    bool *ret_closed);
void ff_joiner_clear(struct ff_joiner *j);
/* Would the open record take this entry? */
bool ff_joiner_takes(const struct ff_joiner *j, const struct ff_line *line, struct ff_str text);
/* The open record takes any text (it is in an exception's message): a line that is known to be
 * something else, a training step, closes it. */
bool ff_joiner_is_loose(const struct ff_joiner *j);
/* The line it took last ended it: nothing can follow. */
bool ff_joiner_is_done(const struct ff_joiner *j);
/* Distance: the stream has come to pos; is the open record to be closed? (FF_RECORD_IDLE, _SPAN) */
bool ff_joiner_too_far(const struct ff_joiner *j, uint64_t pos);
/* The first position at which it is too far; UINT64_MAX if nothing is open. */
uint64_t ff_joiner_deadline(const struct ff_joiner *j);
/* A copy of its own memory. */
void ff_joiner_copy(struct ff_joiner *to, const struct ff_joiner *from);
