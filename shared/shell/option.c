#include "shell/option.h"

#include "base/arr.h"

#include <stdlib.h>

/* Factors by which a number's unit counts. */
struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit sizes[] = {{"", 1}, {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20},
	{"GiB", 1 << 30}, {"TiB", (int64_t)1 << 40}};
static const struct unit spans[] = {{"", 1000000}, {"us", 1}, {"ms", 1000}, {"s", 1000000},
	{"m", 60000000}, {"h", 3600000000}, {"d", 86400000000}};

static bool read_units(struct ff_str s, const struct unit *units, size_t n, int64_t *ret)
{
	int64_t v;
	size_t digits = ff_str_digits(s, &v);
	struct ff_str unit = ff_str_trim(ff_str_skip(s, digits));
	for (size_t i = 0; digits && i < n; i++) {
		if (ff_str_eqz(unit, units[i].name)) {
			return !__builtin_mul_overflow(v, units[i].factor, ret);
		}
	}
	return false;
}

static void add_units(struct ff_buf *out, int64_t v, const struct unit *units, size_t n)
{
	size_t best = 1; /* the first named one */
	for (size_t i = 1; i < n; i++) {
		if (v && v % units[i].factor == 0 && units[i].factor >= units[best].factor) {
			best = i;
		}
	}
	ff_buf_addf(out, "%lld%s", (long long)(v / units[best].factor), units[best].name);
}

static bool read_flag(struct ff_str s, bool *ret)
{
	static const char *const words[2][4] = {
		{"no", "false", "off", "0"}, {"yes", "true", "on", "1"}};
	for (int v = 0; v < 2; v++) {
		for (size_t i = 0; i < 4; i++) {
			if (ff_str_eqz(s, words[v][i])) {
				*ret = v == 1;
				return true;
			}
		}
	}
	return false;
}

static const char *type_word(enum ff_option_type t)
{
	switch (t) {
	case FF_OPTION_FLAG: return "yes or no";
	case FF_OPTION_TEXT:
	case FF_OPTION_LIST: return "a text";
	case FF_OPTION_INT: return "a whole number";
	case FF_OPTION_SIZE: return "a size such as 64KiB or 4MiB";
	case FF_OPTION_SPAN: return "a span such as 250ms, 2s or 1h";
	}
	return "";
}

static int bad_value(const struct ff_option *o, struct ff_str value, struct ff_err *err)
{
	return ff_err_set(err, FF_EUSAGE, "%s: \"%.*s\" is not %s", o->name, FF_STR_ARG(value),
			  type_word(o->type));
}

static int bad_range(const struct ff_option *o, struct ff_err *err)
{
	struct ff_buf b = {0};
	if (o->type == FF_OPTION_SIZE) {
		add_units(&b, o->min, sizes, sizeof sizes / sizeof *sizes);
		ff_buf_addz(&b, " to ");
		add_units(&b, o->max, sizes, sizeof sizes / sizeof *sizes);
	} else if (o->type == FF_OPTION_SPAN) {
		add_units(&b, o->min, spans, sizeof spans / sizeof *spans);
		ff_buf_addz(&b, " to ");
		add_units(&b, o->max, spans, sizeof spans / sizeof *spans);
	} else {
		ff_buf_addf(&b, "%lld to %lld", (long long)o->min, (long long)o->max);
	}
	int r = ff_err_set(err, FF_EUSAGE, "%s takes %s from %s", o->name, type_word(o->type), b.p);
	ff_buf_finish(&b);
	return r;
}

static int set_number(const struct ff_option *o, struct ff_str value, struct ff_err *err)
{
	int64_t v;
	bool ok = o->type == FF_OPTION_INT ? ff_str_int(value, &v)
		: o->type == FF_OPTION_SIZE
		? read_units(value, sizes, sizeof sizes / sizeof *sizes, &v)
		: read_units(value, spans, sizeof spans / sizeof *spans, &v);
	if (!ok) {
		return bad_value(o, value, err);
	}
	if (v < o->min || v > o->max) {
		return bad_range(o, err);
	}
	*(int64_t *)o->target = v;
	return 0;
}

static int set_text(const struct ff_option *o, struct ff_str value, struct ff_err *err)
{
	if (value.n < (size_t)o->min || (o->max && value.n > (size_t)o->max)) {
		return o->max ? ff_err_set(err, FF_EUSAGE, "%s takes a text of %lld to %lld bytes",
					   o->name, (long long)o->min, (long long)o->max) :
			ff_err_set(err, FF_EUSAGE, "%s takes a text of %lld bytes or more", o->name,
				   (long long)o->min);
	}
	char *copy = ff_xmemdup(value.p, value.n);
	if (o->type == FF_OPTION_LIST) {
		struct ff_option_list *l = o->target;
		*FF_ARR_ADD(l->v, l->n, l->cap) = copy;
	} else {
		free(*(char **)o->target);
		*(char **)o->target = copy;
	}
	return 0;
}

int ff_option_set(const struct ff_option *o, struct ff_str value, struct ff_err *err)
{
	switch (o->type) {
	case FF_OPTION_FLAG:
		return read_flag(value, o->target) ? 0 : bad_value(o, value, err);
	case FF_OPTION_TEXT:
	case FF_OPTION_LIST: return set_text(o, value, err);
	case FF_OPTION_INT:
	case FF_OPTION_SIZE:
	case FF_OPTION_SPAN: return set_number(o, value, err);
	}
	return FF_EUSAGE;
}

static const struct ff_option *find(const struct ff_option *o, size_t n, struct ff_str name)
{
	for (size_t i = 0; i < n; i++) {
		if (ff_str_eqz(name, o[i].name)) {
			return &o[i];
		}
	}
	return NULL;
}

/* ---- arguments */

/* The option with its value in the next argument, or a flag. */
static int set_next(const struct ff_option *o, const char *shown, int argc, char **argv, int *i,
		    struct ff_err *err)
{
	if (o->type == FF_OPTION_FLAG) {
		*(bool *)o->target = true;
		return 0;
	}
	if (*i + 1 >= argc) {
		return ff_err_set(
			err, FF_EUSAGE, "option %s needs %s", shown, o->arg ? o->arg : "a value");
	}
	return ff_option_set(o, ff_str_z(argv[++*i]), err);
}

static int take_long(const struct ff_option *o, size_t n, int argc, char **argv, int *i,
		     struct ff_err *err)
{
	struct ff_str arg = ff_str_z(argv[*i] + 2);
	ptrdiff_t equals = ff_str_chr(arg, '=', 0);
	struct ff_str name = equals < 0 ? arg : ff_str_n(arg.p, (size_t)equals);
	const struct ff_option *found = find(o, n, name);
	if (!found) {
		return ff_err_set(err, FF_EUSAGE, "unknown option \"--%.*s\"", FF_STR_ARG(name));
	}
	if (equals >= 0) {
		return ff_option_set(found, ff_str_skip(arg, (size_t)equals + 1), err);
	}
	return set_next(found, argv[*i], argc, argv, i, err);
}

/* "-j", "-j4", "-j 4", or several flags in one word. */
static int take_short(const struct ff_option *o, size_t n, int argc, char **argv, int *i,
		      struct ff_err *err)
{
	const char *word = argv[*i];
	for (const char *p = word + 1; *p; p++) {
		const struct ff_option *found = NULL;
		for (size_t k = 0; k < n; k++) {
			found = o[k].letter == *p ? &o[k] : found;
		}
		if (!found) {
			return ff_err_set(err, FF_EUSAGE, "unknown option \"-%c\"", *p);
		}
		if (found->type != FF_OPTION_FLAG && p[1]) {
			return ff_option_set(found, ff_str_z(p + 1), err);
		}
		int r = set_next(found, word, argc, argv, i, err);
		if (r < 0 || found->type != FF_OPTION_FLAG) {
			return r;
		}
	}
	return 0;
}

int ff_option_args(const struct ff_option *o, size_t n, int argc, char **argv, struct ff_err *err)
{
	char **rest = ff_xcalloc((size_t)argc + 1, sizeof *rest);
	char **options = ff_xcalloc((size_t)argc + 1, sizeof *options);
	int nrest = 0, noptions = 0, r = 0, i = 1;
	for (; i < argc && r == 0; i++) {
		int from = i;
		if (!strcmp(argv[i], "--")) {
			options[noptions++] = argv[i++];
			break;
		}
		if (argv[i][0] != '-' || !argv[i][1]) {
			rest[nrest++] = argv[i];
			continue;
		}
		r = argv[i][1] == '-' ? take_long(o, n, argc, argv, &i, err) :
			take_short(o, n, argc, argv, &i, err);
		while (from <= i && from < argc) {
			options[noptions++] = argv[from++];
		}
	}
	if (r == 0) {
		while (i < argc) {
			rest[nrest++] = argv[i++];
		}
		for (i = 0; i < noptions; i++) {
			argv[1 + i] = options[i];
		}
		for (i = 0; i < nrest; i++) {
			argv[1 + noptions + i] = rest[i];
		}
		r = 1 + noptions;
	}
	free(rest);
	free(options);
	return r;
}

/* ---- configuration file */

/* Without the comment: `#` at the start or behind a blank. */
static struct ff_str strip_comment(struct ff_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '#' && (!i || s.p[i - 1] == ' ' || s.p[i - 1] == '\t')) {
			s.n = i;
		}
	}
	if (s.n && s.p[s.n - 1] == '\r') {
		s.n--;
	}
	return ff_str_trim(s);
}

static int take_config_line(const struct ff_option *o, size_t n, struct ff_str line,
			    struct ff_err *err)
{
	ptrdiff_t equals = ff_str_chr(line, '=', 0);
	if (equals < 0) {
		return ff_err_set(err, FF_EUSAGE, "\"%.*s\" is not of the form key = value",
				  FF_STR_ARG(line));
	}
	struct ff_str key = ff_str_trim(ff_str_n(line.p, (size_t)equals));
	struct ff_str value = ff_str_trim(ff_str_skip(line, (size_t)equals + 1));
	const struct ff_option *found = find(o, n, key);
	if (!found) {
		return ff_err_set(err, FF_EUSAGE, "unknown key \"%.*s\"", FF_STR_ARG(key));
	}
	if (memchr(value.p, '\0', value.n)) {
		return bad_value(found, value, err);
	}
	return ff_option_set(found, value, err);
}

int ff_option_file(const struct ff_option *o, size_t n, const char *file, struct ff_str text,
		   struct ff_err *err)
{
	unsigned number = 0;
	while (text.n) {
		ptrdiff_t lf = ff_str_chr(text, '\n', 0);
		size_t len = lf < 0 ? text.n : (size_t)lf;
		struct ff_str line = strip_comment(ff_str_n(text.p, len));
		struct ff_err why = {0};
		number++;
		int r = line.n ? take_config_line(o, n, line, &why) : 0;
		if (r < 0) {
			return ff_err_set(err, r, "%s:%u: %s", file, number, why.text);
		}
		text = ff_str_skip(text, len + 1);
	}
	return 0;
}

/* ---- help */

#define COLUMN 26
#define WIDTH 100

/* Words of text in columns from COLUMN to WIDTH. */
static void add_wrapped(struct ff_buf *out, const char *text)
{
	size_t at = COLUMN;
	while (*text) {
		size_t n = strcspn(text, " ");
		if (at > COLUMN && at + 1 + n > WIDTH) {
			ff_buf_addf(out, "\n%*s", COLUMN, "");
			at = COLUMN;
		}
		if (at > COLUMN) {
			ff_buf_addc(out, ' ');
			at++;
		}
		ff_buf_add(out, text, n);
		at += n;
		text += n;
		text += strspn(text, " ");
	}
	ff_buf_addc(out, '\n');
}

void ff_option_help(const struct ff_option *o, size_t n, struct ff_buf *out)
{
	for (size_t i = 0; i < n; i++) {
		size_t start = out->len;
		if (!o[i].help) {
			continue;
		}
		ff_buf_addz(out, "  ");
		if (o[i].letter) {
			ff_buf_addf(out, "-%c, ", o[i].letter);
		}
		ff_buf_addf(out, "--%s", o[i].name);
		if (o[i].arg) {
			ff_buf_addf(out, " %s", o[i].arg);
		}
		size_t used = out->len - start;
		if (used + 2 > COLUMN) {
			ff_buf_addf(out, "\n%*s", COLUMN, "");
		} else {
			ff_buf_addf(out, "%*s", (int)(COLUMN - used), "");
		}
		add_wrapped(out, o[i].help);
	}
}

static void print_one(const struct ff_option *o, struct ff_buf *out)
{
	switch (o->type) {
	case FF_OPTION_FLAG:
		ff_buf_addf(out, "%s = %s\n", o->name, *(bool *)o->target ? "yes" : "no");
		return;
	case FF_OPTION_TEXT:
		if (*(char **)o->target) {
			ff_buf_addf(out, "%s = %s\n", o->name, *(char **)o->target);
		}
		return;
	case FF_OPTION_LIST: {
		const struct ff_option_list *l = o->target;
		for (size_t i = 0; i < l->n; i++) {
			ff_buf_addf(out, "%s = %s\n", o->name, l->v[i]);
		}
		return;
	}
	case FF_OPTION_INT:
		ff_buf_addf(out, "%s = %lld\n", o->name, (long long)*(int64_t *)o->target);
		return;
	case FF_OPTION_SIZE:
	case FF_OPTION_SPAN:
		ff_buf_addf(out, "%s = ", o->name);
		if (o->type == FF_OPTION_SIZE) {
			add_units(out, *(int64_t *)o->target, sizes, sizeof sizes / sizeof *sizes);
		} else {
			add_units(out, *(int64_t *)o->target, spans, sizeof spans / sizeof *spans);
		}
		ff_buf_addc(out, '\n');
		return;
	}
}

void ff_option_print(const struct ff_option *o, size_t n, struct ff_buf *out)
{
	for (size_t i = 0; i < n; i++) {
		print_one(&o[i], out);
	}
}

void ff_option_finish(const struct ff_option *o, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (o[i].type == FF_OPTION_TEXT) {
			free(*(char **)o[i].target);
			*(char **)o[i].target = NULL;
		} else if (o[i].type == FF_OPTION_LIST) {
			struct ff_option_list *l = o[i].target;
			for (size_t k = 0; k < l->n; k++) {
				free(l->v[k]);
			}
			free(l->v);
			*l = (struct ff_option_list){0};
		}
	}
}
