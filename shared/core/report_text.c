#include "core/report_own.h"

#define INDENT 8   /* columns of a label */
#define LINES 30   /* of a screen */
#define EVIDENCE 4 /* lines of log text */
#define MISSING 4  /* of what is missing */
#define TAIL 2     /* the blank line and the commands at the end always have room */

struct screen {
	const struct ff_verdict *v;
	const struct ff_report_style *style;
	struct ff_buf *out;
	unsigned width;
	unsigned left; /* lines that may still be printed */
	unsigned keep; /* of them, for what comes last */
};

/* ---- lines */

static void end_line(struct screen *s)
{
	ff_buf_addc(s->out, '\n');
	s->left -= s->left > 0;
}

static bool has_room(const struct screen *s)
{
	return s->left > s->keep;
}

static void put_blank(struct screen *s)
{
	if (has_room(s)) {
		end_line(s);
	}
}

static void put_label(struct screen *s, const char *label)
{
	ff_buf_addf(s->out, "%-*s", INDENT, label);
}

/* Text behind a label, wrapped at blanks, in at most max lines. `bar`: it is log text. */
static void put_para(
	struct screen *s, const char *label, struct ff_str text, unsigned max, bool bar)
{
	unsigned room = s->width - INDENT - (bar ? 2 : 0);
	for (unsigned line = 0; line < max && (text.n || !line) && has_room(s); line++) {
		bool last = line + 1 == max;
		size_t take = last ? text.n : ff_report_break(text, room);
		put_label(s, line ? "" : label);
		ff_buf_addz(s->out, bar ? "| " : "");
		(void)ff_report_put(s->out, ff_str_n(text.p, take), room);
		end_line(s);
		text = ff_str_skip(text, take);
		while (text.n && text.p[0] == ' ') {
			text = ff_str_skip(text, 1);
		}
	}
}

static struct ff_str first_line(struct ff_str *rest)
{
	ptrdiff_t lf = ff_str_chr(*rest, '\n', 0);
	size_t n = lf < 0 ? rest->n : (size_t)lf;
	struct ff_str line = ff_str_n(rest->p, n);
	*rest = ff_str_skip(*rest, lf < 0 ? n : n + 1);
	return line;
}

/* The lines of b, each in two lines of the screen at most, and max of them. b is emptied. */
static void put_lines(struct screen *s, const char *label, struct ff_buf *b, unsigned max)
{
	struct ff_str rest = ff_buf_str(b);
	for (unsigned line = 0; line < max && rest.n; line++) {
		put_para(s, line ? "" : label, first_line(&rest), 2, false);
	}
	ff_buf_finish(b);
}

static void put_text(struct screen *s, const char *label, struct ff_buf *b, unsigned max)
{
	if (b->len) {
		put_para(s, label, ff_buf_str(b), max, false);
	}
	ff_buf_finish(b);
}

/* ---- the pager's lines */

static void put_title(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	struct ff_buf b = {0};
	ff_report_job(v, &b);
	ff_report_size(v, &b);
	ff_buf_addz(&b, "   ");
	ff_report_state(v, s->style->now_us, &b);
	ff_buf_addf(&b, "   run %s, attempt %d", v->run, (int)v->attempt);
	if (v->nattempts > 1) {
		ff_buf_addf(&b, " (of %zu)", v->nattempts);
	}
	(void)ff_report_put(s->out, ff_buf_str(&b), s->width);
	end_line(s);
	ff_buf_finish(&b);
}

static unsigned width_of(struct ff_str text)
{
	struct ff_buf b = {0};
	unsigned n = ff_report_put(&b, text, 4096);
	ff_buf_finish(&b);
	return n;
}

/* What the first line of `who` had no room for. */
static void put_rest_of_who(struct screen *s, struct ff_str rest)
{
	rest = ff_str_trim(rest);
	if (rest.n) {
		ff_buf_addf(s->out, "  %s", s->style->color ? "\033[1m" : "");
		(void)ff_report_put(s->out, rest, s->width - 2);
		ff_buf_addz(s->out, s->style->color ? "\033[0m" : "");
		end_line(s);
	}
}

/* How many bytes of a sentence go on a line: up to its last colon or full stop, else any blank. */
static size_t break_who(struct ff_str text, unsigned room)
{
	size_t n = ff_report_break(text, room);
	for (size_t i = n; n < text.n && i > n / 4 + 1; i--) {
		if (text.p[i - 1] == ' ' && (text.p[i - 2] == ':' || text.p[i - 2] == '.')) {
			return i;
		}
	}
	return n;
}

/* Who, where and how sure; in two lines if need be, unless candidates follow: a pager shows five
 * lines. False: there was no room for where. */
static bool put_who(struct screen *s, bool one_line)
{
	struct ff_buf who = {0}, where = {0}, sure = {0};
	ff_report_who(s->v, &who);
	ff_report_where(s->v, &where);
	ff_report_sure(s->v, &sure);
	unsigned nc = width_of(ff_buf_str(&sure)), nb = width_of(ff_buf_str(&where));
	unsigned na = width_of(ff_buf_str(&who));
	bool fits = na + nb + nc + 4 <= s->width;
	nb = fits ? nb : 0;
	unsigned room = s->width - nb - nc - 2;
	struct ff_str text = ff_buf_str(&who);
	size_t take = one_line ? text.n : break_who(text, room);
	ff_buf_addz(s->out, s->style->color ? "\033[1m" : "");
	na = ff_report_put(s->out, ff_str_trim(ff_str_n(text.p, take)), room);
	ff_buf_addz(s->out, s->style->color ? "\033[0m" : "");
	if (nb) {
		unsigned column =
			s->width / 2 - 4; /* as far left as a column, where there is room */
		unsigned gap =
			na + 2 < column && column + nb + nc + 2 <= s->width ? column - na : 2;
		ff_buf_addf(s->out, "%*s", (int)gap, "");
		(void)ff_report_put(s->out, ff_buf_str(&where), nb);
		na += gap + nb;
	}
	ff_buf_addf(s->out, "%*s", (int)(s->width - na - nc), "");
	(void)ff_report_put(s->out, ff_buf_str(&sure), nc);
	end_line(s);
	put_rest_of_who(s, ff_str_skip(text, take));
	ff_buf_finish(&who);
	ff_buf_finish(&where);
	ff_buf_finish(&sure);
	return fits;
}

/* In at most so many lines. */
static void put_reason(struct screen *s, bool with_where, unsigned lines)
{
	struct ff_buf b = {0};
	if (with_where) {
		ff_report_where(s->v, &b);
		ff_buf_addz(&b, b.len ? ": " : "");
	}
	if (s->v->nwhy && !ff_report_is_quiet(s->v)) {
		ff_buf_addz(&b, s->v->why[0].text);
	}
	struct ff_str rest = ff_buf_str(&b);
	for (; rest.n && lines; lines--) {
		size_t take = lines == 1 ? rest.n : ff_report_break(rest, s->width - 2);
		ff_buf_addz(s->out, "  ");
		(void)ff_report_put(s->out, ff_str_trim(ff_str_n(rest.p, take)), s->width - 2);
		end_line(s);
		rest = ff_str_trim(ff_str_skip(rest, take));
	}
	ff_buf_finish(&b);
}

static void put_candidates(struct screen *s, struct ff_buf *b)
{
	struct ff_str rest = ff_buf_str(b);
	while (rest.n) {
		ff_buf_addz(s->out, "  ");
		(void)ff_report_put(s->out, first_line(&rest), s->width - 2);
		end_line(s);
	}
}

/* One line, so that the pager has all of it: the text is cut rather than the bracket. */
static void put_do_now(struct screen *s)
{
	struct ff_buf b = {0}, text = {0};
	ff_report_do(s->v, &text);
	ff_report_action(s->v, &b);
	unsigned n = width_of(ff_buf_str(&b)), room = s->width - INDENT;
	put_label(s, "DO NOW");
	if (n + 3 + 16 <= room) {
		(void)ff_report_put(s->out, ff_buf_str(&text), room - n - 3);
		ff_buf_addz(s->out, "   ");
	}
	(void)ff_report_put(s->out, ff_buf_str(&b), room);
	end_line(s);
	ff_buf_finish(&text);
	ff_buf_finish(&b);
}

static void put_head(struct screen *s)
{
	struct ff_buf candidates = {0};
	put_title(s);
	if (!s->style->brief) {
		end_line(s);
	}
	ff_report_candidates(s->v, &candidates);
	unsigned from = s->left;
	bool where = put_who(s, candidates.len > 0);
	if (candidates.len) {
		put_candidates(s, &candidates);
	} else {
		put_reason(s, !where, 3 - (from - s->left));
	}
	put_do_now(s);
	ff_buf_finish(&candidates);
}

/* ---- what the logs prove */

static void put_evidence(struct screen *s, const struct ff_event *e)
{
	struct ff_str rest = ff_str_n(e->text ? e->text : "", e->text ? e->text_len : 0);
	unsigned from = s->left;
	while (rest.n && from - s->left < EVIDENCE && has_room(s)) {
		unsigned room = EVIDENCE - (from - s->left);
		put_para(s, "", first_line(&rest), room, true);
	}
	if (e->frame) {
		struct ff_buf b = {0};
		ff_buf_addf(&b, "at %s", e->frame);
		put_text(s, "", &b, 1);
	}
}

/* False: there is nothing. */
static bool put_proof(struct screen *s)
{
	const struct ff_sighting *p = ff_report_proof(s->v);
	struct ff_buf b = {0}, shown = {0};
	ff_report_shown(s->v, &shown);
	if (!p && !shown.len) {
		return false;
	}
	put_blank(s);
	if (p) {
		ff_report_place(p, &b);
		put_text(s, "PROOF", &b, 1);
	}
	bool first = s->v->kind == FF_VERDICT_RANK; /* its order is what makes it a proof */
	if (first) {
		put_lines(s, p ? "" : "PROOF", &shown, 4);
	}
	if (p) {
		put_evidence(s, p->ev);
	}
	put_lines(s, p ? "" : "PROOF", &shown, 4);
	return true;
}

static void put_others(struct screen *s, bool proven)
{
	struct ff_buf then = {0}, not = {0};
	ff_report_then(s->v, &then);
	ff_report_not(s->v, &not );
	if (!proven && (then.len || not .len)) {
		put_blank(s);
	}
	put_text(s, "THEN", &then, 2);
	put_lines(s, "NOT", &not, 3);
}

/* ---- what the catalogue says; never in one paragraph with what is proven */

/* How many lines put_para would take. */
static unsigned count_lines(const struct screen *s, struct ff_str text)
{
	unsigned n = 0;
	for (; text.n; n++) {
		text = ff_str_trim(ff_str_skip(text, ff_report_break(text, s->width - INDENT)));
	}
	return n;
}

static void put_catalogue(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	struct ff_buf run = {0}, b = {0};
	if (!v->fault || (!v->cause && !v->nverify)) {
		return;
	}
	if (v->nverify) {
		ff_report_verify(v, 0, &run);
	}
	unsigned lines = count_lines(s, ff_buf_str(&run));
	unsigned wanted = v->nverify ? lines + 1 : 0,
		 room = s->left > s->keep ? s->left - s->keep : 0;
	if (room < wanted + 2) {
		ff_buf_finish(&run);
		return;
	}
	put_blank(s);
	unsigned cause = room - wanted - 1;
	if (v->cause) {
		put_para(s, "CAUSE", ff_str_z(v->cause), cause < 2 ? cause : 2, false);
	}
	put_text(s, "VERIFY", &run, lines); /* never cut: it could not be run */
	if (v->nverify) {
		ff_buf_addf(&b, "expect %s", v->verify[0].expect);
		put_text(s, "", &b, 1);
	}
}

/* ---- what was heard, and what not */

/* As lines: what would settle it, then what is missing (which is what would settle it, too). */
static void list_missing(const struct screen *s, struct ff_buf *b)
{
	static const char none[] = "no output of ";
	bool open = s->v->kind == FF_VERDICT_UNDETERMINED;
	ff_report_settle(s->v, b);
	for (size_t i = 0; s->v->missing[i] && i < MISSING; i++) {
		const char *text = s->v->missing[i];
		bool lacks = open && !strncmp(text, none, sizeof none - 1);
		ff_buf_addf(b, "%s%s\n", lacks ? "the output of " : "",
			lacks ? text + sizeof none - 1 : text);
	}
}

static void put_missing(struct screen *s)
{
	bool open = s->v->kind == FF_VERDICT_UNDETERMINED;
	struct ff_buf b = {0};
	if (ff_report_is_quiet(s->v)) {
		return;
	}
	list_missing(s, &b);
	if (open && b.len && has_room(s)) {
		ff_buf_addz(s->out, "WOULD SETTLE IT");
		end_line(s);
	}
	put_lines(s, open ? "" : "MISSING", &b, MISSING);
}

/* Lines that the last part needs, so that nothing before it takes them. */
static unsigned lines_of_seen(const struct screen *s)
{
	bool open = s->v->kind == FF_VERDICT_UNDETERMINED;
	unsigned most = open ? MISSING : 2, n = 0;
	struct ff_buf b = {0};
	list_missing(s, &b);
	struct ff_str rest = ff_buf_str(&b);
	while (n < most && rest.n) {
		(void)first_line(&rest);
		n++;
	}
	ff_buf_clear(&b);
	ff_report_clock(s->v, &b);
	n += 2 + (b.len != 0) + (open && n);
	ff_buf_finish(&b);
	return n;
}

static void put_seen(struct screen *s)
{
	struct ff_buf b = {0};
	s->keep = TAIL;
	put_blank(s);
	ff_report_seen(s->v, &b);
	put_text(s, "SEEN", &b, 1);
	ff_report_clock(s->v, &b);
	put_text(s, "", &b, 1);
	put_missing(s);
}

static void put_next(struct screen *s)
{
	const struct ff_verdict *v = s->v;
	struct ff_buf b = {0};
	end_line(s);
	if (v->timeline.ask.offline) {
		ff_buf_addz(&b,
			"next: analyze --report md PATH | analyze --ranks PATH | "
			"analyze --timeline PATH");
	} else {
		ff_buf_addf(&b, "next: report %s | logs %s --around first", v->job, v->job);
		for (size_t i = 0; i < v->nwhy_not; i++) {
			if (v->why_not[i].rank != FF_UNKNOWN) {
				ff_buf_addf(
					&b, " | why %s --not %d", v->job, (int)v->why_not[i].rank);
				break;
			}
		}
		ff_buf_addf(&b, " | ranks %s", v->job);
	}
	(void)ff_report_put(s->out, ff_buf_str(&b), s->width);
	end_line(s);
	ff_buf_finish(&b);
}

void ff_report_title(
	const struct ff_verdict *v, const struct ff_report_style *style, struct ff_buf *out)
{
	struct screen s = {v, style, out, style->width < 60 ? 60 : style->width, LINES, 0};
	put_title(&s);
}

void ff_report_text(
	const struct ff_verdict *v, const struct ff_report_style *style, struct ff_buf *out)
{
	struct screen s = {v, style, out, style->width < 60 ? 60 : style->width, LINES, TAIL};
	put_head(&s);
	if (style->brief) {
		return;
	}
	s.keep = TAIL + lines_of_seen(&s);
	bool proven = put_proof(&s);
	if (!ff_report_is_quiet(v)) {
		put_others(&s, proven);
	}
	put_catalogue(&s);
	put_seen(&s);
	put_next(&s);
}
