#include "kind.h"

#define LINES_MAX 400u

enum form { FORM_OTHER, FORM_BLANK, FORM_KERNEL, FORM_DAEMON, FORM_AGENT, FORM_TABLE };

/* A pattern of one byte classes: 9 a digit, a a letter; all else is itself. */
static bool has_shape(struct ff_str s, const char *shape)
{
	size_t n = strlen(shape);
	for (size_t i = 0; i < n; i++) {
		char c = i < s.n ? s.p[i] : '\0';
		bool digit = c >= '0' && c <= '9';
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (shape[i] == '9' ? !digit : shape[i] == 'a' ? !letter : c != shape[i]) {
			return false;
		}
	}
	return true;
}

static struct ff_str skip_digits(struct ff_str s)
{
	size_t n = 0;
	while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9') {
		n++;
	}
	return ff_str_skip(s, n);
}

/* "[ 12345.678901] ", with the caller's "[ T4121]" perhaps. */
static bool is_dmesg(struct ff_str s)
{
	if (!ff_str_starts(s, FF_STR("["))) {
		return false;
	}
	s = ff_str_skip(s, 1);
	while (s.n && s.p[0] == ' ') {
		s = ff_str_skip(s, 1);
	}
	struct ff_str rest = skip_digits(s);
	return rest.n < s.n && has_shape(rest, ".999999]");
}

/* "3,1042,128812345678,-;" of /dev/kmsg */
static bool is_kmsg(struct ff_str s)
{
	for (int i = 0; i < 3; i++) {
		struct ff_str rest = skip_digits(s);
		if (rest.n == s.n || !ff_str_starts(rest, FF_STR(","))) {
			return false;
		}
		s = ff_str_skip(rest, 1);
	}
	ptrdiff_t end = ff_str_chr(s, ';', 0);
	return end > 0 && end < 64;
}

/* "May  1 12:00:00 host kernel: ", or with an ISO time: syslog and the journal's short forms. */
static bool is_syslog_kernel(struct ff_str s, struct ff_str *ret_host)
{
	bool old = has_shape(s, "aaa ") && s.n > 16 && has_shape(ff_str_skip(s, 7), "99:99:99");
	ptrdiff_t at = ff_str_find(s, FF_STR(" kernel: "), 0);
	if (at < 0 || at > 160 || (!old && !has_shape(s, "9999-99-99T99:99:99"))) {
		return false;
	}
	ptrdiff_t from = at;
	while (from && s.p[from - 1] != ' ') {
		from--;
	}
	*ret_host = ff_str_n(s.p + from, (size_t)(at - from));
	return true;
}

static bool is_kernel(struct ff_str s, struct ff_str *ret_host)
{
	bool iso = has_shape(s, "9999-99-99T99:99:99,999999+99:99 ") ||
		has_shape(s, "9999-99-99T99:99:99,999999-99:99 ");
	bool dated = has_shape(s, "[aaa aaa ") && s.n > 27 &&
		has_shape(ff_str_skip(s, 12), "99:99:99 9999] ");
	return iso || dated || is_dmesg(s) || is_kmsg(s) || is_syslog_kernel(s, ret_host);
}

/* slurmctld, slurmd, slurmstepd, by their default time format and the word that only they use. */
static bool is_daemon(struct ff_str s)
{
	return has_shape(s, "[9999-99-99T99:99:99");
}

static bool says_slurm(struct ff_str s)
{
	static const char *const words[] = {"JobId=", "StepId=", "slurm", "sched: ", "sched/",
		"get_exit_code task", "Launching batch job", "launch task", "task/cgroup",
		"job_complete"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (ff_str_find(s, ff_str_z(words[i]), 0) >= 0) {
			return true;
		}
	}
	return false;
}

static bool says_elastic(struct ff_str s)
{
	return ff_str_find(s, FF_STR("torch/distributed/elastic/"), 0) >= 0 ||
		ff_str_find(s, FF_STR("torch.distributed.elastic."), 0) >= 0 ||
		ff_str_find(s, FF_STR("torch/distributed/run.py"), 0) >= 0 ||
		ff_str_find(s, FF_STR("torch.distributed.run"), 0) >= 0;
}

/* The agent's last words: its own traceback, and the table, which it indents. */
static bool is_agent_end(struct ff_str s)
{
	return ff_str_starts(s, FF_STR(" ")) || ff_str_starts(s, FF_STR("Traceback (most")) ||
		ff_str_starts(s, FF_STR("====")) || ff_str_starts(s, FF_STR("----")) ||
		ff_str_starts(s, FF_STR("Root Cause")) || ff_str_starts(s, FF_STR("Failures:")) ||
		ff_str_starts(s, FF_STR("[")) || ff_str_ends(s, FF_STR(" FAILED"));
}

static enum form form_of(struct ff_str s, bool agent, struct ff_str *ret_host)
{
	if (!ff_str_trim(s).n) {
		return FORM_BLANK;
	}
	if (is_daemon(s)) {
		return FORM_DAEMON;
	}
	if (is_kernel(s, ret_host)) {
		return FORM_KERNEL;
	}
	if (says_elastic(s)) {
		return FORM_AGENT;
	}
	return agent && is_agent_end(s) ? FORM_TABLE : FORM_OTHER;
}

/* Nearly all: a first line that is cut, or a stack that a daemon printed, doesn't count. */
static bool nearly(size_t n, size_t all)
{
	return n * 10 >= all * 9 && n;
}

struct kind_guess kind_of_text(struct ff_str s)
{
	struct kind_guess g = {FF_STREAM_MIXED, {0}};
	size_t n[FORM_TABLE + 1] = {0}, all = 0, slurm = 0;
	bool hosts = true;
	while (s.n && all < LINES_MAX) {
		ptrdiff_t lf = ff_str_chr(s, '\n', 0);
		struct ff_str line = ff_str_n(s.p, lf < 0 ? s.n : (size_t)lf), host = {0};
		if (lf < 0 && all) {
			break;
		}
		enum form f = form_of(line, n[FORM_AGENT] > 0, &host);
		n[f]++;
		all += f != FORM_BLANK;
		slurm += f == FORM_DAEMON && says_slurm(line);
		hosts = hosts && (!host.n || !g.host.n || ff_str_eq(host, g.host));
		g.host = host.n ? host : g.host;
		s = ff_str_skip(s, line.n + 1);
	}
	if (nearly(n[FORM_KERNEL], all)) {
		g.kind = FF_STREAM_KERNEL;
	} else if (nearly(n[FORM_DAEMON], all) && slurm) {
		g.kind = FF_STREAM_SCHEDULER;
	} else if (nearly(n[FORM_AGENT] + n[FORM_TABLE], all) && n[FORM_AGENT]) {
		g.kind = FF_STREAM_AGENT;
	}
	if (g.kind != FF_STREAM_KERNEL || !hosts) {
		g.host = (struct ff_str){0};
	}
	return g;
}
