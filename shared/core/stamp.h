/* stamp: a time that a program wrote into its own line (a *claimed* stamp, law 3).
 *
 * Read at the front of an entry's text, in the commonest forms (SOURCES.md log-stamps): Python
 * logging, ISO 8601, glog, c10, torch._logging, DeepSpeed, Megatron, NeMo, syslog, Slurm daemons,
 * ctime, NCCL, torchrun's table, vLLM, transformers, rich, epoch seconds with a fraction; and in
 * Slurm's word about a cancelled step. A level, a syslog priority, or something short in brackets,
 * may stand before. TZ, locale and any clock are never looked at: what the text does not say stays
 * unsaid here (no year, no zone), and only the timeline fills it in. A date that does not exist is
 * no stamp; one outside 2000-2099 is one, but see ff_usec_usable.
 */
#pragma once

#include "core/line.h"

struct ff_claimed {
	ff_usec us;     /* the least it can be, as if of UTC and, without a year, of 2000 */
	uint32_t grain; /* width of what the digits leave open: 1 us, 1000 us, 1 s */
	bool has_year;
	bool has_zone;  /* us is UTC for sure */
	bool mono_fraction; /* c10: its nine digits are CLOCK_MONOTONIC's, so they are left out */
};

#define FF_CLAIMED_NONE ((struct ff_claimed){.us = FF_TIME_NONE})

/* Looks for a stamp in the first 64 bytes of an entry's text (Slurm's: 320). True and *ret if there
 * is one. */
bool ff_stamp_parse(struct ff_str text, struct ff_claimed *ret);
