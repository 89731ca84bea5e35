#include "core/match_own.h"

#define FRAME_MOST 240u /* bytes of a frame's description */

/* ---- lines as a traceback has them */

/* In torchrun's table tracebacks stand in the rows, indented by two blanks; the first line of
 * each is "  traceback : Traceback (most recent call last):". */
struct ff_str ff_match_view(const struct ff_record *rec, size_t i, enum ff_line_role *ret_role)
{
	struct ff_str text = ff_record_line_text(rec, i);
	*ret_role = rec->lines[i].role;
	if (rec->kind != FF_RECORD_TABLE) {
		return text;
	}
	if (ff_record_is_row(text)) {
		bool header =
			ff_str_find(text, FF_STR("Traceback (most recent call last):"), 0) >= 0;
		*ret_role = header ? FF_LINE_HEADER : FF_LINE_BLANK;
		return text;
	}
	if (!ff_str_starts(text, FF_STR("  "))) {
		*ret_role = FF_LINE_BLANK;
		return text;
	}
	text = ff_str_skip(text, 2);
	*ret_role = ff_record_link(text) ? FF_LINE_LINK : *ret_role;
	return text;
}

/* ---- frames */

/* Python's own modules, installed packages and torch are not the user's code. */
bool ff_match_is_library(struct ff_str path)
{
	static const char *const places[] = {
		"site-packages/",
		"dist-packages/",
		"/lib/python",
		"/torch/",
		"<frozen",
	};
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		if (ff_str_find(path, ff_str_z(places[i]), 0) >= 0) {
			return true;
		}
	}
	return ff_str_starts(path, FF_STR("torch/"));
}

/* A line of nothing but ~ ^ and blanks. */
static bool is_marker(struct ff_str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] != '~' && text.p[i] != '^' && text.p[i] != ' ') {
			return false;
		}
	}
	return true;
}

/* The front of a path that rich broke. */
static bool is_path_piece(const struct ff_record *rec, size_t line)
{
	struct ff_str text = ff_record_line_text(rec, line);
	struct ff_frame frame;
	return rec->lines[line].role == FF_LINE_FRAME && ff_str_starts(text, FF_STR("/")) &&
		!ff_record_odd_frame(text, &frame);
}

/* The frame in this line, of Python, rich or IPython. rich breaks a long path: the lines above it
 * that are no frame are its front. The path is good until the next call. */
bool ff_match_frame(
	struct ff_buf *path, const struct ff_record *rec, size_t line, struct ff_frame *ret)
{
	enum ff_line_role role;
	if (ff_record_frame(ff_match_view(rec, line, &role), ret)) {
		return true;
	}
	struct ff_str text = ff_record_line_text(rec, line);
	if (rec->lines[line].role != FF_LINE_FRAME || !ff_record_odd_frame(text, ret)) {
		return false;
	}
	size_t from = line;
	while (from > 0 && is_path_piece(rec, from - 1)) {
		from--;
	}
	if (from == line) {
		return true;
	}
	ff_buf_clear(path);
	for (size_t i = from; i < line; i++) {
		ff_buf_adds(path, ff_record_line_text(rec, i));
	}
	ff_buf_adds(path, ret->path);
	ret->path = ff_buf_str(path);
	return true;
}

/* The code that a frame shows, and its line where the frame itself does not say it. */
static struct ff_str source_of(const struct ff_record *rec, size_t line, struct ff_frame *f)
{
	size_t i = line + 1;
	while (i < rec->nlines && rec->lines[i].role == FF_LINE_BLANK) {
		i++;
	}
	if (f->faulthandler || i >= rec->nlines || rec->lines[i].role != FF_LINE_SOURCE) {
		return FF_STR("");
	}
	struct ff_str source = ff_str_trim(ff_record_line_text(rec, i)), code;
	int64_t number;
	if (ff_record_marked_source(source, &code, &number)) {
		f->line = f->line ? f->line : number;
		return code;
	}
	return is_marker(source) ? FF_STR("") : source;
}

struct ff_str ff_match_describe(
	struct ff_buf *out, struct ff_buf *path, const struct ff_record *rec, size_t line)
{
	struct ff_frame f;
	ff_buf_clear(out);
	if (line == NONE || !ff_match_frame(path, rec, line, &f)) {
		return FF_STR("");
	}
	struct ff_str source = source_of(rec, line, &f), name = f.path;
	for (ptrdiff_t i = ff_str_chr(name, '/', 0); i >= 0; i = ff_str_chr(name, '/', 0)) {
		name = ff_str_skip(name, (size_t)i + 1);
	}
	ff_buf_adds(out, name);
	ff_buf_addf(out, ":%lld", (long long)f.line);
	if (f.func.n) {
		ff_buf_addz(out, " in ");
		ff_buf_adds(out, f.func);
	}
	if (source.n) {
		ff_buf_addz(out, ": ");
		ff_buf_adds(out, source);
	}
	struct ff_str ret = ff_buf_str(out);
	ret.n = ret.n < FRAME_MOST ? ret.n : FRAME_MOST;
	return ret;
}

/* A faulthandler dump has the innermost frame first (SOURCES.md cpython-faulthandler); the thread
 * that got the signal is the current one. */
size_t ff_match_dump_frame(const struct ff_record *rec)
{
	size_t ret = NONE;
	bool current = false;
	for (size_t i = 0; i < rec->nlines; i++) {
		struct ff_frame f;
		struct ff_str text = ff_record_line_text(rec, i);
		if (ff_str_starts(text, FF_STR("Current thread"))) {
			current = true;
			ret = NONE;
		} else if (current && ff_str_starts(text, FF_STR("Thread 0x"))) {
			break;
		} else if (ret == NONE && ff_record_frame(text, &f) &&
			!ff_match_is_library(f.path)) {
			ret = i;
		}
	}
	return ret;
}

/* ---- launchers */

/* A frame that only a launcher's own process has: its name, else NULL (SOURCES.md
 * torch-elastic-logs, torch-spawn, deepspeed-launcher). */
const char *ff_match_launcher(const struct ff_frame *f)
{
	static const struct {
		const char *path, *func, *name; /* func NULL: any */
	} frames[] = {
		{"torch/distributed/run.py", NULL, "torchrun"},
		{"torch/distributed/launch.py", NULL, "torch.distributed.launch"},
		{"torch/multiprocessing/spawn.py", "start_processes", "spawn"},
		{"accelerate/commands/", NULL, "accelerate"},
		{"deepspeed/launcher/", NULL, "deepspeed"},
		{"lightning/fabric/cli.py", NULL, "fabric"},
	};
	for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
		if (ff_str_find(f->path, ff_str_z(frames[i].path), 0) >= 0 &&
			(!frames[i].func || ff_str_eqz(f->func, frames[i].func))) {
			return frames[i].name;
		}
	}
	return NULL;
}
