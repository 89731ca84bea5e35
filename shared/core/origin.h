/* origin: who a stream says it is. Declared once, by a hello, job.json, a path or JSON Lines.
 *
 * A stream is (run, node, name, source). Rank, node and attempt of an event are worked out by the
 * timeline at each verdict from this and the line's tag; nothing is ever written back.
 */
#pragma once

#include "core/stamp.h"

#define FF_STREAM_KINDS(X) \
	X(MIXED, "mixed", "many ranks in one, told apart by a prefix or not at all") \
	X(RANK, "rank", "one rank's own output") \
	X(AGENT, "agent", "torchrun's agent or the launcher of one node") \
	X(KERNEL, "kernel", "a node's kernel log") \
	X(SCHEDULER, "scheduler", "slurmctld, slurmstepd, kubelet, srun")

enum ff_stream_kind {
#define X(e, name, text) FF_STREAM_##e,
	FF_STREAM_KINDS(X)
#undef X
};

enum ff_fd { FF_FD_UNKNOWN, FF_FD_STDOUT, FF_FD_STDERR };

const char *ff_stream_kind_name(enum ff_stream_kind k);
int ff_stream_kind_parse(struct ff_str s); /* -1: unknown */
const char *ff_fd_name(enum ff_fd fd);     /* NULL for FF_FD_UNKNOWN */
enum ff_fd ff_fd_parse(struct ff_str s);

/* All strings borrowed here; the stream makes its own copies. */
struct ff_origin {
	const char *name;   /* never NULL */
	const char *node;   /* NULL: not declared */
	const char *source; /* token of the producer; "0" for pasted text */
	enum ff_stream_kind kind;
	bool kind_declared; /* false: kind is a guess from the rest */
	enum ff_fd fd;
	int32_t rank, local_rank, attempt; /* FF_UNKNOWN: not declared */
	int64_t pid;
	bool trusted;  /* kernel and scheduler words from it are believed (law 11) */
	bool filtered; /* it does not hold all lines of its process */
	bool tailed;   /* a file that is followed: it is its own text */
	bool joined;   /* of a node's own stream, what concerns this run (core/stream_view.c) */
};

/* Its rank's stderr: says so, is named *stderr* or *.err (shared/README.md, law 4). */
bool ff_origin_is_stderr(const struct ff_origin *o);
