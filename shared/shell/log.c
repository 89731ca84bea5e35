#include "shell/log.h"

#include "shell/file.h"

#include <stdlib.h>
#include <unistd.h>

#define MESSAGE_MAX 2048u

static const struct {
	const char *name;
	char prefix[4]; /* of systemd's journal (sd-daemon(3)) */
} levels[] = {
	[FF_LOG_ERROR] = {"error", "<3>"},
	[FF_LOG_WARN] = {"warn", "<4>"},
	[FF_LOG_INFO] = {"info", "<6>"},
};

/* Bytes of the UTF-8 sequence at p, 0 if there is none (overlong, surrogate, cut). */
static size_t utf8_length(const unsigned char *p, size_t n)
{
	size_t need = p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 :
		p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;
	if (!need || n < need) {
		return 0;
	}
	for (size_t i = 1; i < need; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			return 0;
		}
	}
	bool bad = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f) ||
		(p[0] == 0xc2 && p[1] < 0xa0); /* C1 controls */
	return bad ? 0 : need;
}

void ff_log_escape(struct ff_str text, struct ff_buf *out)
{
	const unsigned char *p = (const unsigned char *)text.p;
	for (size_t i = 0; i < text.n;) {
		size_t n = p[i] >= 0x80 ? utf8_length(p + i, text.n - i) : 0;
		if (p[i] == '\\') {
			ff_buf_addz(out, "\\\\");
		} else if (n || (p[i] >= 0x20 && p[i] < 0x7f)) {
			ff_buf_add(out, p + i, n ? n : 1);
		} else {
			ff_buf_addf(out, "\\x%02x", p[i]);
		}
		i += n ? n : 1;
	}
}

void ff_log(enum ff_log_level level, const char *group, const char *fmt, ...)
{
	struct ff_buf text = {0}, line = {0};
	va_list ap;
	va_start(ap, fmt);
	ff_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	if (getenv("JOURNAL_STREAM")) {
		ff_buf_addz(&line, levels[level].prefix);
	} else {
		ff_buf_addf(&line, "%s: ", levels[level].name);
	}
	ff_buf_addf(&line, "group=%s ", group);
	ff_log_escape(ff_str_n(text.p, text.len < MESSAGE_MAX ? text.len : MESSAGE_MAX), &line);
	ff_buf_addc(&line, '\n');
	(void)ff_file_write(STDERR_FILENO, line.p, line.len);
	ff_buf_finish(&text);
	ff_buf_finish(&line);
}
