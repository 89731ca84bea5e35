#include "wire/journal.h"

#include "base/json.h"
#include "base/limits.h"

#define SIZE_BYTES 8u

enum ff_journal_form ff_journal_front(struct ff_str front)
{
	ptrdiff_t lf = ff_str_chr(front, '\n', 0);
	struct ff_str line = ff_str_n(front.p, lf < 0 ? front.n : (size_t)lf);
	if (ff_str_starts(front, FF_STR("__CURSOR="))) {
		return FF_JOURNAL_EXPORT;
	}
	bool json = ff_str_starts(line, FF_STR("{")) &&
		ff_str_find(line, FF_STR("\"__REALTIME_TIMESTAMP\""), 0) >= 0 &&
		ff_str_find(line, FF_STR("\"MESSAGE\""), 0) >= 0;
	return json ? FF_JOURNAL_JSON : FF_JOURNAL_NONE;
}

void ff_journal_init(struct ff_journal *j, enum ff_journal_form form)
{
	*j = (struct ff_journal){.form = form, .us = FF_TIME_NONE};
}

void ff_journal_finish(struct ff_journal *j)
{
	ff_buf_finish(&j->line);
	ff_buf_finish(&j->key);
	ff_buf_finish(&j->text);
	ff_buf_finish(&j->host);
	ff_buf_finish(&j->unit);
	ff_buf_finish(&j->ident);
}

/* ---- entries */

static void set(struct ff_buf *b, struct ff_str s)
{
	ff_buf_clear(b);
	ff_buf_adds(b, s);
}

static void take_field(struct ff_journal *j, struct ff_str key, struct ff_str value)
{
	int64_t n;
	if (ff_str_eqz(key, "__REALTIME_TIMESTAMP")) {
		bool good = value.n && ff_str_digits(value, &n) == value.n;
		j->us = good ? n : FF_TIME_NONE;
	} else if (ff_str_eqz(key, "_HOSTNAME") && value.n <= FF_JOB_ID_MAX) {
		set(&j->host, value);
	} else if (ff_str_eqz(key, "_SYSTEMD_UNIT") && value.n <= FF_JOB_ID_MAX) {
		set(&j->unit, value);
	} else if (ff_str_eqz(key, "SYSLOG_IDENTIFIER") && value.n <= FF_JOB_ID_MAX) {
		set(&j->ident, value);
	} else if (ff_str_eqz(key, "_TRANSPORT")) {
		j->kernel = ff_str_eqz(value, "kernel");
	} else if (ff_str_eqz(key, "MESSAGE")) {
		set(&j->text, value);
	}
}

/* What root writes into the kernel's log is cut at its first colon: "NVRM: Xid ..." has NVRM as its
 * identifier (SOURCES.md journal-kmsg). */
static void join_identifier(struct ff_journal *j)
{
	if (j->kernel && j->ident.len && !ff_str_eqz(ff_buf_str(&j->ident), "kernel")) {
		ff_buf_addz(&j->ident, ": ");
		ff_buf_adds(&j->ident, ff_buf_str(&j->text));
		set(&j->text, ff_buf_str(&j->ident));
	}
	ff_buf_clear(&j->ident);
}

static void end_entry(struct ff_journal *j, ff_journal_fn *fn, void *ud)
{
	join_identifier(j);
	if (j->text.len && !j->broken) {
		fn(ud, &(struct ff_journal_entry){ff_buf_str(&j->text), ff_buf_str(&j->host),
			ff_buf_str(&j->unit), j->us, j->kernel});
	}
	j->skipped += j->broken;
	ff_buf_clear(&j->text);
	ff_buf_clear(&j->host);
	ff_buf_clear(&j->unit);
	j->us = FF_TIME_NONE;
	j->kernel = j->broken = false;
}

/* ---- JSON */

static void read_bytes(const struct ff_json_node *v, struct ff_buf *ret)
{
	int64_t n;
	for (v = ff_json_is_array(v) ? ff_json_first(v) : NULL; v; v = ff_json_next(v)) {
		if (ff_json_int(v, &n) && n > 0 && n < 256) {
			ff_buf_addc(ret, (char)n);
		}
	}
}

static void take_object(struct ff_journal *j, struct ff_str line, ff_journal_fn *fn, void *ud)
{
	static const char *const keys[] = {"__REALTIME_TIMESTAMP", "_HOSTNAME", "_SYSTEMD_UNIT",
		"SYSLOG_IDENTIFIER", "_TRANSPORT", "MESSAGE"};
	struct ff_json *doc = ff_json_parse_text(line, NULL);
	const struct ff_json_node *root = doc ? ff_json_root(doc) : NULL;
	for (size_t i = 0; root && i < sizeof keys / sizeof *keys; i++) {
		const struct ff_json_node *v = ff_json_get(root, keys[i]);
		if (ff_json_string(v)) {
			take_field(j, ff_str_z(keys[i]), ff_str_z(ff_json_string(v)));
		} else if (!strcmp(keys[i], "MESSAGE")) {
			read_bytes(v, &j->text);
		}
	}
	end_entry(j, fn, ud);
	ff_json_destroy(doc);
}

/* ---- export */

static uint64_t size_of(const char *p)
{
	uint64_t n = 0;
	for (size_t i = SIZE_BYTES; i > 0; i--) {
		n = n << 8 | (unsigned char)p[i - 1];
	}
	return n;
}

/* Bytes of a value whose size is told; returns how many were taken. */
static size_t take_sized(struct ff_journal *j, struct ff_str s)
{
	uint64_t want = j->known ? j->size + 1 : SIZE_BYTES; /* an LF stands behind the bytes */
	uint64_t had = j->known ? j->size + 1 - j->line.len : SIZE_BYTES - j->line.len;
	if (j->skipping) {
		had = j->size;
	}
	size_t n = s.n < had ? s.n : (size_t)had;
	if (j->skipping) {
		j->size -= n;
	} else {
		ff_buf_add(&j->line, s.p, n);
	}
	if (n < had) {
		return n;
	}
	if (j->known || j->skipping) {
		if (!j->skipping) {
			take_field(j, ff_buf_str(&j->key), ff_str_n(j->line.p, want - 1));
		}
		j->sized = j->known = j->skipping = false;
	} else {
		j->size = size_of(j->line.p);
		j->skipping = j->size > FF_JSONL_LINE;
		j->broken = j->broken || j->skipping;
		j->size += j->skipping && j->size < UINT64_MAX; /* with its LF */
		j->known = !j->skipping;
	}
	ff_buf_clear(&j->line);
	return n;
}

static void take_line(struct ff_journal *j, struct ff_str line, ff_journal_fn *fn, void *ud)
{
	ptrdiff_t eq = ff_str_chr(line, '=', 0);
	if (j->form == FF_JOURNAL_JSON) {
		take_object(j, line, fn, ud);
	} else if (!line.n) {
		end_entry(j, fn, ud);
	} else if (eq > 0) {
		take_field(j, ff_str_n(line.p, (size_t)eq), ff_str_skip(line, (size_t)eq + 1));
	} else {
		set(&j->key, line);
		j->sized = true;
	}
}

/* Up to an LF; returns how many bytes were taken. */
static size_t take_part(struct ff_journal *j, struct ff_str s, ff_journal_fn *fn, void *ud)
{
	ptrdiff_t lf = ff_str_chr(s, '\n', 0);
	size_t n = lf < 0 ? s.n : (size_t)lf;
	if (j->line.len + n > FF_JSONL_LINE) {
		j->skipping = j->broken = true;
		ff_buf_finish(&j->line);
	}
	if (!j->skipping) {
		ff_buf_add(&j->line, s.p, n);
	}
	if (lf < 0) {
		return n;
	}
	struct ff_buf line = j->line;
	bool skipped = j->skipping;
	j->line = (struct ff_buf){0};
	j->skipping = false;
	if (!skipped) {
		take_line(j, ff_buf_str(&line), fn, ud);
	} else if (j->form == FF_JOURNAL_JSON) {
		end_entry(j, fn, ud);
	}
	ff_buf_finish(&line);
	return n + 1;
}

void ff_journal_feed(struct ff_journal *j, struct ff_str s, ff_journal_fn *fn, void *ud)
{
	while (s.n) {
		size_t n = j->sized ? take_sized(j, s) : take_part(j, s, fn, ud);
		s = ff_str_skip(s, n);
	}
}

void ff_journal_end(struct ff_journal *j, ff_journal_fn *fn, void *ud)
{
	if (j->line.len && !j->sized && !j->skipping) {
		ff_journal_feed(j, FF_STR("\n"), fn, ud);
	}
	if (j->form == FF_JOURNAL_EXPORT && !j->sized) {
		end_entry(j, fn, ud);
	}
}
