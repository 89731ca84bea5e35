#include "wire/native.h"

const char *ff_native_error_name(enum ff_native_error e)
{
	static const char *const names[] = {
#define X(id, name) [FF_NATIVE_##id] = name,
		FF_NATIVE_ERRORS(X)
#undef X
	};
	return names[e];
}

/* ---- data lines */

bool ff_native_data_parse(struct ff_str line, struct ff_native_data *ret)
{
	int64_t stamp;
	size_t n = ff_str_digits(line, &stamp);
	/* behind the digits: " k. " */
	if (!n || stamp > FF_NATIVE_WHOLE_MAX || line.n - n < 4) {
		return false;
	}
	const char *p = line.p + n;
	if (p[0] != ' ' || p[1] < '0' || p[1] > '9' || (p[2] != '.' && p[2] != '-') ||
		p[3] != ' ') {
		return false;
	}
	*ret = (struct ff_native_data){
		.stamp = stamp ? stamp : FF_TIME_NONE,
		.k = (unsigned)(p[1] - '0'),
		.newline = p[2] == '.',
		.text = ff_str_skip(line, n + 4),
	};
	return true;
}

void ff_native_data_render(struct ff_buf *out, const struct ff_native_data *d)
{
	int64_t stamp = d->stamp == FF_TIME_NONE || d->stamp < 0 ? 0 : d->stamp;
	ff_buf_addf(out, "%lld %u%c ", (long long)stamp, d->k, d->newline ? '.' : '-');
	ff_buf_adds(out, d->text);
	ff_buf_addc(out, '\n');
}

/* ---- hello */

/* A text or null. */
static int get_text(const struct ff_json_node *doc, const char *key, bool needed, const char **ret,
		    struct ff_err *err)
{
	const struct ff_json_node *v = ff_json_get(doc, key);
	if (ff_json_is_null(v) && !needed) {
		return 0;
	}
	const char *s = ff_json_string(v);
	if (!s || (needed && !*s)) {
		return ff_err_set(
			err, FF_EPROTO, "hello: %s %s", v ? "not a text:" : "without", key);
	}
	*ret = s;
	return 0;
}

/* A whole number from 0 to max, or null. */
static int get_count(const struct ff_json_node *doc, const char *key, int64_t min, int64_t max,
		     int64_t *ret, struct ff_err *err)
{
	const struct ff_json_node *v = ff_json_get(doc, key);
	if (ff_json_is_null(v)) {
		return 0;
	}
	int64_t n;
	if (!ff_json_int(v, &n) || n < min || n > max) {
		return ff_err_set(err, FF_EPROTO, "hello: %s is no whole number from %lld to %lld",
			key, (long long)min, (long long)max);
	}
	*ret = n;
	return 0;
}

/* One of two words, or null. */
static int get_choice(const struct ff_json_node *doc, const char *key, const char *no,
		      const char *yes, bool *ret, struct ff_err *err)
{
	const struct ff_json_node *v = ff_json_get(doc, key);
	const char *s = ff_json_string(v);
	if (ff_json_is_null(v) || (s && no && !strcmp(s, no))) {
		return 0;
	}
	if (!s || strcmp(s, yes) != 0) {
		return ff_err_set(err, FF_EPROTO, "hello: unknown value of %s", key);
	}
	*ret = true;
	return 0;
}

static int get_streams(
	const struct ff_json_node *doc, struct ff_native_hello *h, struct ff_err *err)
{
	const struct ff_json_node *list = ff_json_get(doc, "streams");
	const struct ff_json_node *v;
	if (!ff_json_is_array(list)) {
		return ff_err_set(err, FF_EPROTO, "hello: without streams");
	}
	for (v = ff_json_first(list); v; v = ff_json_next(v)) {
		const char *s = ff_json_string(v);
		if (!s || !*s || strlen(s) > FF_NAME_MAX) {
			return ff_err_set(err, FF_EPROTO,
				"hello: a stream's name is no text of 1 to %u bytes", FF_NAME_MAX);
		}
		if (h->nstreams == FF_WIRE_STREAMS) {
			return ff_err_set(err, FF_EPROTO, "hello: more than %u streams",
					  FF_WIRE_STREAMS);
		}
		for (size_t i = 0; i < h->nstreams; i++) {
			if (!strcmp(h->streams[i], s)) {
				return ff_err_set(err, FF_EPROTO, "hello: one stream twice");
			}
		}
		h->streams[h->nstreams++] = s;
	}
	return h->nstreams ? 0 : ff_err_set(err, FF_EPROTO, "hello: no streams");
}

static int get_fds(const struct ff_json_node *doc, struct ff_native_hello *h, struct ff_err *err)
{
	const struct ff_json_node *list = ff_json_get(doc, "fds");
	const struct ff_json_node *v;
	size_t n = 0;
	if (ff_json_is_null(list)) {
		return 0;
	}
	for (v = ff_json_first(list); v; v = ff_json_next(v)) {
		const char *s = ff_json_string(v);
		if (!ff_json_is_null(v) && (!s || (strcmp(s, "stdout") && strcmp(s, "stderr")))) {
			return ff_err_set(err, FF_EPROTO, "hello: fds are stdout, stderr or null");
		}
		if (n == h->nstreams) {
			return ff_err_set(err, FF_EPROTO, "hello: more fds than streams");
		}
		h->fds[n++] = s;
	}
	return ff_json_is_array(list) ? 0 : ff_err_set(err, FF_EPROTO, "hello: fds is no list");
}

static int get_ranks(const struct ff_json_node *doc, struct ff_native_hello *h, struct ff_err *err)
{
	int r = get_count(doc, "rank", 0, FF_RANKS_MAX - 1, &h->rank, err);
	if (r == 0) {
		r = get_count(doc, "local_rank", 0, FF_RANKS_MAX - 1, &h->local_rank, err);
	}
	if (r == 0) {
		r = get_count(doc, "world_size", 1, FF_RANKS_MAX, &h->world_size, err);
	}
	return r == 0 ? get_count(doc, "attempt", 0, INT32_MAX, &h->attempt, err) : r;
}

int ff_native_hello_parse(const struct ff_json_node *doc, struct ff_native_hello *ret,
			  enum ff_native_error *ret_error, struct ff_err *err)
{
	struct ff_native_hello h = FF_NATIVE_HELLO_INIT;
	const char *protocol = NULL;
	int r;
	*ret_error = FF_NATIVE_PROTOCOL;
	if ((r = get_text(doc, "protocol", true, &protocol, err)) != 0) {
		return r;
	}
	if (strcmp(protocol, FF_NATIVE_VERSION) != 0) {
		return ff_err_set(err, FF_EPROTO, "this is " FF_NATIVE_VERSION ", not \"%.40s\"",
				  protocol);
	}
	if ((r = get_text(doc, "job", true, &h.job, err)) != 0) {
		*ret_error = FF_NATIVE_JOB_NAME;
		return r;
	}
	if ((r = get_ranks(doc, &h, err)) != 0) {
		*ret_error = FF_NATIVE_RANK;
		return r;
	}
	if ((r = get_text(doc, "source", true, &h.source, err)) != 0 ||
	    (r = get_text(doc, "node", false, &h.node, err)) != 0 ||
	    (r = get_text(doc, "kind", false, &h.kind, err)) != 0 ||
	    (r = get_text(doc, "run", false, &h.run, err)) != 0 ||
	    (r = get_text(doc, "token", false, &h.token, err)) != 0 ||
	    (r = get_count(doc, "pid", 0, FF_NATIVE_WHOLE_MAX, &h.pid, err)) != 0 ||
	    (r = get_streams(doc, &h, err)) != 0 || (r = get_fds(doc, &h, err)) != 0 ||
	    (r = get_choice(doc, "clock", "node", "collector", &h.collector, err)) != 0 ||
	    (r = get_choice(doc, "lines", NULL, "plain", &h.plain, err)) != 0) {
		return r;
	}
	if (!ff_json_is_null(ff_json_get(doc, "live")) &&
	    !ff_json_bool(ff_json_get(doc, "live"), &h.live)) {
		return ff_err_set(err, FF_EPROTO, "hello: live is neither true nor false");
	}
	if (strlen(h.source) > FF_JOB_ID_MAX || (h.node && strlen(h.node) > FF_JOB_ID_MAX)) {
		return ff_err_set(err, FF_EPROTO, "hello: source or node has more than %u bytes",
				  FF_JOB_ID_MAX);
	}
	*ret = h;
	return 0;
}

static void add_count(struct ff_jw *w, const char *key, int64_t v)
{
	if (v >= 0) {
		ff_jw_kint(w, key, v);
	}
}

static void add_text(struct ff_jw *w, const char *key, const char *s)
{
	if (s) {
		ff_jw_kstrz(w, key, s);
	}
}

static void begin(struct ff_jw *w, struct ff_buf *out, const char *event)
{
	ff_jw_init(w, out);
	ff_jw_open(w, '{');
	ff_jw_kstrz(w, "event", event);
}

static void finish(struct ff_jw *w)
{
	ff_jw_close(w, '}');
	ff_buf_addc(w->out, '\n');
}

static void add_list(struct ff_jw *w, const char *key, const char *const *v, size_t n)
{
	ff_jw_key(w, key);
	ff_jw_open(w, '[');
	for (size_t i = 0; i < n; i++) {
		ff_jw_strz(w, v[i]);
	}
	ff_jw_close(w, ']');
}

void ff_native_hello_render(struct ff_buf *out, const struct ff_native_hello *h)
{
	struct ff_jw w;
	bool fds = false;
	for (size_t i = 0; i < h->nstreams; i++) {
		fds = fds || h->fds[i];
	}
	begin(&w, out, "hello");
	ff_jw_kstrz(&w, "protocol", FF_NATIVE_VERSION);
	ff_jw_kstrz(&w, "job", h->job);
	ff_jw_kstrz(&w, "source", h->source);
	add_list(&w, "streams", h->streams, h->nstreams);
	if (fds) {
		add_list(&w, "fds", h->fds, h->nstreams);
	}
	add_text(&w, "node", h->node);
	add_text(&w, "kind", h->kind);
	add_text(&w, "run", h->run);
	add_text(&w, "token", h->token);
	add_count(&w, "rank", h->rank);
	add_count(&w, "local_rank", h->local_rank);
	add_count(&w, "world_size", h->world_size);
	add_count(&w, "attempt", h->attempt);
	add_count(&w, "pid", h->pid);
	add_text(&w, "clock", h->collector ? "collector" : NULL);
	if (h->live) {
		ff_jw_kbool(&w, "live", true);
	}
	add_text(&w, "lines", h->plain ? "plain" : NULL);
	finish(&w);
}

/* ---- other control lines */

static void add_offsets(struct ff_jw *w, const char *key, const uint64_t *v, size_t n)
{
	ff_jw_key(w, key);
	ff_jw_open(w, '[');
	for (size_t i = 0; i < n; i++) {
		ff_jw_int(w, (int64_t)v[i]);
	}
	ff_jw_close(w, ']');
}

void ff_native_welcome_render(struct ff_buf *out, const uint64_t *offsets, size_t n,
			      uint64_t max_unacked)
{
	struct ff_jw w;
	begin(&w, out, "welcome");
	add_offsets(&w, "offsets", offsets, n);
	ff_jw_kint(&w, "max_unacked", (int64_t)max_unacked);
	finish(&w);
}

void ff_native_ack_render(struct ff_buf *out, const uint64_t *resume, const uint64_t *done,
	size_t n, uint64_t controls)
{
	struct ff_jw w;
	begin(&w, out, "ack");
	add_offsets(&w, "offsets", resume, n);
	add_offsets(&w, "done", done, n);
	ff_jw_kint(&w, "controls", (int64_t)controls);
	finish(&w);
}

void ff_native_end_render(struct ff_buf *out, const uint64_t *offsets, size_t n)
{
	struct ff_jw w;
	begin(&w, out, "end");
	add_offsets(&w, "offsets", offsets, n);
	finish(&w);
}

void ff_native_gap_render(struct ff_buf *out, const uint64_t *offsets, size_t n)
{
	struct ff_jw w;
	begin(&w, out, "gap");
	add_offsets(&w, "offsets", offsets, n);
	finish(&w);
}

static void add_times(struct ff_buf *out, const char *event, const ff_usec *t, size_t n)
{
	static const char *const names[] = {"t1", "t2", "t3", "t4"};
	struct ff_jw w;
	begin(&w, out, event);
	for (size_t i = 0; i < n; i++) {
		ff_jw_kint(&w, names[i], t[i]);
	}
	finish(&w);
}

void ff_native_ping_render(struct ff_buf *out, ff_usec t1)
{
	add_times(out, "ping", &t1, 1);
}

void ff_native_pong_render(struct ff_buf *out, ff_usec t1, ff_usec t2, ff_usec t3)
{
	add_times(out, "pong", (ff_usec[]){t1, t2, t3}, 3);
}

void ff_native_clock_render(struct ff_buf *out, ff_usec t1, ff_usec t2, ff_usec t3, ff_usec t4)
{
	add_times(out, "clock", (ff_usec[]){t1, t2, t3, t4}, 4);
}

void ff_native_error_render(struct ff_buf *out, enum ff_native_error code, const char *text)
{
	struct ff_jw w;
	begin(&w, out, "error");
	ff_jw_kstrz(&w, "code", ff_native_error_name(code));
	ff_jw_kstrz(&w, "text", text);
	finish(&w);
}

bool ff_native_offsets_parse(
	const struct ff_json_node *doc, const char *key, size_t n, uint64_t *ret)
{
	const struct ff_json_node *list = ff_json_get(doc, key);
	uint64_t v[FF_WIRE_STREAMS];
	size_t i = 0;
	if (!ff_json_is_array(list)) {
		return false;
	}
	for (const struct ff_json_node *e = ff_json_first(list); e; e = ff_json_next(e)) {
		int64_t x;
		if (i == n || i == FF_WIRE_STREAMS || !ff_json_int(e, &x) || x < 0) {
			return false;
		}
		v[i++] = (uint64_t)x;
	}
	if (i != n) {
		return false;
	}
	memcpy(ret, v, n * sizeof *v);
	return true;
}

bool ff_native_times_parse(const struct ff_json_node *doc, size_t n, ff_usec *ret)
{
	static const char *const names[] = {"t1", "t2", "t3", "t4"};
	for (size_t i = 0; i < n; i++) {
		int64_t x;
		if (!ff_json_int(ff_json_get(doc, names[i]), &x) || x < 0) {
			return false;
		}
		ret[i] = x;
	}
	return true;
}

static bool get_number(const struct ff_json_node *doc, const char *key, uint64_t *ret)
{
	int64_t v;
	if (!ff_json_int(ff_json_get(doc, key), &v) || v < 0) {
		return false;
	}
	*ret = (uint64_t)v;
	return true;
}

int ff_native_reply_parse(const struct ff_json_node *doc, size_t n, struct ff_native_reply *ret,
			  struct ff_err *err)
{
	const char *event = ff_json_string(ff_json_get(doc, "event"));
	bool ok = true;
	*ret = (struct ff_native_reply){0};
	if (!event) {
		return ff_err_set(err, FF_EPROTO, "the collector's answer is no control object");
	}
	if (!strcmp(event, "welcome")) {
		ret->kind = FF_NATIVE_REPLY_WELCOME;
		ok = ff_native_offsets_parse(doc, "offsets", n, ret->offsets) &&
			get_number(doc, "max_unacked", &ret->max_unacked) && ret->max_unacked > 0;
	} else if (!strcmp(event, "ack")) {
		ret->kind = FF_NATIVE_REPLY_ACK;
		ok = ff_native_offsets_parse(doc, "offsets", n, ret->offsets) &&
			ff_native_offsets_parse(doc, "done", n, ret->done) &&
			get_number(doc, "controls", &ret->controls);
	} else if (!strcmp(event, "pong")) {
		ret->kind = FF_NATIVE_REPLY_PONG;
		ok = ff_native_times_parse(doc, 3, ret->t);
	} else if (!strcmp(event, "error")) {
		ret->kind = FF_NATIVE_REPLY_ERROR;
		ret->code = ff_json_string(ff_json_get(doc, "code"));
		ret->text = ff_json_string(ff_json_get(doc, "text"));
		ok = ret->code && ret->text;
	}
	return ok ? 0
		  : ff_err_set(err, FF_EPROTO, "the collector's \"%s\" is not of its form", event);
}
