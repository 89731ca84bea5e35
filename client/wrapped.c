#include "wrapped.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "wire/journal.h"
#include "wire/jsonl.h"

#include <stdlib.h>

#define PIECES_MAX (1024u * 1024u) /* bytes of a line in pieces; then it is cut there */

enum form { FORM_NONE, FORM_DOCKER, FORM_JOURNAL };

struct wrapped {
	enum form form;
	const struct ff_origin *origin;
	const char *job;
	struct ff_buf line; /* an unfinished line of the file */
	bool skipping;      /* inside one that is too long */
	struct ff_jsonl o;
	struct ff_buf out_text, err_text; /* docker: pieces of a line, of each output */
	ff_usec out_us, err_us;           /* of their first piece */
	struct ff_journal journal;
	struct ff_buf *out; /* while it is fed */
};

static enum form form_of(struct ff_str front, const struct ff_origin *origin)
{
	struct ff_jsonl o = {0};
	ptrdiff_t lf = ff_str_chr(front, '\n', 0);
	struct ff_str line = ff_str_n(front.p, lf < 0 ? front.n : (size_t)lf);
	enum form form = FORM_NONE;
	if (ff_journal_front(front) != FF_JOURNAL_NONE) {
		return FORM_JOURNAL;
	}
	if (!ff_str_starts(line, FF_STR("{"))) {
		return FORM_NONE;
	}
	bool ranked = origin->rank != FF_UNKNOWN || origin->local_rank != FF_UNKNOWN;
	if (ranked && ff_jsonl_parse(&o, line) == 0 && o.container) {
		form = FORM_DOCKER;
	}
	ff_jsonl_finish(&o);
	return form;
}

struct wrapped *wrapped_open(struct ff_str front, const struct ff_origin *origin, const char *job)
{
	enum form form = form_of(front, origin);
	if (form == FORM_NONE) {
		return NULL;
	}
	struct wrapped *w = ff_xcalloc(1, sizeof *w);
	w->form = form;
	w->origin = origin;
	w->job = job;
	w->out_us = w->err_us = FF_TIME_NONE;
	ff_journal_init(&w->journal, ff_journal_front(front));
	return w;
}

/* One line of text as an object of ours; the stamp is the node's. fd: NULL if not known. */
static void put(const struct wrapped *w, const char *fd, struct ff_str text, ff_usec us,
	struct ff_str host, bool kernel, struct ff_buf *out)
{
	struct ff_buf name = {0};
	const struct ff_origin *o = w->origin;
	struct ff_jw j;
	const char *kind = kernel ? "kernel" :
		o->kind_declared ? ff_stream_kind_name(o->kind) : NULL;
	ff_jw_init(&j, out);
	ff_jw_open(&j, '{');
	ff_jw_kstrz(&j, "job", w->job);
	ff_buf_addf(&name, "%s%s%s", o->name, fd ? "/" : "", fd ? fd : "");
	ff_jw_kstr(&j, "stream", ff_buf_str(&name));
	ff_buf_finish(&name);
	if (fd) {
		ff_jw_kstrz(&j, "fd", fd);
	}
	if (o->node || host.n) {
		ff_jw_kstr(&j, "node", o->node ? ff_str_z(o->node) : host);
	}
	if (kind) {
		ff_jw_kstrz(&j, "kind", kind);
	}
	if (o->rank != FF_UNKNOWN) {
		ff_jw_kint(&j, "rank", o->rank);
	}
	if (o->local_rank != FF_UNKNOWN) {
		ff_jw_kint(&j, "local_rank", o->local_rank);
	}
	if (o->attempt != FF_UNKNOWN) {
		ff_jw_kint(&j, "attempt", o->attempt);
	}
	if (us != FF_TIME_NONE) {
		ff_jw_ktime(&j, "timestamp", us);
	}
	ff_jw_kstr(&j, "message", text);
	ff_jw_close(&j, '}');
	ff_buf_addc(out, '\n');
}

static void flush(const struct wrapped *w, struct ff_buf *text, ff_usec us, struct ff_buf *out)
{
	if (text->len) {
		const char *fd = text == &w->err_text ? "stderr" : "stdout";
		put(w, fd, ff_buf_str(text), us, FF_STR(""), false, out);
		ff_buf_clear(text);
	}
}

static void take_docker(struct wrapped *w, struct ff_str line, struct ff_buf *out)
{
	if (ff_jsonl_parse(&w->o, line) < 0 || !w->o.has_text) {
		return;
	}
	bool err = ff_str_eqz(w->o.stream, "stderr");
	struct ff_buf *text = err ? &w->err_text : &w->out_text;
	ff_usec *us = err ? &w->err_us : &w->out_us;
	if (!text->len) {
		*us = w->o.time;
	}
	ff_buf_adds(text, w->o.text);
	if (ff_str_ends(w->o.text, FF_STR("\n")) || text->len > PIECES_MAX) {
		flush(w, text, *us, out);
	}
}

static void take_entry(void *ud, const struct ff_journal_entry *e)
{
	struct wrapped *w = ud;
	put(w, NULL, e->text, e->us, e->host, e->kernel, w->out);
}

void wrapped_feed(struct wrapped *w, struct ff_str s, struct ff_buf *out)
{
	w->out = out;
	if (w->form == FORM_JOURNAL) {
		ff_journal_feed(&w->journal, s, take_entry, w);
		return;
	}
	while (s.n) {
		ptrdiff_t lf = ff_str_chr(s, '\n', 0);
		size_t n = lf < 0 ? s.n : (size_t)lf;
		if (w->line.len + n > FF_JSONL_LINE) {
			w->skipping = true;
			ff_buf_clear(&w->line);
		}
		if (!w->skipping) {
			ff_buf_add(&w->line, s.p, n);
		}
		if (lf >= 0) {
			if (!w->skipping) {
				take_docker(w, ff_buf_str(&w->line), out);
			}
			w->skipping = false;
			ff_buf_clear(&w->line);
		}
		s = ff_str_skip(s, n + 1);
	}
}

void wrapped_close(struct wrapped *w, struct ff_buf *out)
{
	if (w->line.len) {
		take_docker(w, ff_buf_str(&w->line), out);
	}
	w->out = out;
	ff_journal_end(&w->journal, take_entry, w);
	flush(w, &w->out_text, w->out_us, out);
	flush(w, &w->err_text, w->err_us, out);
	ff_buf_finish(&w->line);
	ff_buf_finish(&w->out_text);
	ff_buf_finish(&w->err_text);
	ff_journal_finish(&w->journal);
	ff_jsonl_finish(&w->o);
	free(w);
}

/* {"message":{"message":M,"extraInfo":{"py_callstack":T}}} or {"message":M} (SOURCES.md
 * torch-elastic-errors). */
bool wrapped_error_record(struct ff_str text, struct ff_buf *out)
{
	struct ff_json *doc = ff_json_parse_text(text, NULL);
	const struct ff_json_node *m = doc ? ff_json_get(ff_json_root(doc), "message") : NULL;
	const char *stack = ff_json_string(
		ff_json_get(ff_json_get(m, "extraInfo"), "py_callstack"));
	const char *said = ff_json_string(m) ? ff_json_string(m) :
		ff_json_string(ff_json_get(m, "message"));
	const char *use = stack && *stack ? stack : said;
	if (use) {
		ff_json_add_text(out, use);
		ff_buf_addc(out, '\n');
	}
	ff_json_destroy(doc);
	return use;
}
