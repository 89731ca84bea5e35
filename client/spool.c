#include "spool.h"

#include "base/arr.h"
#include "shell/addr.h"
#include "shell/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x46467370u
#define FORM "firstfault-spool/1"
#define FRAME_MAX (8u * 1024u * 1024u)   /* bytes of lines in one frame, when it is read */
#define FLUSH_AT (64u * 1024u)           /* bytes of lines that make a frame */
#define SEGMENTS 16u                     /* that a full spool has */
#define SEGMENT_MOST (16u * 1024u * 1024u)
#define SEGMENT_IDLE (256u * 1024u)      /* an acknowledged one of that size is begun anew */
#define MEMORY_SEGMENT (256u * 1024u)
#define HELLO_MAX 65536u
#define SOURCE_LEN 32u

/* In the byte order of the machine that wrote it: who reads it is the same user there. */
struct header {
	uint32_t magic;
	uint32_t len;    /* of the lines behind it; 0: the source ended here */
	uint64_t offset; /* of the first byte */
	uint64_t raw;    /* bytes of the source that they are */
	uint64_t sum;    /* of the fields before and the lines */
};

struct segment {
	uint64_t first, end; /* offsets */
	uint64_t size;       /* bytes of the file, or of mem */
	bool in_memory;
	struct ff_buf mem;
};

struct spool {
	pthread_mutex_t lock;
	char source[SOURCE_LEN + 1];
	struct ff_json *doc; /* the hello's strings are in it */
	struct ff_native_hello hello;
	char *folder; /* NULL: in memory */
	int lock_fd, write_fd, read_fd;
	uint64_t read_first; /* segment that read_fd is of */
	uint64_t max;
	struct segment *v; /* oldest first */
	size_t n, cap;
	uint64_t end;  /* offset behind the last byte put */
	bool ended, discarding;
	uint64_t acked, dropped;
	/* where the next frame to be read begins */
	uint64_t at_first, at_place, at_offset;
	/* the putting thread's own */
	const struct ff_mask_rules *rules;
	struct ff_mask_lines mask;
	struct ff_buf lines; /* of the next frame */
	uint64_t lines_raw;
};

/* ---- names */

static char *spools_folder(void)
{
	const char *own = getenv("FIRSTFAULT_SPOOL");
	if (own && *own) {
		return ff_xstrdup(own);
	}
	if (geteuid() == 0) {
		return ff_xstrdup("/var/spool/firstfault");
	}
	char *state = ff_addr_state_folder();
	char *folder = ff_file_join(state, "spool");
	free(state);
	return folder;
}

static char *segment_path(const struct spool *s, uint64_t first)
{
	char name[40];
	(void)snprintf(name, sizeof name, "%018" PRIu64 ".seg", first);
	return ff_file_join(s->folder, name);
}

static void close_fd(int *fd)
{
	if (*fd >= 0) {
		(void)close(*fd);
		*fd = -1;
	}
}

static bool is_source(const char *name)
{
	return strlen(name) == SOURCE_LEN && strspn(name, "0123456789abcdef") == SOURCE_LEN;
}

const char *spool_folder(const struct spool *s)
{
	return s->folder ? s->folder : "";
}

const struct ff_native_hello *spool_hello(const struct spool *s)
{
	return &s->hello;
}

/* ---- segments */

static uint64_t segment_most(const struct spool *s)
{
	uint64_t most = s->max / SEGMENTS;
	return most < SEGMENT_MOST ? most : SEGMENT_MOST;
}

static struct segment *last(struct spool *s)
{
	return s->n ? &s->v[s->n - 1] : NULL;
}

/* The i-th one is given up; what of it is not acknowledged is lost unless it was sent. */
static void drop_segment(struct spool *s, size_t i, bool lost)
{
	struct segment *g = &s->v[i];
	if (lost && g->end > s->acked) {
		s->dropped += g->end - (g->first > s->acked ? g->first : s->acked);
	}
	if (!g->in_memory) {
		char *path = segment_path(s, g->first);
		(void)unlink(path);
		free(path);
	}
	if (i + 1 == s->n) {
		close_fd(&s->write_fd);
	}
	ff_buf_finish(&g->mem);
	memmove(g, g + 1, (s->n - i - 1) * sizeof *g);
	s->n--;
}

static void begin_segment(struct spool *s, bool in_memory)
{
	struct segment g = {.first = s->end, .end = s->end, .in_memory = in_memory || !s->folder};
	close_fd(&s->write_fd);
	if (!g.in_memory) {
		char *path = segment_path(s, g.first);
		s->write_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		g.in_memory = s->write_fd < 0;
		free(path);
	}
	*FF_ARR_ADD(s->v, s->n, s->cap) = g;
}

/* Under the caps: disk altogether, memory by itself. */
static void keep_small(struct spool *s)
{
	uint64_t disk = 0, memory = 0;
	for (size_t i = 0; i < s->n; i++) {
		*(s->v[i].in_memory ? &memory : &disk) += s->v[i].size;
	}
	for (size_t i = 0; i + 1 < s->n && (disk > s->max || memory > SPOOL_MEMORY);) {
		bool in_memory = s->v[i].in_memory;
		if (in_memory ? memory > SPOOL_MEMORY : disk > s->max) {
			*(in_memory ? &memory : &disk) -= s->v[i].size;
			drop_segment(s, i, true);
		} else {
			i++;
		}
	}
}

/* A frame that is only half there when the disk is full is cut off again. */
static bool append(struct spool *s, struct segment *g, const struct header *h, struct ff_str lines)
{
	if (g->in_memory) {
		ff_buf_add(&g->mem, h, sizeof *h);
		ff_buf_adds(&g->mem, lines);
	} else if (ff_file_write(s->write_fd, h, sizeof *h) < 0 ||
		ff_file_write(s->write_fd, lines.p, lines.n) < 0) {
		if (ftruncate(s->write_fd, (off_t)g->size) < 0 ||
			lseek(s->write_fd, (off_t)g->size, SEEK_SET) < 0) {
			close_fd(&s->write_fd);
		}
		return false;
	}
	g->size += sizeof *h + lines.n;
	g->end = h->offset + h->raw;
	return true;
}

static uint64_t checksum(const struct header *h, struct ff_str lines)
{
	struct ff_str head = ff_str_n((const char *)h, offsetof(struct header, sum));
	return ff_str_hash(lines, ff_str_hash(head, FF_HASH_INIT));
}

/* Locked. */
static void put_frame(struct spool *s, struct ff_str lines, uint64_t raw)
{
	struct header h = {.magic = MAGIC, .len = (uint32_t)lines.n, .offset = s->end, .raw = raw};
	struct segment *g = last(s);
	uint64_t most = g && g->in_memory ? MEMORY_SEGMENT : segment_most(s);
	h.sum = checksum(&h, lines);
	if (!g || g->size >= most || (!g->in_memory && s->write_fd < 0)) {
		begin_segment(s, false);
		g = last(s);
	}
	if (!append(s, g, &h, lines)) {
		if (!g->size) {
			drop_segment(s, s->n - 1, false);
		}
		begin_segment(s, true); /* the disk is full: the next one tries it again */
		(void)append(s, last(s), &h, lines);
	}
	s->end += raw;
	keep_small(s);
}

/* ---- what the source says */

void spool_flush(struct spool *s)
{
	if (!s->lines.len) {
		return;
	}
	(void)pthread_mutex_lock(&s->lock);
	if (s->discarding) {
		s->dropped += s->lines_raw;
		s->end += s->lines_raw;
	} else {
		put_frame(s, ff_buf_str(&s->lines), s->lines_raw);
	}
	(void)pthread_mutex_unlock(&s->lock);
	ff_buf_clear(&s->lines);
	s->lines_raw = 0;
}

void spool_put(struct spool *s, ff_usec stamp, char *text, size_t n, bool newline)
{
	(void)ff_mask_rules_line(s->rules, &s->mask, text, n);
	ff_native_data_render(&s->lines, &(struct ff_native_data){.stamp = stamp,
		.newline = newline, .text = ff_str_n(text, n)});
	s->lines_raw += n + newline;
	if (s->lines.len >= FLUSH_AT) {
		spool_flush(s);
	}
}

void spool_end(struct spool *s)
{
	spool_flush(s);
	(void)pthread_mutex_lock(&s->lock);
	s->ended = true;
	if (!s->discarding) {
		put_frame(s, FF_STR(""), 0);
	}
	(void)pthread_mutex_unlock(&s->lock);
}

void spool_discard(struct spool *s)
{
	(void)pthread_mutex_lock(&s->lock);
	s->discarding = true;
	(void)pthread_mutex_unlock(&s->lock);
}

/* ---- reading back */

/* Exactly n bytes of a segment. */
static bool read_segment(struct spool *s, const struct segment *g, uint64_t at, void *to, size_t n)
{
	if (at + n > g->size) {
		return false;
	}
	if (g->in_memory) {
		memcpy(to, g->mem.p + at, n);
		return true;
	}
	if (s->read_fd < 0 || s->read_first != g->first) {
		char *path = segment_path(s, g->first);
		close_fd(&s->read_fd);
		s->read_fd = open(path, O_RDONLY | O_CLOEXEC);
		s->read_first = g->first;
		free(path);
	}
	for (size_t got = 0; got < n;) {
		ssize_t r = pread(s->read_fd, (char *)to + got, n - got, (off_t)(at + got));
		if (r <= 0 && !(r < 0 && errno == EINTR)) {
			return false;
		}
		got += r > 0 ? (size_t)r : 0;
	}
	return true;
}

/* The frame at this place; lines may be NULL, then they are not looked at. */
static bool read_frame(struct spool *s, const struct segment *g, uint64_t at, struct header *ret,
	struct ff_buf *lines)
{
	if (!read_segment(s, g, at, ret, sizeof *ret) || ret->magic != MAGIC ||
		ret->len > FRAME_MAX) {
		return false;
	}
	if (!lines) {
		return true;
	}
	ff_buf_clear(lines);
	char *to = ff_buf_reserve(lines, ret->len);
	if (!read_segment(s, g, at + sizeof *ret, to, ret->len)) {
		return false;
	}
	lines->len = ret->len;
	return checksum(ret, ff_buf_str(lines)) == ret->sum;
}

/* The lines of a frame from *next on. */
static void add_lines(const struct header *h, struct ff_str lines, uint64_t *next,
	struct ff_buf *out)
{
	uint64_t offset = h->offset;
	while (lines.n) {
		ptrdiff_t lf = ff_str_chr(lines, '\n', 0);
		struct ff_native_data d;
		if (lf < 0 || !ff_native_data_parse(ff_str_n(lines.p, (size_t)lf), &d)) {
			break;
		}
		uint64_t end = offset + d.text.n + d.newline;
		if (*next <= offset) {
			ff_buf_add(out, lines.p, (size_t)lf + 1);
		} else if (*next < end) {
			d.text = ff_str_skip(d.text, (size_t)(*next - offset));
			ff_native_data_render(out, &d);
		}
		offset = end;
		lines = ff_str_skip(lines, (size_t)lf + 1);
	}
	*next = h->offset + h->raw;
}

/* The place of the frame that holds `next` in this segment. */
static bool seek(struct spool *s, const struct segment *g, uint64_t next)
{
	struct header h;
	if (s->at_first != g->first || s->at_offset > next) {
		s->at_first = g->first;
		s->at_place = 0;
		s->at_offset = g->first;
	}
	while (read_frame(s, g, s->at_place, &h, NULL)) {
		if (h.raw && h.offset + h.raw > next) {
			return true;
		}
		s->at_place += sizeof h + h.len;
		s->at_offset = h.offset + h.raw;
	}
	return false;
}

void spool_get(struct spool *s, uint64_t *next, uint64_t room, size_t most, struct ff_buf *out)
{
	struct ff_buf lines = {0};
	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->n && out->len < most && *next < room;) {
		const struct segment *g = &s->v[i];
		struct header h;
		if (g->end <= *next) {
			i++;
			continue;
		}
		if (g->first > *next) {
			*next = g->first;
			ff_native_gap_render(out, next, 1);
		}
		if (seek(s, g, *next) && read_frame(s, g, s->at_place, &h, &lines)) {
			add_lines(&h, ff_buf_str(&lines), next, out);
		} else { /* what of it can't be read is lost */
			s->dropped += g->end - *next;
			*next = g->end;
			ff_native_gap_render(out, next, 1);
		}
	}
	(void)pthread_mutex_unlock(&s->lock);
	ff_buf_finish(&lines);
}

uint64_t spool_size(struct spool *s, bool *ret_ended)
{
	(void)pthread_mutex_lock(&s->lock);
	uint64_t end = s->end;
	*ret_ended = s->ended;
	(void)pthread_mutex_unlock(&s->lock);
	return end;
}

uint64_t spool_dropped(struct spool *s)
{
	(void)pthread_mutex_lock(&s->lock);
	uint64_t n = s->dropped;
	(void)pthread_mutex_unlock(&s->lock);
	return n;
}

void spool_forget(struct spool *s, uint64_t acked)
{
	(void)pthread_mutex_lock(&s->lock);
	s->acked = acked > s->acked ? acked : s->acked;
	while (s->n && s->v[0].end <= s->acked && (s->n > 1 || s->v[0].size >= SEGMENT_IDLE) &&
		!(s->n == 1 && s->ended)) {
		drop_segment(s, 0, false);
	}
	(void)pthread_mutex_unlock(&s->lock);
}

/* ---- life */

static struct spool *allocate(uint64_t max)
{
	struct spool *s = ff_xcalloc(1, sizeof *s);
	(void)pthread_mutex_init(&s->lock, NULL);
	s->lock_fd = s->write_fd = s->read_fd = -1;
	s->at_first = UINT64_MAX;
	s->max = max;
	return s;
}

/* s->hello from its own text. */
static bool take_hello(struct spool *s, struct ff_str text)
{
	enum ff_native_error code;
	s->doc = ff_json_parse(text, NULL);
	return s->doc &&
		ff_native_hello_parse(ff_json_root(s->doc), &s->hello, &code, NULL) == 0 &&
		s->hello.nstreams == 1;
}

static void draw_source(struct spool *s)
{
	unsigned char random[SOURCE_LEN / 2];
	for (size_t got = 0; got < sizeof random;) {
		ssize_t n = getrandom(random + got, sizeof random - got, 0);
		got += n > 0 ? (size_t)n : 0;
	}
	for (size_t i = 0; i < sizeof random; i++) {
		(void)snprintf(s->source + 2 * i, 3, "%02x", random[i]);
	}
}

static int lock_folder(struct spool *s, int flags)
{
	char *path = ff_file_join(s->folder, "lock");
	s->lock_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	int r = s->lock_fd < 0 || flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	free(path);
	return r;
}

static size_t count_spools(const char *folder)
{
	size_t n = 0;
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));) {
		n += e->d_name[0] != '.';
	}
	if (d) {
		(void)closedir(d);
	}
	return n;
}

static int write_hello(const struct spool *s, const char *to, const struct ff_buf *hello)
{
	struct ff_buf text = {0};
	char *path = ff_file_join(s->folder, "hello");
	ff_buf_addf(&text, "%s %s\n", FORM, to);
	ff_buf_adds(&text, ff_buf_str(hello));
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : ff_file_write(fd, text.p, text.len);
	if (fd >= 0) {
		(void)close(fd);
	}
	free(path);
	ff_buf_finish(&text);
	return r;
}

static void remove_folder(struct spool *s)
{
	static const char *const names[] = {"hello", "lock"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *path = ff_file_join(s->folder, names[i]);
		(void)unlink(path);
		free(path);
	}
	(void)rmdir(s->folder);
}

static int make_folder(struct spool *s, const char *to, const struct ff_buf *hello,
	struct ff_err *err)
{
	char *all = spools_folder();
	int r = ff_file_make_folder(all, err);
	if (r == 0 && count_spools(all) >= SPOOLS_MAX) {
		r = ff_err_set(err, FF_ELIMIT, "there are %u spools in \"%s\" already", SPOOLS_MAX,
			all);
	}
	if (r == 0) {
		s->folder = ff_file_join(all, s->source);
		r = mkdir(s->folder, 0700) < 0 ? -errno : lock_folder(s, O_CREAT);
		r = r < 0 ? r : write_hello(s, to, hello);
		if (r < 0) {
			(void)ff_err_set(err, r, "cannot make \"%s\": %s", s->folder,
				ff_strerror(r));
			close_fd(&s->lock_fd);
			remove_folder(s);
			free(s->folder);
			s->folder = NULL;
		}
	}
	free(all);
	return r;
}

struct spool *spool_create(const char *to, const struct ff_native_hello *hello, uint64_t max,
	const struct ff_mask_rules *mask, struct ff_err *err)
{
	struct spool *s = allocate(max);
	struct ff_native_hello h = *hello;
	struct ff_buf text = {0};
	s->rules = mask;
	draw_source(s);
	h.source = s->source;
	h.token = NULL;
	h.live = false; /* who delivers it later must not begin a run with it */
	ff_native_hello_render(&text, &h);
	if (!take_hello(s, ff_buf_str(&text))) {
		abort(); /* our own words */
	}
	s->hello.live = hello->live;
	(void)make_folder(s, to, &text, err);
	ff_buf_finish(&text);
	return s;
}

static int by_name(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;
	return (x->first > y->first) - (x->first < y->first);
}

/* The whole frames of a segment count; what is behind them is cut off by being forgotten. */
static void take_segment(struct spool *s, struct segment *g)
{
	struct header h;
	struct ff_buf lines = {0};
	uint64_t at = 0;
	while (read_frame(s, g, at, &h, &lines) && h.offset == g->end) {
		s->ended = s->ended || !h.len;
		g->end += h.raw;
		at += sizeof h + h.len;
	}
	g->size = at;
	s->end = g->end > s->end ? g->end : s->end;
	ff_buf_finish(&lines);
}

static bool load_segments(struct spool *s)
{
	DIR *d = opendir(s->folder);
	for (struct dirent *e; d && (e = readdir(d));) {
		int64_t first;
		struct stat st;
		struct ff_str name = ff_str_z(e->d_name);
		if (ff_str_digits(name, &first) && fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
			S_ISREG(st.st_mode)) {
			*FF_ARR_ADD(s->v, s->n, s->cap) = (struct segment){
				.first = (uint64_t)first, .end = (uint64_t)first,
				.size = (uint64_t)st.st_size};
		}
	}
	if (d) {
		(void)closedir(d);
	}
	if (s->n) {
		qsort(s->v, s->n, sizeof *s->v, by_name);
	}
	for (size_t i = 0; i < s->n; i++) {
		take_segment(s, &s->v[i]);
	}
	return d != NULL;
}

/* NULL: somebody owns it, or it is none, or it goes elsewhere. */
static struct spool *adopt(const char *all, const char *name, const char *to)
{
	struct spool *s = allocate(UINT64_MAX);
	struct ff_buf text = {0};
	s->folder = ff_file_join(all, name);
	char *path = ff_file_join(s->folder, "hello");
	bool good = lock_folder(s, 0) == 0 && ff_file_load(path, HELLO_MAX, &text, NULL) == 0;
	ptrdiff_t lf = good ? ff_str_chr(ff_buf_str(&text), '\n', 0) : -1;
	if (lf > 0) {
		struct ff_str head = ff_str_n(text.p, (size_t)lf);
		bool ours = ff_str_starts(head, FF_STR(FORM " ")) &&
			(!to || ff_str_eqz(ff_str_skip(head, sizeof FORM), to));
		if (ours && take_hello(s, ff_str_skip(ff_buf_str(&text), (size_t)lf + 1)) &&
			!strcmp(s->hello.source, name) && load_segments(s)) {
			memcpy(s->source, name, SOURCE_LEN);
			free(path);
			ff_buf_finish(&text);
			return s;
		}
	}
	free(path);
	ff_buf_finish(&text);
	spool_destroy(s, false);
	return NULL;
}

size_t spool_adopt(const char *to, void (*fn)(void *ud, struct spool *s), void *ud)
{
	char *all = spools_folder();
	size_t n = 0;
	DIR *d = opendir(all);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (!is_source(e->d_name)) {
			continue;
		}
		n++;
		struct spool *s = adopt(all, e->d_name, to);
		if (s) {
			fn(ud, s);
		}
	}
	if (d) {
		(void)closedir(d);
	}
	free(all);
	return n;
}

void spool_refuse(struct spool *s)
{
	struct ff_buf to = {0};
	if (s->folder) {
		ff_buf_addf(&to, "%s.refused", s->folder);
		if (rename(s->folder, to.p) == 0) {
			free(s->folder);
			s->folder = ff_buf_take(&to);
		}
	}
	ff_buf_finish(&to);
}

void spool_destroy(struct spool *s, bool done)
{
	if (!s) {
		return;
	}
	while (done && s->n) {
		drop_segment(s, s->n - 1, false);
	}
	for (size_t i = 0; i < s->n; i++) {
		ff_buf_finish(&s->v[i].mem);
	}
	if (done && s->folder) {
		remove_folder(s);
	}
	close_fd(&s->lock_fd);
	close_fd(&s->write_fd);
	close_fd(&s->read_fd);
	(void)pthread_mutex_destroy(&s->lock);
	ff_json_destroy(s->doc);
	ff_buf_finish(&s->lines);
	free(s->v);
	free(s->folder);
	free(s);
}
