#include "sse.h"

#include "base/mem.h"

#include <stdlib.h>

static bool end_event(struct sse *s)
{
	const struct sse_event e = {
		s->type.len ? s->type.p : "message", s->data.len ? s->data.p : ""};
	bool more = s->fn(s->ud, &e);
	ff_buf_clear(&s->type);
	ff_buf_clear(&s->data);
	return more;
}

static void take_field(struct sse *s, struct ff_str line)
{
	ptrdiff_t colon = ff_str_chr(line, ':', 0);
	struct ff_str name = ff_str_n(line.p, colon < 0 ? line.n : (size_t)colon);
	struct ff_str value = ff_str_skip(line, name.n + (colon >= 0));
	value = ff_str_skip(value, value.n && value.p[0] == ' ');
	if (ff_str_eqz(name, "event")) {
		ff_buf_clear(&s->type);
		ff_buf_adds(&s->type, value);
	} else if (ff_str_eqz(name, "data")) {
		ff_buf_addz(&s->data, s->data.len ? "\n" : "");
		ff_buf_adds(&s->data, value);
	} else if (ff_str_eqz(name, "id")) {
		free(s->last_id);
		s->last_id = ff_xmemdup(value.p, value.n);
	}
}

static bool take_line(struct sse *s)
{
	struct ff_str line = ff_buf_str(&s->line);
	bool more = true;
	if (line.n && line.p[line.n - 1] == '\r') {
		line.n--;
	}
	if (!line.n) {
		more = end_event(s);
	} else {
		take_field(s, line);
	}
	ff_buf_clear(&s->line);
	return more;
}

bool sse_feed(struct sse *s, struct ff_str bytes)
{
	while (bytes.n) {
		ptrdiff_t lf = ff_str_chr(bytes, '\n', 0);
		size_t n = lf < 0 ? bytes.n : (size_t)lf;
		size_t room = SSE_LINE - s->line.len;
		ff_buf_add(&s->line, bytes.p, n < room ? n : room);
		bytes = ff_str_skip(bytes, n + (lf >= 0));
		if (lf >= 0 && !take_line(s)) {
			return false;
		}
	}
	return true;
}

void sse_break(struct sse *s)
{
	ff_buf_clear(&s->line);
	ff_buf_clear(&s->type);
	ff_buf_clear(&s->data);
}

void sse_finish(struct sse *s)
{
	ff_buf_finish(&s->line);
	ff_buf_finish(&s->type);
	ff_buf_finish(&s->data);
	free(s->last_id);
	s->last_id = NULL;
}
