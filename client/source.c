#include "source.h"

#include "base/mem.h"
#include "shell/file.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define BUFFER 65536u
#define TAR_BLOCK 512u

enum layer { LAYER_FILE, LAYER_GZIP, LAYER_ZSTD, LAYER_OTHER, LAYER_TAR };

struct source {
	enum layer layer;
	struct source *below, *root;
	char *front; /* bytes that were looked at and wait for the reader */
	size_t front_at, front_n;
	struct ff_err trouble; /* of this layer: it stays */
	int code;
	uint64_t given;   /* bytes of this source, or of its present member */
	uint64_t started; /* bytes that the root had read when that began */
	bool over, member;

	/* file */
	int fd;
	char *shown;
	uint64_t eaten; /* bytes read from the descriptor */
	/* gzip, zstd */
	char *in;
	size_t in_at, in_n;
	bool in_frame, any; /* inside compressed data; a whole one has come */
	z_stream z;
	ZSTD_DStream *zs;
	/* xz, bzip2, tar: libarchive's; it reads from `in` */
	struct archive *a;
	const char *block;
	size_t block_n;
	la_int64_t block_at, pos;
	size_t headers, passed;
};

/* ---- what it is */

/* Text with a few strange bytes stays text: programs print escape sequences and worse, and a
 * rotated log begins with a hole of NULs (SOURCES.md torch-elastic-logs). */
static bool looks_binary(struct ff_str s)
{
	size_t control = 0, other = 0;
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool fine = c >= 0x20 || (c >= 0x07 && c <= 0x0d) || c == 0x1b;
		control += c && !fine;
		other += c != 0;
	}
	return control * 20 > other;
}

/* A tar's header holds the sum of its own bytes, with blanks for the sum itself (SOURCES.md
 * packed-files): no text has that by chance, and old tars have no other mark. */
static bool looks_tar(struct ff_str s)
{
	unsigned long sum = 0, told = 0;
	size_t digits = 0;
	if (s.n < TAR_BLOCK || !s.p[0]) {
		return false;
	}
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		sum += i >= 148 && i < 156 ? ' ' : (unsigned char)s.p[i];
	}
	for (size_t i = 148; i < 156; i++) {
		if (s.p[i] >= '0' && s.p[i] <= '7') {
			told = told * 8 + (unsigned long)(s.p[i] - '0');
			digits++;
		} else if (digits || s.p[i] != ' ') {
			break;
		}
	}
	return digits && sum == told;
}

bool source_is_packed(enum source_kind k)
{
	return k >= SOURCE_GZIP && k <= SOURCE_BZIP2;
}

enum source_kind source_kind(struct source *s, size_t n)
{
	static const struct {
		struct ff_str magic;
		enum source_kind kind;
	} marks[] = {
		{{"\x1f\x8b\x08", 3}, SOURCE_GZIP},
		{{"\x28\xb5\x2f\xfd", 4}, SOURCE_ZSTD},
		{{"\xfd" "7zXZ\0", 6}, SOURCE_XZ},
		{{"BZh", 3}, SOURCE_BZIP2},
		{{"\xff\xfe", 2}, SOURCE_UTF16},
		{{"\xfe\xff", 2}, SOURCE_UTF16},
	};
	struct ff_str f = source_front(s, n);
	if (!f.n) {
		return SOURCE_EMPTY;
	}
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		/* a bzip2 has a level and a block's mark behind it, a text that says BZh has not */
		bool whole = marks[i].kind != SOURCE_BZIP2 ||
			(f.n > 9 && (!memcmp(f.p + 4, "1AY&SY", 6) ||
				     !memcmp(f.p + 4, "\x17\x72\x45\x38\x50\x90", 6)));
		if (whole && ff_str_starts(f, marks[i].magic)) {
			return marks[i].kind;
		}
	}
	if (looks_tar(f)) {
		return SOURCE_TAR;
	}
	return looks_binary(f) ? SOURCE_BINARY : SOURCE_TEXT;
}

/* ---- layers */

static struct source *create(enum layer layer, struct source *below)
{
	struct source *s = ff_xcalloc(1, sizeof *s);
	s->layer = layer;
	s->below = below;
	s->root = below ? below->root : s;
	s->started = s->root->eaten;
	s->front = ff_xmalloc(SOURCE_FRONT);
	s->in = below ? ff_xmalloc(BUFFER) : NULL;
	return s;
}

static ssize_t fail(struct source *s, int code, const char *text)
{
	s->code = ff_err_set(&s->trouble, code, "%s", text);
	return s->code;
}

struct source *source_file(int fd, const char *shown)
{
	struct source *s = create(LAYER_FILE, NULL);
	s->fd = fd;
	s->shown = ff_xstrdup(shown);
	return s;
}

/* The next bytes of the one below: false at its end, and where it failed, with its own words. */
static bool refill(struct source *s)
{
	if (s->in_at < s->in_n) {
		return true;
	}
	ssize_t n = source_read(s->below, s->in, BUFFER, NULL);
	if (n < 0) {
		(void)fail(s, (int)n, s->below->trouble.text);
		return false;
	}
	s->in_at = 0;
	s->in_n = (size_t)n;
	return n > 0;
}

static ssize_t read_file(struct source *s, char *to, size_t n)
{
	struct ff_err err = {0};
	ssize_t got = ff_file_read(s->fd, s->shown, to, n, &err);
	if (got < 0) {
		return fail(s, (int)got, err.text);
	}
	s->eaten += (uint64_t)got;
	return got;
}

/* Behind a whole gzip another may follow, or padding with NULs; what else follows is left. */
static bool another_gzip(struct source *s)
{
	while (refill(s)) {
		unsigned char c = (unsigned char)s->in[s->in_at];
		if (c == 0x1f) {
			return true;
		}
		if (c) {
			s->in_at = s->in_n;
			s->over = true;
			return false;
		}
		s->in_at++;
	}
	return false;
}

static ssize_t read_gzip(struct source *s, char *to, size_t n)
{
	s->z.next_out = (Bytef *)to;
	s->z.avail_out = (uInt)n;
	while (s->z.avail_out == n && !s->code) {
		if (!s->in_frame && s->any && !another_gzip(s)) {
			return s->code;
		}
		if (!refill(s)) {
			return s->code ? s->code : fail(s, FF_EINPUT,
				"its gzip data stops in the middle: the rest is missing");
		}
		if (!s->in_frame) {
			(void)inflateReset(&s->z);
			s->in_frame = true;
		}
		s->z.next_in = (Bytef *)s->in + s->in_at;
		s->z.avail_in = (uInt)(s->in_n - s->in_at);
		int r = inflate(&s->z, Z_SYNC_FLUSH);
		s->in_at = s->in_n - s->z.avail_in;
		if (r == Z_STREAM_END) {
			s->in_frame = false;
			s->any = true;
		} else if (r != Z_OK && r != Z_BUF_ERROR) {
			(void)fail(s, FF_EINPUT, "its gzip data is damaged");
		}
	}
	size_t got = n - s->z.avail_out;
	return got ? (ssize_t)got : s->code;
}

static ssize_t read_zstd(struct source *s, char *to, size_t n)
{
	ZSTD_outBuffer out = {to, n, 0};
	while (!out.pos && !s->code) {
		if (!refill(s)) {
			bool whole = !s->in_frame && s->any;
			return s->code || whole ? s->code : fail(s, FF_EINPUT,
				"its zstd data stops in the middle: the rest is missing");
		}
		ZSTD_inBuffer in = {s->in, s->in_n, s->in_at};
		size_t r = ZSTD_decompressStream(s->zs, &out, &in);
		s->in_at = in.pos;
		s->in_frame = r != 0;
		s->any = s->any || !r;
		if (ZSTD_isError(r)) {
			(void)fail(s, FF_EINPUT, "its zstd data is damaged");
		}
	}
	return out.pos ? (ssize_t)out.pos : s->code;
}

/* ---- libarchive */

static la_ssize_t give_archive(struct archive *a, void *ud, const void **ret)
{
	struct source *s = ud;
	s->in_at = s->in_n;
	if (!refill(s) && s->code) {
		archive_set_error(a, EIO, "%s", s->trouble.text);
		return -1;
	}
	*ret = s->in;
	s->in_at = s->in_n; /* libarchive keeps count of what it has used */
	return (la_ssize_t)s->in_n;
}

/* A plain file need not be read to be passed over. */
static la_int64_t skip_archive(struct archive *a, void *ud, la_int64_t n)
{
	struct source *file = ((struct source *)ud)->below;
	(void)a;
	if (file->layer != LAYER_FILE || file->front_at < file->front_n) {
		return 0;
	}
	off_t here = lseek(file->fd, 0, SEEK_CUR);
	off_t end = here < 0 ? -1 : lseek(file->fd, 0, SEEK_END);
	off_t to = here + (off_t)n < end ? here + (off_t)n : end;
	if (here < 0 || end < here || lseek(file->fd, to, SEEK_SET) != to) {
		return 0;
	}
	file->eaten += (uint64_t)(to - here);
	return to - here;
}

static ssize_t fail_archive(struct source *s)
{
	const char *text = archive_error_string(s->a);
	struct ff_err err = {0};
	(void)ff_err_set(&err, FF_EINPUT, "%s (%s)", s->layer == LAYER_TAR ?
		"its tar data is damaged or stops in the middle" :
		"its compressed data is damaged or stops in the middle", text ? text : "no reason");
	return s->code ? s->code : fail(s, FF_EINPUT, err.text);
}

static bool next_block(struct source *s)
{
	const void *p = NULL;
	size_t n = 0;
	la_int64_t at = 0;
	int r = archive_read_data_block(s->a, &p, &n, &at);
	if (r == ARCHIVE_EOF) {
		return false;
	}
	if (r < ARCHIVE_WARN) {
		(void)fail_archive(s);
		return false;
	}
	s->block = p;
	s->block_n = n;
	s->block_at = at;
	return true;
}

/* The member's data; its holes are NULs. */
static ssize_t read_archive(struct source *s, char *to, size_t n)
{
	while (!s->block_n) {
		if (!next_block(s)) {
			return s->code;
		}
	}
	if (s->block_at > s->pos) {
		la_int64_t hole = s->block_at - s->pos;
		n = (la_int64_t)n < hole ? n : (size_t)hole;
		memset(to, 0, n);
		s->pos += (la_int64_t)n;
		return (ssize_t)n;
	}
	n = n < s->block_n ? n : s->block_n;
	memcpy(to, s->block, n);
	s->block += n;
	s->block_n -= n;
	s->block_at += (la_int64_t)n;
	s->pos += (la_int64_t)n;
	return (ssize_t)n;
}

static void open_archive(struct source *s)
{
	s->a = archive_read_new();
	if (s->layer == LAYER_TAR) {
		(void)archive_read_support_format_tar(s->a);
	} else {
		(void)archive_read_support_format_raw(s->a);
		(void)archive_read_support_filter_xz(s->a);
		(void)archive_read_support_filter_bzip2(s->a);
	}
	(void)archive_read_set_read_callback(s->a, give_archive);
	(void)archive_read_set_skip_callback(s->a, skip_archive);
	(void)archive_read_set_callback_data(s->a, s);
	if (archive_read_open1(s->a) < ARCHIVE_WARN) {
		(void)fail_archive(s);
		return;
	}
	struct archive_entry *e;
	if (s->layer == LAYER_OTHER && archive_read_next_header(s->a, &e) < ARCHIVE_WARN) {
		(void)fail_archive(s);
	}
}

struct source *source_expand(struct source *below, enum source_kind kind)
{
	struct source *s = create(kind == SOURCE_GZIP ? LAYER_GZIP :
		kind == SOURCE_ZSTD ? LAYER_ZSTD : LAYER_OTHER, below);
	if (s->layer == LAYER_GZIP) {
		if (inflateInit2(&s->z, 15 + 16) != Z_OK) {
			abort();
		}
	} else if (s->layer == LAYER_ZSTD) {
		s->zs = ZSTD_createDStream();
		if (!s->zs) {
			abort();
		}
	} else {
		open_archive(s);
	}
	return s;
}

struct source *source_tar(struct source *below)
{
	struct source *s = create(LAYER_TAR, below);
	open_archive(s);
	s->over = true; /* until source_next */
	return s;
}

void source_destroy(struct source *s)
{
	if (!s) {
		return;
	}
	if (s->layer == LAYER_GZIP) {
		(void)inflateEnd(&s->z);
	}
	(void)ZSTD_freeDStream(s->zs);
	if (s->a) {
		(void)archive_read_free(s->a);
	}
	free(s->front);
	free(s->in);
	free(s->shown);
	free(s);
}

/* ---- reading */

/* Few bytes that become very many are no log but an attack, or a hole. An archive is gone through
 * for the sake of its other members, so it may expand further than one of them. */
static bool is_bomb(const struct source *s)
{
	uint64_t in = s->root->eaten - s->started + BUFFER;
	uint64_t spare = s->member || s->layer == LAYER_TAR ? SOURCE_FREE : SOURCE_SKIPPED;
	return s->given > spare && s->given / SOURCE_RATIO > in;
}

static ssize_t pull(struct source *s, char *to, size_t n)
{
	if (s->code || s->over) {
		return s->code;
	}
	ssize_t got = 0;
	switch (s->layer) {
	case LAYER_FILE: got = read_file(s, to, n); break;
	case LAYER_GZIP: got = read_gzip(s, to, n); break;
	case LAYER_ZSTD: got = read_zstd(s, to, n); break;
	case LAYER_OTHER:
	case LAYER_TAR: got = read_archive(s, to, n); break;
	}
	s->over = s->over || !got;
	s->given += got > 0 ? (uint64_t)got : 0;
	if (got > 0 && s->layer != LAYER_FILE && (s->given > SOURCE_MAX || is_bomb(s))) {
		(void)fail(s, FF_ELIMIT, s->given > SOURCE_MAX ?
			"it expands to more than 256 GiB: the rest of it is left out" :
			"it expands to more than 500 times its size: the rest of it is left out");
	}
	return got;
}

ssize_t source_read(struct source *s, char *to, size_t n, struct ff_err *err)
{
	ssize_t got;
	if (s->front_at < s->front_n) {
		size_t left = s->front_n - s->front_at;
		n = n < left ? n : left;
		memcpy(to, s->front + s->front_at, n);
		s->front_at += n;
		return (ssize_t)n;
	}
	got = pull(s, to, n);
	if (got < 0) {
		(void)ff_err_set(err, (int)got, "%s", s->trouble.text);
	}
	return got;
}

struct ff_str source_front(struct source *s, size_t n)
{
	if (s->front_at) {
		memmove(s->front, s->front + s->front_at, s->front_n - s->front_at);
		s->front_n -= s->front_at;
		s->front_at = 0;
	}
	n = n < SOURCE_FRONT ? n : SOURCE_FRONT;
	while (s->front_n < n) {
		ssize_t got = pull(s, s->front + s->front_n, n - s->front_n);
		if (got <= 0) {
			break;
		}
		s->front_n += (size_t)got;
	}
	return ff_str_n(s->front, s->front_n < n ? s->front_n : n);
}

int source_next(struct source *s, struct ff_str *ret_name, struct ff_err *err)
{
	struct archive_entry *e;
	if (s->code == FF_ELIMIT && s->below->code != FF_ELIMIT) {
		s->code = 0; /* it was that member's own */
		s->trouble.text[0] = '\0';
	}
	s->front_at = s->front_n = s->block_n = 0;
	s->given = 0;
	s->pos = 0;
	while (!s->code) {
		int r = archive_read_next_header(s->a, &e);
		if (r == ARCHIVE_EOF) {
			return 0;
		}
		if (r < ARCHIVE_WARN) {
			(void)fail_archive(s);
		} else if (++s->headers > SOURCE_HEADERS) {
			(void)fail(s, FF_EINPUT,
				"it has more than 1048576 entries: the rest is left out");
		} else if (archive_entry_filetype(e) == AE_IFREG && !archive_entry_hardlink(e)) {
			s->over = false;
			s->started = s->root->eaten;
			/* where the bytes are no name in this locale, pax has it in UTF-8 */
			const char *name = archive_entry_pathname(e);
			*ret_name = ff_str_z(name ? name : archive_entry_pathname_utf8(e));
			return 1;
		} else {
			s->passed += archive_entry_filetype(e) != AE_IFDIR;
		}
	}
	return ff_err_set(err, s->code, "%s", s->trouble.text);
}

void source_is_member(struct source *s)
{
	s->member = true;
}

size_t source_passed(const struct source *s)
{
	return s->passed;
}
