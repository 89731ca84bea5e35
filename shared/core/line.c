#include "core/line.h"

#include "base/mem.h"

#define PENDING_KEEP 4096u /* bytes of memory that a stream keeps between lines */
#define PREFIXES_MAX 8u    /* prefixes of one line */
#define DIGITS_MAX 7u      /* of a rank or task number */
#define NAME_LEN_MAX 160u  /* bytes of a prefix's name: role, host, actor */
#define BAR_MAX 512u       /* bytes of a progress bar that something is glued to */

static const char *const kind_names[] = {
	[FF_TAG_NONE] = "none",
	[FF_TAG_GLOBAL] = "global",
	[FF_TAG_LOCAL] = "local",
	[FF_TAG_TASK] = "task",
	[FF_TAG_GROUP] = "group",
	[FF_TAG_HOST] = "host",
	[FF_TAG_PID] = "pid",
};

const char *ff_tag_kind_name(enum ff_tag_kind kind)
{
	return kind_names[kind];
}

int ff_tag_kind_parse(struct ff_str name)
{
	for (size_t i = 0; i < sizeof kind_names / sizeof kind_names[0]; i++) {
		if (ff_str_eqz(name, kind_names[i])) {
			return (int)i;
		}
	}
	return -1;
}

/* ---- splitter */

void ff_splitter_init(struct ff_splitter *s)
{
	*s = (struct ff_splitter){
		.number = 1,
		.stamp = FF_STAMP_NONE,
		.tags = {FF_TAG_INIT, FF_UNKNOWN},
	};
}

void ff_splitter_finish(struct ff_splitter *s)
{
	if (!s) {
		return;
	}
	ff_buf_finish(&s->pending);
	ff_splitter_init(s);
}

/* One chunk on its way through the splitter. */
struct feed {
	struct ff_splitter *s;
	const char *p; /* next byte; stands at s->pos */
	const char *end;
	const char *lf; /* first LF at or behind p, or end; looked for again once p has passed it */
	const char *cr; /* the same for CR */
	struct ff_stamp stamp;
	struct ff_line_tags tags;
	ff_line_fn *fn;
	void *ud;
};

static const char *find(const char *from, const char *end, char c)
{
	const char *at = from < end ? memchr(from, c, (size_t)(end - from)) : NULL;
	return at ? at : end;
}

/* The next LF or CR. Each byte of the chunk is looked at once for either. */
static const char *next_end(struct feed *f)
{
	if (f->lf < f->p) {
		f->lf = find(f->p, f->end, '\n');
	}
	if (f->cr < f->p) {
		f->cr = find(f->p, f->end, '\r');
	}
	return f->lf < f->cr ? f->lf : f->cr;
}

static void advance(struct feed *f, size_t n)
{
	f->p += n;
	f->s->pos += n;
}

static void open_line(struct ff_splitter *s, struct ff_stamp stamp, struct ff_line_tags tags)
{
	if (!s->open) {
		s->open = true;
		s->stamp = stamp;
		s->tags = tags;
	}
}

/* How a line ends. */
enum ending { END_LF, END_CR, END_CUT, END_STREAM };

/* Hands out the open line, which ends at pos. The splitter's state is whole before fn is called. */
static void hand_out(
	struct ff_splitter *s, struct ff_str text, enum ending how, ff_line_fn *fn, void *ud)
{
	struct ff_line line = {
		.offset = s->start,
		.end = s->pos,
		.number = s->number,
		.text = text,
		.stamp = s->stamp,
		.tags = s->tags,
		.cut = how == END_CUT,
		.unfinished = how == END_STREAM,
	};
	s->open = false;
	s->cr = false;
	s->in_skip = how == END_CUT;
	s->start = s->pos;
	if (how == END_LF && s->number) {
		s->number++;
	}
	s->pending.len = 0; /* its bytes stay for text */
	fn(ud, &line);
	if (s->pending.cap > PENDING_KEEP) {
		ff_buf_finish(&s->pending);
	}
}

/* A skip has come to its end in front of pos. */
static void end_skip(struct ff_splitter *s, enum ending how)
{
	s->cr = false;
	s->in_skip = false;
	s->start = s->pos;
	if (how == END_LF && s->number) {
		s->number++;
	}
}

/* The open line's text: pending and the n bytes at p, borrowed where nothing is pending. */
static struct ff_str join(struct ff_splitter *s, const char *p, size_t n)
{
	if (!s->pending.len) {
		return (struct ff_str){p, n};
	}
	ff_buf_add(&s->pending, p, n);
	return ff_buf_str(&s->pending);
}

/* A CR was the last byte of the chunk before: this one's first byte tells what it was. */
static void decide_cr(struct feed *f)
{
	struct ff_splitter *s = f->s;
	enum ending how = *f->p == '\n' ? END_LF : END_CR;
	if (how == END_LF) {
		advance(f, 1);
	}
	if (s->open) {
		hand_out(s, join(s, f->p, 0), how, f->fn, f->ud);
	} else {
		end_skip(s, how);
	}
}

/* At a terminator: how many bytes of it there are; 0 if the chunk ends behind a CR. */
static size_t end_len(const struct feed *f, const char *at)
{
	if (*at == '\n') {
		return 1;
	}
	if (at + 1 == f->end) {
		return 0;
	}
	return at[1] == '\n' ? 2 : 1;
}

static enum ending ending(const char *at, size_t len)
{
	return at[len - 1] == '\n' ? END_LF : END_CR;
}

static void skip(struct feed *f)
{
	struct ff_splitter *s = f->s;
	const char *at = next_end(f);
	advance(f, (size_t)(at - f->p));
	s->start = s->pos;
	if (at == f->end) {
		return;
	}
	size_t len = end_len(f, at);
	if (!len) {
		s->cr = true; /* start stays at the CR: whoever goes on from here must see it */
		advance(f, 1);
		return;
	}
	advance(f, len);
	end_skip(s, ending(at, len));
}

static void take(struct feed *f)
{
	struct ff_splitter *s = f->s;
	const char *at = next_end(f);
	size_t n = (size_t)(at - f->p);
	open_line(s, f->stamp, f->tags);
	if (s->pending.len + n > FF_LINE_MAX) {
		size_t part = FF_LINE_MAX - s->pending.len;
		struct ff_str text = join(s, f->p, part);
		advance(f, part);
		hand_out(s, text, END_CUT, f->fn, f->ud);
		return;
	}
	size_t len = at < f->end ? end_len(f, at) : 0;
	if (len) {
		struct ff_str text = join(s, f->p, n);
		advance(f, n + len);
		hand_out(s, text, ending(at, len), f->fn, f->ud);
		return;
	}
	if (n) {
		ff_buf_add(&s->pending, f->p, n);
	}
	s->cr = at < f->end;
	advance(f, (size_t)(f->end - f->p));
}

void ff_splitter_feed(struct ff_splitter *s, const char *p, size_t n, struct ff_stamp stamp,
	struct ff_line_tags tags, ff_line_fn *fn, void *ud)
{
	if (!n) {
		return;
	}
	struct feed f = {s, p, p + n, NULL, NULL, stamp, tags, fn, ud};
	f.lf = find(p, f.end, '\n');
	f.cr = find(p, f.end, '\r');
	if (s->cr) {
		decide_cr(&f);
	}
	while (f.p < f.end) {
		if (s->in_skip) {
			skip(&f);
		} else {
			take(&f);
		}
	}
}

void ff_splitter_end(struct ff_splitter *s, ff_line_fn *fn, void *ud)
{
	if (s->open) {
		hand_out(s, join(s, "", 0), s->cr ? END_CR : END_STREAM, fn, ud);
	} else if (s->cr) {
		end_skip(s, END_CR);
	}
}

/* ---- entries */

static char at(struct ff_str s, size_t i)
{
	return i < s.n ? s.p[i] : '\0';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Digits at i that are the number of a rank or task: how many, 0 if they are none. */
static size_t rank_digits(struct ff_str s, size_t i, int64_t *ret)
{
	size_t n = ff_str_digits(ff_str_skip(s, i), ret);
	return n && n <= DIGITS_MAX && *ret < FF_RANKS_MAX ? n : 0;
}

/* "\x1b[36m": bytes of one or more colour sequences at i. */
static size_t colours(struct ff_str s, size_t i)
{
	size_t from = i;
	while (at(s, i) == '\x1b' && at(s, i + 1) == '[') {
		size_t j = i + 2;
		while (j - i < 16 && (is_digit(at(s, j)) || at(s, j) == ';')) {
			j++;
		}
		if (at(s, j) != 'm') {
			break;
		}
		i = j + 1;
	}
	return i - from;
}

/* One prefix that stands at the front of a text. */
struct prefix {
	size_t len; /* bytes that come off; 0 with a tag: it stays in the text */
	struct ff_tag tag;
	struct ff_str stamp;
	bool launcher; /* numbers what a launcher started */
};

/* 2026-11-30 09:34:17,075 with T or a blank, fraction and zone as they come: its length, or 0. */
static size_t iso_len(struct ff_str s, size_t i)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:dd";
	size_t n = sizeof shape - 1;
	for (size_t k = 0; k < n; k++) {
		char c = at(s, i + k);
		bool good = shape[k] == 'd' ? is_digit(c)
			: shape[k] == 'T'   ? c == 'T' || c == ' '
					    : c == shape[k];
		if (!good) {
			return 0;
		}
	}
	if (at(s, i + n) == '.' || at(s, i + n) == ',') {
		size_t k = n + 1;
		while (k - n <= 9 && is_digit(at(s, i + k))) {
			k++;
		}
		n = k > n + 1 ? k : n;
	}
	if (at(s, i + n) == 'Z') {
		return n + 1;
	}
	if ((at(s, i + n) == '+' || at(s, i + n) == '-') && is_digit(at(s, i + n + 1))) {
		size_t k = n + 1;
		while (k - n <= 6 && (is_digit(at(s, i + k)) || at(s, i + k) == ':')) {
			k++;
		}
		n = k;
	}
	return n;
}

/* Thu May  1 12:00:00 2024 */
static size_t ctime_len(struct ff_str s, size_t i)
{
	static const char shape[] = "aaa aaa xd dd:dd:dd dddd";
	for (size_t k = 0; k < sizeof shape - 1; k++) {
		char c = at(s, i + k);
		bool good = shape[k] == 'a' ? is_letter(c)
			: shape[k] == 'd'   ? is_digit(c)
			: shape[k] == 'x'   ? is_digit(c) || c == ' '
					    : c == shape[k];
		if (!good) {
			return 0;
		}
	}
	return sizeof shape - 1;
}

/* [rank3]: text, [rank3]:[E1130 ... (SOURCES.md c10-logging, torch-excepthook); [rank3] text stays
 * whole. */
static bool rank_prefix(struct ff_str s, size_t i, struct prefix *ret)
{
	if (!ff_str_starts(ff_str_skip(s, i), FF_STR("[rank"))) {
		return false;
	}
	int64_t rank;
	size_t j = i + 5;
	size_t n = rank_digits(s, j, &rank);
	j += n;
	if (!n || at(s, j) != ']') {
		return false;
	}
	ret->tag = (struct ff_tag){FF_TAG_GLOBAL, rank};
	if (at(s, j + 1) == ':') {
		ret->len = j + 2 + (at(s, j + 2) == ' ');
		return true;
	}
	return at(s, j + 1) == ' ' && j + 1 < s.n;
}

/* 18:00:34.257 */
static size_t clock_len(struct ff_str s)
{
	static const char shape[] = "dd:dd:dd";
	for (size_t k = 0; k < sizeof shape - 1; k++) {
		char c = at(s, k);
		if (shape[k] == 'd' ? !is_digit(c) : c != shape[k]) {
			return 0;
		}
	}
	size_t n = sizeof shape - 1;
	if (at(s, n) == '.' || at(s, n) == ',') {
		n++;
		while (n < 20 && is_digit(at(s, n))) {
			n++;
		}
	}
	return n;
}

/* A time and then [rank3] : the program's own form; it stays. With a colon the tag is torch's, and
 * what put the time in front of it (ts, kubectl --timestamps) comes off with it. */
static bool stamped_rank(struct ff_str s, struct prefix *ret)
{
	size_t i = at(s, 0) == '[';
	size_t n = iso_len(s, i);
	size_t j = i + (n ? n : i ? 0 : clock_len(s));
	if (j == i || (i && at(s, j) != ']')) {
		return false;
	}
	j += i;
	struct prefix p = {0};
	if (at(s, j) != ' ' || !rank_prefix(s, j + 1, &p)) {
		return false;
	}
	if (p.len && n) {
		p.stamp = (struct ff_str){s.p + i, n};
	}
	*ret = p;
	return true;
}

/* [default3]:text (SOURCES.md torch-tail-prefix). The role is whatever stands before the last
 * digits. */
static bool role_prefix(struct ff_str s, size_t i, struct prefix *ret)
{
	size_t j = i + 1;
	if (!is_letter(at(s, j)) && at(s, j) != '_') {
		return false;
	}
	size_t digits = j;
	while (j - i < NAME_LEN_MAX) {
		char c = at(s, j);
		if (!is_letter(c) && !is_digit(c) && (!c || !strchr("_.-", c))) {
			break;
		}
		j++;
		if (!is_digit(c)) {
			digits = j;
		}
	}
	int64_t rank;
	size_t n = rank_digits(s, digits, &rank);
	if (!n || digits + n != j || at(s, j) != ']' || at(s, j + 1) != ':') {
		return false;
	}
	if (s.p[digits - 1] == '-') {
		return false; /* `[node-1]: `, `[rank-1]: `: a name or a number of its own */
	}
	*ret = (struct prefix){.len = j + 2, .tag = {FF_TAG_LOCAL, rank}};
	return true;
}

/* gpu07: [rank3]: text of pdsh (DeepSpeed). A host alone looks like an exception's name, so it
 * counts only in front of another tag. */
static bool host_prefix(struct ff_str s, struct prefix *ret)
{
	size_t n = 0;
	while (n < 64 &&
		(is_letter(at(s, n)) || is_digit(at(s, n)) || at(s, n) == '-' || at(s, n) == '.')) {
		n++;
	}
	if (!n || at(s, n) != ':' || at(s, n + 1) != ' ' || at(s, n + 2) != '[') {
		return false;
	}
	struct prefix p = {0};
	if (!(rank_prefix(s, n + 2, &p) && p.len) && !role_prefix(s, n + 2, &p)) {
		return false;
	}
	uint64_t hash = ff_str_hash((struct ff_str){s.p, n}, FF_HASH_INIT);
	*ret = (struct prefix){
		.len = n + 2,
		.tag = {FF_TAG_HOST, (int64_t)(hash & INT64_MAX)},
		.launcher = true,
	};
	return true;
}

/* A progress bar that was not redrawn before something else came: ` 32%|###  | 19/60 [00:01<00:04,
 * 9.39it/s][rank1]: Traceback` (SOURCES.md real-runs). The bar comes off. */
static bool bar_prefix(struct ff_str s, struct prefix *ret)
{
	static const char *const next[] = {"][rank", "]Traceback (most recent call last):"};
	struct ff_str front = {s.p, s.n < 64 ? s.n : 64};
	ptrdiff_t bar = ff_str_find(front, FF_STR("%|"), 0);
	if (bar < 0) {
		return false;
	}
	front.n = s.n < BAR_MAX ? s.n : BAR_MAX;
	for (size_t i = 0; i < sizeof next / sizeof next[0]; i++) {
		ptrdiff_t found = ff_str_find(front, ff_str_z(next[i]), (size_t)bar);
		if (found >= 0) {
			*ret = (struct prefix){.len = (size_t)found + 1, .tag = FF_TAG_INIT};
			return true;
		}
	}
	return false;
}

/* " 3: text", "13: text", "P0 13: text", "3:" (SOURCES.md srun-label). Padding and number together
 * are as wide as the greatest number. */
static bool task_prefix(struct ff_str s, struct prefix *ret)
{
	size_t i = 0;
	if (at(s, 0) == 'P') {
		int64_t offset;
		i = 1 + ff_str_digits(ff_str_skip(s, 1), &offset);
		if (i == 1 || at(s, i) != ' ') {
			return false;
		}
		i++;
	}
	size_t from = i;
	while (i - from < DIGITS_MAX && at(s, i) == ' ') {
		i++;
	}
	int64_t task;
	size_t n = rank_digits(s, i, &task);
	i += n;
	if (!n || i - from > DIGITS_MAX || at(s, i) != ':') {
		return false;
	}
	if (i + 1 < s.n && s.p[i + 1] != ' ') {
		return false;
	}
	*ret = (struct prefix){
		.len = i + 1 + (i + 1 < s.n),
		.tag = {FF_TAG_TASK, task},
		.launcher = true,
	};
	return true;
}

/* [3] text of hydra: digits only, one blank. */
static bool hydra_prefix(struct ff_str s, struct prefix *ret)
{
	int64_t rank;
	size_t n = rank_digits(s, 1, &rank);
	if (!n || at(s, 1 + n) != ']' || at(s, 2 + n) != ' ') {
		return false;
	}
	*ret = (struct prefix){
		.len = n + 3,
		.tag = {FF_TAG_GLOBAL, rank},
		.launcher = true,
	};
	return true;
}

/* <stdout>: at i with the blank behind it: its length, or 0. Open MPI 5 puts a blank there, 4 does
 * not; where the text itself is indented: indents of tracebacks are even. */
static size_t fd_mark(struct ff_str s, size_t i)
{
	static const char *const marks[] = {"<stdout>:", "<stderr>:", "<stddiag>:"};
	for (size_t k = 0; k < sizeof marks / sizeof marks[0]; k++) {
		struct ff_str mark = ff_str_z(marks[k]);
		if (!ff_str_starts(ff_str_skip(s, i), mark)) {
			continue;
		}
		size_t blanks = 0;
		while (blanks < 64 && at(s, i + mark.n + blanks) == ' ') {
			blanks++;
		}
		return mark.n + (blanks & 1);
	}
	return 0;
}

/* [1,3], [prterun-x@1,3], [1,WILDCARD] or [3] at i: its length, or 0. */
static size_t ompi_name(struct ff_str s, size_t i, struct ff_tag *ret)
{
	if (at(s, i) != '[') {
		return 0;
	}
	size_t most = s.n < i + NAME_LEN_MAX ? s.n : i + NAME_LEN_MAX;
	ptrdiff_t close = ff_str_chr((struct ff_str){s.p, most}, ']', i);
	if (close < 0) {
		return 0;
	}
	struct ff_str name = {s.p + i + 1, (size_t)close - i - 1};
	ptrdiff_t comma = ff_str_chr(name, ',', 0);
	struct ff_str number = ff_str_skip(name, (size_t)(comma + 1));
	int64_t rank;
	size_t n = rank_digits(number, 0, &rank);
	if (n && n == number.n) {
		*ret = (struct ff_tag){FF_TAG_GLOBAL, rank};
	} else if (comma >= 0 && ff_str_eq(number, FF_STR("WILDCARD"))) {
		*ret = FF_TAG_INIT;
	} else {
		return 0;
	}
	return name.n + 2;
}

/* [1,3]<stderr>: or [1,3][host:pid]<stderr>: at i: its length, or 0. */
static size_t ompi_tag(struct ff_str s, size_t i, struct ff_tag *ret)
{
	size_t n = ompi_name(s, i, ret);
	if (n && at(s, i + n) == '[') {
		ptrdiff_t close = ff_str_chr(s, ']', i + n);
		if (close < 0 || (size_t)close - i > NAME_LEN_MAX) {
			return 0;
		}
		n = (size_t)close + 1 - i;
	}
	size_t mark = n ? fd_mark(s, i + n) : 0;
	return mark ? n + mark : 0;
}

/* Open MPI's tag, perhaps behind a time (SOURCES.md ompi-iof); 5.0.7 puts a stream mark of the
 * time's own between them (real runs of 5.0.7); a time and a mark may also stand alone. */
static bool ompi_prefix(struct ff_str s, struct prefix *ret)
{
	struct prefix p = {.tag = FF_TAG_INIT, .launcher = true};
	size_t bracket = at(s, 0) == '[';
	size_t n = ctime_len(s, bracket);
	size_t i = 0;
	if (n && (!bracket || at(s, n + 1) == ']')) {
		p.stamp = (struct ff_str){s.p + bracket, n};
		i = n + 2 * bracket;
	}
	size_t mark = p.stamp.n ? fd_mark(s, i) : 0;
	size_t len = ompi_tag(s, i + mark, &p.tag);
	if (!len && !mark) {
		return false;
	}
	if (!len) {
		p.tag = FF_TAG_INIT; /* what looked like a name was text */
	}
	p.len = i + mark + len;
	*ret = p;
	return true;
}

/* (name pid=7) or (name pid=7, ip=10.0.0.5) of Ray and vLLM; the name may hold parentheses and
 * blanks. Colours stand around it also in files (SOURCES.md ray-logs). */
static bool pid_prefix(struct ff_str s, size_t i, struct prefix *ret)
{
	size_t depth = 0;
	size_t j = i;
	for (; j - i < NAME_LEN_MAX && j < s.n; j++) {
		if (s.p[j] == '(') {
			depth++;
		} else if (s.p[j] == ')' && --depth == 0) {
			break;
		}
	}
	if (at(s, j) != ')' || j - i >= NAME_LEN_MAX) {
		return false;
	}
	struct ff_str name = {s.p + i, j - i};
	ptrdiff_t found = -1;
	for (ptrdiff_t k = ff_str_find(name, FF_STR("pid="), 0); k >= 0;
		k = ff_str_find(name, FF_STR("pid="), (size_t)k + 4)) {
		if (k > 0 && (name.p[k - 1] == '(' || name.p[k - 1] == ' ')) {
			found = k;
		}
	}
	int64_t pid;
	size_t n = found < 0 ? 0 : ff_str_digits(ff_str_skip(name, (size_t)found + 4), &pid);
	if (!n || n > 10) {
		return false;
	}
	struct ff_str rest = ff_str_skip(name, (size_t)found + 4 + n);
	if (rest.n && !ff_str_starts(rest, FF_STR(", ip="))) {
		return false;
	}
	j++;
	j += colours(s, j);
	if (j < s.n && s.p[j] != ' ') {
		return false;
	}
	*ret = (struct prefix){.len = j + (j < s.n), .tag = {FF_TAG_PID, pid}};
	return true;
}

/* TIME stdout F text of a container runtime's file (SOURCES.md cri-logs). */
static bool cri_prefix(struct ff_str s, struct prefix *ret)
{
	size_t n = at(s, 10) == 'T' ? iso_len(s, 0) : 0;
	if (!n || at(s, n) != ' ') {
		return false;
	}
	struct ff_str rest = ff_str_skip(s, n + 1);
	if (!ff_str_starts(rest, FF_STR("stdout ")) && !ff_str_starts(rest, FF_STR("stderr "))) {
		return false;
	}
	size_t i = n + 8;
	if (at(s, i) != 'F' && at(s, i) != 'P') {
		return false;
	}
	i++;
	for (size_t k = 0; at(s, i) == ':' || (k && i < s.n && s.p[i] != ' '); k++, i++) {
		if (k > 32) {
			return false;
		}
	}
	if (i < s.n && s.p[i] != ' ') {
		return false;
	}
	*ret = (struct prefix){
		.len = i + (i < s.n),
		.tag = FF_TAG_INIT,
		.stamp = {s.p, n},
	};
	return true;
}

/* A prefix that begins with [, in front of which there are i bytes of colour. */
static bool bracket_prefix(struct ff_str s, size_t i, struct ff_tag before, struct prefix *ret)
{
	if (rank_prefix(s, i, ret)) {
		return true;
	}
	if (i) {
		return false;
	}
	return role_prefix(s, 0, ret) || (before.kind != FF_TAG_GLOBAL && ompi_prefix(s, ret)) ||
		(before.kind == FF_TAG_NONE && hydra_prefix(s, ret)) || stamped_rank(s, ret);
}

/* Is there a prefix at the front of s, given the tag of those in front of it? */
static bool parse_prefix(struct ff_str s, struct ff_tag before, struct prefix *ret)
{
	bool first = before.kind == FF_TAG_NONE;
	size_t i = colours(s, 0);
	char c = at(s, i);
	if (c == '[') {
		return bracket_prefix(s, i, before, ret);
	}
	if (c == '(') {
		return before.kind != FF_TAG_GLOBAL && pid_prefix(s, i, ret);
	}
	if (i) {
		return false;
	}
	if (is_digit(c) && stamped_rank(s, ret)) {
		return true;
	}
	if (!first) {
		return bar_prefix(s, ret);
	}
	if (is_digit(c) && cri_prefix(s, ret)) {
		return true;
	}
	if ((is_digit(c) || c == 'P' || c == ' ') && task_prefix(s, ret)) {
		return true;
	}
	if (is_letter(c) && ompi_prefix(s, ret)) {
		return true;
	}
	return host_prefix(s, ret) || bar_prefix(s, ret);
}

static bool wins(struct ff_tag inner, struct ff_tag outer, bool outer_is_launcher)
{
	if (inner.kind == FF_TAG_GLOBAL || outer.kind != FF_TAG_GLOBAL) {
		return true;
	}
	return outer_is_launcher && inner.kind == FF_TAG_LOCAL;
}

void ff_line_entry(struct ff_str line, struct ff_entry *ret)
{
	struct ff_entry e = {.text = line, .tag = FF_TAG_INIT, .outer = FF_TAG_INIT};
	struct ff_tag outermost = FF_TAG_INIT;
	bool launcher = false;
	bool stays = false;
	for (unsigned i = 0; i < PREFIXES_MAX && !stays; i++) {
		struct prefix p = {.tag = FF_TAG_INIT};
		if (!parse_prefix(e.text, e.tag, &p)) {
			break;
		}
		if (p.tag.kind == FF_TAG_LOCAL && e.tag.kind == FF_TAG_GLOBAL && !launcher) {
			break; /* `[rank3]: [node1]: x`: the program's own brackets */
		}
		e.text = ff_str_skip(e.text, p.len);
		stays = !p.len;
		e.stamp = p.stamp.n && !e.stamp.n ? p.stamp : e.stamp;
		if (p.tag.kind == FF_TAG_NONE) {
			continue;
		}
		if (outermost.kind == FF_TAG_NONE) {
			outermost = p.tag;
		}
		if (wins(p.tag, e.tag, launcher)) {
			e.outer = e.tag.kind == FF_TAG_NONE ? FF_TAG_INIT : outermost;
			e.tag = p.tag;
			launcher = p.launcher;
		}
	}
	*ret = e;
}
