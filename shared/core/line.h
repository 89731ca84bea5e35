/* line: bytes of a stream become lines; a line's prefixes come off and leave a tag.
 *
 * Splitter: LF ends a line; CR LF is one end; a lone CR ends a *piece* that is handled as a line of
 * its own, with its own offset and the same line number (a progress bar's redraws). NUL and bytes
 * that aren't UTF-8 stay. A line is cut at FF_LINE_MAX bytes: what is over is skipped up to the
 * next LF or lone CR and counts as digested. Any way to cut the same bytes into chunks gives the
 * same lines.
 *
 * Restart: `start` is the offset to go on from. A new splitter with start = pos = that offset, the
 * same number and in_skip hands out the same lines from there (stamps are those that then come).
 *
 * Tags (line_tag.c): `[rank3]: ` and `[rank3]:[E...` global rank (torch's excepthook, c10 logger),
 * `[default3]:` local rank (torchrun --tee), `3: ` task (srun --label), all with their sources in
 * SOURCES.md, `[1,3]<stderr>:` and `<stderr rank="3">` global rank (Open MPI 4, 5), `[3] ` (hydra
 * -prepend-rank), `(name pid=7) ` pid (Ray, vLLM), `[pod/NAME/CONTAINER] ` (kubectl --prefix) and
 * `May  1 12:00:00 host name[7]: ` (syslog, journalctl) a name. Of stacked ones the innermost
 * global rank wins, else the innermost; a launcher's own number in front of a local rank counts
 * its nodes and loses too; a local rank behind a name is one of several hosts': a name of its own,
 * no rank. pdsh's `host: ` counts only in front of another tag. A container runtime's prefix
 * (`TIME stdout F `), kubectl's and Open MPI's time, any time in front of a tag of torch,
 * torchrun, Open MPI or Ray, and a progress bar that such a tag or a traceback is glued to come
 * off as well and leave no tag.
 *
 * What stays in the text and gives a tag all the same is the program's own: `[rank3] ` without a
 * colon, at the front or right behind a time, and the global ranks that the loggers of DeepSpeed,
 * NeMo and accelerate print. No tag: `[Rank 3] ` (a process group's), `[rank: 3] ` of Lightning
 * (counts in its node, or speaks of a child), numbers of pods.
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "core/facts.h"

enum ff_tag_kind {
	FF_TAG_NONE,
	FF_TAG_GLOBAL, /* a global rank as printed */
	FF_TAG_LOCAL,  /* a local rank as printed */
	FF_TAG_TASK,   /* srun's task number (the node's index where it starts a launcher a node) */
	FF_TAG_GROUP,  /* a rank inside a process group */
	FF_TAG_HOST,   /* a host prefix: value is a hash, the name is in the event's field `host` */
	FF_TAG_PID,    /* a pid prefix (NCCL, Ray) */
};

struct ff_tag {
	enum ff_tag_kind kind;
	int64_t value; /* FF_UNKNOWN for FF_TAG_NONE */
};

#define FF_TAG_INIT ((struct ff_tag){FF_TAG_NONE, FF_UNKNOWN})

static inline bool ff_tag_eq(struct ff_tag a, struct ff_tag b)
{
	return a.kind == b.kind && a.value == b.value;
}

/* "none", "global", "local", "task", "group", "host", "pid": constants. */
const char *ff_tag_kind_name(enum ff_tag_kind kind);

/* The stamp that came with a line: at most one of the two is set (law 3). */
struct ff_stamp {
	ff_usec arrived;  /* or FF_TIME_NONE */
	ff_usec captured; /* or FF_TIME_NONE */
};

#define FF_STAMP_NONE ((struct ff_stamp){FF_TIME_NONE, FF_TIME_NONE})

static inline ff_usec ff_stamp_us(struct ff_stamp s)
{
	return s.arrived != FF_TIME_NONE ? s.arrived : s.captured;
}

/* Tags that JSON Lines objects give to single lines, as if they had been printed. */
struct ff_line_tags {
	struct ff_tag tag;
	int32_t attempt; /* or FF_UNKNOWN */
};

struct ff_line {
	uint64_t offset;       /* of its first byte in the stream */
	uint64_t end;          /* behind its terminator: digested up to here once it is handled */
	int64_t number;        /* counts LF from 1; 0 after a gap of unknown length */
	struct ff_str text;    /* without terminator; borrowed until the next call */
	struct ff_stamp stamp; /* of the chunk that brought its first byte */
	struct ff_line_tags tags;
	uint64_t between; /* of its bytes, those of other lines (core/line_piece.h) */
	bool cut;        /* text was longer than FF_LINE_MAX */
	bool unfinished; /* ended by the end of the stream, not by a terminator */
};

struct ff_splitter {
	struct ff_buf pending;   /* bytes of the unfinished line */
	uint64_t start;          /* all below is handed out or skipped: first byte of the unfinished
				  * line or piece, else pos; in a skip pos, or the CR before it */
	uint64_t pos;            /* offset of the next byte to come */
	int64_t number;          /* of the line at `start`; 0 unknown */
	struct ff_stamp stamp;   /* of the unfinished line */
	struct ff_line_tags tags;
	bool open;     /* there is an unfinished line (its text is empty if only a CR came) */
	bool cr;       /* the last byte was a CR whose meaning the next one decides */
	bool in_skip;  /* behind the cut of an over-long line */
};

typedef void ff_line_fn(void *ud, const struct ff_line *line);

void ff_splitter_init(struct ff_splitter *s);
void ff_splitter_finish(struct ff_splitter *s);
/* Takes n bytes that stand at s->pos; calls fn for each line that they complete, in order. While fn
 * runs, start and pos are the line's end; fn must not feed. */
void ff_splitter_feed(struct ff_splitter *s, const char *p, size_t n, struct ff_stamp stamp,
		      struct ff_line_tags tags, ff_line_fn *fn, void *ud);
/* No more bytes: the unfinished line, if any, is handed out. */
void ff_splitter_end(struct ff_splitter *s, ff_line_fn *fn, void *ud);

/* A line with its prefixes taken off. */
struct ff_entry {
	struct ff_str text;  /* what the program printed; borrowed from the line */
	struct ff_tag tag;   /* FF_TAG_NONE if none was printed */
	struct ff_tag outer; /* outermost that `tag` won over, else FF_TAG_NONE (`4: [rank4]: x`) */
	struct ff_str stamp; /* time in a prefix that came off (Open MPI, containers), else empty */
	int64_t repeats;     /* lines like it that Ray left out ([repeated 3x across cluster]) */
};

void ff_line_entry(struct ff_str line, struct ff_entry *ret);
