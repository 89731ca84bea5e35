/* record, inside: what record.c (the container, how records begin), record_python.c (tracebacks)
 * and record_block.c (all other records of many lines) share. Nobody else includes it.
 */
#pragma once

#include "core/record.h"

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool is_word(char c)
{
	return is_letter(c) || is_digit(c) || c == '_' || (unsigned char)c >= 0x80;
}

static inline char at(struct ff_str s, size_t i)
{
	return i < s.n ? s.p[i] : '\0';
}

static inline size_t blanks(struct ff_str s)
{
	size_t n = 0;
	while (n < s.n && (s.p[n] == ' ' || s.p[n] == '\t')) {
		n++;
	}
	return n;
}

static inline bool starts(struct ff_str s, const char *z)
{
	return ff_str_starts(s, ff_str_z(z));
}

static inline bool starts_with_one(struct ff_str s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (starts(s, words[i])) {
			return true;
		}
	}
	return false;
}

#define STARTS_WITH_ONE(s, words) starts_with_one(s, words, sizeof(words) / sizeof((words)[0]))

/* A digit run of at least least digits at i: its length, or 0. */
static inline size_t digits_at(struct ff_str s, size_t i, size_t least)
{
	size_t n = 0;
	while (is_digit(at(s, i + n))) {
		n++;
	}
	return n >= least ? n : 0;
}

/* A level as the first word: "ERROR:root:boom", "[ERROR] boom", "WARNING 05-01 12:00:00 x". */
bool ff_record_level_first(struct ff_str text, bool bad_only);

/* ---- record_block.c: does the line begin one of these? */

/* "[E501 12:00:08.123456789 ProcessGroupNCCL.cpp:607] " and glog's form, of level W, E or F. */
bool ff_record_is_c10_head(struct ff_str text);
/* mpirun's and hydra's words. */
bool ff_record_is_box(struct ff_str text);
/* torchrun's rendezvous result; the lines below have the log prefix again (torch 2.13) or not. */
bool ff_record_is_result_head(struct ff_str text, size_t *ret_margin);
bool ff_record_is_faulthandler(struct ff_str text);
/* Is it worth a look by ff_record_error_file? */
bool ff_record_is_error_file(struct ff_str text);
/* The kernel's report about an out-of-memory kill begins; ret_margin: its time and host, which each
 * line has. */
bool ff_record_is_oom_head(struct ff_str text, size_t *ret_margin);
/* What glog and absl print when a signal ends the process; a logger may stand before each line. */
bool ff_record_is_signal_head(struct ff_str text, size_t *ret_margin);
