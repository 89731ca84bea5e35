/* ff-events: every event that the catalogue finds in texts, for tests (a verdict shows only those
 * that it refers to).
 *
 * usage: ff-events [-0] FILE...
 *
 * Each FILE is one stream, the output of rank 0; with -0 a NUL ends a stream, so that one file
 * holds many. Prints a line an event, with TABs between: number of the stream (from 0 over all
 * files), line, kind, role, fault, signature, first line of the evidence; and at the end
 * "# NAME VALUE" for each counter that isn't 0. Exit status 0; 1 when a file can't be read or the
 * catalogue can't be loaded.
 */
#include "base/buf.h"
#include "core/catalog.h"
#include "core/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 65536u /* as a tail reads */

static void show(const struct ff_event *e, size_t stream)
{
	printf("%zu\t%" PRId64 "\t%s\t%s\t%s\t%s\t", stream, e->at_line,
		ff_event_kind_name(e->kind), ff_role_name(e->role), e->fault, e->signature);
	for (size_t i = 0; i < e->text_len && i < 200 && e->text[i] != '\n'; i++) {
		unsigned char c = (unsigned char)e->text[i];
		putchar(c < ' ' || c > '~' ? '?' : c);
	}
	putchar('\n');
}

static void digest(const struct ff_digest *d, const char *p, size_t n, size_t stream)
{
	struct ff_origin origin = {
		.name = "rank-0.log",
		.source = "0",
		.kind = FF_STREAM_RANK,
		.kind_declared = true,
		.rank = 0,
		.local_rank = FF_UNKNOWN,
		.attempt = FF_UNKNOWN,
		.pid = FF_UNKNOWN,
	};
	struct ff_stream *s = ff_stream_create(&origin, 1, 1);
	for (size_t at = 0; at < n; at += CHUNK) {
		struct ff_chunk c = {
			.offset = at,
			.data = p + at,
			.len = n - at < CHUNK ? n - at : CHUNK,
			.stamp = FF_STAMP_NONE,
			.tags = {FF_TAG_INIT, FF_UNKNOWN},
		};
		ff_stream_feed(s, d, &c);
	}
	ff_stream_end(s, d, true, FF_TIME_NONE);
	for (size_t i = 0; i < s->nevents; i++) {
		show(&s->events[i], stream);
	}
	ff_stream_destroy(s);
}

static int read_file(const char *path, struct ff_buf *ret)
{
	static char part[CHUNK];
	size_t n;
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return -1;
	}
	ff_buf_clear(ret);
	while ((n = fread(part, 1, sizeof part, f)) > 0) {
		ff_buf_add(ret, part, n);
	}
	int bad = ferror(f);
	fclose(f);
	if (bad) {
		perror(path);
	}
	return bad ? -1 : 0;
}

/* Returns the number of the next stream. */
static size_t digest_file(
	const struct ff_digest *d, const struct ff_buf *text, bool split, size_t stream)
{
	size_t from = 0;
	while (from < text->len) {
		const char *nul = split ? memchr(text->p + from, 0, text->len - from) : NULL;
		size_t end = nul ? (size_t)(nul - text->p) : text->len;
		digest(d, text->p + from, end - from, stream++);
		from = nul ? end + 1 : end;
	}
	return stream;
}

int main(int argc, char **argv)
{
	bool split = argc > 1 && !strcmp(argv[1], "-0");
	struct ff_err err = {0};
	struct ff_catalog *catalog;
	if (ff_catalog_load(ff_catalog_files, ff_catalog_files_count, ff_catalog_files_sha256,
		    &catalog, &err) < 0) {
		fprintf(stderr, "ff-events: %s\n", err.text);
		return 1;
	}
	uint64_t counts[FF_COUNT_COUNT] = {0};
	struct ff_digest d = {catalog, ff_matcher_create(catalog), counts};
	struct ff_buf text = {0};
	size_t stream = 0;
	int status = 0;
	for (int i = 1 + split; i < argc && !status; i++) {
		status = read_file(argv[i], &text) < 0;
		stream = status ? stream : digest_file(&d, &text, split, stream);
	}
	for (size_t i = 0; i < FF_COUNT_COUNT; i++) {
		if (counts[i]) {
			printf("# %s %" PRIu64 "\n", ff_count_name((enum ff_count)i), counts[i]);
		}
	}
	ff_buf_finish(&text);
	ff_matcher_destroy(d.matcher);
	ff_catalog_destroy(catalog);
	return status;
}
