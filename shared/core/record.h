/* record: one entry, or several lines of one lane that belong together.
 *
 * Which lines begin, continue and end a record of many lines: Python tracebacks with chains,
 * faulthandler's dumps, c10 errors with C++ frames, torchrun's failure table, `terminate called`
 * with what(), what mpirun and hydra put between borders. This file knows the shapes of lines, one
 * at a time; core/joiner.h keeps the open records and knows the order of shapes.
 *
 * All texts here are entries: prefixes off (core/line.h), colours off (ff_record_plain). Nothing
 * fails; views that are returned are borrowed from the text that was given.
 */
#pragma once

#include "core/scan.h"
#include "core/stamp.h"

#define FF_RECORD_KINDS(X) \
	X(LINE, "line", "a single entry") \
	X(TRACEBACK, "traceback", "a Python traceback with its chain") \
	X(FAULTHANDLER, "faulthandler", "Fatal Python error with stacks") \
	X(CXX, "cxx", "a c10 error or what() with frames") \
	X(TABLE, "table", "torchrun's failure summary") \
	X(KERNEL, "kernel", "an out-of-memory kill as the kernel tells it") \
	X(BOX, "box", "a launcher's message of several lines: mpirun, hydra, torchrun's rendezvous")

enum ff_record_kind {
#define X(e, name, text) FF_RECORD_##e,
	FF_RECORD_KINDS(X)
#undef X
};

const char *ff_record_kind_name(enum ff_record_kind k);

/* What a line is within its record. */
enum ff_line_role {
	FF_LINE_TEXT,   /* offered to patterns: exception, message, single entry, table row */
	FF_LINE_HEADER, /* "Traceback (most recent call last):" */
	FF_LINE_FRAME,  /* File "...", line N, in f; C++ frame; thread header */
	FF_LINE_SOURCE, /* a frame's source or marker line */
	FF_LINE_LINK,   /* "During handling of ...", "The above exception ..." */
	FF_LINE_BLANK,  /* nothing, or a border */
};

struct ff_record_line {
	uint64_t offset; /* in the stream */
	uint64_t end;
	int64_t number; /* 0 unknown */
	uint32_t at;    /* of its text in the record's text */
	uint32_t len;
	enum ff_line_role role;
};

struct ff_record {
	enum ff_record_kind kind;
	bool handled; /* printed by a logger, thread, destructor or asyncio: its process goes on */
	bool quoted;  /* a copy of another process's text: spawn, elastic table, RayTaskError */
	bool unowned; /* its lane's tag is the log line's above it, the traceback has none */
	bool mixed;   /* lines of several processes: which frames go with which exception nobody
			* can tell */
	unsigned copies;    /* 0, or how many processes wrote its exception at once (glued lines) */
	bool marked;        /* a line of it holds the literal of a text */
	int64_t repeats;    /* lines like one of it that Ray left out: other processes' too */
	struct ff_buf text; /* the lines' entries, prefixes off, joined with LF */
	struct ff_record_line *lines; /* at least one */
	size_t nlines, clines;
	struct ff_stamp stamp;     /* of the first line */
	struct ff_claimed claimed; /* of the first line */
};

void ff_record_finish(struct ff_record *r);
/* An empty record again; memory is kept if it is small. */
void ff_record_clear(struct ff_record *r);
/* Adds a line whose text is what stays of it. The first one gives the record its stamp. */
void ff_record_add(struct ff_record *r, const struct ff_line *line, struct ff_str text,
	enum ff_line_role role);
void ff_record_copy(struct ff_record *to, const struct ff_record *from);
struct ff_str ff_record_line_text(const struct ff_record *r, size_t i);

/* The entry without colours (ESC [ ... m) and without NUL at its front; in buf if it had any. */
struct ff_str ff_record_plain(struct ff_str text, struct ff_buf *buf);

/* What stands above a traceback and says who printed it. */
enum ff_intro {
	FF_INTRO_NONE,
	FF_INTRO_LOG,     /* a log line of level warning or worse */
	FF_INTRO_HANDLED, /* a thread, a destructor, asyncio: the process goes on */
	FF_INTRO_NAME,    /* "Error in sys.excepthook:", "Process SpawnProcess-1:" */
};

/* Who wrote a traceback. */
enum ff_style {
	FF_STYLE_PYTHON,
	FF_STYLE_RICH, /* a box with this as its title (SOURCES.md rich-ipython) */
	FF_STYLE_CELL, /* IPython: "KeyError    Traceback (most recent call last)" */
};

/* "Traceback (most recent call last):" and what stands before and behind it. */
struct ff_header {
	struct ff_str before; /* text in front of it, without "Original " */
	bool original;        /* "Original Traceback": the inner one of a DataLoader or replica */
	bool group;           /* "+ Exception Group Traceback" */
	enum ff_style style;  /* of what follows */
	struct ff_str ranks;  /* of "(RANK 3)" behind it, else empty */
};

bool ff_record_header(struct ff_str text, struct ff_header *ret);

/* How a record of many lines begins. */
struct ff_opening {
	enum ff_record_kind kind; /* what it becomes if the next line fits */
	enum ff_intro intro;      /* the line is no header yet */
	bool head_only;           /* c10 head, log line: what follows may be bare */
	struct ff_header header;  /* if the line is one */
	bool is_header;
	bool is_frame;      /* frames whose header was lost */
	bool has_func;      /* the frame names a function: it is no SyntaxError's place */
	size_t margin;      /* bytes of a log prefix that may stand before each line */
	bool is_error_file; /* what torch's error handler wrote, in one line of JSON */
	bool is_signal;     /* a failure block of glog or absl */
};

/* Does this entry begin a record of many lines? */
bool ff_record_opening(struct ff_str text, struct ff_opening *ret);
/* Can the scan skip lines that don't hold one of these? The literals that open records. */
extern const struct ff_str ff_record_openers[];
extern const size_t ff_record_nopeners;

/* One frame: `  File "train.py", line 88, in step` or faulthandler's form without the comma. */
struct ff_frame {
	struct ff_str path, func; /* func is empty for a SyntaxError's place */
	int64_t line;
	bool faulthandler; /* no comma before `in`: the innermost comes first */
	bool caught;       /* "> File": a logger marked where it was caught (loguru) */
};

bool ff_record_frame(struct ff_str text, struct ff_frame *ret);
/* The same of rich (`/job/train.py:88 in step`) and IPython (`File /job/train.py:88, in step(x)`,
 * `/job/train.py in step(x)` with line 0, `Cell In[3], line 1`); only inside their tracebacks. */
bool ff_record_odd_frame(struct ff_str text, struct ff_frame *ret);
/* What a line in a rich box holds between its bars; false if it is none. The box ends with a line
 * of which ff_record_is_box_end is true. */
bool ff_record_boxed(struct ff_str text, struct ff_str *ret);
bool ff_record_is_box_end(struct ff_str text);
/* "❱ 88     x = y" and "---> 88     x = y": the line where it happened. ret_code is the text behind
 * the number. */
bool ff_record_marked_source(struct ff_str text, struct ff_str *ret_code, int64_t *ret_line);
/* Several processes that write one traceback each at once, letter by letter:
 * "KeyErrorKeyError: : 'a''a'" is one exception line twice, "f()f()" a line twice. How often (2 to
 * 8), and the line itself; 0 if it is not that. */
unsigned ff_record_glued_exception(struct ff_str text, struct ff_buf *ret);
unsigned ff_record_glued(struct ff_str text, struct ff_str *ret);
/* "cls: msg" or "cls": the last line of a traceback. msg may be empty. */
bool ff_record_exception(struct ff_str text, struct ff_str *ret_cls, struct ff_str *ret_msg);

enum ff_link {
	FF_LINK_NONE,
	FF_LINK_CAUSE,    /* "The above exception was the direct cause ..." */
	FF_LINK_CONTEXT,  /* "During handling of the above exception ..." */
	FF_LINK_ORIGINAL, /* "Original exception was:" behind a hook that failed itself */
};

enum ff_link ff_record_link(struct ff_str text);
bool ff_record_is_blank(struct ff_str text);
/* A line that C++ prints behind the first one of an error: frames, NCCL's and CUDA's further lines.
 * ret_frame: it is a frame or what heads frames. */
bool ff_record_is_cxx(struct ff_str text, bool *ret_frame);
/* The text in torch's error file (torch-elastic-errors): the traceback, else the message;
 * and when, in seconds since 1970 (FF_UNKNOWN if it does not say). False if it is none. */
bool ff_record_error_file(struct ff_str text, struct ff_buf *ret, int64_t *ret_s);
/* A line of the kernel's report about an out-of-memory kill, its time off: what it is. */
enum ff_oom_line {
	FF_OOM_NONE,
	FF_OOM_ASKED,  /* "python invoked oom-killer: ..." */
	FF_OOM_DUMP,   /* memory, tasks, stack, "oom-kill:constraint=..." */
	FF_OOM_KILLED, /* "Killed process N (python) ..." */
	FF_OOM_AFTER,  /* the reaper, the group that dies with it */
};

enum ff_oom_line ff_record_oom(struct ff_str text);
/* A line of the block that glog or absl prints when a signal ends the process. */
bool ff_record_is_signal(struct ff_str text, bool *ret_frame);
/* A line that is by its own look no part of an exception's message: it has a time at its front, a
 * level, a launcher's name, or opens a record. */
bool ff_record_is_entry(struct ff_str text);
/* "  restart_count=1": a line of torchrun's rendezvous result. */
bool ff_record_is_result(struct ff_str text);
/* A line of nothing but one of = - * (20 or more): which, else 0. */
char ff_record_border(struct ff_str text);
/* `  rank      : 25 (local_rank: 1)`: a row of torchrun's table and no text that is quoted in
 * it. */
bool ff_record_is_row(struct ff_str text);
