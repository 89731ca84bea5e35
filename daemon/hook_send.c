#include "hook_send.h"

#include "base/mem.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define LOOK_MS 20 /* between two looks at transfers; there are few of them, and seldom any */

struct hook_send {
	uv_loop_t *loop;
	CURLM *multi;
	uv_timer_t look; /* runs while there are transfers */
	unsigned transfers;
	bool closing;
};

struct hook_try {
	struct hook_send *send;
	hook_send_fn *fn; /* NULL: it was told, or dropped */
	void *ud;
	/* a program */
	uv_process_t process;
	uv_pipe_t input;
	uv_timer_t limit; /* also tells what can't be started */
	uv_write_t write;
	uv_buf_t body;
	bool started, late;
	unsigned handles; /* that are not closed yet */
	int failed;       /* why it was not started */
	/* a POST */
	CURL *curl;
	struct curl_slist *headers;
	char error[CURL_ERROR_SIZE];
};

struct hook_send *hook_send_create(uv_loop_t *loop)
{
	struct hook_send *s = ff_xcalloc(1, sizeof *s);
	s->loop = loop;
	uv_timer_init(loop, &s->look);
	s->look.data = s;
	return s;
}

static void tell(struct hook_try *t, const char *why)
{
	hook_send_fn *fn = t->fn;
	t->fn = NULL;
	if (fn) {
		fn(t->ud, why);
	}
}

/* ---- a program */

static void on_handle_closed(uv_handle_t *handle)
{
	struct hook_try *t = handle->data;
	if (--t->handles == 0) {
		free(t);
	}
}

static void close_one(uv_handle_t *handle)
{
	if (!uv_is_closing(handle)) {
		uv_close(handle, on_handle_closed);
	}
}

/* Its group too: what it began and left behind. */
static void kill_group(struct hook_try *t)
{
	if (t->started && t->process.pid > 0) {
		(void)kill(-t->process.pid, SIGKILL);
	}
}

static void close_command(struct hook_try *t)
{
	close_one((uv_handle_t *)&t->input);
	close_one((uv_handle_t *)&t->limit);
	close_one((uv_handle_t *)&t->process);
}

static void on_ended(uv_process_t *process, int64_t status, int signal)
{
	struct hook_try *t = process->data;
	char why[80];
	kill_group(t);
	if (t->late) {
		(void)snprintf(why, sizeof why, "it took longer than its limit and was ended");
	} else if (signal) {
		(void)snprintf(why, sizeof why, "it was ended by signal %d", signal);
	} else {
		(void)snprintf(why, sizeof why, "it ended with %lld", (long long)status);
	}
	tell(t, status || signal ? why : NULL);
	close_command(t);
}

static void on_limit(uv_timer_t *timer)
{
	struct hook_try *t = timer->data;
	if (t->failed) {
		tell(t, uv_strerror(t->failed));
		close_command(t);
		return;
	}
	t->late = true;
	kill_group(t);
}

static void on_written(uv_write_t *write, int status)
{
	struct hook_try *t = write->data;
	close_one(
		(uv_handle_t *)&t->input); /* whether it was read or not: its exit status counts */
}

struct hook_try *hook_send_command(struct hook_send *s, const char *program, char **env,
	struct ff_str body, ff_usec limit, hook_send_fn *fn, void *ud)
{
	struct hook_try *t = ff_xcalloc(1, sizeof *t);
	*t = (struct hook_try){.send = s, .fn = fn, .ud = ud, .handles = 3};
	uv_pipe_init(s->loop, &t->input, 0);
	uv_timer_init(s->loop, &t->limit);
	t->input.data = t->limit.data = t->process.data = t->write.data = t;
	char *args[] = {(char *)program, NULL};
	uv_stdio_container_t stdio[] = {
		{.flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
			.data.stream = (uv_stream_t *)&t->input},
		{.flags = UV_IGNORE},
		{.flags = UV_INHERIT_FD, .data.fd = 2},
	};
	const uv_process_options_t options = {
		.exit_cb = on_ended,
		.file = program,
		.args = args,
		.env = env,
		.flags = UV_PROCESS_DETACHED, /* setsid: a group of its own */
		.stdio_count = 3,
		.stdio = stdio,
	};
	t->failed = uv_spawn(s->loop, &t->process, &options);
	t->started = t->failed == 0;
	t->process.data = t;
	uv_timer_start(&t->limit, on_limit, t->failed ? 0 : (uint64_t)(limit / 1000), 0);
	if (t->started) {
		t->body = uv_buf_init((char *)body.p, (unsigned)body.n);
		if (uv_write(&t->write, (uv_stream_t *)&t->input, &t->body, 1, on_written) < 0) {
			close_one((uv_handle_t *)&t->input);
		}
	}
	return t;
}

/* ---- a POST */

static size_t ignore(char *p, size_t size, size_t n, void *ud)
{
	return size * n;
}

static void end_transfer(struct hook_try *t)
{
	(void)curl_multi_remove_handle(t->send->multi, t->curl);
	curl_easy_cleanup(t->curl);
	curl_slist_free_all(t->headers);
	t->send->transfers--;
	free(t);
}

static void finish_transfer(struct hook_try *t, CURLcode code)
{
	char why[CURL_ERROR_SIZE + 32] = "";
	long status = 0;
	(void)curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK) {
		const char *text = *t->error ? t->error : curl_easy_strerror(code);
		(void)snprintf(why, sizeof why, "%s", text);
	} else if (status < 200 || status > 299) {
		(void)snprintf(why, sizeof why, "it was answered with %ld", status);
	}
	tell(t, *why ? why : NULL);
	end_transfer(t);
}

static void on_look(uv_timer_t *timer)
{
	struct hook_send *s = timer->data;
	CURLMsg *message;
	int running, left;
	(void)curl_multi_perform(s->multi, &running);
	while ((message = curl_multi_info_read(s->multi, &left))) {
		struct hook_try *t = NULL;
		if (message->msg == CURLMSG_DONE &&
			curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t) ==
				CURLE_OK &&
			t) {
			finish_transfer(t, message->data.result);
		}
	}
	if (!s->transfers) {
		uv_timer_stop(&s->look);
	}
}

static void set_up(struct hook_try *t, const char *url, struct ff_str body, ff_usec limit)
{
	CURL *c = t->curl;
	(void)curl_easy_setopt(c, CURLOPT_URL, url);
	(void)curl_easy_setopt(c, CURLOPT_PRIVATE, t);
	(void)curl_easy_setopt(c, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
	(void)curl_easy_setopt(c, CURLOPT_POSTFIELDS, body.p);
	(void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, t->headers);
	(void)curl_easy_setopt(c, CURLOPT_USERAGENT, "firstfault/" FF_VERSION);
	(void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->error);
	(void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, ignore);
	(void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(limit / 1000));
#if LIBCURL_VERSION_NUM >= 0x075500 /* 7.85 */
	(void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	(void)curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700 /* 7.87: a name that is being looked up is not waited for */
	(void)curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
#endif
}

struct hook_try *hook_send_url(struct hook_send *s, const char *url, const char *id,
	struct ff_str body, ff_usec limit, hook_send_fn *fn, void *ud)
{
	struct hook_try *t = ff_xcalloc(1, sizeof *t);
	char key[512];
	*t = (struct hook_try){.send = s, .fn = fn, .ud = ud, .curl = curl_easy_init()};
	s->multi = s->multi ? s->multi : curl_multi_init();
	if (!t->curl || !s->multi) {
		abort(); /* no memory, as ff_xmalloc */
	}
	(void)snprintf(key, sizeof key, "Idempotency-Key: \"%s\"", id);
	t->headers = curl_slist_append(NULL, "Content-Type: application/json");
	t->headers = curl_slist_append(t->headers, "Expect:"); /* no 100-continue */
	t->headers = curl_slist_append(t->headers, key);
	set_up(t, url, body, limit);
	(void)curl_multi_add_handle(s->multi, t->curl);
	s->transfers++;
	uv_timer_start(&s->look, on_look, 0, LOOK_MS);
	return t;
}

/* ---- the end */

void hook_send_drop(struct hook_try *t)
{
	t->fn = NULL;
	if (t->curl) {
		end_transfer(t);
	} else {
		kill_group(t);
		close_command(t);
	}
}

void hook_send_close(struct hook_send *s)
{
	if (!uv_is_closing((uv_handle_t *)&s->look)) {
		uv_close((uv_handle_t *)&s->look, NULL);
	}
}

void hook_send_destroy(struct hook_send *s)
{
	if (s) {
		curl_multi_cleanup(s->multi);
		free(s);
	}
}
