#include "kmsg.h"

#include "base/limits.h"
#include "base/mask_rules.h"
#include "base/mem.h"
#include "clock.h"
#include "feed/nodes.h"
#include "ledger.h"
#include "shell/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE "/dev/kmsg"
#define BOOT "/proc/sys/kernel/random/boot_id"
#define RECORD_MAX 16384u /* bytes; the kernel's own limit is 8 KiB */
#define TURN 256u         /* records before the loop sees to others */

struct kmsg {
	struct daemon *d;
	uv_poll_t poll;
	int fd;
	bool fifo, trusted, held;
	bool live; /* all that was there when reading began has been read */
	char boot[64];
	struct ff_run *run;       /* of this host */
	struct ff_stream *stream; /* NULL before the first record */
	int64_t next;             /* the sequence number that its next line has */
	struct ff_buf part;       /* of a FIFO: a line whose end has not come */
	struct ff_buf text;
};

/* ---- records */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void unescape(struct ff_str s, struct ff_buf *out)
{
	for (size_t i = 0; i < s.n; i++) {
		bool code = s.p[i] == '\\' && i + 3 < s.n && s.p[i + 1] == 'x';
		int a = code ? hex(s.p[i + 2]) : -1, b = code ? hex(s.p[i + 3]) : -1;
		if (a >= 8 && b >= 0) {
			ff_buf_addc(out, (char)(a * 16 + b));
			i += 3;
		} else {
			ff_buf_addc(out, s.p[i] == '\r' || s.p[i] == '\n' ? ' ' : s.p[i]);
		}
	}
}

bool kmsg_parse(struct ff_str line, int64_t *ret_seq, struct ff_buf *text)
{
	int64_t priority, seq;
	ptrdiff_t end = ff_str_chr(line, ';', 0);
	size_t n = ff_str_digits(line, &priority);
	if (end < 0 || !n || n >= line.n || line.p[n] != ',') {
		return false;
	}
	struct ff_str rest = ff_str_skip(line, n + 1);
	n = ff_str_digits(rest, &seq);
	if (!n || n >= rest.n || rest.p[n] != ',') {
		return false;
	}
	*ret_seq = seq;
	ff_buf_clear(text);
	unescape(ff_str_skip(line, (size_t)end + 1), text);
	return true;
}

/* ---- the stream */

static int64_t lines_of(const struct ff_stream *s)
{
	return s->splitter.number - 1;
}

/* The stream that goes on at this record, or none: it is known already. */
static bool find_stream(struct kmsg *k, int64_t seq)
{
	char front[96];
	int n = snprintf(front, sizeof front, "kmsg:%s:", k->boot);
	for (size_t i = 0; i < k->run->job->nstreams; i++) {
		struct ff_stream *s = k->run->job->streams[i];
		int64_t first;
		if (strncmp(s->origin.source, front, (size_t)n) != 0 || s->splitter.number < 1 ||
			!ff_str_int(ff_str_z(s->origin.source + n), &first)) {
			continue;
		}
		if (seq >= first && seq <= first + lines_of(s)) {
			k->stream = s;
			k->next = first + lines_of(s);
			return true;
		}
	}
	return false;
}

static void begin_stream(struct kmsg *k, int64_t seq)
{
	char source[128];
	if (!find_stream(k, seq)) {
		(void)snprintf(source, sizeof source, "kmsg:%s:%lld", k->boot, (long long)seq);
		k->stream = ff_job_stream(k->run->job,
			&(struct ff_origin){.name = "kmsg", .node = k->run->job->facts.run,
				.source = source, .kind = FF_STREAM_KERNEL, .kind_declared = true,
				.rank = FF_UNKNOWN, .local_rank = FF_UNKNOWN, .attempt = FF_UNKNOWN,
				.pid = FF_UNKNOWN, .trusted = k->trusted});
		k->next = seq;
	}
	if (k->stream && k->stream->state != FF_STREAM_OPEN) {
		ff_stream_reopen(k->stream);
	}
}

static void feed(struct kmsg *k)
{
	struct ff_stream *s = k->stream;
	ff_buf_addc(&k->text, '\n');
	uint64_t *counts = k->run->job->counts;
	unsigned limited = 0;
	counts[FF_COUNT_secrets] +=
		ff_mask_rules_text(k->d->runs.mask, k->text.p, k->text.len, &limited);
	counts[FF_COUNT_match_limit] += limited;
	struct ff_chunk c = {s->fed, k->text.p, k->text.len,
		{k->live ? clock_wall() : FF_TIME_NONE, FF_TIME_NONE}, {FF_TAG_INIT, FF_UNKNOWN}};
	ff_job_feed(k->run->job, s, &c);
	ledger_text(k->d->ledger, k->run, s, &c);
	k->next++;
}

static void take_record(struct kmsg *k, struct ff_str record)
{
	int64_t seq;
	ptrdiff_t lf = ff_str_chr(record, '\n', 0);
	record.n = lf < 0 ? record.n : (size_t)lf;
	if (!kmsg_parse(record, &seq, &k->text)) {
		return; /* " KEY=value", of the record before */
	}
	if (k->stream && seq > k->next) {
		k->d->counts[DAEMON_COUNT_kernel_lost] += (uint64_t)(seq - k->next);
		ff_job_end_stream(k->run->job, k->stream, false, FF_TIME_NONE);
		k->stream = NULL;
	}
	if (!k->stream) {
		begin_stream(k, seq);
		ledger_changed(k->d->ledger, k->run);
	}
	if (k->stream && seq == k->next) {
		feed(k);
	}
}

/* ---- reading */

/* A FIFO's bytes are cut anywhere. */
static void take_bytes(struct kmsg *k, struct ff_str s)
{
	ff_buf_adds(&k->part, s);
	for (;;) {
		struct ff_str all = ff_buf_str(&k->part);
		ptrdiff_t lf = ff_str_chr(all, '\n', 0);
		if (lf < 0) {
			break;
		}
		take_record(k, ff_str_n(all.p, (size_t)lf));
		ff_buf_consume(&k->part, (size_t)lf + 1);
	}
	if (k->part.len > RECORD_MAX) {
		ff_buf_finish(&k->part);
	}
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct kmsg *k = poll->data;
	char record[RECORD_MAX];
	for (unsigned i = 0; i < TURN && !k->held; i++) {
		ssize_t n = read(k->fd, record, sizeof record);
		if (n > 0 && k->fifo) {
			take_bytes(k, ff_str_n(record, (size_t)n));
		} else if (n > 0) {
			take_record(k, ff_str_n(record, (size_t)n));
		} else if (n < 0 && errno == EAGAIN) {
			k->live = true;
			return;
		} else if (n == 0 || (errno != EPIPE && errno != EINTR)) {
			ff_log_warn("kmsg", "%s, the kernel log is read no more",
				n ? strerror(errno) : "it has ended");
			(void)uv_poll_stop(poll);
			return;
		} /* EPIPE: records were overwritten; the next one's number tells how many */
	}
}

/* What is there is read at once: what comes later has a time. */
static void go_on(struct kmsg *k)
{
	(void)uv_poll_start(&k->poll, UV_READABLE, on_readable);
	on_readable(&k->poll, 0, UV_READABLE);
}

void kmsg_hold(struct kmsg *k, bool hold)
{
	if (!k || k->held == hold || uv_is_closing((uv_handle_t *)&k->poll)) {
		return;
	}
	k->held = hold;
	if (hold) {
		k->live = false; /* what gathers meanwhile has no time */
		(void)uv_poll_stop(&k->poll);
	} else {
		go_on(k);
	}
}

/* ---- life */

static void read_boot(struct kmsg *k)
{
	int fd = open(BOOT, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, k->boot, sizeof k->boot - 1);
	k->boot[n > 0 ? n : 0] = '\0';
	k->boot[strcspn(k->boot, "\n")] = '\0';
	if (fd >= 0) {
		(void)close(fd);
	}
}

static int open_device(struct kmsg *k, const char *path, struct ff_err *err)
{
	struct stat st;
	if (stat(path, &st) == 0 && !S_ISCHR(st.st_mode) && !S_ISFIFO(st.st_mode)) {
		return ff_err_set(err, FF_EUSAGE,
			"kernel-log: \"%s\" is neither a device nor a FIFO; a file is followed by "
			"tail-node",
			path);
	}
	/* a FIFO that this end may write to never ends */
	k->fifo = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
	k->fd = open(path, (k->fifo ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (k->fd < 0 || fstat(k->fd, &st) < 0) {
		ff_log_warn("kmsg", "kernel-log: cannot read \"%s\": %s, ignoring", path,
			strerror(errno));
		return 1;
	}
	k->trusted = st.st_uid == 0 || st.st_uid == geteuid();
	return 0;
}

static int start(struct kmsg *k, const char *path, struct ff_err *err)
{
	char host[FF_JOB_ID_MAX + 1] = "";
	size_t size = sizeof host;
	int r = open_device(k, path, err);
	if (r) {
		return r;
	}
	(void)uv_os_gethostname(host, &size);
	read_boot(k);
	r = ff_nodes_resolve(
		&k->d->runs, ff_str_z(host), FF_NODE_TRUSTED, clock_wall(), &k->run, err);
	if (r == 0) {
		r = uv_poll_init(&k->d->loop, &k->poll, k->fd);
		r = r < 0 ? ff_err_set(err, r, "kernel-log: \"%s\": %s", path, uv_strerror(r)) : 0;
	}
	if (r == 0) {
		k->poll.data = k;
		go_on(k);
	}
	return r;
}

int kmsg_open(struct daemon *d, struct kmsg **ret, struct ff_err *err)
{
	const char *key = d->config->kernel_log;
	*ret = NULL;
	if (!strcmp(key, "no")) {
		return 0;
	}
	struct kmsg *k = ff_xcalloc(1, sizeof *k);
	k->d = d;
	k->fd = -1;
	int r = start(k, !strcmp(key, "yes") ? DEVICE : key, err);
	if (r == 0) {
		*ret = k;
		return 0;
	}
	if (k->fd >= 0) {
		(void)close(k->fd);
	}
	free(k);
	return r < 0 ? r : 0;
}

void kmsg_close(struct kmsg *k)
{
	if (k && !uv_is_closing((uv_handle_t *)&k->poll)) {
		uv_close((uv_handle_t *)&k->poll, NULL);
	}
}

void kmsg_destroy(struct kmsg *k)
{
	if (k) {
		(void)close(k->fd);
		ff_buf_finish(&k->part);
		ff_buf_finish(&k->text);
		free(k);
	}
}
