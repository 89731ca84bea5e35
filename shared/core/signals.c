#include "core/signals.h"

#include <stddef.h>

static const struct {
	int sig;
	const char *name, *words, *fault;
} signals[] = {
	{1, "SIGHUP", "Hangup", "sighup"},
	{2, "SIGINT", "Interrupt", NULL},
	{3, "SIGQUIT", "Quit", NULL},
	{4, "SIGILL", "Illegal instruction", NULL},
	{5, "SIGTRAP", "Trace/breakpoint trap", NULL},
	{6, "SIGABRT", "Aborted", "sigabrt"},
	{7, "SIGBUS", "Bus error", "sigbus"},
	{8, "SIGFPE", "Floating point exception", "sigfpe"},
	{9, "SIGKILL", "Killed", "sigkill"},
	{10, "SIGUSR1", "User defined signal 1", NULL},
	{11, "SIGSEGV", "Segmentation fault", "sigsegv"},
	{12, "SIGUSR2", "User defined signal 2", NULL},
	{13, "SIGPIPE", "Broken pipe", NULL},
	{14, "SIGALRM", "Alarm clock", NULL},
	{15, "SIGTERM", "Terminated", "sigterm"},
	{24, "SIGXCPU", "CPU time limit exceeded", NULL},
	{25, "SIGXFSZ", "File size limit exceeded", NULL},
};

#define NSIGNALS (sizeof signals / sizeof signals[0])

int ff_signal_parse(struct ff_str s)
{
	static const struct ff_str python = {"Signals.", 8};
	s = ff_str_trim(s);
	if (ff_str_starts(s, python)) {
		s = ff_str_skip(s, python.n);
	}
	int64_t n = 0;
	if (s.n && *s.p == '-') {
		s = ff_str_skip(s, 1);
	}
	size_t digits = ff_str_digits(s, &n);
	if (digits) { /* "9", or "9 (SIGKILL)" */
		return n < 65 && (digits == s.n || s.p[digits] == ' ') ? (int)n : 0;
	}
	for (size_t i = 0; i < NSIGNALS; i++) {
		struct ff_str name = ff_str_z(signals[i].name);
		if (ff_str_starts(s, name) && (s.n == name.n || s.p[name.n] == ' ')) {
			return signals[i].sig;
		}
		if (ff_str_starts(s, ff_str_z(signals[i].words)) ||
			ff_str_eqz(s, signals[i].name + 3)) {
			return signals[i].sig;
		}
	}
	return 0;
}

const char *ff_signal_name(int sig)
{
	for (size_t i = 0; i < NSIGNALS; i++) {
		if (signals[i].sig == sig) {
			return signals[i].name;
		}
	}
	return NULL;
}

const char *ff_signal_fault(int sig)
{
	for (size_t i = 0; i < NSIGNALS; i++) {
		if (signals[i].sig == sig) {
			return signals[i].fault;
		}
	}
	return NULL;
}

int ff_exit_signal(int32_t code)
{
	if (code == FF_EXIT_UNKNOWN) {
		return 0;
	}
	if (code < 0 && code > -65) {
		return -code;
	}
	/* A shell's or container's way to say "by signal N"; only where N is one that kills. */
	return code > 128 && code < 160 && ff_signal_fault(code - 128) ? code - 128 : 0;
}
