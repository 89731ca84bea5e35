/* The front of a line: which prefixes come off, and what they say (core/line.h). */
#include "core/line.h"

#define PREFIXES_MAX 8u   /* prefixes of one line */
#define DIGITS_MAX 7u     /* of a rank or task number */
#define NAME_LEN_MAX 160u /* bytes of a prefix's name: role, host, actor */
#define BAR_MAX 512u      /* bytes of a progress bar that something is glued to */
#define TAIL_MAX 320u     /* bytes of Ray's word about repeats, with its hint */

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

/* ---- pieces of prefixes */

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
	size_t len;  /* bytes that come off; 0 with a tag: it stays in the text */
	size_t tail; /* bytes that come off the end with it */
	struct ff_tag tag;
	struct ff_str stamp;
	int64_t pid;     /* of a tag that is a rank as well; 0: none */
	int64_t repeats; /* lines like it that were left out */
	bool launcher;   /* numbers what a launcher started */
};

/* A name that is no number: of a host, a pod, a process in a journal. */
static struct ff_tag host_tag(struct ff_str name, uint64_t seed)
{
	return (struct ff_tag){FF_TAG_HOST, (int64_t)(ff_str_hash(name, seed) & INT64_MAX)};
}

/* The length of the shape if s has it at i, else 0: `a` is a letter, `d` a digit, `x` a digit or a
 * blank, `T` that or a blank, all else itself. */
static size_t shape_len(struct ff_str s, size_t i, const char *shape)
{
	size_t n = strlen(shape);
	for (size_t k = 0; k < n; k++) {
		char c = at(s, i + k);
		bool good = shape[k] == 'a' ? is_letter(c)
			: shape[k] == 'd'   ? is_digit(c)
			: shape[k] == 'x'   ? is_digit(c) || c == ' '
			: shape[k] == 'T'   ? c == 'T' || c == ' '
					    : c == shape[k];
		if (!good) {
			return 0;
		}
	}
	return n;
}

/* 2026-11-30 09:34:17,075 with T or a blank, fraction and zone as they come: its length, or 0. */
static size_t iso_len(struct ff_str s, size_t i)
{
	size_t n = shape_len(s, i, "dddd-dd-ddTdd:dd:dd");
	if (!n) {
		return 0;
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
	return shape_len(s, i, "aaa aaa xd dd:dd:dd dddd");
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
	size_t n = shape_len(s, 0, "dd:dd:dd");
	if (!n) {
		return 0;
	}
	if (at(s, n) == '.' || at(s, n) == ',') {
		n++;
		while (n < 20 && is_digit(at(s, n))) {
			n++;
		}
	}
	return n;
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
	*ret = (struct prefix){
		.len = n + 2,
		.tag = host_tag((struct ff_str){s.p, n}, FF_HASH_INIT),
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
	ptrdiff_t bar = ff_str_chr(front, '%', 0);
	while (bar >= 0 && at(front, (size_t)bar + 1) != '|') {
		bar = ff_str_chr(front, '%', (size_t)bar + 1);
	}
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

/* `text [repeated 3x across cluster]` of Ray, which leaves out lines that are equal but for their
 * digits; behind it perhaps how to stop that, around it colours. Its length, or 0. */
static size_t repeated_tail(struct ff_str s, int64_t *ret_n)
{
	size_t front = s.n > TAIL_MAX ? s.n - TAIL_MAX : 0;
	ptrdiff_t word = ff_str_find(s, FF_STR(" [repeated "), front);
	if (word < 0) {
		return 0;
	}
	size_t i = (size_t)word + 11;
	size_t n = ff_str_digits(ff_str_skip(s, i), ret_n);
	i += n;
	if (!n || n > 9 || !ff_str_starts(ff_str_skip(s, i), FF_STR("x across cluster]"))) {
		*ret_n = 0;
		return 0;
	}
	i += 17;
	if (ff_str_starts(ff_str_skip(s, i), FF_STR(" (Ray deduplicates"))) {
		ptrdiff_t close = ff_str_chr(s, ')', i);
		i = close < 0 ? s.n : (size_t)close + 1;
	}
	i += colours(s, i);
	if (i != s.n) {
		*ret_n = 0;
		return 0;
	}
	size_t from = (size_t)word;
	while (from > 0 && from + 8 > (size_t)word && s.p[from - 1] != '\x1b') {
		from--;
	}
	bool colour = from > 0 && s.p[from - 1] == '\x1b' &&
		colours(s, from - 1) == (size_t)word - (from - 1);
	return s.n - (colour ? from - 1 : (size_t)word);
}

/* A name that ends in "rank=2 ", as vLLM's workers have (SOURCES.md ray-logs). */
static bool ends_in_rank(struct ff_str name, int64_t *ret)
{
	size_t n = 0;
	while (n + 1 < name.n && is_digit(name.p[name.n - 2 - n])) {
		n++;
	}
	size_t word = name.n - 1 - n; /* where the digits begin */
	return n && n <= DIGITS_MAX && name.p[name.n - 1] == ' ' && word >= 6 &&
		ff_str_starts(ff_str_skip(name, word - 6), FF_STR(" rank=")) &&
		ff_str_digits(ff_str_skip(name, word), ret) == n;
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
	j += j < s.n;
	int64_t rank;
	bool ranked = ends_in_rank(ff_str_n(name.p, (size_t)found), &rank);
	*ret = (struct prefix){.len = j, .tag = {FF_TAG_PID, pid}};
	if (ranked) {
		ret->tag = (struct ff_tag){FF_TAG_GLOBAL, rank};
		ret->pid = pid;
	}
	ret->tail = repeated_tail(ff_str_skip(s, j), &ret->repeats);
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

/* <stdout rank="3">text</stdout> of Open MPI's XML output (SOURCES.md ompi-iof). */
static bool xml_prefix(struct ff_str s, struct prefix *ret)
{
	static const char *const opens[] = {"<stdout rank=\"", "<stderr rank=\""};
	for (size_t i = 0; i < sizeof opens / sizeof opens[0]; i++) {
		struct ff_str open = ff_str_z(opens[i]);
		int64_t rank;
		size_t n = ff_str_starts(s, open) ? rank_digits(s, open.n, &rank) : 0;
		size_t len = open.n + n;
		if (!n || at(s, len) != '"' || at(s, len + 1) != '>') {
			continue;
		}
		struct ff_str close = i ? FF_STR("</stderr>") : FF_STR("</stdout>");
		size_t tail = ff_str_ends(s, close) ? close.n : 0;
		static const struct ff_str lf = {"&#010;", 6};
		tail += tail && ff_str_ends((struct ff_str){s.p, s.n - tail}, lf) ? lf.n : 0;
		*ret = (struct prefix){
			.len = len + 2,
			.tail = tail,
			.tag = {FF_TAG_GLOBAL, rank},
			.launcher = true,
		};
		return true;
	}
	return false;
}

/* A name of Kubernetes at i: its length, or 0. */
static size_t kube_name(struct ff_str s, size_t i)
{
	size_t n = 0;
	while (n < 253 &&
		((at(s, i + n) >= 'a' && at(s, i + n) <= 'z') || is_digit(at(s, i + n)) ||
			at(s, i + n) == '-' || at(s, i + n) == '.')) {
		n++;
	}
	return n;
}

/* [pod/llm-worker-3/pytorch] text of kubectl logs --prefix (SOURCES.md kubectl-logs). A pod's
 * number is that of a replica, which may hold many ranks: only its name counts. */
static bool pod_prefix(struct ff_str s, struct prefix *ret)
{
	size_t pod = ff_str_starts(s, FF_STR("[pod/")) ? kube_name(s, 5) : 0;
	if (!pod || at(s, 5 + pod) != '/') {
		return false;
	}
	size_t i = 6 + pod;
	size_t container = kube_name(s, i);
	i += container;
	if (!container || at(s, i) != ']' || (i + 1 < s.n && s.p[i + 1] != ' ')) {
		return false;
	}
	*ret = (struct prefix){
		.len = i + 1 + (i + 1 < s.n),
		.tag = host_tag((struct ff_str){s.p + 5, i - 5}, FF_HASH_INIT),
		.launcher = true,
	};
	return true;
}

/* ---- times in front of other prefixes */

/* May  1 12:00:00 of syslog and ts: its length, or 0. */
static size_t syslog_len(struct ff_str s, size_t i)
{
	return shape_len(s, i, "aaa xd dd:dd:dd");
}

/* What torch, torchrun, Open MPI and Ray print: forms that no text of a program has by chance. */
static bool strong_prefix(struct ff_str s, size_t i, struct prefix *ret)
{
	struct ff_str rest = ff_str_skip(s, i);
	struct prefix p = {.tag = FF_TAG_INIT};
	size_t colour = colours(s, i);
	if (rank_prefix(s, i, &p)) {
		*ret = p;
		return true;
	}
	if (ff_str_starts(rest, FF_STR("[default")) && role_prefix(s, i, &p)) {
		*ret = p;
		return true;
	}
	if (at(s, i + colour) == '(' && pid_prefix(s, i + colour, &p)) {
		*ret = p;
		return true;
	}
	size_t ompi = ompi_tag(s, i, &p.tag);
	if (ompi) {
		*ret = (struct prefix){.len = i + ompi, .tag = p.tag, .launcher = true};
	}
	return ompi != 0;
}

/* A time and then a tag of a strong form: what put the time in front of it (ts, kubectl
 * --timestamps) comes off with it. [rank3] without a colon is the program's own, and all stays. */
static bool stamped_tag(struct ff_str s, struct prefix *ret)
{
	size_t i = at(s, 0) == '[';
	size_t n = iso_len(s, i);
	if (!n && !i) {
		n = is_digit(at(s, 0)) ? clock_len(s) : syslog_len(s, 0);
	}
	size_t j = i + n;
	if (!n || (i && at(s, j) != ']')) {
		return false;
	}
	j += i;
	struct prefix p = {.tag = FF_TAG_INIT};
	if (at(s, j) != ' ' || !strong_prefix(s, j + 1, &p)) {
		return false;
	}
	if (p.len) {
		p.stamp = (struct ff_str){s.p + i, n};
	}
	*ret = p;
	return true;
}

/* 2024-05-01T12:00:00.000000001Z text of kubectl logs --timestamps and docker logs -t: Go prints
 * nanoseconds and cuts their zeros; programs print six digits at most (SOURCES.md cri-logs). */
static bool nano_prefix(struct ff_str s, struct prefix *ret)
{
	size_t n = at(s, 10) == 'T' && at(s, 19) == '.' ? iso_len(s, 0) : 0;
	size_t digits = 0;
	while (is_digit(at(s, 20 + digits))) {
		digits++;
	}
	if (!n || digits < 7 || n <= 20 + digits || (n < s.n && s.p[n] != ' ')) {
		return false;
	}
	*ret = (struct prefix){
		.len = n + (n < s.n),
		.tag = FF_TAG_INIT,
		.stamp = {s.p, n},
	};
	return true;
}

/* Bytes at i up to the next blank: a field of a syslog head; 0 if it is longer than most. */
static size_t word_len(struct ff_str s, size_t i, size_t most)
{
	size_t n = 0;
	while (i + n < s.n && s.p[i + n] != ' ' && n <= most) {
		n++;
	}
	return n <= most && at(s, i + n) == ' ' ? n : 0;
}

/* name[991]: at i: its length, or 0. */
static size_t process_len(struct ff_str s, size_t i)
{
	size_t n = 0;
	while (n < 48 && i + n < s.n && !strchr(" \t[]:", s.p[i + n])) {
		n++;
	}
	int64_t pid;
	size_t digits =
		n && at(s, i + n) == '[' ? ff_str_digits(ff_str_skip(s, i + n + 1), &pid) : 0;
	size_t end = n + 1 + digits;
	if (!digits || digits > 10 || at(s, i + end) != ']' || at(s, i + end + 1) != ':') {
		return 0;
	}
	return end + 2;
}

/* May  1 12:00:00 gpu07 trainer[991]: text of syslog and journalctl, with a <PRI> as it is sent
 * (SOURCES.md syslog-head). Without a pid it stays: the kernel's lines and a program's own. */
static bool syslog_prefix(struct ff_str s, struct prefix *ret)
{
	int64_t pri;
	size_t i = 0;
	if (at(s, 0) == '<') {
		size_t digits = ff_str_digits(ff_str_skip(s, 1), &pri);
		if (!digits || digits > 3 || at(s, 1 + digits) != '>') {
			return false;
		}
		i = digits + 2;
	}
	size_t date = syslog_len(s, i);
	date = date || at(s, i + 10) != 'T' ? date : iso_len(s, i);
	size_t j = i + date + 1;
	if (!date || at(s, j - 1) != ' ') {
		return false;
	}
	size_t process = process_len(s, j); /* docker's driver names no host */
	if (!process) {
		size_t host = word_len(s, j, 255);
		process = host ? process_len(s, j + host + 1) : 0;
		process += process ? host + 1 : 0;
	}
	if (!process) {
		return false;
	}
	size_t end = j + process;
	*ret = (struct prefix){
		.len = end + (at(s, end) == ' '),
		.tag = host_tag((struct ff_str){s.p + j, process}, FF_HASH_INIT),
		.stamp = {s.p + i, date},
		.launcher = true,
	};
	return true;
}

/* Structured data of RFC 5424 at i: its length, or 0. */
static size_t syslog_data(struct ff_str s, size_t i)
{
	bool quoted = false;
	size_t n = 0;
	if (at(s, i) == '-') {
		return 1;
	}
	while (at(s, i + n) == '[') {
		for (n++; i + n < s.n && (quoted || s.p[i + n] != ']'); n++) {
			bool escape = s.p[i + n] == '\\';
			quoted = s.p[i + n] == '"' ? !quoted : quoted;
			n += escape;
		}
		if (at(s, i + n) != ']') {
			return 0;
		}
		n++;
	}
	return n;
}

/* <131>1 TIME HOST APP PID MSGID SD text (SOURCES.md syslog-head). */
static bool syslog5424_prefix(struct ff_str s, struct prefix *ret)
{
	static const size_t most[] = {255, 48, 128};
	int64_t pri;
	size_t digits = ff_str_digits(ff_str_skip(s, 1), &pri);
	size_t i = digits + 2;
	if (!digits || digits > 3 || at(s, i - 1) != '>' || at(s, i) != '1' ||
		at(s, i + 1) != ' ') {
		return false;
	}
	i += 2;
	size_t date = at(s, i) == '-' ? 1 : iso_len(s, i);
	size_t from = i + date + 1;
	size_t j = from;
	if (!date || at(s, from - 1) != ' ') {
		return false;
	}
	for (size_t k = 0; k < sizeof most / sizeof most[0]; k++) {
		size_t n = word_len(s, j, most[k]);
		if (!n) {
			return false;
		}
		j += n + 1;
	}
	size_t id = word_len(s, j, 32);
	size_t data = id ? syslog_data(s, j + id + 1) : 0;
	size_t end = j + id + 1 + data;
	if (!data || (end < s.n && s.p[end] != ' ')) {
		return false;
	}
	end += end < s.n;
	end += ff_str_starts(ff_str_skip(s, end), FF_STR("\xef\xbb\xbf")) ? 3 : 0;
	*ret = (struct prefix){
		.len = end,
		.tag = host_tag((struct ff_str){s.p + from, j - from}, FF_HASH_INIT),
		.stamp = {s.p + i, date > 1 ? date : 0},
		.launcher = true,
	};
	return true;
}

/* ---- tags inside a logger's own prefix: they stay in the text */

/* The number behind `word` at i, which `end` follows. */
static bool number_at(
	struct ff_str s, size_t i, const char *word, const char *end, struct prefix *ret)
{
	struct ff_str w = ff_str_z(word);
	int64_t rank;
	size_t n = ff_str_starts(ff_str_skip(s, i), w) ? rank_digits(s, i + w.n, &rank) : 0;
	if (!n || !ff_str_starts(ff_str_skip(s, i + w.n + n), ff_str_z(end))) {
		return false;
	}
	*ret = (struct prefix){.tag = {FF_TAG_GLOBAL, rank}};
	return true;
}

/* Behind `[word] ` at i; 0 if there is none of at most 96 bytes. */
static size_t behind_bracket(struct ff_str s, size_t i)
{
	struct ff_str part = {s.p, s.n < i + 96 ? s.n : i + 96};
	ptrdiff_t close = at(s, i) == '[' ? ff_str_chr(part, ']', i) : -1;
	return close > 0 && at(s, (size_t)close + 1) == ' ' ? (size_t)close + 2 : 0;
}

/* Global ranks that loggers print themselves (SOURCES.md logger-ranks):
 *	[2024-05-01 12:00:00,123] [INFO] [f.py:12:fn] [Rank 0] x   DeepSpeed
 *	[NeMo I 2024-05-01 12:00:00 f:12 rank:3] x                 NeMo
 *	[RANK 0] x, or behind `TIME - LEVEL - NAME - `             accelerate
 * A bare `[Rank 0] ` is a process group's, and `[rank: 0] ` of Lightning counts in its node or
 * speaks of a child. */
static bool logger_prefix(struct ff_str s, struct prefix *ret)
{
	if (number_at(s, 0, "[RANK ", "] ", ret)) {
		return true;
	}
	if (at(s, 0) != '[') {
		ptrdiff_t dash = -1;
		struct ff_str front = {s.p, s.n < 160 ? s.n : 160};
		if (iso_len(s, 0) || (at(s, 2) == '/' && at(s, 5) == '/')) {
			dash = ff_str_find(front, FF_STR(" - [RANK "), 0);
		}
		return dash > 0 && number_at(s, (size_t)dash, " - [RANK ", "] ", ret);
	}
	if (ff_str_starts(s, FF_STR("[NeMo "))) {
		size_t end = behind_bracket(s, 0);
		ptrdiff_t word =
			end ? ff_str_find((struct ff_str){s.p, end}, FF_STR(" rank:"), 0) : -1;
		return word > 0 && number_at(s, (size_t)word, " rank:", "] ", ret);
	}
	size_t i = iso_len(s, 1) ? behind_bracket(s, 0) : 0;
	i = i ? behind_bracket(s, i) : 0;
	i = i ? behind_bracket(s, i) : 0;
	return i && number_at(s, i, "[Rank ", "] ", ret);
}

/* ---- which of them stands here */

/* A prefix that begins with [, in front of which there are i bytes of colour. */
static bool bracket_prefix(struct ff_str s, size_t i, struct ff_tag before, struct prefix *ret)
{
	if (rank_prefix(s, i, ret)) {
		return true;
	}
	if (i) {
		return false;
	}
	bool first = before.kind == FF_TAG_NONE;
	return role_prefix(s, 0, ret) || (before.kind != FF_TAG_GLOBAL && ompi_prefix(s, ret)) ||
		(first && (hydra_prefix(s, ret) || pod_prefix(s, ret))) || stamped_tag(s, ret) ||
		(before.kind != FF_TAG_GLOBAL && logger_prefix(s, ret));
}

/* What begins with a digit or a letter: times, as a rule. */
static bool word_prefix(struct ff_str s, struct ff_tag before, struct prefix *ret)
{
	bool first = before.kind == FF_TAG_NONE;
	if (first && (cri_prefix(s, ret) || ompi_prefix(s, ret) || syslog_prefix(s, ret))) {
		return true;
	}
	if (stamped_tag(s, ret)) {
		return true;
	}
	if ((first || before.kind == FF_TAG_HOST) && nano_prefix(s, ret)) {
		return true;
	}
	return before.kind != FF_TAG_GLOBAL && logger_prefix(s, ret);
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
	if (c == '<') {
		return first &&
			(xml_prefix(s, ret) || syslog5424_prefix(s, ret) || syslog_prefix(s, ret));
	}
	if ((is_digit(c) || is_letter(c)) && word_prefix(s, before, ret)) {
		return true;
	}
	if (!first) {
		return bar_prefix(s, ret);
	}
	if ((is_digit(c) || c == 'P' || c == ' ') && task_prefix(s, ret)) {
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
		if (p.tag.kind == FF_TAG_LOCAL && e.tag.kind == FF_TAG_HOST) {
			/* the local rank of one of several hosts: which, no other word can say */
			p.tag.kind = FF_TAG_HOST;
			p.tag.value = (int64_t)(((uint64_t)e.tag.value * 0x9e3779b97f4a7c15ull +
							(uint64_t)p.tag.value) &
				INT64_MAX);
		}
		if (p.pid && e.tag.kind == FF_TAG_PID) {
			/* an engine's rank inside another program's process: not the job's */
			p.tag = (struct ff_tag){FF_TAG_PID, p.pid};
		}
		e.text = ff_str_skip(e.text, p.len);
		e.text.n -= p.tail < e.text.n ? p.tail : e.text.n;
		e.repeats = p.repeats ? p.repeats : e.repeats;
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
