#include "shell/log.h"

#include "shell/file.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MESSAGE_MAX 2048u

static const struct {
	const char *name;
	char prefix[4]; /* of systemd's journal (sd-daemon(3)) */
} levels[] = {
	[FF_LOG_ERROR] = {"error", "<3>"},
	[FF_LOG_WARN] = {"warn", "<4>"},
	[FF_LOG_INFO] = {"info", "<6>"},
	[FF_LOG_DEBUG] = {"debug", "<7>"},
};

static atomic_int least = FF_LOG_INFO;
static atomic_uint_fast64_t omitted;

/* guards what follows and every place */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ff_usec (*clock_now)(void); /* NULL: no limit */
static struct ff_log_place *places; /* that have left something out, once */

void ff_log_open(enum ff_log_level level, ff_usec (*now)(void))
{
	pthread_mutex_lock(&lock);
	clock_now = now;
	pthread_mutex_unlock(&lock);
	atomic_store(&least, (int)level);
}

bool ff_log_level_parse(struct ff_str s, enum ff_log_level *ret)
{
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		if (ff_str_eqz(s, levels[i].name)) {
			*ret = (enum ff_log_level)i;
			return true;
		}
	}
	return false;
}

uint64_t ff_log_omitted(void)
{
	return atomic_load(&omitted);
}

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

/* JOURNAL_STREAM is "DEVICE:INODE" of the stream that is connected to the journal
 * (systemd.exec(5)): it is inherited by programs whose standard error is something else. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;
	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
		fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

static void write_line(const struct ff_log_place *place, struct ff_str text)
{
	struct ff_buf line = {0};
	if (is_journal()) {
		ff_buf_addz(&line, levels[place->level].prefix);
	} else {
		ff_buf_addf(&line, "%s: ", levels[place->level].name);
	}
	ff_buf_addf(&line, "group=%s ", place->group);
	ff_log_escape(ff_str_n(text.p, text.n < MESSAGE_MAX ? text.n : MESSAGE_MAX), &line);
	ff_buf_addc(&line, '\n');
	(void)ff_file_write(STDERR_FILENO, line.p, line.len);
	ff_buf_finish(&line);
}

/* ---- repeats; the lock is held */

static void omit(struct ff_log_place *p, struct ff_str text, ff_usec now)
{
	size_t n = text.n < FF_LOG_KEPT - 1 ? text.n : FF_LOG_KEPT - 1;
	atomic_fetch_add(&omitted, 1);
	if (!p->known) {
		p->known = true;
		p->next = places;
		places = p;
	}
	p->omitted_at = p->omitted++ ? p->omitted_at : now;
	memcpy(p->kept, text.p, n);
	p->kept[n] = '\0';
}

static void say_omitted(struct ff_log_place *p, ff_usec now)
{
	struct ff_buf text = {0};
	if (!p->omitted) {
		return;
	}
	ff_buf_addf(&text, "%llu more like this in %lld s: %s", (unsigned long long)p->omitted,
		(long long)((now - p->omitted_at) / FF_SECOND), p->kept);
	write_line(p, ff_buf_str(&text));
	ff_buf_finish(&text);
	p->omitted = 0;
}

/* Is it to be said now? Else it is counted. */
static bool admit(struct ff_log_place *p, struct ff_str text, ff_usec now)
{
	uint64_t hash = ff_str_hash(text, FF_HASH_INIT);
	bool again = p->last_at && hash == p->last && now - p->last_at < FF_LOG_AGAIN;
	if (now - p->since >= FF_LOG_WINDOW) {
		p->since = now;
		p->said = 0;
	}
	if (again || p->said >= FF_LOG_BURST) {
		omit(p, text, now);
		return false;
	}
	p->said++;
	p->last = hash;
	p->last_at = now;
	return true;
}

void ff_log_tick(bool all)
{
	pthread_mutex_lock(&lock);
	ff_usec now = clock_now ? clock_now() : 0;
	for (struct ff_log_place *p = places; p; p = p->next) {
		if (all || now - p->omitted_at >= FF_LOG_AGAIN) {
			say_omitted(p, now);
		}
	}
	pthread_mutex_unlock(&lock);
}

void ff_log(struct ff_log_place *place, const char *fmt, ...)
{
	struct ff_buf text = {0};
	va_list ap;
	if ((int)place->level > atomic_load(&least)) {
		return;
	}
	va_start(ap, fmt);
	ff_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&lock);
	ff_usec now = clock_now ? clock_now() : 0;
	if (!clock_now || admit(place, ff_buf_str(&text), now)) {
		say_omitted(place, now);
		write_line(place, ff_buf_str(&text));
	}
	pthread_mutex_unlock(&lock);
	ff_buf_finish(&text);
}
