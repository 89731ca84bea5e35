#include "core/report_table.h"

#include <stdio.h>
#include <stdlib.h>

#define KEY_BYTES 256 /* of a line that are compared */

struct ff_str ff_report_line(const struct ff_sighting *s)
{
	struct ff_str text = ff_str_n(s->ev->text ? s->ev->text : "",
		s->ev->text ? s->ev->text_len : 0);
	text = ff_str_trim(text);
	ptrdiff_t lf = ff_str_chr(text, '\n', 0);
	return lf < 0 ? text : ff_str_n(text.p, (size_t)lf);
}

/* ---- texts that are the same but for whose they are */

/* What tells where a line comes from, or about whom it speaks. */
static const enum ff_field_id places[] = {FF_F_host, FF_F_node, FF_F_path, FF_F_peer_addr,
	FF_F_peer_host, FF_F_pod, FF_F_reporter};

#define NPLACES (sizeof places / sizeof *places)

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Length of one of the needles at text[at], as a word of its own; 0: none. */
static size_t place_at(
	struct ff_str text, size_t at, const struct ff_str *needles, size_t n)
{
	struct ff_str s = ff_str_skip(text, at);
	for (size_t i = 0; i < n && !(at && is_word(text.p[at - 1])); i++) {
		size_t len = needles[i].n;
		if (len && ff_str_starts(s, needles[i]) && (len == s.n || !is_word(s.p[len]))) {
			return len;
		}
	}
	return 0;
}

void ff_report_alike(const struct ff_sighting *s, struct ff_buf *out)
{
	struct ff_str text = ff_report_line(s);
	struct ff_str needles[NPLACES + 1];
	struct ff_buf plain = {0};
	text.n = text.n < KEY_BYTES ? text.n : KEY_BYTES;
	for (size_t i = 0; i < NPLACES; i++) {
		needles[i] = ff_event_field(s->ev, places[i]);
	}
	needles[NPLACES] = ff_str_z(s->node ? s->node : "");
	for (size_t i = 0; i < text.n;) {
		size_t n = place_at(text, i, needles, NPLACES + 1);
		if (n) {
			ff_buf_addc(&plain, '*');
		} else {
			ff_buf_addc(&plain, text.p[i]);
		}
		i += n ? n : 1;
	}
	ff_event_normalise(ff_buf_str(&plain), out);
	ff_buf_finish(&plain);
}

/* ---- cells */

const char *ff_report_weight(const struct ff_sighting *s)
{
	if (s->ev->kind != FF_EVENT_FAULT) {
		return "";
	}
	switch (s->weight) {
	case FF_WEIGHT_PAST: return ", went on";
	case FF_WEIGHT_ECHO: return s->ev->quoted ? ", a copy" : ", handled";
	case FF_WEIGHT_NONE:
	case FF_WEIGHT_FULL: break;
	}
	return "";
}

void ff_report_exit(int32_t code, struct ff_buf *out)
{
	const char *name = code == FF_EXIT_UNKNOWN ? NULL : ff_signal_name(ff_exit_signal(code));
	if (code == FF_EXIT_UNKNOWN) {
		ff_buf_addc(out, '-');
	} else if (name) {
		ff_buf_addz(out, name);
	} else if (code < 0) {
		ff_buf_addf(out, "signal %d", -(int)code);
	} else {
		ff_buf_addf(out, "%d", (int)code);
	}
}

static int by_name(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	return strcmp(x ? x : "", y ? y : "");
}

void ff_report_nodes(const char **names, size_t n, struct ff_buf *out)
{
	size_t distinct = 0;
	const char *one = NULL;
	if (n > 1) {
		qsort(names, n, sizeof *names, by_name);
	}
	for (size_t i = 0; i < n; i++) {
		if (names[i] && (!one || strcmp(one, names[i]) != 0)) {
			one = names[i];
			distinct++;
		}
	}
	if (distinct > 1) {
		ff_buf_addf(out, "%zu nodes", distinct);
	} else {
		ff_buf_addz(out, one ? one : "-");
	}
}

/* ---- JSON */

ff_usec ff_report_bound(const struct ff_when *w)
{
	ff_usec before = w->us - w->lo, after = w->hi - w->us;
	return before > after ? before : after;
}

static const char *clock_name(enum ff_clock clock)
{
	switch (clock) {
	case FF_CLOCK_ARRIVED: return "arrived";
	case FF_CLOCK_CAPTURED: return "captured";
	case FF_CLOCK_CLAIMED: return "claimed";
	case FF_CLOCK_NONE: break;
	}
	return NULL;
}

void ff_report_when(struct ff_jw *w, const char *key, const struct ff_when *when)
{
	ff_jw_key(w, key);
	if (!when->known) {
		ff_jw_null(w);
		return;
	}
	ff_jw_open(w, '{');
	/* a stamp without year, and nothing that tells one, has no date to be shown */
	ff_jw_ktime(w, "time", ff_usec_usable(when->us) ? when->us : FF_TIME_NONE);
	ff_jw_kstrz(w, "clock", clock_name(when->clock));
	ff_jw_kint(w, "bound_us", ff_report_bound(when));
	ff_jw_close(w, '}');
}

void ff_report_number(struct ff_jw *w, const char *key, int64_t number)
{
	if (number == FF_UNKNOWN) {
		ff_jw_knull(w, key);
	} else {
		ff_jw_kint(w, key, number);
	}
}

void ff_report_list_open(
	struct ff_jw *w, struct ff_buf *out, const char *schema, const struct ff_verdict *v)
{
	ff_jw_init(w, out);
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "schema", schema);
	ff_jw_kstrz(w, "job", v->job);
	ff_jw_kstrz(w, "run", v->run);
	ff_report_number(w, "attempt", v->attempt);
	ff_jw_key(w, "items");
	ff_jw_open(w, '[');
}

void ff_report_list_close(struct ff_jw *w, const struct ff_buf *next)
{
	ff_jw_close(w, ']');
	ff_jw_kstrz(w, "next", next->len ? next->p : NULL);
	ff_jw_close(w, '}');
}
