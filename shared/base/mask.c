#include "base/mask.h"

#include "base/str.h"

#include <stdio.h>

/* Sources: the issuers' own pages on the form of their keys, and what secret scanners look for
 * (gitleaks, trufflehog). The numbers are the least length behind the front.
 *
 *	hf      hf_ and 30 letters and digits: Hugging Face
 *	github  ghp_ gho_ ghu_ ghs_ ghr_ and 30, github_pat_ and 22
 *	wandb   wandb_v1_ and 20: Weights & Biases since SDK 0.22.3; the older 40
 *	        hexadecimal digits are known by their name only
 *	openai  sk- and 20, with a digit: OpenAI (sk-proj-) and others that took it over
 *	aws     AKIA or ASIA and 16 capitals and digits
 *	gcp     AIza and 35; ya29. and 20
 *	jwt     eyJ and 16, with a dot
 *	bearer  what follows Bearer or Basic and a blank, 16 and a digit
 *	url     a password in SCHEME://USER:PASSWORD@
 *	azure   what follows sig=, 40
 *	key     what follows a name that says so (names[]) and '=' or ':'
 *	pem     the lines of a private key
 */
#define PEM_WORD 16u /* base64 characters that are part of a private key */
#define URL_MOST 512u
#define NAME_MOST 64u
#define SEPARATORS 4u /* blanks and quotes between a name and its value */
#define TELLING 512u  /* bytes in which a digit or dot has to be: a bound for hostile text */

enum class {
	UPPER = 1,
	LOWER = 2,
	DIGIT = 4,
	UNDER = 8,  /* _ - */
	WORD = 16,  /* + / = ~ % */
	VALUE = 32, /* what else a password may hold */
	QUOTE = 64, /* blanks and quotes */
	DOT = 128,
	ALNUM = UPPER | LOWER | DIGIT,
	NAME = ALNUM | UNDER,
	TOKEN = NAME | WORD | DOT,
	ANY = TOKEN | VALUE,
};

static const unsigned char classes[256] = {
	['0'] = DIGIT, ['1'] = DIGIT, ['2'] = DIGIT, ['3'] = DIGIT, ['4'] = DIGIT, ['5'] = DIGIT,
	['6'] = DIGIT, ['7'] = DIGIT, ['8'] = DIGIT, ['9'] = DIGIT,
	['A'] = UPPER, ['B'] = UPPER, ['C'] = UPPER, ['D'] = UPPER, ['E'] = UPPER, ['F'] = UPPER,
	['G'] = UPPER, ['H'] = UPPER, ['I'] = UPPER, ['J'] = UPPER, ['K'] = UPPER, ['L'] = UPPER,
	['M'] = UPPER, ['N'] = UPPER, ['O'] = UPPER, ['P'] = UPPER, ['Q'] = UPPER, ['R'] = UPPER,
	['S'] = UPPER, ['T'] = UPPER, ['U'] = UPPER, ['V'] = UPPER, ['W'] = UPPER, ['X'] = UPPER,
	['Y'] = UPPER, ['Z'] = UPPER,
	['a'] = LOWER, ['b'] = LOWER, ['c'] = LOWER, ['d'] = LOWER, ['e'] = LOWER, ['f'] = LOWER,
	['g'] = LOWER, ['h'] = LOWER, ['i'] = LOWER, ['j'] = LOWER, ['k'] = LOWER, ['l'] = LOWER,
	['m'] = LOWER, ['n'] = LOWER, ['o'] = LOWER, ['p'] = LOWER, ['q'] = LOWER, ['r'] = LOWER,
	['s'] = LOWER, ['t'] = LOWER, ['u'] = LOWER, ['v'] = LOWER, ['w'] = LOWER, ['x'] = LOWER,
	['y'] = LOWER, ['z'] = LOWER,
	['_'] = UNDER, ['-'] = UNDER,
	['.'] = DOT, ['+'] = WORD, ['/'] = WORD, ['='] = WORD, ['~'] = WORD, ['%'] = WORD,
	['!'] = VALUE, ['#'] = VALUE, ['$'] = VALUE, ['&'] = VALUE, ['*'] = VALUE, ['^'] = VALUE,
	['?'] = VALUE, ['@'] = VALUE, [':'] = VALUE, ['|'] = VALUE, ['\\'] = VALUE,
	[' '] = QUOTE, ['\t'] = QUOTE, ['"'] = QUOTE, ['\''] = QUOTE,
};

static bool is(char c, unsigned of)
{
	return classes[(unsigned char)c] & of;
}

/* Bytes of one of the classes from p[at] on. */
static size_t span(struct ff_str s, size_t at, unsigned of)
{
	size_t end = at;
	while (end < s.n && is(s.p[end], of)) {
		end++;
	}
	return end - at;
}

/* Where the run of these classes that ends before s.p[at] begins. */
static size_t run_before(struct ff_str s, size_t at, unsigned of, size_t most)
{
	size_t from = at;
	while (from > 0 && at - from < most && is(s.p[from - 1], of)) {
		from--;
	}
	return from;
}

static bool has(struct ff_str s, size_t at, size_t n, unsigned of)
{
	for (size_t i = at; i < at + n && i < at + TELLING; i++) {
		if (is(s.p[i], of)) {
			return true;
		}
	}
	return false;
}

/* Does `word` stand right before s.p[at], as a word of its own? */
static bool follows(struct ff_str s, size_t at, struct ff_str word)
{
	return at >= word.n && !memcmp(s.p + at - word.n, word.p, word.n) &&
		(at == word.n || !is(s.p[at - word.n - 1], ALNUM));
}

/* ---- names whose value is a secret */

static const struct {
	struct ff_str end; /* of the name, in small letters, '-' as '_' */
	unsigned least;    /* bytes of the value */
} names[] = {
	{{"api_key", 7}, 16},
	{{"apikey", 6}, 16},
	{{"access_key", 10}, 16},
	{{"accesskey", 9}, 16},
	{{"account_key", 11}, 16},
	{{"accountkey", 10}, 16},
	{{"secret_key", 10}, 16},
	{{"secret", 6}, 16},
	{{"access_token", 12}, 16},
	{{"auth_token", 10}, 16},
	{{"refresh_token", 13}, 16},
	{{"id_token", 8}, 16},
	{{"api_token", 9}, 16},
	{{"session_token", 13}, 16},
	{{"authorization", 13}, 16},
	{{"password", 8}, 6},
	{{"passwd", 6}, 6},
	{{"sig", 3}, 40},
};

static char small(char c)
{
	return c == '-' ? '_' : is(c, UPPER) ? (char)(c + 'a' - 'A') : c;
}

/* The least length of the value of the name that ends before s.p[at]; 0: none of ours. */
static unsigned value_of(struct ff_str s, size_t at)
{
	size_t from = run_before(s, at, NAME, NAME_MOST);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct ff_str end = names[i].end;
		size_t n = end.n, k = 0; /* compared from the end: most differ there */
		if (n > at - from) {
			continue;
		}
		while (k < n && small(s.p[at - 1 - k]) == end.p[n - 1 - k]) {
			k++;
		}
		/* `secret` ends client_secret, not "nosecret"; AccountKey may end a longer word */
		bool whole = at - n == from || is(s.p[at - n - 1], UNDER) || is(s.p[at - n], UPPER);
		if (k == n && whole) {
			return names[i].least;
		}
	}
	return 0;
}

/* ---- what begins at a byte */

struct found {
	size_t at, n; /* n 0: none */
	const char *kind;
};

/* The first TELLING bytes of a span hold one of the class `need`: only then all of it is looked at,
 * so that a row of fronts without a secret costs no more than its length times a constant. */
static size_t telling_span(struct ff_str s, size_t at, unsigned of, size_t least, unsigned need)
{
	struct ff_str near = {s.p, at + TELLING < s.n ? at + TELLING : s.n};
	size_t n = span(near, at, of);
	return n >= least && (!need || has(s, at, n, need)) ? span(s, at, of) : 0;
}

static struct found fronted(struct ff_str s, size_t at, struct ff_str front, unsigned of,
			    size_t least, unsigned need, const char *kind)
{
	size_t n = follows(s, at, front) ? telling_span(s, at, of, least, need) : 0;
	return (struct found){at - (n ? front.n : 0), n ? front.n + n : 0, kind};
}

/* hf_, ghp_, github_pat_, wandb_v1_: `at` is behind an underscore. */
static struct found at_underscore(struct ff_str s, size_t at)
{
	static const struct {
		struct ff_str front;
		unsigned of, least;
		const char *kind;
	} kinds[] = {
		{{"hf_", 3}, ALNUM, 30, "hf"},
		{{"ghp_", 4}, ALNUM, 30, "github"},
		{{"gho_", 4}, ALNUM, 30, "github"},
		{{"ghu_", 4}, ALNUM, 30, "github"},
		{{"ghs_", 4}, ALNUM, 30, "github"},
		{{"ghr_", 4}, ALNUM, 30, "github"},
		{{"github_pat_", 11}, ALNUM | UNDER, 22, "github"},
		{{"wandb_v1_", 9}, ALNUM | UNDER, 20, "wandb"},
	};
	struct found f = {0};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !f.n; i++) {
		f = fronted(s, at, kinds[i].front, kinds[i].of, kinds[i].least, 0, kinds[i].kind);
	}
	return f;
}

/* sk-: words of prose may be joined by hyphens too, so a digit has to be there. */
static struct found at_hyphen(struct ff_str s, size_t at)
{
	return fronted(s, at, FF_STR("sk-"), NAME, 20, DIGIT, "openai");
}

/* AKIA, ASIA and AIza by their I. */
static struct found at_capital(struct ff_str s, size_t at)
{
	struct ff_str rest = ff_str_skip(s, at);
	if (rest.n && rest.p[0] == 'A' &&
	    (follows(s, at, FF_STR("AKI")) || follows(s, at, FF_STR("ASI")))) {
		size_t n = span(s, at + 1, UPPER | DIGIT);
		bool whole = n == 16 && (at + 1 + n == s.n || !is(s.p[at + 1 + n], LOWER));
		return (struct found){at - 3, whole ? 20 : 0, "aws"};
	}
	if (ff_str_starts(rest, FF_STR("za")) && follows(s, at, FF_STR("AI"))) {
		size_t n = span(s, at + 2, NAME);
		return (struct found){at - 2, n >= 35 ? n + 4 : 0, "gcp"};
	}
	return (struct found){0};
}

static bool is_scheme(struct ff_str s, size_t at)
{
	if (follows(s, at, FF_STR("Bearer")) || follows(s, at, FF_STR("bearer"))) {
		return true;
	}
	/* "Basic" is a word of prose too */
	static const char *const basic[] = {"Authorization: Basic", "authorization: Basic",
		"Authorization: basic", "authorization: basic"};
	for (size_t i = 0; i < sizeof basic / sizeof *basic; i++) {
		if (follows(s, at, ff_str_z(basic[i]))) {
			return true;
		}
	}
	return false;
}

/* The word behind Bearer or Basic: `at` is behind the blank. */
static struct found at_blank(struct ff_str s, size_t at)
{
	size_t n = is_scheme(s, at - 1) ? telling_span(s, at, TOKEN, 16, DIGIT) : 0;
	return (struct found){at, n, "bearer"};
}

/* The password before an '@': of an address with a scheme, without blanks and slashes in it. */
static struct found at_at(struct ff_str s, size_t at)
{
	size_t end = at - 1, i = end, colon = 0;
	while (i > 0 && end - i < URL_MOST && s.p[i - 1] != '/' && is(s.p[i - 1], ANY)) {
		i--;
		if (s.p[i] == ':') {
			colon = i;
		}
	}
	bool url = i >= 3 && !memcmp(s.p + i - 3, "://", 3);
	size_t n = url && colon > i && end > colon + 1 ? end - colon - 1 : 0;
	return (struct found){colon + 1, n, "url"};
}

/* The value of a name: `at` is behind '=' or ':'. */
static struct found at_equals(struct ff_str s, size_t at)
{
	size_t name = at - 1;
	while (name > 0 && at - name < SEPARATORS && is(s.p[name - 1], QUOTE)) {
		name--;
	}
	unsigned least = value_of(s, name);
	size_t from = at, n = 0;
	while (least && from < s.n && from - at < SEPARATORS && is(s.p[from], QUOTE)) {
		from++;
	}
	if (least) {
		/* what is written behind a colon is prose unless it holds a digit or is quoted */
		bool plain = s.p[at - 1] == ':' && (from == at || s.p[from - 1] == ' ');
		n = telling_span(s, from, ANY, least, plain ? DIGIT : 0);
	}
	return (struct found){from, n, least == 40 ? "azure" : "key"};
}

/* ---- private keys */

#define PEM_BEGIN "-----BEGIN "
#define PEM_END "-----END "

static void mask(char *p, size_t n, const char *kind)
{
	char text[48];
	unsigned hash = (unsigned)(ff_str_hash((struct ff_str){p, n}, FF_HASH_INIT) & 0xffff);
	size_t len = (size_t)snprintf(text, sizeof text, "<secret:%s:%04x>", kind, hash);
	if (len > n) {
		len = n;
	}
	memcpy(p, text, len);
	memset(p + len, '*', n - len);
}

/* Where the body of the private key begins whose BEGIN stands at `at`; 0: it is none, or its first
 * line isn't whole. */
static size_t pem_body(struct ff_str s, size_t at)
{
	struct ff_str key = FF_STR("PRIVATE KEY");
	size_t most = at + 80 < s.n ? at + 80 : s.n;
	ptrdiff_t name = ff_str_find(ff_str_n(s.p, most), key, at);
	ptrdiff_t end = name < 0 ? -1 : ff_str_find(ff_str_n(s.p, most), FF_STR("-----"),
		(size_t)name);
	return end < 0 ? 0 : (size_t)end + 5;
}

/* Masks the words of base64 of the key whose BEGIN stands at `at`, up to its END or up to the end
 * of the text; returns where that is. */
static size_t mask_pem(char *p, size_t n, size_t at, size_t *found)
{
	struct ff_str s = {p, n};
	size_t from = pem_body(s, at);
	ptrdiff_t stop = from ? ff_str_find(s, FF_STR(PEM_END), from) : -1;
	size_t end = !from ? at + sizeof PEM_BEGIN - 1 : stop < 0 ? n : (size_t)stop;
	while (from && from < end) {
		/* within JSON its lines end in a backslash and an n */
		bool newline = p[from] == '\\' && from + 1 < end && p[from + 1] == 'n';
		size_t len = newline ? 0 : span(ff_str_n(p, end), from, ALNUM | WORD);
		if (len >= PEM_WORD) {
			mask(p + from, len, "pem");
			++*found;
		}
		from += newline ? 2 : len ? len : 1;
	}
	return end;
}

/* ---- all together */

static struct found look(struct ff_str s, size_t i)
{
	switch (s.p[i]) {
	case '_': return at_underscore(s, i + 1);
	case '-': return at_hyphen(s, i + 1);
	case '.': return fronted(s, i + 1, FF_STR("ya29."), NAME, 20, 0, "gcp");
	case 'I': return at_capital(s, i + 1);
	case 'J': return fronted(s, i + 1, FF_STR("eyJ"), TOKEN, 16, DOT, "jwt");
	case ' ': return at_blank(s, i + 1);
	case '@': return at_at(s, i + 1);
	case '=':
	case ':': return at_equals(s, i + 1);
	default: return (struct found){0};
	}
}

/* Two bytes in a row that end, or stand in, the front of a secret: all others are passed over, at
 * a load or two a byte. A bit for each kind of second byte. */
enum pair {
	PAIR_UNDER = 1,   /* hf_ gh?_ github_pat_ wandb_v1_ */
	PAIR_HYPHEN = 2,  /* sk- and -----BEGIN */
	PAIR_DOT = 4,     /* ya29. */
	PAIR_I = 8,       /* AKIA ASIA AIza */
	PAIR_J = 16,      /* eyJ */
	PAIR_BLANK = 32,  /* Bearer, Basic */
	PAIR_AT = 64,     /* behind any byte */
	PAIR_VALUE = 128, /* the ends of names[], blanks and quotes */
};

static const unsigned char seconds[256] = {
	['_'] = PAIR_UNDER, ['-'] = PAIR_HYPHEN, ['.'] = PAIR_DOT, ['I'] = PAIR_I, ['J'] = PAIR_J,
	[' '] = PAIR_BLANK, ['@'] = PAIR_AT, ['='] = PAIR_VALUE, [':'] = PAIR_VALUE,
};

static const unsigned char firsts[256] = {
	['f'] = PAIR_UNDER, ['p'] = PAIR_UNDER, ['o'] = PAIR_UNDER, ['u'] = PAIR_UNDER,
	['s'] = PAIR_UNDER, ['1'] = PAIR_UNDER, ['r'] = PAIR_UNDER | PAIR_BLANK,
	['t'] = PAIR_UNDER | PAIR_VALUE, ['k'] = PAIR_HYPHEN, ['-'] = PAIR_HYPHEN,
	['9'] = PAIR_DOT, ['K'] = PAIR_I, ['S'] = PAIR_I, ['A'] = PAIR_I, ['c'] = PAIR_BLANK,
	['y'] = PAIR_J | PAIR_VALUE, ['n'] = PAIR_VALUE, ['d'] = PAIR_VALUE, ['g'] = PAIR_VALUE,
	['Y'] = PAIR_VALUE, ['T'] = PAIR_VALUE, ['N'] = PAIR_VALUE, ['D'] = PAIR_VALUE,
	['G'] = PAIR_VALUE, [' '] = PAIR_VALUE, ['"'] = PAIR_VALUE, ['\''] = PAIR_VALUE,
	['\t'] = PAIR_VALUE,
};

/* The first byte at or behind `from` that is the second of such a pair; n: none. */
static size_t next_pair(const char *p, size_t n, size_t from)
{
	if (!from) {
		from = 1;
	}
	unsigned before = from < n ? firsts[(unsigned char)p[from - 1]] : 0;
	for (size_t i = from; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		if (seconds[c] & (before | PAIR_AT)) {
			return i;
		}
		before = firsts[c];
	}
	return n;
}

/* Where a private key may begin: at the first of the hyphens. */
static bool begins_pem(struct ff_str s, size_t i)
{
	return s.p[i] == '-' && i >= 4 && ff_str_starts(ff_str_skip(s, i - 4), FF_STR(PEM_BEGIN));
}

static bool is_masked(struct ff_str s, size_t at)
{
	struct ff_str rest = ff_str_skip(s, at);
	struct ff_str mark = FF_STR("<secret:");
	return rest.n && (ff_str_starts(rest, mark) || (rest.n < mark.n && rest.p[0] == '<'));
}

size_t ff_mask(char *p, size_t n)
{
	struct ff_str s = {p, n};
	size_t found = 0;
	for (size_t i = next_pair(p, n, 0); i < n; i = next_pair(p, n, i + 1)) {
		struct found f = look(s, i);
		if (f.n && !is_masked(s, f.at)) {
			mask(p + f.at, f.n, f.kind);
			found++;
			i = f.at + f.n - 1;
		} else if (begins_pem(s, i)) {
			i = mask_pem(p, n, i - 4, &found) - 1;
		}
	}
	return found;
}

/* ---- pieces */

/* Where the last private key begins that has no END yet, or whose first line isn't whole; n: none.
 */
static size_t open_pem(struct ff_str s)
{
	size_t last = s.n, from = s.n > FF_MASK_OPEN_MAX ? s.n - FF_MASK_OPEN_MAX : 0;
	struct ff_str begin = FF_STR(PEM_BEGIN);
	ptrdiff_t at;
	while ((at = ff_str_find(s, begin, from)) >= 0) {
		last = (size_t)at;
		from = last + begin.n;
	}
	if (last == s.n) {
		return s.n;
	}
	size_t body = pem_body(s, last);
	if (!body) { /* another thing that begins, or the line is still coming */
		bool more = s.n - last < 80 && ff_str_find(s, FF_STR("-----"), from) < 0;
		return more ? last : s.n;
	}
	return ff_str_find(s, FF_STR(PEM_END), body) < 0 ? last : s.n;
}

/* Where the name begins whose value starts at `at`, or the Bearer before it; `at`: nothing does. */
static size_t introduced(struct ff_str s, size_t at)
{
	size_t name = run_before(s, at, QUOTE, SEPARATORS);
	if (is_scheme(s, name)) {
		return run_before(s, name, QUOTE | ANY, 24); /* Authorization: Basic */
	}
	if (name > 0 && (s.p[name - 1] == '=' || s.p[name - 1] == ':')) {
		name = run_before(s, name - 1, QUOTE, SEPARATORS);
	}
	return value_of(s, name) ? run_before(s, name, NAME, NAME_MOST) : at;
}

size_t ff_mask_open(const char *p, size_t n)
{
	struct ff_str s = {p, n};
	size_t word = run_before(s, n, ANY, FF_MASK_OPEN_MAX);
	if (n - word == FF_MASK_OPEN_MAX) {
		word = n;
	}
	size_t from = introduced(s, word), pem = open_pem(s);
	if (pem < from) {
		from = pem;
	}
	return n - from > FF_MASK_OPEN_MAX ? 0 : n - from;
}

bool ff_mask_is_front(const char *p, size_t n)
{
	static const char *const fronts[] = {"hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
		"github_pat_", "wandb_v1_", "sk-", "AKIA", "ASIA", "AIza", "ya29.", "eyJ",
		"Bearer ", "bearer ", PEM_BEGIN, "://"};
	struct ff_str s = {p, n};
	for (size_t i = 0; i < n; i++) {
		bool start = !i || p[i] == ':' || !is(p[i - 1], ALNUM);
		for (size_t k = 0; start && k < sizeof fronts / sizeof *fronts; k++) {
			size_t len = strlen(fronts[k]);
			if (!memcmp(p + i, fronts[k], n - i < len ? n - i : len)) {
				return true;
			}
		}
		if ((p[i] == '=' || p[i] == ':') && value_of(s, i)) {
			return true;
		}
	}
	return introduced(s, n) < n;
}
