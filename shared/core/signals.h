/* signals: their numbers, names and words, and what an exit code says of them.
 *
 * Pure tables; strings are constants.
 */
#pragma once

#include "base/str.h"

#define FF_EXIT_UNKNOWN INT32_MIN

/* The number of a signal: "9", "SIGKILL", "Killed", "Segmentation fault (core dumped)"; 0: none. */
int ff_signal_parse(struct ff_str s);
/* "SIGKILL"; NULL for a number without a name here. */
const char *ff_signal_name(int sig);
/* The signal in an exit code: -9 and a shell's 137 are 9; 0: it ended by itself. */
int ff_exit_signal(int32_t code);
/* Fault id of a death by this signal ("sigsegv"), NULL if none stands for it. */
const char *ff_signal_fault(int sig);
