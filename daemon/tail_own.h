/* tail_own: what tail.c and tail_feed.c share of tail.h. */
#pragma once

#include "tail.h"

#include "tail_files.h"

#define THREADS 16u

struct stamp_from { /* from this offset on */
	uint64_t offset;
	ff_usec us; /* FF_TIME_NONE */
};

struct tail_file {
	char *path;
	uint64_t device, inode;
	uint64_t generation;
	char head[FILES_HEAD];
	uint32_t head_length;
	uint64_t head_hash;
	char mark[FILES_MARK]; /* bytes before `fed`, as they stand in the file */
	uint32_t mark_length;
	uint64_t mark_at;   /* offset behind them */
	uint64_t mark_hash; /* as restored; valid while mark_stored */
	bool mark_stored;
	struct stamp_from *stamps;
	size_t nstamps, cstamps;
	uint64_t replay_end; /* below it the stored times hold */
	uint64_t held_end;   /* below it there is no time: it was there when the file was opened */
	struct ff_buf word;  /* read, not fed */
	uint64_t read;       /* offset behind it */
	bool line_open;      /* the last byte read did not end a line */
	/* while it is followed */
	struct stream_state *stream;
	struct thread *thread; /* NULL: not followed */
	uint64_t number;       /* of the file in its thread */
};

struct thread {
	struct tail *tail;
	struct files *files;
	struct ff_map by_number;  /* number as bytes -> tail_file */
	uint64_t found;           /* files found since the look that goes on was ordered */
	struct files_status seen; /* as it was counted last */
};

struct inode_key {
	uint64_t device, inode;
};

struct look {
	struct look *next;
	uint64_t number;
	struct ff_run *run;
	unsigned
		left[THREADS]; /* looks that this thread may still be asked for; 0: it has looked */
};

struct device {
	uint64_t device;
	unsigned thread;
};

struct tail {
	struct daemon *d;
	struct files_pattern **patterns;
	size_t npatterns, cpatterns;
	uint64_t last_pattern;
	struct files_shared shared;
	uv_async_t async;
	bool handle_open, held;
	struct thread threads[THREADS];
	unsigned nthreads, last_probe;
	struct device *devices;
	size_t ndevices, cdevices;
	struct ff_map by_path;  /* path -> its latest tail_file */
	struct ff_map by_inode; /* device, inode as bytes -> the latest tail_file of it */
	unsigned said; /* since said_us, monotonic */
	ff_usec said_us;
	bool limit_said;
	struct look *looks;
	uint64_t last_look;
};

/* tail_drop.c: is it a file of a run that went? */
bool tail_is_let_go(const struct tail *t, const struct files_notice *n);
/* tail.c: has it not come back from its file system for 5 s? */
bool tail_thread_is_hung(const struct thread *th);

/* tail_feed.c: bytes of a file become a stream's, with their times, masked. */
void tail_feed_data(struct tail *t, struct thread *th, const struct files_notice *n);
/* Nothing more may come: the word that waits is fed as it is. */
void tail_feed_flush(struct tail *t, struct tail_file *f);
struct ff_run *tail_file_run(const struct tail_file *f);
