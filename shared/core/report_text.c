#include "core/report.h"
#include "base/arr.h"
#include "core/report_own.h"

#include <stdlib.h>

#define INDENT 8 /* columns of a label */

/* ---- text: pieces */

struct screen {
	const struct ff_verdict *v;
	const struct ff_report_style *style;
	struct ff_buf *out;
	unsigned width;
};

/* Length of the UTF-8 sequence at p that may be shown as it is; 0: to be escaped. */
static size_t showable(const unsigned char *p, size_t n)
{
	uint32_t c;
	size_t len;
	if (p[0] < 0x80) {
		return p[0] >= 0x20 && p[0] != 0x7f;
	}
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		len = 2;
		c = p[0] & 0x1fu;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		len = 3;
		c = p[0] & 0x0fu;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		len = 4;
		c = p[0] & 0x07u;
	} else {
		return 0;
	}
	for (size_t i = 1; i < len; i++) {
		if (i >= n || (p[i] & 0xc0) != 0x80) {
			return 0;
		}
		c = c << 6 | (p[i] & 0x3fu);
	}
	bool too_long = (len == 3 && c < 0x800) || (len == 4 && (c < 0x10000 || c > 0x10ffff));
	bool surrogate = c >= 0xd800 && c <= 0xdfff;
	/* C1 controls, marks that turn the reading direction, and line separators */
	bool control = c < 0xa0 || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
		(c >= 0x2060 && c <= 0x2069) || c == 0xfeff;
	return too_long || surrogate || control ? 0 : len;
}

/* Adds text in at most `room` columns, controls and bad bytes as \xNN; returns columns used. What
 * does not fit is cut and ends in "..". */
static unsigned put_shown(struct ff_buf *out, struct ff_str s, unsigned room)
{
	unsigned used = 0;
	size_t mark = out->len; /* where ".." can begin: two columns before the end of the room */
	unsigned mark_used = 0;
	for (size_t i = 0; i < s.n;) {
		size_t len = showable((const unsigned char *)s.p + i, s.n - i);
		unsigned cols = len ? 1 : s.p[i] == '\t' ? 1 : 4;
		if (used + cols > room) {
			if (room >= 2) {
				out->len = mark;
				ff_buf_addz(out, "..");
				used = mark_used + 2;
			}
			return used;
		}
		if (len) {
			ff_buf_add(out, s.p + i, len);
		} else if (s.p[i] == '\t') {
			ff_buf_addc(out, ' ');
		} else {
			ff_buf_addf(out, "\\x%02x", (unsigned char)s.p[i]);
		}
		i += len ? len : 1;
		used += cols;
		if (used + 2 <= room) {
			mark = out->len;
			mark_used = used;
		}
	}
	return used;
}

static void put_label(struct screen *s, const char *label)
{
	size_t n = strlen(label);
	ff_buf_addz(s->out, label);
	for (; n < INDENT; n++) {
		ff_buf_addc(s->out, ' ');
	}
}

/* Text behind a label, wrapped at blanks, in at most max lines. */
static void put_para(struct screen *s, const char *label, const char *text, unsigned max)
{
	struct ff_str rest = ff_str_z(text);
	unsigned room = s->width - INDENT;
	for (unsigned line = 0; line < max && (rest.n || !line); line++) {
		put_label(s, line ? "" : label);
		size_t take = rest.n;
		if (rest.n > room && line + 1 < max) {
			take = room;
			while (take > room / 2 && rest.p[take] != ' ') {
				take--;
			}
			take = take > room / 2 ? take : room;
		}
		(void)put_shown(s->out, ff_str_n(rest.p, take), room);
		ff_buf_addc(s->out, '\n');
		rest = ff_str_trim(ff_str_skip(rest, take));
	}
}

static void put_blank(struct screen *s)
{
	ff_buf_addc(s->out, '\n');
}

/* A line of up to three columns: left, middle, right; as far apart as the width allows. */
static void put_columns(struct screen *s, const char *left, const char *mid, const char *right)
{
	struct ff_buf a = {0}, b = {0}, c = {0};
	unsigned nc = put_shown(&c, ff_str_z(right), 24);
	unsigned nb = put_shown(&b, ff_str_z(mid), s->width / 3);
	unsigned room = s->width - nc - nb - 4;
	unsigned na = put_shown(&a, ff_str_z(left), room);
	unsigned gap1 = 2, gap2 = s->width - na - nb - nc - gap1;
	if (!nb) {
		gap1 = 0;
		gap2 = s->width - na - nc;
	} else if (na < 52 && 54 + nb + nc + 2 <= s->width) {
		gap1 = 54 - na;
		gap2 = s->width - na - gap1 - nb - nc;
	}
	if (s->style->color) {
		ff_buf_addz(s->out, "\033[1m");
	}
	ff_buf_adds(s->out, ff_buf_str(&a));
	if (s->style->color) {
		ff_buf_addz(s->out, "\033[0m");
	}
	ff_buf_addf(s->out, "%*s", (int)gap1, "");
	ff_buf_adds(s->out, ff_buf_str(&b));
	ff_buf_addf(s->out, "%*s", (int)gap2, "");
	ff_buf_adds(s->out, ff_buf_str(&c));
	ff_buf_addc(s->out, '\n');
	ff_buf_finish(&a);
	ff_buf_finish(&b);
	ff_buf_finish(&c);
}

/* ---- text: the sections */

static const char *state_word(const struct ff_verdict *v, struct ff_arena *a)
{
	const char *told = ff_facts_state(v->timeline.facts, a);
	switch (v->state) {
	case FF_RUN_RUNNING: return "RUNNING";
	case FF_RUN_STALLED: return "STALLED";
	case FF_RUN_ENDING: return "ENDING";
	case FF_RUN_ENDED: return told && strlen(told) < 24 ? told : "ENDED";
	}
	return "";
}

static void put_title(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	struct ff_arena a = {0};
	struct ff_buf b = {0};
	ff_buf_addf(&b, "%s  ", v->job);
	size_t ranks = v->world_size > 0 ? (size_t)v->world_size : v->nranks;
	ff_buf_addf(&b, ranks == 1 ? "%zu rank" : "%zu ranks", ranks);
	if (v->timeline.nnodes) {
		size_t n = v->timeline.nnodes;
		ff_buf_addf(&b, n == 1 ? ", %zu node" : ", %zu nodes", n);
	}
	ff_buf_addf(&b, "   %s", state_word(v, &a));
	if (v->as_of != FF_TIME_NONE) {
		ff_buf_addc(&b, ' ');
		ff_usec_render_clock(&b, v->as_of, 0);
		ff_usec now = s->style->now_us;
		if (now != FF_TIME_NONE && v->state == FF_RUN_ENDED && now > v->as_of) {
			ff_buf_addz(&b, ", ");
			ff_usec_render_span(&b, now - v->as_of);
			ff_buf_addz(&b, " ago");
		}
	}
	ff_buf_addf(&b, "   run %s, attempt %d", v->run, (int)v->attempt);
	(void)put_shown(s->out, ff_buf_str(&b), s->width);
	ff_buf_addc(s->out, '\n');
	ff_buf_finish(&b);
	ff_arena_finish(&a);
}

static void who_text(const struct ff_verdict *v, struct ff_buf *b)
{
	int32_t some[64];
	size_t n = v->ninitiating < 64 ? v->ninitiating : 64;
	for (size_t i = 0; i < n; i++) {
		some[i] = v->initiating[i].rank;
	}
	ff_buf_addz(b, v->ninitiating == 1 ? "RANK " : "RANKS ");
	ff_report_ranges(b, some, n);
	if (v->ninitiating > n) {
		ff_buf_addz(b, ",...");
	}
}

static void put_verdict(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	struct ff_buf left = {0}, mid = {0}, right = {0};
	const char *title = v->title ? v->title : "no fault known";
	switch (v->kind) {
	case FF_VERDICT_RANK:
		who_text(v, &left);
		ff_buf_addf(&left, "  %s", title);
		if (v->ninitiating == 1 && v->initiating[0].node) {
			ff_buf_addz(&mid, v->initiating[0].node);
			if (v->initiating[0].local_rank != FF_UNKNOWN) {
				ff_buf_addf(
					&mid, ", local rank %d", (int)v->initiating[0].local_rank);
			}
		}
		break;
	case FF_VERDICT_NODE:
		ff_buf_addf(&left, "NODE %s  %s", v->node, title);
		if (v->ninitiating) {
			who_text(v, &mid);
		}
		break;
	case FF_VERDICT_COMMON: ff_buf_addf(&left, "EVERY RANK by itself  %s", title); break;
	case FF_VERDICT_EXTERNAL: ff_buf_addf(&left, "NOT A FAILURE of the job  %s", title); break;
	case FF_VERDICT_CLEAN: ff_buf_addz(&left, "CLEAN  the job ended well"); break;
	case FF_VERDICT_UNDETERMINED:
		ff_buf_addf(&left, "CAN'T TELL who started it  %s", title);
		break;
	}
	const char *c = ff_confidence_name(v->confidence);
	ff_buf_addf(&right, "%s, %s", c ? c : "undetermined", v->final ? "final" : "not final");
	ff_buf_addc(&mid, '\0');
	ff_buf_addc(&left, '\0');
	ff_buf_addc(&right, '\0');
	put_columns(s, left.p, mid.p, right.p);
	ff_buf_finish(&left);
	ff_buf_finish(&mid);
	ff_buf_finish(&right);
	if (v->nwhy) {
		struct ff_buf b = {0};
		ff_buf_addz(&b, v->why[0].text);
		(void)put_shown(s->out, FF_STR("  "), s->width);
		(void)put_shown(s->out, ff_buf_str(&b), s->width - 2);
		ff_buf_addc(s->out, '\n');
		ff_buf_finish(&b);
	}
}

static void put_do_now(struct screen *s)
{
	const struct ff_action *a = &s->v->action;
	struct ff_buf b = {0};
	ff_buf_addf(&b, "%s   [%s", a->text ? a->text : "nothing", ff_action_name(a->kind));
	for (size_t i = 0; a->nodes && a->nodes[i]; i++) {
		ff_buf_addf(&b, "%s%s", i ? "," : " ", a->nodes[i]);
	}
	ff_buf_addz(&b, a->retry ? ", retry]" : "]");
	ff_buf_addc(&b, '\0');
	put_para(s, "DO NOW", b.p, 2);
	ff_buf_finish(&b);
}

static const struct ff_sighting *find_event(const struct ff_verdict *v, const char *id)
{
	for (size_t i = 0; id && i < v->nevents; i++) {
		if (!strcmp(v->events[i]->id, id)) {
			return v->events[i];
		}
	}
	return NULL;
}

static const struct ff_sighting *main_proof(const struct ff_verdict *v)
{
	const struct ff_sighting *s = NULL;
	if (v->ninitiating) {
		s = find_event(v, v->initiating[0].event);
	}
	if (!s && v->nwhy) {
		s = find_event(v, v->why[0].events[0]);
	}
	return s;
}

static void put_evidence(struct screen *s, const struct ff_event *e)
{
	struct ff_str rest = ff_str_n(e->text ? e->text : "", e->text ? e->text_len : 0);
	for (unsigned line = 0; line < 4 && rest.n; line++) {
		ptrdiff_t lf = ff_str_chr(rest, '\n', 0);
		size_t n = lf < 0 ? rest.n : (size_t)lf;
		put_label(s, "");
		ff_buf_addz(s->out, "| ");
		(void)put_shown(s->out, ff_str_n(rest.p, n), s->width - INDENT - 2);
		ff_buf_addc(s->out, '\n');
		rest = ff_str_skip(rest, lf < 0 ? rest.n : n + 1);
	}
	if (e->frame) {
		struct ff_buf b = {0};
		ff_buf_addf(&b, "at %s", e->frame);
		put_label(s, "");
		(void)put_shown(s->out, ff_buf_str(&b), s->width - INDENT);
		ff_buf_addc(s->out, '\n');
		ff_buf_finish(&b);
	}
}

static void put_proof(struct screen *s)
{
	const struct ff_sighting *p = main_proof(s->v);
	if (!p) {
		return;
	}
	struct ff_buf b = {0};
	ff_usec us = ff_stamp_us(p->ev->stamp);
	if (us != FF_TIME_NONE) {
		ff_usec_render_clock(&b, us, 3);
		ff_buf_addz(&b, "  ");
	}
	if (p->rank != FF_UNKNOWN) {
		ff_buf_addf(&b, "rank %d  ", (int)p->rank);
	}
	if (p->stream) {
		ff_buf_addz(&b, p->stream->key);
		if (p->ev->at_line > 0) {
			ff_buf_addf(&b, ":%lld", (long long)p->ev->at_line);
		}
	} else {
		ff_buf_addz(&b, p->id);
		if (p->exit_code != FF_EXIT_UNKNOWN) {
			ff_buf_addf(&b, "  exit code %d", (int)p->exit_code);
		}
	}
	ff_buf_addc(&b, '\0');
	put_para(s, "PROOF", b.p, 1);
	ff_buf_finish(&b);
	put_evidence(s, p->ev);
}

/* Counts of a collateral rank's fault or status, the commonest first. */
struct tally {
	const char *what;
	size_t n;
};

static int by_count(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;
	if (x->n != y->n) {
		return x->n > y->n ? -1 : 1;
	}
	return strcmp(x->what, y->what);
}

static void put_then(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	struct tally *tallies = NULL;
	size_t n = 0, cap = 0;
	ff_usec lo = INT64_MAX, hi = INT64_MIN;
	for (size_t i = 0; i < v->ncollateral; i++) {
		const struct ff_collateral *c = &v->collateral[i];
		const char *what = c->fault && c->status == FF_STATUS_COLLATERAL
			? c->fault
			: ff_status_name(c->status);
		size_t j = 0;
		while (j < n && strcmp(tallies[j].what, what)) {
			j++;
		}
		if (j == n && n < 256) {
			*FF_ARR_ADD(tallies, n, cap) = (struct tally){what, 0};
		}
		tallies[j < n ? j : 0].n++;
		lo = c->has_after && c->after_us < lo ? c->after_us : lo;
		hi = c->has_after && c->after_us > hi ? c->after_us : hi;
	}
	if (!n) {
		free(tallies);
		return;
	}
	qsort(tallies, n, sizeof *tallies, by_count);
	struct ff_buf b = {0};
	ff_buf_addf(&b, v->ncollateral == 1 ? "%zu rank, collateral" : "%zu ranks, collateral",
		v->ncollateral);
	if (lo <= hi && lo >= 0) {
		ff_buf_addz(&b, ", +");
		ff_usec_render_span(&b, lo);
		ff_buf_addz(&b, " to +");
		ff_usec_render_span(&b, hi);
	}
	for (size_t i = 0; i < n && i < 5; i++) {
		ff_buf_addf(&b, "%s%zu %s", i ? ", " : ": ", tallies[i].n, tallies[i].what);
	}
	ff_buf_addc(&b, '\0');
	put_para(s, "THEN", b.p, 2);
	ff_buf_finish(&b);
	free(tallies);
}

static void put_not(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	for (size_t i = 0; i < v->nwhy_not && i < 2; i++) {
		struct ff_buf b = {0};
		if (v->why_not[i].rank != FF_UNKNOWN) {
			ff_buf_addf(&b, "rank %d: ", (int)v->why_not[i].rank);
		}
		ff_buf_addz(&b, v->why_not[i].text);
		ff_buf_addc(&b, '\0');
		put_para(s, i ? "" : "NOT", b.p, 1);
		ff_buf_finish(&b);
	}
}

static void put_catalogue(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	if (!v->fault || (!v->cause && !v->nverify)) {
		return;
	}
	put_blank(s);
	if (v->cause) {
		put_para(s, "CAUSE", v->cause, 2);
	}
	if (v->nverify) {
		put_para(s, "VERIFY", v->verify[0].run, 2); /* cut it could not be run */
		struct ff_buf b = {0};
		ff_buf_addf(&b, "expect %s", v->verify[0].expect);
		ff_buf_addc(&b, '\0');
		put_para(s, "", b.p, 1);
		ff_buf_finish(&b);
	}
}

static void put_seen(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	size_t heard = 0, to_end = 0;
	for (size_t i = 0; i < v->timeline.nranks; i++) {
		heard += v->timeline.ranks[i].own_stream;
		to_end += v->timeline.ranks[i].own_stream && v->timeline.ranks[i].stderr_to_end;
	}
	struct ff_buf b = {0};
	if (v->world_size > 0) {
		ff_buf_addf(
			&b, "%zu of %d ranks, %zu to their end", heard, (int)v->world_size, to_end);
	} else {
		ff_buf_addf(&b, "%zu rank%s, %zu to %s end (world size not told)", heard,
			heard == 1 ? "" : "s", to_end, heard == 1 ? "its" : "their");
	}
	size_t streams = v->timeline.nstreams;
	ff_buf_addf(&b, "; %zu %s%s", streams, streams == 1 ? "stream" : "streams",
		ff_facts_ended(v->timeline.facts) ? ", job end" : "");
	ff_buf_addc(&b, '\0');
	put_para(s, "SEEN", b.p, 1);
	ff_buf_finish(&b);
	for (size_t i = 0; v->missing[i] && i < 3; i++) {
		put_para(s, i ? "" : "MISSING", v->missing[i], 1);
	}
}

static void put_next(struct screen *s)
{
	struct ff_buf b = {0};
	put_blank(s);
	if (s->v->timeline.ask.offline) {
		ff_buf_addz(&b, "next: analyze --json PATH (every event, stamp and file)");
	} else {
		const char *job = s->v->job;
		ff_buf_addf(&b, "next: events %s | logs %s --around first | why %s --json | jobs",
			job, job, job);
	}
	(void)put_shown(s->out, ff_buf_str(&b), s->width);
	ff_buf_addc(s->out, '\n');
	ff_buf_finish(&b);
}

void ff_report_text(
	const struct ff_verdict *v, const struct ff_report_style *style, struct ff_buf *out)
{
	struct screen s = {v, style, out, style->width < 60 ? 60 : style->width};
	put_title(&s);
	put_blank(&s);
	put_verdict(&s);
	put_do_now(&s);
	if (style->brief) {
		return;
	}
	if (main_proof(v)) {
		put_blank(&s);
	}
	put_proof(&s);
	put_then(&s);
	put_not(&s);
	put_catalogue(&s);
	put_blank(&s);
	put_seen(&s);
	put_next(&s);
}
