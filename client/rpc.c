#include "rpc.h"

#include "client.h"
#include "shell/addr.h"
#include "token.h"

#include <curl/curl.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CONNECT_SECONDS 10L
#define SILENT_SECONDS 45L
#define PATIENCE_MS 60000 /* so long a daemon may take to come back */
#define PAUSE_MS 250

void rpc_answer_finish(struct rpc_answer *a)
{
	ff_buf_finish(&a->body);
	a->http = 0;
}

static bool is_unreserved(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		memchr("-._~", c, 4);
}

static void add_encoded(struct ff_buf *out, const char *s)
{
	for (; *s; s++) {
		if (is_unreserved(*s)) {
			ff_buf_addc(out, *s);
		} else {
			ff_buf_addf(out, "%%%02X", (unsigned)(unsigned char)*s);
		}
	}
}

void rpc_add_job(struct ff_buf *path, const char *job)
{
	ff_buf_addz(path, "/v1/jobs/");
	add_encoded(path, job);
}

void rpc_add_query(struct ff_buf *path, const char *key, const char *value)
{
	bool more = ff_str_chr(ff_buf_str(path), '?', 0) >= 0;
	ff_buf_addf(path, "%c%s=", more ? '&' : '?', key);
	add_encoded(path, value);
}

/* ---- the call */

struct call {
	CURL *curl;
	const struct rpc_question *q;
	struct rpc_answer *ret;
	bool stopped; /* q->fn has enough */
};

static size_t take_body(char *p, size_t size, size_t n, void *ud)
{
	struct call *c = ud;
	long http = 0;
	(void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &http);
	if (c->q->fn && http == 200) {
		c->stopped = !c->q->fn(c->q->ud, ff_str_n(p, size * n));
		return c->stopped ? 0 : size * n;
	}
	if (c->ret->body.len + size * n > RPC_BODY_MAX) {
		return 0;
	}
	ff_buf_add(&c->ret->body, p, size * n);
	return size * n;
}

static struct curl_slist *add_header(struct curl_slist *h, const char *name, const char *value)
{
	struct ff_buf b = {0};
	ff_buf_addf(&b, "%s: %s", name, value);
	h = curl_slist_append(h, b.p);
	ff_buf_finish(&b);
	return h;
}

static struct curl_slist *make_headers(const struct rpc_question *q, const char *token)
{
	struct curl_slist *h = NULL;
	h = add_header(h, "Accept",
		q->fn          ? "text/event-stream"
			: q->text ? "text/plain"
				  : "application/json");
	h = curl_slist_append(h, "Expect:"); /* no 100-continue for small bodies */
	if (q->post) {
		h = curl_slist_append(h, "Content-Type: application/json");
	}
	if (q->last_id) {
		h = add_header(h, "Last-Event-ID", q->last_id);
	}
	if (token) {
		struct ff_buf b = {0};
		ff_buf_addf(&b, "Bearer %s", token);
		h = add_header(h, "Authorization", b.p);
		ff_buf_finish(&b);
	}
	return h;
}

static void set_target(CURL *c, const struct ff_addr *a, const char *path)
{
	struct ff_buf url = {0};
	if (a->path) {
		(void)curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, a->path);
		ff_buf_addf(&url, "http://localhost%s", path);
	} else {
		bool bracket = strchr(a->host, ':') != NULL;
		ff_buf_addf(&url, "http://%s%s%s:%s%s", bracket ? "[" : "", a->host,
			    bracket ? "]" : "", a->port, path);
	}
	(void)curl_easy_setopt(c, CURLOPT_URL, url.p);
	ff_buf_finish(&url);
}

/* What problem details say (RFC 9457), else the code alone. */
static void read_problem(struct rpc_answer *a)
{
	struct ff_json *doc = ff_json_parse_text(ff_buf_str(&a->body), NULL);
	const struct ff_json_node *root = doc ? ff_json_root(doc) : NULL;
	const char *text = ff_json_string(ff_json_get(root, "detail"));
	text = text ? text : ff_json_string(ff_json_get(root, "title"));
	if (text) {
		(void)snprintf(a->why, sizeof a->why, "%s", text);
	} else {
		(void)snprintf(
			a->why, sizeof a->why, "the daemon answered with HTTP status %ld", a->http);
	}
	ff_json_destroy(doc);
}

static void say_unreached(struct call *c, const struct ff_addr *a, CURLcode r, char *why)
{
	struct ff_buf where = {0};
	long error = 0;
	ff_addr_render(a, &where);
	if (r == CURLE_COULDNT_CONNECT &&
	    curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &error) == CURLE_OK && error > 0) {
		(void)snprintf(why, CURL_ERROR_SIZE, "%s", ff_strerror(-(int)error));
	}
	(void)snprintf(c->ret->why, sizeof c->ret->why, "cannot reach firstfaultd at %s: %s",
		       where.p, *why ? why : curl_easy_strerror(r));
	ff_buf_finish(&where);
}

static int perform(struct call *c, const struct ff_addr *a)
{
	char why[CURL_ERROR_SIZE] = "";
	const struct rpc_question *q = c->q;
	int status = CLIENT_OK;
	const char *token = a->path ? NULL : token_get(&status);
	if (status) {
		return status;
	}
	struct curl_slist *headers = make_headers(q, token);
	set_target(c->curl, a, q->path);
	(void)curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, why);
	(void)curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
	(void)curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, take_body);
	(void)curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
	(void)curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(c->curl, CURLOPT_NOPROXY, "*");
	(void)curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	if (q->fn) { /* who sends nothing for so long is gone: a comment comes each 15 s */
		(void)curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
		(void)curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_TIME, SILENT_SECONDS);
	}
	if (q->post) {
		(void)curl_easy_setopt(
			c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->post->len);
		(void)curl_easy_setopt(
			c->curl, CURLOPT_POSTFIELDS, q->post->p ? q->post->p : "");
	}
	if (q->method) {
		(void)curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, q->method);
	}
	CURLcode r = curl_easy_perform(c->curl);
	(void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &c->ret->http);
	curl_slist_free_all(headers);
	if (r != CURLE_OK && !c->stopped) {
		say_unreached(c, a, r, why);
		return CLIENT_NO_DAEMON;
	}
	if (c->ret->http < 200 || c->ret->http > 299) {
		read_problem(c->ret);
	}
	return CLIENT_OK;
}

int rpc_try(const struct rpc_question *q, struct rpc_answer *ret)
{
	struct ff_addr a;
	struct ff_err err = {0};
	*ret = (struct rpc_answer){0};
	int r = ff_addr_api(NULL, &a, &err);
	if (r < 0) {
		(void)snprintf(ret->why, sizeof ret->why, "FIRSTFAULT_API: %s", err.text);
		return client_status(r);
	}
	struct call c = {.curl = curl_easy_init(), .q = q, .ret = ret};
	int status = CLIENT_INTERNAL;
	if (c.curl) {
		status = perform(&c, &a);
	} else {
		(void)snprintf(ret->why, sizeof ret->why, "cannot start libcurl");
	}
	curl_easy_cleanup(c.curl);
	ff_addr_finish(&a);
	if (status) {
		rpc_answer_finish(ret);
	}
	return status;
}

static int fail(int status, const struct rpc_answer *a)
{
	if (!*a->why) {
		return status; /* token_get said it */
	}
	return client_fail(status, a->why,
		status == CLIENT_NO_DAEMON
			? "is firstfaultd running? FIRSTFAULT_API says where it answers"
			: NULL);
}

int rpc_ask(const char *path, const struct ff_buf *post, bool text, struct rpc_answer *ret)
{
	const struct rpc_question q = {.path = path, .post = post, .text = text};
	int status = rpc_try(&q, ret);
	return status ? fail(status, ret) : CLIENT_OK;
}

int rpc_delete(const char *path, struct rpc_answer *ret)
{
	const struct rpc_question q = {.path = path, .method = "DELETE"};
	int status = rpc_try(&q, ret);
	return status ? fail(status, ret) : CLIENT_OK;
}

static int64_t now_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int rpc_patient(const struct rpc_question *q, struct rpc_answer *ret)
{
	const struct timespec pause = {0, PAUSE_MS * 1000000L};
	int64_t began = now_ms();
	for (;;) {
		int status = rpc_try(q, ret);
		bool again = status == CLIENT_NO_DAEMON || (!status && ret->http == 503);
		if (!again || now_ms() - began >= PATIENCE_MS) {
			return status ? fail(status, ret) : CLIENT_OK;
		}
		rpc_answer_finish(ret);
		(void)nanosleep(&pause, NULL);
	}
}

int rpc_fail(const struct rpc_answer *a)
{
	int status = a->http >= 500 ? CLIENT_INTERNAL : CLIENT_INPUT;
	return client_fail(status, a->why,
			   a->http == 404 ? "firstfault jobs lists what the daemon knows" : NULL);
}

int rpc_get(const char *path, bool text, struct rpc_answer *ret)
{
	int status = rpc_ask(path, NULL, text, ret);
	if (!status && (ret->http < 200 || ret->http > 299)) {
		status = rpc_fail(ret);
		rpc_answer_finish(ret);
	}
	return status;
}

int rpc_get_json(const char *path, struct ff_json **ret)
{
	struct rpc_answer a;
	struct ff_err err = {0};
	int status = rpc_get(path, false, &a);
	if (status) {
		return status;
	}
	*ret = ff_json_parse_text(ff_buf_str(&a.body), &err);
	if (!*ret) {
		status = client_failf(CLIENT_INTERNAL, NULL, "the daemon's answer is no JSON: %s",
				      err.text);
	}
	rpc_answer_finish(&a);
	return status;
}

int rpc_each(const char *path, bool (*fn)(void *ud, const struct ff_json_node *item), void *ud)
{
	struct ff_buf page = {0};
	int status = CLIENT_OK;
	bool more = true;
	ff_buf_addz(&page, path);
	while (more && !status) {
		struct ff_json *doc = NULL;
		more = false;
		status = rpc_get_json(page.p, &doc);
		if (status) {
			break;
		}
		const struct ff_json_node *root = ff_json_root(doc);
		const struct ff_json_node *v = ff_json_first(ff_json_get(root, "items"));
		bool go_on = true;
		for (; v && go_on; v = ff_json_next(v)) {
			go_on = fn(ud, v);
		}
		const char *next = ff_json_string(ff_json_get(root, "next"));
		if (next && go_on) {
			more = true;
			ff_buf_clear(&page);
			ff_buf_addz(&page, path);
			rpc_add_query(&page, "cursor", next);
		}
		ff_json_destroy(doc);
	}
	ff_buf_finish(&page);
	return status;
}
