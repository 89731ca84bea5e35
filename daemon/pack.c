#include "pack.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdlib.h>

void pack_cadence(const uint32_t cadence[48], struct ff_buf *out)
{
	ff_buf_add(out, "", 0);
	for (int i = 0; i < 48; i++) {
		if (cadence[i]) {
			ff_buf_addf(out, "%s%d:%u", out->len ? " " : "", i, cadence[i]);
		}
	}
}

bool pack_read_cadence(struct ff_str in, uint32_t ret[48])
{
	uint32_t cadence[48] = {0};
	while (in.n) {
		int64_t power, count;
		size_t n = ff_str_digits(in, &power);
		in = ff_str_skip(in, n);
		if (!n || power >= 48 || !in.n || in.p[0] != ':') {
			return false;
		}
		in = ff_str_skip(in, 1);
		n = ff_str_digits(in, &count);
		in = ff_str_skip(in, n);
		if (!n || count > UINT32_MAX || (in.n && in.p[0] != ' ')) {
			return false;
		}
		in = ff_str_skip(in, 1);
		cadence[power] = (uint32_t)count;
	}
	memcpy(ret, cadence, sizeof cadence);
	return true;
}

/* Is this what a JSON writer and reader give back unchanged: well-formed UTF-8? */
static bool is_utf8(struct ff_str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	for (size_t i = 0; i < s.n;) {
		unsigned c = p[i];
		size_t more = c < 0x80          ? 0
			: c >= 0xc2 && c < 0xe0 ? 1
			: c >= 0xe0 && c < 0xf0 ? 2
			: c >= 0xf0 && c < 0xf5 ? 3
						: SIZE_MAX;
		if (more == SIZE_MAX || more >= s.n - i) {
			return false;
		}
		for (size_t k = 1; k <= more; k++) {
			if ((p[i + k] & 0xc0) != 0x80) {
				return false;
			}
		}
		if ((c == 0xe0 && p[i + 1] < 0xa0) || (c == 0xed && p[i + 1] >= 0xa0) ||
			(c == 0xf0 && p[i + 1] < 0x90) || (c == 0xf4 && p[i + 1] >= 0x90)) {
			return false; /* overlong, surrogate, beyond U+10FFFF */
		}
		i += more + 1;
	}
	return true;
}

static void put_hex(struct ff_jw *w, struct ff_str value)
{
	struct ff_buf hex = {0};
	ff_buf_addhex(&hex, value);
	ff_jw_open(w, '{');
	ff_jw_kstr(w, "hex", ff_buf_str(&hex));
	ff_jw_close(w, '}');
	ff_buf_finish(&hex);
}

void pack_fields(const struct ff_fields *fields, struct ff_buf *out)
{
	struct ff_jw w;
	ff_jw_init(&w, out);
	ff_jw_open(&w, '{');
	for (size_t i = 0; i < fields->n; i++) {
		struct ff_str value = ff_str_z(fields->v[i].value);
		ff_jw_key(&w, ff_field_name(fields->v[i].id));
		if (is_utf8(value)) {
			ff_jw_str(&w, value);
		} else {
			put_hex(&w, value);
		}
	}
	ff_jw_close(&w, '}');
}

static bool read_field(const struct ff_json_node *v, struct ff_fields *ret)
{
	int id = ff_field_parse(ff_str_z(ff_json_key(v)));
	const char *text = ff_json_string(v);
	const char *hex = ff_json_string(ff_json_get(v, "hex"));
	if (!text && !hex) {
		return false;
	}
	if (id < 0) {
		return true;
	}
	struct ff_buf bytes = {0};
	bool good = text || ff_buf_addunhex(&bytes, ff_str_z(hex));
	if (good) {
		ff_fields_set(
			ret, (enum ff_field_id)id, text ? ff_str_z(text) : ff_buf_str(&bytes));
	}
	ff_buf_finish(&bytes);
	return good;
}

bool pack_read_fields(struct ff_str in, struct ff_fields *ret)
{
	if (ff_str_eqz(in, "{}")) {
		return true;
	}
	struct ff_json *doc = ff_json_parse(in, NULL);
	const struct ff_json_node *root = doc ? ff_json_root(doc) : NULL;
	bool good = root && ff_json_is_object(root);
	struct ff_fields fields = {0};
	for (const struct ff_json_node *v = good ? ff_json_first(root) : NULL; v && good;
		v = ff_json_next(v)) {
		good = read_field(v, &fields);
	}
	ff_json_destroy(doc);
	if (!good) {
		ff_fields_finish(&fields);
		return false;
	}
	*ret = fields;
	return true;
}
