#include "segment.h"

#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRAME_MAX (1024u * 1024u) /* data lines of a frame; then another begins */
#define HEAD_MAX 128u             /* bytes of a header line */
#define LENGTH_DIGITS 8u
#define FILE_MAX ((uint64_t)FF_SEGMENT_BYTES * 4) /* no file of ours is larger */

void segment_writer_finish(struct segment_writer *w)
{
	if (w) {
		ff_buf_finish(&w->buf);
		*w = (struct segment_writer){0};
	}
}

static enum ff_clock clock_of(struct ff_stamp s)
{
	if (s.arrived != FF_TIME_NONE) {
		return FF_CLOCK_ARRIVED;
	}
	return s.captured != FF_TIME_NONE ? FF_CLOCK_CAPTURED : FF_CLOCK_NONE;
}

static bool has_tags(struct ff_line_tags t)
{
	return t.tag.kind != FF_TAG_NONE || t.attempt != FF_UNKNOWN;
}

static bool goes_on(const struct segment_writer *w, uint32_t stream, const struct ff_chunk *c)
{
	return w->buf.len && w->frame.stream == stream && w->next == c->offset &&
		w->frame.clock == clock_of(c->stamp) && ff_tag_eq(w->frame.tags.tag, c->tags.tag) &&
		w->frame.tags.attempt == c->tags.attempt && w->buf.len - w->open < FRAME_MAX;
}

static void open_frame(struct segment_writer *w, uint32_t stream, const struct ff_chunk *c)
{
	if (!w->buf.len) {
		w->first = c->offset;
	}
	w->open = w->buf.len;
	w->frame = (struct segment_frame){stream, c->offset, clock_of(c->stamp), c->tags};
	char clock = w->frame.clock == FF_CLOCK_ARRIVED ? 'a'
		: w->frame.clock == FF_CLOCK_CAPTURED   ? 'c'
							: '-';
	ff_buf_addf(&w->buf, "@00000000 %u %llu %c", stream, (unsigned long long)c->offset, clock);
	if (has_tags(c->tags)) {
		ff_buf_addf(&w->buf, " %d %lld %d", (int)c->tags.tag.kind,
			(long long)c->tags.tag.value, c->tags.attempt);
	}
	ff_buf_addc(&w->buf, '\n');
}

/* The header's length is written again whenever the frame grew. */
static void close_frame(struct segment_writer *w)
{
	char *head = w->buf.p + w->open;
	char *body = memchr(head, '\n', w->buf.len - w->open);
	size_t n = (size_t)(w->buf.p + w->buf.len - body - 1);
	for (unsigned i = 0; i < LENGTH_DIGITS; i++) {
		head[LENGTH_DIGITS - i] = "0123456789abcdef"[n & 15];
		n >>= 4;
	}
}

void segment_writer_put(struct segment_writer *w, uint32_t stream, const struct ff_chunk *c)
{
	if (!c->len) {
		return;
	}
	if (!goes_on(w, stream, c)) {
		open_frame(w, stream, c);
	}
	ff_usec us = ff_stamp_us(c->stamp);
	struct ff_str rest = ff_str_n(c->data, c->len);
	while (rest.n) {
		ptrdiff_t lf = ff_str_chr(rest, '\n', 0);
		size_t n = lf < 0 ? rest.n : (size_t)lf;
		ff_buf_addf(&w->buf, "%lld 0%c ", us == FF_TIME_NONE ? 0 : (long long)us,
			lf < 0 ? '-' : '.');
		ff_buf_add(&w->buf, rest.p, n);
		ff_buf_addc(&w->buf, '\n');
		rest = ff_str_skip(rest, n + (lf < 0 ? 0 : 1));
	}
	w->next = c->offset + c->len;
	close_frame(w);
}

static bool take_char(struct ff_str *in, char c)
{
	if (!in->n || in->p[0] != c) {
		return false;
	}
	*in = ff_str_skip(*in, 1);
	return true;
}

/* A blank and a whole number, perhaps negative. */
static bool take_number(struct ff_str *in, int64_t *ret)
{
	if (!take_char(in, ' ')) {
		return false;
	}
	bool negative = take_char(in, '-');
	size_t n = ff_str_digits(*in, ret);
	*in = ff_str_skip(*in, n);
	*ret = negative ? -*ret : *ret;
	return n > 0;
}

static bool take_length(struct ff_str *in, size_t *ret)
{
	if (in->n < LENGTH_DIGITS) {
		return false;
	}
	size_t n = 0;
	for (unsigned i = 0; i < LENGTH_DIGITS; i++) {
		const char *digit = memchr("0123456789abcdef", in->p[i], 16);
		if (!digit) {
			return false;
		}
		n = n * 16 + (size_t)(digit - "0123456789abcdef");
	}
	*in = ff_str_skip(*in, LENGTH_DIGITS);
	*ret = n;
	return true;
}

static bool parse_tags(struct ff_str *head, struct ff_line_tags *ret)
{
	*ret = (struct ff_line_tags){FF_TAG_INIT, FF_UNKNOWN};
	if (!head->n) {
		return true;
	}
	int64_t kind, value, attempt;
	if (!take_number(head, &kind) || !take_number(head, &value) ||
		!take_number(head, &attempt) || kind < 0 || kind > FF_TAG_PID ||
		attempt < FF_UNKNOWN || attempt > INT32_MAX) {
		return false;
	}
	*ret = (struct ff_line_tags){{(enum ff_tag_kind)kind, value}, (int32_t)attempt};
	return true;
}

static bool parse_head(struct ff_str head, struct segment_frame *ret, size_t *ret_length)
{
	int64_t stream, offset;
	if (!take_char(&head, '@') || !take_length(&head, ret_length) ||
		!take_number(&head, &stream) || !take_number(&head, &offset) ||
		!take_char(&head, ' ') || !head.n || stream < 1 || stream > UINT32_MAX ||
		offset < 0) {
		return false;
	}
	ret->stream = (uint32_t)stream;
	ret->offset = (uint64_t)offset;
	char c = head.p[0];
	if (c != 'a' && c != 'c' && c != '-') {
		return false;
	}
	ret->clock = c == 'a' ? FF_CLOCK_ARRIVED : c == 'c' ? FF_CLOCK_CAPTURED : FF_CLOCK_NONE;
	head = ff_str_skip(head, 1);
	return parse_tags(&head, &ret->tags) && !head.n;
}

bool segment_take_frame(struct ff_str *in, struct segment_frame *ret, struct ff_str *ret_lines)
{
	struct ff_str front = ff_str_n(in->p, in->n < HEAD_MAX ? in->n : HEAD_MAX);
	ptrdiff_t lf = front.n ? ff_str_chr(front, '\n', 0) : -1;
	struct segment_frame frame;
	size_t length;
	if (lf < 0 || !parse_head(ff_str_n(in->p, (size_t)lf), &frame, &length)) {
		return false;
	}
	struct ff_str rest = ff_str_skip(*in, (size_t)lf + 1);
	if (length > rest.n) {
		return false;
	}
	*ret = frame;
	*ret_lines = ff_str_n(rest.p, length);
	*in = ff_str_skip(rest, length);
	return true;
}

bool segment_take_line(struct ff_str *lines, struct segment_line *ret)
{
	if (!lines->n) {
		return false;
	}
	ptrdiff_t lf = ff_str_chr(*lines, '\n', 0);
	if (lf < 0) {
		return false;
	}
	struct ff_str line = ff_str_n(lines->p, (size_t)lf);
	int64_t us;
	size_t n = ff_str_digits(line, &us);
	line = ff_str_skip(line, n);
	if (!n || line.n < 4 || line.p[0] != ' ' || line.p[1] != '0' || line.p[3] != ' ' ||
		(line.p[2] != '.' && line.p[2] != '-')) {
		return false;
	}
	ret->us = us ? us : FF_TIME_NONE;
	ret->whole = line.p[2] == '.';
	ret->text = ff_str_skip(line, 4);
	*lines = ff_str_skip(*lines, (size_t)lf + 1);
	return true;
}

bool segment_is_before(struct segment_place a, struct segment_place b)
{
	return a.number != b.number ? a.number < b.number : a.at < b.at;
}

static int by_number(const void *key, const void *element)
{
	uint32_t a = *(const uint32_t *)key, b = *(const uint32_t *)element;
	return a < b ? -1 : a > b;
}

void *segment_find(void *v, size_t n, size_t size, uint32_t number)
{
	return n ? bsearch(&number, v, n, size, by_number) : NULL;
}

void segment_folder(const char *state, uint32_t run, struct ff_buf *out)
{
	ff_buf_addf(out, "%s/segments/%u", state, run);
}

void segment_path(const char *state, uint32_t run, uint32_t number, struct ff_buf *out)
{
	segment_folder(state, run, out);
	ff_buf_addf(out, "/%010u.seg", number);
}

/* Reads [from, to) of a file. */
static int read_range(int fd, uint64_t from, uint64_t to, struct ff_buf *out)
{
	while (from < to) {
		size_t want = to - from < 1 << 20 ? (size_t)(to - from) : 1 << 20;
		ssize_t n = pread(fd, ff_buf_reserve(out, want), want, (off_t)from);
		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		if (n == 0) {
			return FF_EINPUT; /* shorter than it was committed */
		}
		if (n > 0) {
			out->len += (size_t)n;
			from += (uint64_t)n;
		}
	}
	return 0;
}

/* Adds [from, to) of the run's file to out; to UINT64_MAX: its end. */
static int load(
	const char *state, uint32_t run, struct segment_place from, uint64_t to, struct ff_buf *out)
{
	struct ff_buf path = {0};
	segment_path(state, run, from.number, &path);
	int fd = open(path.p, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ff_buf_finish(&path);
	if (fd < 0) {
		return -errno;
	}
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && to == UINT64_MAX) {
		to = (uint64_t)st.st_size;
	}
	if (r == 0 && (to > FILE_MAX || from.at > to)) {
		r = FF_EINPUT;
	}
	if (r == 0) {
		r = read_range(fd, from.at, to, out);
	}
	close(fd);
	return r;
}

int segment_scan(const char *state, uint32_t run, struct segment_range range,
	struct segment_place from, segment_fn *fn, void *ud)
{
	if (from.number < range.first) {
		return -ENOENT;
	}
	struct ff_buf buf = {0};
	int r = 0;
	for (; from.number <= range.end.number; from = (struct segment_place){from.number + 1, 0}) {
		bool last = from.number == range.end.number;
		if (last && range.end.at <= from.at) {
			break;
		}
		ff_buf_clear(&buf);
		r = load(state, run, from, last ? range.end.at : UINT64_MAX, &buf);
		if (r < 0) {
			break;
		}
		struct ff_str rest = ff_buf_str(&buf);
		struct segment_frame frame;
		struct ff_str lines;
		struct segment_place place = from;
		bool more = true;
		while (more && segment_take_frame(&rest, &frame, &lines)) {
			more = fn(ud, &frame, lines, place);
			place.at = from.at + buf.len - rest.n;
		}
		if (!more) {
			break;
		}
		if (rest.n) {
			r = FF_EINPUT;
			break;
		}
	}
	ff_buf_finish(&buf);
	return r;
}

/* The number of a file of ours, 0 if it is none. */
static uint32_t number_of(const char *name)
{
	int64_t number;
	struct ff_str s = ff_str_z(name);
	size_t n = ff_str_digits(s, &number);
	bool ours = n == 10 && ff_str_eqz(ff_str_skip(s, n), ".seg") && number <= UINT32_MAX;
	return ours ? (uint32_t)number : 0;
}

static int cut_last(const char *path, uint64_t length, struct ff_err *err)
{
	struct stat st;
	if (stat(path, &st) < 0) {
		if (errno == ENOENT && !length) {
			return 0;
		}
		return ff_err_set(err, -errno, "cannot look at \"%s\": %s", path, strerror(errno));
	}
	if ((uint64_t)st.st_size < length) {
		return ff_err_set(err, FF_EDB, "\"%s\" is damaged: %lld bytes, %llu were committed",
			path, (long long)st.st_size, (unsigned long long)length);
	}
	if ((uint64_t)st.st_size > length && truncate(path, (off_t)length) < 0) {
		return ff_err_set(err, -errno, "cannot cut \"%s\": %s", path, strerror(errno));
	}
	return 0;
}

int segment_cut(const char *state, uint32_t run, struct segment_range range, struct ff_err *err)
{
	struct ff_buf path = {0};
	segment_folder(state, run, &path);
	DIR *dir = opendir(path.p);
	int r = 0;
	if (!dir) {
		r = errno == ENOENT && !range.end.at
			? 0
			: ff_err_set(
				  err, -errno, "cannot read \"%s\": %s", path.p, strerror(errno));
		ff_buf_finish(&path);
		return r;
	}
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		uint32_t number = number_of(e->d_name);
		if (number && (number < range.first || number > range.end.number)) {
			(void)unlinkat(dirfd(dir), e->d_name, 0);
		}
	}
	closedir(dir);
	ff_buf_clear(&path);
	segment_path(state, run, range.end.number, &path);
	r = cut_last(path.p, range.end.at, err);
	ff_buf_finish(&path);
	return r;
}

/* Makes a folder of mode 0700 and lets the entry reach the disk. */
static int make_folder(const char *path, const char *above)
{
	if (mkdir(path, 0700) < 0) {
		return errno == EEXIST ? 0 : -errno;
	}
	int fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
	if (fd >= 0) {
		close(fd);
	}
	return r;
}

static int open_file(const char *state, uint32_t run, uint32_t number)
{
	struct ff_buf path = {0};
	struct ff_buf folder = {0};
	ff_buf_addf(&path, "%s/segments", state);
	int r = make_folder(path.p, state);
	segment_folder(state, run, &folder);
	if (r == 0) {
		r = make_folder(folder.p, path.p);
	}
	ff_buf_clear(&path);
	segment_path(state, run, number, &path);
	int fd = -1;
	if (r == 0) {
		fd = open(path.p, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		r = fd < 0 ? -errno : 0;
	}
	if (r == 0) { /* the new name has to reach the disk as well */
		int dir = open(folder.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = dir < 0 || fsync(dir) < 0 ? -errno : 0;
		if (dir >= 0) {
			close(dir);
		}
	}
	ff_buf_finish(&path);
	ff_buf_finish(&folder);
	if (r < 0) {
		if (fd >= 0) {
			close(fd);
		}
		return r;
	}
	return fd;
}

int segment_write(
	const char *state, uint32_t run, struct segment_place place, struct ff_str bytes, int *fd)
{
	if (*fd < 0) {
		int opened = open_file(state, run, place.number);
		if (opened < 0) {
			return opened;
		}
		*fd = opened;
	}
	while (bytes.n) {
		ssize_t n = pwrite(*fd, bytes.p, bytes.n, (off_t)place.at);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return n < 0 ? -errno : -EIO;
		}
		bytes = ff_str_skip(bytes, (size_t)n);
		place.at += (uint64_t)n;
	}
	return 0;
}

void segment_remove(const char *state, uint32_t run, uint32_t number)
{
	struct ff_buf path = {0};
	segment_path(state, run, number, &path);
	(void)unlink(path.p);
	ff_buf_finish(&path);
}

/* Removes the file; its bytes, or negative errno. */
static int64_t remove_at(int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || unlinkat(dir, name, 0) < 0) {
		return errno == ENOENT ? 0 : -errno;
	}
	return st.st_size;
}

int segment_remove_some(const char *state, uint32_t run, unsigned max, uint64_t *freed)
{
	struct ff_buf path = {0};
	segment_folder(state, run, &path);
	DIR *dir = opendir(path.p);
	int r = dir || errno == ENOENT ? 0 : -errno;
	unsigned n = 0;
	for (struct dirent *e = dir ? readdir(dir) : NULL; e && n < max && r == 0;
		e = readdir(dir)) {
		if (number_of(e->d_name)) {
			int64_t bytes = remove_at(dirfd(dir), e->d_name);
			r = bytes < 0 ? (int)bytes : 0;
			*freed += bytes > 0 ? (uint64_t)bytes : 0;
			n++;
		}
	}
	if (dir) {
		closedir(dir);
	}
	if (r == 0 && n < max) {
		(void)rmdir(path.p);
	}
	ff_buf_finish(&path);
	return r < 0 ? r : n == max;
}
