#include "base/mask.h"

#include "base/str.h"

#include <stdio.h>

/* Sources: the issuers' own pages on the form of their keys, and what secret scanners look for
 * (gitleaks, trufflehog). The numbers are the least length behind the front.
 *
 *	hf      hf_ and 30 letters and digits: Hugging Face
 *	github  ghp_ gho_ ghu_ ghs_ ghr_ and 30, github_pat_ and 22
 *	wandb   wandb_v1_ and 20: Weights & Biases since SDK 0.22.3; the older 40
 *	        hexadecimal digits are known by their name and behind `wandb login` only
 *	openai  sk- and 20, with a digit: OpenAI (sk-proj-) and others that took it over
 *	aws     AKIA or ASIA and 16 capitals and digits
 *	gcp     AIza and 35; ya29. and 20
 *	jwt     eyJ and 16, with a dot
 *	gitlab  glpat- and 20: GitLab
 *	nvidia  nvapi- and 20: NVIDIA NGC
 *	slack   xoxb-, xoxp- and others of one letter, xapp-, and 20; the path of a webhook
 *	bearer  what follows Bearer or Basic and a blank, 16 and a digit
 *	url     a password in SCHEME://USER:PASSWORD@
 *	azure   what follows sig=, 40
 *	key     what follows a name that says so (names[]) and '=', ':' or an arrow, in a tuple,
 *	        such an option, `setenv NAME`; a netrc's password
 *	pem     the lines of a private key; also those whose BEGIN is not there, told by their
 *	        form: a window of a log may begin inside one, and other ranks' lines stand between
 */
#define PEM_WORD 16u /* base64 characters that are part of a private key */
#define KEY_LINE_MOST 76u
#define KEY_PREFIX_MOST 256u /* bytes of tags and times before it */
#define URL_MOST 512u
#define NAME_MOST 64u
#define SCHEME_MOST 12u
#define SEPARATORS 16u /* blanks, quotes and brackets between a name and its value */
#define COLOUR_MOST 16u
#define TELLING 512u /* bytes in which a digit or dot has to be: a bound for hostile text */

enum class {
	UPPER = 1,
	LOWER = 2,
	DIGIT = 4,
	UNDER = 8,  /* _ - */
	WORD = 16,  /* + / = ~ % */
	VALUE = 32, /* what else a password may hold */
	QUOTE = 64, /* what may stand between a name and its value */
	DOT = 128,
	ALNUM = UPPER | LOWER | DIGIT,
	NAME = ALNUM | UNDER,
	TOKEN = NAME | WORD | DOT,
	ANY = TOKEN | VALUE,
};

static const unsigned char classes[256] = {
	['0'] = DIGIT,
	['1'] = DIGIT,
	['2'] = DIGIT,
	['3'] = DIGIT,
	['4'] = DIGIT,
	['5'] = DIGIT,
	['6'] = DIGIT,
	['7'] = DIGIT,
	['8'] = DIGIT,
	['9'] = DIGIT,
	['A'] = UPPER,
	['B'] = UPPER,
	['C'] = UPPER,
	['D'] = UPPER,
	['E'] = UPPER,
	['F'] = UPPER,
	['G'] = UPPER,
	['H'] = UPPER,
	['I'] = UPPER,
	['J'] = UPPER,
	['K'] = UPPER,
	['L'] = UPPER,
	['M'] = UPPER,
	['N'] = UPPER,
	['O'] = UPPER,
	['P'] = UPPER,
	['Q'] = UPPER,
	['R'] = UPPER,
	['S'] = UPPER,
	['T'] = UPPER,
	['U'] = UPPER,
	['V'] = UPPER,
	['W'] = UPPER,
	['X'] = UPPER,
	['Y'] = UPPER,
	['Z'] = UPPER,
	['a'] = LOWER,
	['b'] = LOWER,
	['c'] = LOWER,
	['d'] = LOWER,
	['e'] = LOWER,
	['f'] = LOWER,
	['g'] = LOWER,
	['h'] = LOWER,
	['i'] = LOWER,
	['j'] = LOWER,
	['k'] = LOWER,
	['l'] = LOWER,
	['m'] = LOWER,
	['n'] = LOWER,
	['o'] = LOWER,
	['p'] = LOWER,
	['q'] = LOWER,
	['r'] = LOWER,
	['s'] = LOWER,
	['t'] = LOWER,
	['u'] = LOWER,
	['v'] = LOWER,
	['w'] = LOWER,
	['x'] = LOWER,
	['y'] = LOWER,
	['z'] = LOWER,
	['_'] = UNDER,
	['-'] = UNDER,
	['.'] = DOT,
	['+'] = WORD,
	['/'] = WORD,
	['='] = WORD,
	['~'] = WORD,
	['%'] = WORD,
	['!'] = VALUE,
	['#'] = VALUE,
	['$'] = VALUE,
	['&'] = VALUE,
	['*'] = VALUE,
	['^'] = VALUE,
	['?'] = VALUE,
	['@'] = VALUE,
	[':'] = VALUE,
	['|'] = VALUE,
	['\\'] = VALUE | QUOTE,
	[' '] = QUOTE,
	['\t'] = QUOTE,
	['"'] = QUOTE,
	['\''] = QUOTE,
	['('] = QUOTE,
	['['] = QUOTE,
	['{'] = QUOTE,
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

/* Where the front of a colour's escape that ends before s.p[at] begins, [1;33; `at`: none does. */
static size_t colour_before(struct ff_str s, size_t at)
{
	size_t from = at;
	while (from > 0 && at - from < COLOUR_MOST &&
		(is(s.p[from - 1], DIGIT) || s.p[from - 1] == ';')) {
		from--;
	}
	return from > 0 && s.p[from - 1] == '[' ? from - 1 : at;
}

/* Does an escape end before s.p[at]: \n in a quoted text, %3D in an address, or a colour's m? */
static bool is_behind_escape(struct ff_str s, size_t at)
{
	const char *p = s.p + at;
	if (at >= 2 && p[-2] == '\\') {
		return memchr("nrt", p[-1], 3);
	}
	if (at >= 3 && p[-3] == '%') {
		return is(p[-2], DIGIT) && is(p[-1], DIGIT | UPPER | LOWER);
	}
	return p[-1] == 'm' && colour_before(s, at - 1) < at - 1;
}

/* Can a word of its own begin at s.p[at]? */
static bool is_start(struct ff_str s, size_t at)
{
	return !at || !is(s.p[at - 1], ALNUM) || is_behind_escape(s, at);
}

/* Does `word` stand right before s.p[at], as a word of its own? */
static bool follows(struct ff_str s, size_t at, struct ff_str word)
{
	return at >= word.n && !memcmp(s.p + at - word.n, word.p, word.n) &&
		is_start(s, at - word.n);
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
	{{"secretkey", 9}, 16},
	{{"access_token", 12}, 16},
	{{"accesstoken", 11}, 16},
	{{"auth_token", 10}, 16},
	{{"authtoken", 9}, 16},
	{{"refresh_token", 13}, 16},
	{{"refreshtoken", 12}, 16},
	{{"id_token", 8}, 16},
	{{"idtoken", 7}, 16},
	{{"api_token", 9}, 16},
	{{"apitoken", 8}, 16},
	{{"session_token", 13}, 16},
	{{"sessiontoken", 12}, 16},
	{{"authorization", 13}, 16},
	{{"password", 8}, 6},
	{{"passwd", 6}, 6},
	{{"passphrase", 10}, 6},
	{{"mysql_pwd", 9}, 6},
	{{"db_pass", 7}, 6},
	{{"smtp_pass", 9}, 6},
	{{"redis_pass", 10}, 6},
	{{"sig", 3}, 40},
	{{"token", 5}, 20}, /* behind those that end in it */
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

/* What a name's value holds, without the backslash before a quote that ends it. */
static size_t value_span(struct ff_str s, size_t at, size_t least, unsigned need)
{
	size_t n = telling_span(s, at, ANY, least, need);
	return n && s.p[at + n - 1] == '\\' ? n - 1 : n;
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

/* xoxb- and its like, xapp- */
static struct found at_slack(struct ff_str s, size_t at)
{
	char front[] = "xox?-";
	front[3] = s.p[at - 2];
	if (at >= 5 && memchr("abcdeoprs", front[3], 9) && follows(s, at, ff_str_n(front, 5))) {
		return fronted(s, at, ff_str_n(front, 5), NAME, 20, DIGIT, "slack");
	}
	return fronted(s, at, FF_STR("xapp-"), NAME, 20, DIGIT, "slack");
}

/* The path of a webhook, which is its key: `at` is behind the dot of "hooks." (Slack's "Sending
 * messages using incoming webhooks": its URL contains a secret). */
static struct found at_hook(struct ff_str s, size_t at)
{
	struct ff_str host = FF_STR("slack.com/services/"), rest = ff_str_skip(s, at);
	bool hook = follows(s, at, FF_STR("hooks.")) && ff_str_starts(rest, host);
	size_t from = at + host.n;
	return (struct found){
		from, hook ? telling_span(s, from, NAME | WORD, 20, DIGIT) : 0, "slack"};
}

/* sk-, glpat-, nvapi-, xoxb-: words of prose may be joined by hyphens too, so a digit has to be
 * there. */
static struct found at_hyphen(struct ff_str s, size_t at)
{
	switch (s.p[at - 2]) {
	case 'k': return fronted(s, at, FF_STR("sk-"), NAME, 20, DIGIT, "openai");
	case 't': return fronted(s, at, FF_STR("glpat-"), NAME, 20, DIGIT, "gitlab");
	case 'i': return fronted(s, at, FF_STR("nvapi-"), NAME, 20, DIGIT, "nvidia");
	default: return at_slack(s, at);
	}
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

/* Where the name `authorization` ends whose scheme (Basic, Token, ...) begins at s.p[at]; 0: none.
 */
static size_t authorization(struct ff_str s, size_t at)
{
	size_t name = run_before(s, at, QUOTE, SEPARATORS);
	if (!name || (s.p[name - 1] != ':' && s.p[name - 1] != '=')) {
		return 0;
	}
	struct ff_str end = FF_STR("authorization");
	name = run_before(s, name - 1, QUOTE, SEPARATORS);
	for (size_t k = 0; k < end.n; k++) {
		if (name < end.n || small(s.p[name - end.n + k]) != end.p[k]) {
			return 0;
		}
	}
	return name;
}

/* Where what introduces the word behind s.p[at] begins, Bearer or a header's name; `at`: nothing
 * does. */
static size_t scheme_before(struct ff_str s, size_t at)
{
	size_t word = run_before(s, at, UPPER | LOWER, SCHEME_MOST + 1);
	struct ff_str w = {s.p + word, at - word};
	/* "Basic" and others are words of prose too */
	size_t header = w.n && w.n <= SCHEME_MOST ? authorization(s, word) : 0;
	if (header) {
		return run_before(s, header, NAME, NAME_MOST);
	}
	bool bearer = follows(s, at, FF_STR("Bearer")) || follows(s, at, FF_STR("bearer")) ||
		follows(s, at, FF_STR("BEARER"));
	return bearer ? at - 6 : at;
}

/* Where the option begins (--api-key) whose value, behind a blank or as the next of a list, stands
 * at s.p[at]; `at`: none does. */
static size_t option_before(struct ff_str s, size_t at)
{
	size_t end = at;
	while (end > 0 && at - end < SEPARATORS &&
		(is(s.p[end - 1], QUOTE) || s.p[end - 1] == ',')) {
		end--;
	}
	size_t from = run_before(s, end, NAME, NAME_MOST);
	bool option = end - from > 2 && s.p[from] == '-' && s.p[from + 1] == '-';
	return option && value_of(s, end) ? from : at;
}

/* Where the word of `wandb login [--relogin] KEY` begins that ends in the blank before s.p[at];
 * `at`: none does. */
static size_t login_before(struct ff_str s, size_t at)
{
	static const struct ff_str words[] = {{"wandb ", 6}, {"login ", 6}, {"--relogin ", 10}};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (follows(s, at, words[i])) {
			return at - words[i].n;
		}
	}
	return at;
}

/* Where the setenv, export or ENV begins behind which the name or its end at s.p[at] stands; `at`:
 * nothing does. */
static size_t setter_before(struct ff_str s, size_t at)
{
	static const struct ff_str words[] = {{"setenv", 6}, {"export", 6}, {"ENV", 3}};
	size_t end = run_before(s, at, QUOTE, SEPARATORS);
	for (size_t i = 0; i < sizeof words / sizeof *words && end < at; i++) {
		if (follows(s, end, words[i])) {
			return end - words[i].n;
		}
	}
	return at;
}

/* Where a netrc's `login USER ` begins that ends before s.p[at], or the part of it that is there;
 * `at`: none does. */
static size_t netrc_before(struct ff_str s, size_t at)
{
	size_t end = run_before(s, at, QUOTE, SEPARATORS);
	size_t user = run_before(s, end, ANY, NAME_MOST);
	size_t login = run_before(s, user, QUOTE, SEPARATORS);
	if (end < at && follows(s, end, FF_STR("login"))) {
		return end - 5;
	}
	return login < user && follows(s, login, FF_STR("login")) ? login - 5 : at;
}

/* Where the arrow begins that ends before s.p[at], -> or =>; `at`: none does. */
static size_t arrow_before(struct ff_str s, size_t at)
{
	bool arrow = at >= 2 && s.p[at - 1] == '>' && (s.p[at - 2] == '-' || s.p[at - 2] == '=');
	return arrow ? at - 2 : at;
}

/* The 40 hexadecimal digits behind `wandb login`, or of a netrc's line of its own. */
static struct found at_login(struct ff_str s, size_t at)
{
	size_t n = 0, from = at;
	while (at + n < s.n && n <= 40 && strchr("0123456789abcdef", s.p[at + n])) {
		n++;
	}
	if (n != 40 || (at + n < s.n && is(s.p[at + n], ALNUM))) {
		return (struct found){0};
	}
	if (follows(s, at, FF_STR("password "))) {
		return (struct found){at, n, "wandb"};
	}
	for (size_t k = 0; k < 3 && !follows(s, from, FF_STR("wandb login ")); k++) {
		from = login_before(s, from);
	}
	return (struct found){at, follows(s, from, FF_STR("wandb login ")) ? n : 0, "wandb"};
}

/* The least length of a value at s.p[from] whose name ends before s.p[at] with no '=' or ':' in
 * between, and what it has to hold; 0: nothing says that it is one. */
static unsigned apart(struct ff_str s, size_t at, size_t from, unsigned *need)
{
	size_t end = at, blank = run_before(s, at, QUOTE, SEPARATORS);
	size_t arrow = arrow_before(s, blank);
	bool quoted = from > at && memchr("\"'", s.p[from - 1], 2);
	if (arrow < blank) {
		*need = quoted ? 0 : DIGIT;
		return value_of(s, run_before(s, arrow, QUOTE, SEPARATORS));
	}
	while (end > 0 && at - end < SEPARATORS &&
		(is(s.p[end - 1], QUOTE) || s.p[end - 1] == ',')) {
		end--;
	}
	unsigned least = end > 0 ? value_of(s, end) : 0;
	size_t name = least ? run_before(s, end, NAME, NAME_MOST) : 0;
	if (!least || option_before(s, at) < at) {
		return least;
	}
	if (end == blank && setter_before(s, name) < name) {
		return is(s.p[end - 1], UPPER) ? least : 0; /* not the words of a sentence */
	}
	*need = DIGIT; /* names stand in lists and sentences too */
	if (end == blank && netrc_before(s, name) < name && follows(s, end, FF_STR("password"))) {
		return least;
	}
	return quoted && end < blank && s.p[end] == s.p[from - 1] && s.p[end + 1] == ',' ? least
											 : 0;
}

/* The word behind Bearer or the like, or behind an option: `at` is behind the blank. */
static struct found at_blank(struct ff_str s, size_t at)
{
	if (s.p[at - 2] == 'n' || s.p[at - 2] == 'd') {
		struct found key = at_login(s, at);
		if (key.n) {
			return key;
		}
	}
	if (is(s.p[at - 2], UPPER | LOWER) && scheme_before(s, at - 1) < at - 1) {
		/* in a header it is the word, be it without a digit */
		bool header =
			(follows(s, at, FF_STR("Basic ")) || follows(s, at, FF_STR("Bearer "))) &&
			authorization(s, run_before(s, at - 1, UPPER | LOWER, SCHEME_MOST + 1));
		return (struct found){
			at, telling_span(s, at, TOKEN, 16, header ? 0 : DIGIT), "bearer"};
	}
	size_t from = at;
	while (from < s.n && from - at < SEPARATORS && is(s.p[from], QUOTE)) {
		from++;
	}
	unsigned need = 0, least = from < s.n && s.p[from] != '-' ? apart(s, at, from, &need) : 0;
	return (struct found){from, least ? value_span(s, from, least, need) : 0, "key"};
}

/* The password before an '@': of an address with a scheme, without blanks and slashes in it. The
 * last '@' ends it. */
static struct found at_at(struct ff_str s, size_t at)
{
	size_t i = at - 1, end = i, colon = s.n;
	while (i > 0 && at - i <= URL_MOST && s.p[i - 1] != '/' && is(s.p[i - 1], ANY)) {
		i--;
		if (s.p[i] == ':') {
			colon = i;
		}
	}
	if (i < 3 || memcmp(s.p + i - 3, "://", 3) != 0 || colon == s.n) {
		return (struct found){0};
	}
	for (size_t k = at; k < s.n && k - at < URL_MOST && s.p[k] != '/' && is(s.p[k], ANY); k++) {
		end = s.p[k] == '@' ? k : end;
	}
	return (struct found){colon + 1, end - colon - 1, "url"};
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
		bool plain = s.p[at - 1] == ':' && (from == at || !memchr("\"'", s.p[from - 1], 2));
		bool token = least == 20; /* of a model's words too: <|end|>, "tokens" */
		n = value_span(s, from, least, plain || token ? DIGIT : 0);
	}
	return (struct found){from, n, least == 40 ? "azure" : "key"};
}

/* ---- private keys */

#define PEM_BEGIN "-----BEGIN "
#define PEM_END "-----END "

void ff_mask_put(char *p, size_t n, const char *kind)
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
	ptrdiff_t end =
		name < 0 ? -1 : ff_str_find(ff_str_n(s.p, most), FF_STR("-----"), (size_t)name);
	return end < 0 ? 0 : (size_t)end + 5;
}

/* Masks the words of base64 in p[from..end); returns how many. */
static size_t mask_words(char *p, size_t from, size_t end)
{
	size_t found = 0;
	while (from < end) {
		/* within JSON its lines end in a backslash and an n */
		bool newline = p[from] == '\\' && from + 1 < end && p[from + 1] == 'n';
		size_t len = newline ? 0 : span(ff_str_n(p, end), from, ALNUM | WORD);
		if (len >= PEM_WORD) {
			ff_mask_put(p + from, len, "pem");
			found++;
		}
		from += newline ? 2 : len ? len : 1;
	}
	return found;
}

/* Masks the words of base64 of the key whose BEGIN stands at `at`, up to its END or up to the end
 * of the text; returns where that is. */
static size_t mask_pem(char *p, size_t n, size_t at, size_t *found)
{
	struct ff_str s = {p, n};
	size_t from = pem_body(s, at);
	ptrdiff_t stop = from ? ff_str_find(s, FF_STR(PEM_END), from) : -1;
	size_t end = !from ? at + sizeof PEM_BEGIN - 1 : stop < 0 ? n : (size_t)stop;
	if (from) {
		*found += mask_words(p, from, end);
	}
	return end;
}

static bool is_base64(char c)
{
	return is(c, ALNUM) || c == '+' || c == '/' || c == '=';
}

/* Where the word of base64 that ends before s.p[end] begins, if nothing is joined to it; `end`: no
 * such word. */
static size_t base64_before(struct ff_str s, size_t end)
{
	size_t from = end;
	while (from > 0 && end - from <= KEY_LINE_MOST && is_base64(s.p[from - 1])) {
		from--;
	}
	bool whole = end - from <= KEY_LINE_MOST && (!from || !is(s.p[from - 1], ANY));
	return whole ? from : end;
}

/* A whole line of a key's body: 64 characters (RFC 7468), 70 (OpenSSH) or 76 (RFC 2045) of all
 * sorts, as no word of prose, path or hash in hexadecimal digits has them. */
static bool is_key_line(struct ff_str w)
{
	size_t upper = 0, lower = 0, digit = 0;
	if (w.n != 64 && w.n != 70 && w.n != KEY_LINE_MOST) {
		return false;
	}
	for (size_t i = 0; i < w.n; i++) {
		upper += is(w.p[i], UPPER);
		lower += is(w.p[i], LOWER);
		digit += is(w.p[i], DIGIT);
	}
	return upper >= 8 && lower >= 8 && digit && upper + lower + digit + 8 >= w.n;
}

/* Where the line that ends before s.p[end] (its LF or the text's end) has its last byte + 1. */
static size_t without_cr(struct ff_str s, size_t end)
{
	return end > 0 && s.p[end - 1] == '\r' ? end - 1 : end;
}

/* Is the line before the one that holds s.p[at] the line of a key, masked by now? */
static bool is_behind_key_line(struct ff_str s, size_t at)
{
	size_t lf = at;
	while (lf > 0 && at - lf < KEY_PREFIX_MOST && s.p[lf - 1] != '\n') {
		lf--;
	}
	size_t end = lf > 0 && s.p[lf - 1] == '\n' ? without_cr(s, lf - 1) : 0;
	size_t from = end > KEY_LINE_MOST ? end - KEY_LINE_MOST : 0;
	ptrdiff_t mark = ff_str_find(ff_str_n(s.p, end), FF_STR("<secret:pem:"), from);
	return mark >= 0 && end - (size_t)mark >= 64 && s.p[end - 1] == '*';
}

/* The word of a private key at the end of a line (before s.p[end]), wherever its BEGIN stands. */
static struct found at_line_end(struct ff_str s, size_t end)
{
	end = without_cr(s, end);
	size_t from = base64_before(s, end), n = end - from;
	bool key = is_key_line(ff_str_n(s.p + from, n)) ||
		(n >= PEM_WORD && is_behind_key_line(s, from));
	return (struct found){from, key ? n : 0, "pem"};
}

/* ---- all together */

static struct found look(struct ff_str s, size_t i)
{
	switch (s.p[i]) {
	case '_': return at_underscore(s, i + 1);
	case '-': return at_hyphen(s, i + 1);
	case '.':
		return s.p[i - 1] == 's' ? at_hook(s, i + 1)
					 : fronted(s, i + 1, FF_STR("ya29."), NAME, 20, 0, "gcp");
	case 'I': return at_capital(s, i + 1);
	case 'J': return fronted(s, i + 1, FF_STR("eyJ"), TOKEN, 16, DOT, "jwt");
	case ' ': return at_blank(s, i + 1);
	case '@': return at_at(s, i + 1);
	case '=':
	case ':': return at_equals(s, i + 1);
	case '\n': return at_line_end(s, i);
	default: return (struct found){0};
	}
}

/* Two bytes in a row that end, or stand in, the front of a secret: all others are passed over, at
 * a load or two a byte. A bit for each kind of second byte. */
enum pair {
	PAIR_UNDER = 1,   /* hf_ gh?_ github_pat_ wandb_v1_ */
	PAIR_HYPHEN = 2,  /* sk- glpat- nvapi- xoxb- and -----BEGIN */
	PAIR_DOT = 4,     /* ya29. hooks. */
	PAIR_I = 8,       /* AKIA ASIA AIza */
	PAIR_J = 16,      /* eyJ */
	PAIR_BLANK = 32,  /* the ends of Bearer, Basic, Token, names[], lists, arrows */
	PAIR_ANY = 64,    /* behind any byte: an '@', the end of a line */
	PAIR_VALUE = 128, /* the ends of names[], blanks and quotes */
};

static const unsigned char seconds[256] = {
	['_'] = PAIR_UNDER,
	['-'] = PAIR_HYPHEN,
	['.'] = PAIR_DOT,
	['I'] = PAIR_I,
	['J'] = PAIR_J,
	[' '] = PAIR_BLANK,
	['@'] = PAIR_ANY,
	['\n'] = PAIR_ANY,
	['='] = PAIR_VALUE,
	[':'] = PAIR_VALUE,
};

static const unsigned char firsts[256] = {
	['\t'] = PAIR_VALUE,
	[' '] = PAIR_VALUE,
	['"'] = PAIR_BLANK | PAIR_VALUE,
	['\''] = PAIR_BLANK | PAIR_VALUE,
	[','] = PAIR_BLANK,
	['-'] = PAIR_HYPHEN,
	['1'] = PAIR_UNDER,
	['9'] = PAIR_DOT,
	['>'] = PAIR_BLANK,
	['A'] = PAIR_I,
	['C'] = PAIR_BLANK,
	['D'] = PAIR_BLANK | PAIR_VALUE,
	['E'] = PAIR_BLANK | PAIR_VALUE,
	['G'] = PAIR_BLANK | PAIR_VALUE,
	['K'] = PAIR_I,
	['N'] = PAIR_BLANK | PAIR_VALUE,
	['R'] = PAIR_BLANK,
	['S'] = PAIR_I | PAIR_VALUE,
	['T'] = PAIR_BLANK | PAIR_VALUE,
	['Y'] = PAIR_BLANK | PAIR_VALUE,
	['a'] = PAIR_HYPHEN,
	['b'] = PAIR_HYPHEN,
	['c'] = PAIR_BLANK | PAIR_HYPHEN,
	['d'] = PAIR_BLANK | PAIR_VALUE | PAIR_HYPHEN,
	['e'] = PAIR_BLANK | PAIR_VALUE | PAIR_HYPHEN,
	['f'] = PAIR_UNDER,
	['g'] = PAIR_BLANK | PAIR_VALUE,
	['i'] = PAIR_HYPHEN,
	['k'] = PAIR_HYPHEN,
	['n'] = PAIR_BLANK | PAIR_VALUE,
	['o'] = PAIR_UNDER | PAIR_HYPHEN,
	['p'] = PAIR_UNDER | PAIR_HYPHEN,
	['r'] = PAIR_UNDER | PAIR_BLANK | PAIR_HYPHEN,
	['s'] = PAIR_UNDER | PAIR_VALUE | PAIR_HYPHEN | PAIR_DOT,
	['t'] = PAIR_UNDER | PAIR_HYPHEN | PAIR_BLANK | PAIR_VALUE,
	['u'] = PAIR_UNDER,
	['y'] = PAIR_J | PAIR_BLANK | PAIR_VALUE,
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
		if (seconds[c] & (before | PAIR_ANY)) {
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
			ff_mask_put(p + f.at, f.n, f.kind);
			found++;
			i = f.at + f.n - 1;
		} else if (begins_pem(s, i)) {
			i = mask_pem(p, n, i - 4, &found) - 1;
		}
	}
	struct found last = n && p[n - 1] != '\n' ? at_line_end(s, n) : (struct found){0};
	if (last.n) {
		ff_mask_put(p + last.at, last.n, last.kind);
		found++;
	}
	return found;
}

/* ---- pieces */

/* Where the first private key begins that has no END yet, or whose first line isn't whole; n: none.
 */
static size_t open_pem(struct ff_str s)
{
	size_t from = s.n > FF_MASK_OPEN_MAX ? s.n - FF_MASK_OPEN_MAX : 0;
	struct ff_str begin = FF_STR(PEM_BEGIN);
	ptrdiff_t at;
	while ((at = ff_str_find(s, begin, from)) >= 0) {
		size_t key = (size_t)at, body = pem_body(s, key);
		from = key + begin.n;
		if (!body) { /* another thing that begins, or the line is still coming */
			if (s.n - key < 80 && ff_str_find(s, FF_STR("-----"), from) < 0) {
				return key;
			}
			continue;
		}
		ptrdiff_t end = ff_str_find(s, FF_STR(PEM_END), body);
		if (end < 0) {
			return key;
		}
		from = (size_t)end;
	}
	return s.n;
}

/* Where the line of a key's body begins behind which a line isn't finished: that may be its last
 * one, which is told by this. s.n: there is none. */
static size_t open_key_line(struct ff_str s)
{
	const size_t most = KEY_PREFIX_MOST + KEY_LINE_MOST;
	size_t lf = s.n;
	while (lf > 0 && s.n - lf < most && s.p[lf - 1] != '\n') {
		lf--;
	}
	if (!lf || s.p[lf - 1] != '\n') {
		return s.n;
	}
	size_t end = without_cr(s, lf - 1), from = base64_before(s, end);
	return is_key_line(ff_str_n(s.p + from, end - from)) ? from : s.n;
}

/* Where the name begins whose value starts at `at`, or the Bearer or the option before it; `at`:
 * nothing does. */
static size_t introduced(struct ff_str s, size_t at)
{
	size_t name = run_before(s, at, QUOTE, SEPARATORS), login = login_before(s, at);
	size_t scheme = scheme_before(s, name), option = option_before(s, at);
	if (login < at) {
		return login;
	}
	if (scheme < name || option < at) {
		return scheme < name ? scheme : option;
	}
	size_t setter = setter_before(s, at), netrc = netrc_before(s, at);
	if (setter < at || netrc < at) {
		return setter < netrc ? setter : netrc;
	}
	if (arrow_before(s, name) < name) {
		name = run_before(s, name - 2, QUOTE, SEPARATORS);
	} else if (name > 0 && memchr("=:,", s.p[name - 1], 3)) {
		name = run_before(s, name - 1, QUOTE, SEPARATORS);
	}
	return value_of(s, name) ? run_before(s, name, NAME, NAME_MOST) : at;
}

size_t ff_mask_open(const char *p, size_t n)
{
	struct ff_str s = {n ? p : "", n}; /* no arithmetic on a null pointer */
	size_t word = run_before(s, n, ANY, FF_MASK_OPEN_MAX);
	bool endless = n - word == FF_MASK_OPEN_MAX;
	size_t from = endless ? n : word, pem = open_pem(s), line = open_key_line(s);
	from = pem < from ? pem : from;
	from = line < from ? line : from;
	/* nor within what belongs together: each may stand behind another, rarely many */
	for (size_t k = 0, last = n + 1; k < 8 && !endless && from < last; k++) {
		last = from;
		from = introduced(s, run_before(s, from, ANY, FF_MASK_OPEN_MAX));
		from = colour_before(s, from);
	}
	return n - from > FF_MASK_OPEN_MAX ? 0 : n - from;
}

bool ff_mask_is_front(const char *p, size_t n)
{
	static const char *const fronts[] = {"hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
		"github_pat_", "wandb_v1_", "sk-", "glpat-", "nvapi-", "AKIA", "ASIA", "AIza",
		"xoxb-", "xoxp-", "xoxa-", "xoxs-", "xoxe-", "xoxr-", "xapp-", "wandb login ",
		"ya29.", "eyJ", "hooks.slack.com/services/", "Bearer ", "bearer ", "BEARER ", PEM_BEGIN, "://"};
	struct ff_str s = {n ? p : "", n};
	for (size_t i = 0; i < n; i++) {
		bool start = p[i] == ':' || is_start(s, i);
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

void ff_mask_cut(char *p, size_t n)
{
	size_t open = ff_mask_open(p, n);
	if (ff_mask_is_front(p + n - open, open)) {
		memset(p + n - open, '*', open);
	}
}

/* ---- lines one by one */

size_t ff_mask_line(struct ff_mask_lines *m, char *p, size_t n)
{
	struct ff_str s = {p, n};
	size_t found = 0;
	if (m->key) {
		ptrdiff_t stop = ff_str_find(s, FF_STR(PEM_END), 0);
		found = mask_words(p, 0, stop < 0 ? n : (size_t)stop);
		m->key = stop >= 0 || m->key <= n ? 0 : m->key - n;
	}
	size_t end = without_cr(s, n), word = base64_before(s, end);
	bool key = is_key_line(ff_str_n(p + word, end - word));
	if (m->key_line && !key && end - word >= PEM_WORD) {
		ff_mask_put(p + word, end - word, "pem");
		found++;
	}
	m->key_line = key;
	size_t begin = open_pem(s);
	if (begin < n && pem_body(s, begin)) {
		m->key = FF_MASK_OPEN_MAX;
	}
	return found + ff_mask(p, n);
}
