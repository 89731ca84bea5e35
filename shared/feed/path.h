/* path: who a file is, from where it lies.
 *
 * torchrun's tree RUNID_RANDOM/attempt_N/LOCAL/{stdout,stderr}.log (SOURCES.md torch-elastic-logs),
 * names that hold a rank (`rank[-_.]?N`, Open MPI's rank.N), and patterns with placeholders {job}
 * {run} {attempt} {node} {rank} {local_rank} {name}, `*` and `**` (config option `tail`;
 * shared/README.md 6.1, 6.8).
 */
#pragma once

#include "base/err.h"
#include "core/origin.h"

struct ff_path_identity {
	char *job, *run, *node;             /* NULL: not said; malloc'd, freed by finish */
	int32_t rank, local_rank, attempt;  /* FF_UNKNOWN */
	enum ff_stream_kind kind;
	bool kind_known;
	enum ff_fd fd;
	bool filtered;  /* holds chosen lines of files beside it: torchrun's filtered_*.log */
	bool no_text;   /* error.json, job.json: not to be read as a log */
	bool error_record; /* torchrun's attempt_N/LOCAL/error.json: what a rank raised */
	size_t tree; /* bytes of the path that name the folder which holds attempt_N: one launcher's
		      * tree; 0: no such tree, or it is the folder itself (has_tree) */
	bool has_tree;
};

void ff_path_identity_finish(struct ff_path_identity *id);
/* From a path relative to the folder (or the file's own name). Always gives something. */
void ff_path_identify(struct ff_str path, struct ff_path_identity *ret);

/* A tail pattern. */
struct ff_path_pattern; /* opaque */

struct ff_path_pattern *ff_path_pattern_parse(const char *text, struct ff_err *err);
void ff_path_pattern_destroy(struct ff_path_pattern *p);
/* The folder above the first placeholder or star: where to look. */
const char *ff_path_pattern_root(const struct ff_path_pattern *p);
/* Does the path (absolute, as the pattern is) match? Fills *ret (finish it). Values of placeholders
 * are one path component of [A-Za-z0-9._@+-]{1,128}; numbers are checked. */
bool ff_path_pattern_match(const struct ff_path_pattern *p, struct ff_str path,
			   struct ff_path_identity *ret);
/* Can anything below this folder match? (to prune the walk) */
bool ff_path_pattern_may_hold(const struct ff_path_pattern *p, struct ff_str folder);
