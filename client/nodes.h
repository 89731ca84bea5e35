/* nodes: a list of nodes as people and Slurm write it: "gpu-001,gpu-[003-005,007]". */
#pragma once

#include "base/err.h"

#define NODES_MAX 65536u

struct nodes {
	char **v; /* in the order of the list */
	size_t n, cap;
};

/* FF_EUSAGE with err for unbalanced brackets, bad ranges or more than NODES_MAX names. */
int nodes_parse(const char *list, struct nodes *ret, struct ff_err *err);
void nodes_finish(struct nodes *n);
