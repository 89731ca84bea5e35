#include "core/event.h"

#include "base/mem.h"

#include <stdlib.h>

#define HEX_LEAST 4u /* letters and digits of a hex number without 0x */

void ff_event_finish(struct ff_event *e)
{
	if (!e) {
		return;
	}
	free(e->fault);
	free(e->signature);
	free(e->text);
	free(e->frame);
	ff_fields_finish(&e->fields);
	*e = (struct ff_event){0};
}

struct ff_event ff_event_copy(const struct ff_event *e)
{
	struct ff_event c = *e;
	c.fault = ff_xstrdup(e->fault);
	c.signature = ff_xstrdup(e->signature);
	c.text = e->text ? ff_xmemdup(e->text, e->text_len) : NULL;
	c.frame = e->frame ? ff_xstrdup(e->frame) : NULL;
	c.fields = (struct ff_fields){0};
	for (size_t i = 0; i < e->fields.n; i++) {
		ff_fields_set(&c.fields, e->fields.v[i].id, ff_str_z(e->fields.v[i].value));
	}
	return c;
}

struct ff_str ff_event_field(const struct ff_event *e, enum ff_field_id id)
{
	return ff_fields_get(&e->fields, id);
}

int64_t ff_event_int(const struct ff_event *e, enum ff_field_id id, int64_t def)
{
	int64_t v;
	return ff_str_int(ff_str_trim(ff_event_field(e, id)), &v) ? v : def;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char at(struct ff_str s, size_t i)
{
	return i < s.n ? s.p[i] : '\0';
}

/* A word of hex digits with a decimal one among them: c1000, 6e2f00d1, and 0x7f00. Its length, or
 * 0. */
static size_t hex_len(struct ff_str s, size_t i)
{
	size_t from = i;
	bool digit = false;
	bool marked = at(s, i) == '0' && (at(s, i + 1) == 'x' || at(s, i + 1) == 'X');
	i += marked ? 2 : 0;
	size_t begin = i;
	for (; is_hex(at(s, i)); i++) {
		digit = digit || is_digit(s.p[i]);
	}
	if (is_alnum(at(s, i)) || i == begin) {
		return 0;
	}
	return marked || (digit && i - begin >= HEX_LEAST) ? i - from : 0;
}

/* Digits, and what joins digits to one number, address or time: 10.0.0.7, 12:00:08.123, 1-3. */
static size_t number_len(struct ff_str s, size_t i)
{
	size_t from = i;
	while (is_digit(at(s, i))) {
		i++;
		char c = at(s, i);
		if ((c == '.' || c == ':' || c == ',' || c == '-') && is_digit(at(s, i + 1))) {
			i++;
		}
	}
	return i - from;
}

/* Adds #, once for a list of numbers: how many there are differs from rank to rank. */
static void add_number(struct ff_buf *out, size_t begin)
{
	const char *p = out->p;
	size_t n = out->len;
	if (n - begin >= 3 && !memcmp(p + n - 3, "#, ", 3)) {
		out->len -= 2;
	} else if (n - begin >= 2 && !memcmp(p + n - 2, "#,", 2)) {
		out->len -= 1;
	} else {
		ff_buf_addc(out, '#');
	}
	out->p[out->len] = '\0';
}

void ff_event_normalise(struct ff_str text, struct ff_buf *out)
{
	size_t begin = out->len;
	ff_buf_add(out, "", 0);
	for (size_t i = 0; i < text.n;) {
		bool word_begins = i == 0 || !is_alnum(text.p[i - 1]);
		size_t n = word_begins ? hex_len(text, i) : 0;
		n = n ? n : number_len(text, i);
		if (n) {
			add_number(out, begin);
			i += n;
			continue;
		}
		ff_buf_addc(out, text.p[i++]);
	}
}
