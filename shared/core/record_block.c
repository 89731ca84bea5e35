#include "core/record_own.h"

#include "base/json.h"

#define BORDER_LEAST 20u /* torchrun's borders are as wide as the longest row, at most 60 */

/* ---- C++ (SOURCES.md c10-logging, process-group-nccl) */

/* "file.cpp:607] " somewhere in the first 160 bytes, of a C++ file and no Python one. */
static bool has_cxx_place(struct ff_str s)
{
	static const char *const ends[] = {".cpp:", ".hpp:", ".cc:", ".h:"};
	struct ff_str head = {s.p, s.n < 160 ? s.n : 160};
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		ptrdiff_t found = ff_str_find(head, ff_str_z(ends[i]), 0);
		if (found < 0) {
			continue;
		}
		size_t from = (size_t)found + strlen(ends[i]);
		size_t n = digits_at(head, from, 1);
		if (n && at(head, from + n) == ']') {
			return true;
		}
	}
	return false;
}

/* "[E501 12:00:08.123456789 ProcessGroupNCCL.cpp:607] ", "[E ProcessGroupNCCL.cpp:475] " or glog's
 * "E0501 12:00:08.123456  4242 ProcessGroupNCCL.cpp:607] ", of level W, E or F. */
bool ff_record_is_c10_head(struct ff_str text)
{
	size_t i = at(text, 0) == '[';
	char level = at(text, i);
	if (level != 'E' && level != 'W' && level != 'F') {
		return false;
	}
	bool dated = digits_at(text, i + 1, 3) > 0;
	bool bare = at(text, i + 1) == ' ' && i;
	return (dated || bare) && has_cxx_place(text);
}

bool ff_record_is_cxx(struct ff_str text, bool *ret_frame)
{
	static const char *const frames[] = {
		"frame #",
		"Exception raised from ",
		"<omitting python frames>",
		"C++ CapturedTraceback:",
		"*** Check failure stack trace:",
		"    @ ",
	};
	static const char *const texts[] = {
		"  what():",
		"nccl",
		"NCCL Error ",
		"Last error:",
		"CUDA kernel errors might be",
		"For debugging consider passing",
		"Compile with `TORCH_USE_CUDA_DSA`",
		"Device-side assertion",
		"Search for `cuda",
		"This may indicate a possible",
		"Successfully processed ranks",
		" Successfully processed ranks",
		" Original exception: ",
		"Original exception: ",
		"No ranks successfully processed",
		/* the services of JAX (SOURCES.md real-runs) */
		"The tasks have crashed",
		"Additional GRPC error information",
		":UNKNOWN:",
		"Barrier result:",
		"RPC: ",
		"\t",
	};
	*ret_frame = STARTS_WITH_ONE(text, frames);
	if (*ret_frame) {
		return true;
	}
	if (at(text, 0) == '#') {
		size_t n = digits_at(text, 1, 1);
		*ret_frame = n && at(text, 1 + n) == ' ';
		return *ret_frame;
	}
	return STARTS_WITH_ONE(text, texts);
}

/* ---- the table (SOURCES.md torch-elastic-errors) */

char ff_record_border(struct ff_str text)
{
	text = ff_str_trim(text);
	char c = at(text, 0);
	if (text.n < BORDER_LEAST || (c != '=' && c != '-' && c != '*')) {
		return 0;
	}
	for (size_t i = 1; i < text.n; i++) {
		if (text.p[i] != c) {
			return 0;
		}
	}
	return c;
}

bool ff_record_is_row(struct ff_str text)
{
	static const char *const keys[] = {
		"  time",
		"  host",
		"  rank",
		"  exitcode",
		"  error_file",
		"  traceback",
		"  msg",
	};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (starts(text, keys[i])) {
			struct ff_str rest = ff_str_skip(text, strlen(keys[i]));
			return at(rest, blanks(rest)) == ':';
		}
	}
	return false;
}

/* ---- boxes (SOURCES.md ompi-iof, hydra-prefix, torch-elastic-logs) */

bool ff_record_is_box(struct ff_str text)
{
	static const char *const words[] = {
		" noticed that process rank ",
		" detected that one or more processes exited",
		"MPI_ABORT was invoked on rank ",
		"BAD TERMINATION OF ONE OF YOUR",
		" has lost communication with a remote daemon",
		" has exited due to process rank ",
		" was unable to launch the specified application",
		"The user-provided time limit for job execution",
	};
	struct ff_str head = {text.p, text.n < 120 ? text.n : 120};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (ff_str_find(head, ff_str_z(words[i]), 0) >= 0) {
			return true;
		}
	}
	return false;
}

/* "...api.py:525] [default] Rendezvous complete for workers. Result:": the lines below have the log
 * prefix again (torch 2.13) or not (before). */
bool ff_record_is_result_head(struct ff_str text, size_t *ret_margin)
{
	if (!ff_str_ends(ff_str_trim(text), FF_STR("Rendezvous complete for workers. Result:"))) {
		return false;
	}
	ptrdiff_t end = ff_str_find(text, FF_STR("] "), 0);
	*ret_margin = end < 0 ? 0 : (size_t)end + 2;
	return true;
}

bool ff_record_is_result(struct ff_str text)
{
	size_t n = blanks(text);
	struct ff_str rest = ff_str_skip(text, n);
	size_t word = 0;
	while (word < rest.n && is_word(rest.p[word])) {
		word++;
	}
	return n >= 2 && word && at(rest, word) == '=';
}

/* ---- faulthandler (SOURCES.md cpython-faulthandler) */

bool ff_record_is_faulthandler(struct ff_str text)
{
	if (starts(text, "Fatal Python error: ")) {
		return true;
	}
	/* Timeout (0:05:00)! of dump_traceback_later */
	return starts(text, "Timeout (") && is_digit(at(text, 9)) &&
		ff_str_ends(text, FF_STR(")!"));
}

/* ---- failure blocks (SOURCES.md c10-logging) */

bool ff_record_is_signal_head(struct ff_str text, size_t *ret_margin)
{
	static const char *const words[] = {"*** Aborted at ", "*** SIG"};
	struct ff_str head = {text.p, text.n < 160 ? text.n : 160};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		ptrdiff_t found = ff_str_find(head, ff_str_z(words[i]), 0);
		if (found < 0 ||
			(found &&
				!ff_str_ends(
					(struct ff_str){text.p, (size_t)found}, FF_STR(": ")))) {
			continue;
		}
		struct ff_str rest = ff_str_skip(text, (size_t)found);
		bool good = i == 0 ? ff_str_find(rest, FF_STR("(unix time)"), 0) > 0
				   : ff_str_find(rest, FF_STR(" received "), 0) > 0;
		if (good) {
			*ret_margin = (size_t)found;
			return true;
		}
	}
	return false;
}

bool ff_record_is_signal(struct ff_str text, bool *ret_frame)
{
	*ret_frame = starts(text, "PC: @ ") || starts(text, "    @ ");
	return *ret_frame ||
		(starts(text, "*** SIG") && ff_str_find(text, FF_STR(" received by PID "), 0) > 0);
}

/* ---- out-of-memory kills (SOURCES.md kernel-oom) */

enum ff_oom_line ff_record_oom(struct ff_str text)
{
	static const char *const dump[] = {
		" ",
		"[",
		"CPU: ",
		"Hardware name: ",
		"Call Trace:",
		"RIP: ",
		"Code: ",
		"RSP: ",
		"RAX: ",
		"Mem-Info:",
		"active_anon:",
		"Node ",
		"lowmem_reserve",
		"memory: usage",
		"swap: usage",
		"kmem: usage",
		"memory+swap: usage",
		"Memory cgroup stats",
		"Tasks state",
		"Task in ",
		"oom-kill:constraint=",
		"Out of memory: Kill process ",
	};
	static const char *const after[] = {"oom_reaper: ", "Tasks in "};
	struct ff_str head = {text.p, text.n < 80 ? text.n : 80};
	if (ff_str_find(head, FF_STR(" invoked oom-killer: "), 0) > 0) {
		return FF_OOM_ASKED;
	}
	if (ff_str_find(head, FF_STR("Killed process "), 0) >= 0) {
		return FF_OOM_KILLED;
	}
	if (STARTS_WITH_ONE(text, after)) {
		return FF_OOM_AFTER;
	}
	/* "1234 total pagecache pages" */
	return STARTS_WITH_ONE(text, dump) || is_digit(at(text, 0)) ? FF_OOM_DUMP : FF_OOM_NONE;
}

bool ff_record_is_oom_head(struct ff_str text, size_t *ret_margin)
{
	struct ff_str head = {text.p, text.n < 160 ? text.n : 160};
	ptrdiff_t asked = ff_str_find(head, FF_STR(" invoked oom-killer: "), 0);
	ptrdiff_t kill = ff_str_find(head, FF_STR("oom-kill:constraint="), 0);
	size_t end = (size_t)(asked > 0 ? asked : kill);
	if (asked <= 0 && kill < 0) {
		return false;
	}
	/* A process's name may hold blanks: what ends the kernel's prefix is "] ", "kernel: " or,
	 * of /dev/kmsg, ";". */
	size_t margin = kill >= 0 && asked <= 0 ? end : 0;
	for (size_t i = 0; asked > 0 && i < end; i++) {
		bool last = text.p[i] == ';' ||
			(text.p[i] == ' ' && i && (text.p[i - 1] == ']' || text.p[i - 1] == ':'));
		margin = last ? i + 1 : margin;
	}
	*ret_margin = margin;
	return true;
}

/* ---- error.json (SOURCES.md torch-elastic-errors) */

bool ff_record_is_error_file(struct ff_str text)
{
	return starts(text, "{\"message\"") && ff_str_find(text, FF_STR("\"extraInfo\""), 0) > 0;
}

/* Whole seconds, as a string of digits or as a number. */
static int64_t seconds_of(const struct ff_json_node *v)
{
	int64_t s;
	const char *text = ff_json_string(v);
	bool good = text ? ff_str_int(ff_str_z(text), &s) : ff_json_int(v, &s);
	return good ? s : FF_UNKNOWN;
}

bool ff_record_error_file(struct ff_str text, struct ff_buf *ret, int64_t *ret_s)
{
	struct ff_err err = {0};
	struct ff_json *doc = ff_json_parse(text, &err);
	const struct ff_json_node *m = doc ? ff_json_get(ff_json_root(doc), "message") : NULL;
	const struct ff_json_node *extra = ff_json_get(m, "extraInfo");
	const char *stack = ff_json_string(ff_json_get(extra, "py_callstack"));
	const char *message = ff_json_string(ff_json_get(m, "message"));
	const char *said = stack && *stack ? stack : message;
	if (said) {
		ff_buf_clear(ret);
		ff_buf_adds(ret, ff_str_trim(ff_str_z(said)));
		*ret_s = seconds_of(ff_json_get(extra, "timestamp"));
	}
	ff_json_destroy(doc);
	return said != NULL;
}
