#include "reload.h"

#include "access.h"
#include "answer.h"
#include "api.h"
#include "base/json.h"
#include "base/mem.h"
#include "clock.h"
#include "conn.h"
#include "shell/log.h"
#include "tail.h"

#include <stdlib.h>

/* What a thread read. */
struct fresh {
	struct config config;
	struct ff_library own;
	struct ff_catalog *catalog; /* NULL: the same as before */
	struct access *access;
	struct ff_buf restart; /* keys that keep their value, "a, b" */
};

struct reload {
	struct daemon *d;
	struct config *config;
	int argc;
	char **argv;
	void (*done)(void *ud);
	void *ud;
	uv_work_t work;
	bool running, again;
	char sha256[FF_SHA256_HEX]; /* of the present folder, for the thread */
	struct fresh fresh;
	int result;
	struct ff_err err;
	/* what status says */
	ff_usec taken_us, refused_us; /* wall clock; FF_TIME_NONE */
	char *refused, *restart;      /* NULL */
};

struct reload *reload_create(struct daemon *d, struct config *config, int argc, char **argv,
	void (*done)(void *ud), void *ud)
{
	struct reload *r = ff_xcalloc(1, sizeof *r);
	*r = (struct reload){.d = d, .config = config, .argc = argc, .argv = argv, .done = done,
		.ud = ud, .taken_us = FF_TIME_NONE, .refused_us = FF_TIME_NONE};
	r->work.data = r;
	return r;
}

static void finish_fresh(struct fresh *f)
{
	config_finish(&f->config);
	ff_library_finish(&f->own);
	ff_catalog_destroy(f->catalog);
	access_close(f->access);
	ff_buf_finish(&f->restart);
	*f = (struct fresh){0};
}

void reload_destroy(struct reload *r)
{
	if (r) {
		finish_fresh(&r->fresh);
		free(r->refused);
		free(r->restart);
		free(r);
	}
}

/* ---- in a thread of the pool: nothing of the daemon is touched but its configuration, which only
 * take_over changes */

static int read_catalog(struct reload *r, struct ff_err *err)
{
	struct fresh *f = &r->fresh;
	int e = f->config.catalog ? ff_library_read(&f->own, f->config.catalog, err) : 0;
	if (e == 0 && strcmp(f->own.sha256, r->sha256) != 0) {
		e = ff_library_load(&f->own, &f->catalog, err);
	}
	return e;
}

static void read_all(uv_work_t *work)
{
	struct reload *r = work->data;
	struct fresh *f = &r->fresh;
	int e = config_read(&f->config, r->argc, r->argv, &r->err);
	if (e == 0) {
		config_keep(&f->config, r->config, &f->restart);
		e = config_check(&f->config, &r->err);
	}
	if (e == 0) {
		e = read_catalog(r, &r->err);
	}
	if (e == 0) {
		e = access_open(&f->config, &f->access, &r->err);
	}
	r->result = e;
}

/* ---- in the loop */

static void take_catalog(struct daemon *d, struct fresh *f)
{
	struct ff_catalog *old = d->catalog;
	if (!f->catalog) {
		return;
	}
	struct ff_run *run;
	for (size_t i = 0; (run = ff_runs_any(&d->runs, i)); i++) {
		struct run_state *rs = ledger_run(d->ledger, run);
		ff_job_use(run->job, f->catalog);
		answer_short_destroy(rs->answer); /* lists show it at once */
		rs->answer = NULL;
	}
	d->runs.catalog = d->catalog = f->catalog;
	f->catalog = NULL;
	ff_catalog_destroy(old);
	ff_pages_finish(&d->pages);
	ff_library_finish(&d->own);
	d->own = f->own;
	f->own = (struct ff_library){0};
	ff_log_info("reload", "catalogue=%s of %zu files; %zu runs are answered with its "
			      "explanations, their events stay as they were matched",
		d->own.n ? d->own.sha256 : "built-in", d->own.n, d->runs.nruns);
}

static void take_access(struct daemon *d, struct fresh *f)
{
	struct access *old = d->access;
	d->access = f->access;
	f->access = old;
	conn_look_at_rights(d->server);
	api_look_at_rights(d->api);
}

static void take_tail(struct daemon *d)
{
	struct ff_err err = {0};
	if (tail_set_patterns(d->tail, &d->config->tail, &d->config->tail_node, &err) < 0) {
		ff_log_error("reload", "tail: %s", err.text);
	}
}

static void take_log_level(const struct config *c)
{
	enum ff_log_level level = FF_LOG_INFO;
	(void)ff_log_level_parse(ff_str_z(c->log_level), &level);
	ff_log_open(level, clock_mono);
}

static void take_over(struct reload *r)
{
	struct daemon *d = r->d;
	struct fresh *f = &r->fresh;
	struct config old = *r->config;
	*r->config = f->config;
	f->config = old;
	take_log_level(r->config);
	hook_configure(d->hook);
	take_catalog(d, f);
	take_access(d, f);
	take_tail(d);
	d->counts[DAEMON_COUNT_reloads]++;
	r->taken_us = clock_wall();
	free(r->restart);
	r->restart = f->restart.len ? ff_xstrdup(f->restart.p) : NULL;
	ff_log_info("reload", "the configuration was read again%s%s",
		r->restart ? "; needs a restart: " : "", r->restart ? r->restart : "");
}

static void refuse(struct reload *r)
{
	r->d->counts[DAEMON_COUNT_reloads_refused]++;
	r->refused_us = clock_wall();
	free(r->refused);
	r->refused = ff_xstrdup(r->err.text);
	ff_log_error("reload", "refused, what was there before holds: %s", r->err.text);
}

static void on_read(uv_work_t *work, int status)
{
	struct reload *r = work->data;
	struct daemon *d = r->d;
	d->reading--;
	r->running = false;
	if (!d->stopping && r->result == 0) {
		take_over(r);
	} else if (!d->stopping) {
		refuse(r);
	}
	finish_fresh(&r->fresh);
	if (!d->stopping) {
		r->done(r->ud);
	}
	if (r->again && !d->stopping) {
		r->again = false;
		reload_start(r);
	}
}

void reload_start(struct reload *r)
{
	if (r->running) {
		r->again = true;
		return;
	}
	r->err = (struct ff_err){0};
	memcpy(r->sha256, r->d->own.sha256, sizeof r->sha256);
	r->running = true;
	r->d->reading++;
	int e = uv_queue_work(&r->d->loop, &r->work, read_all, on_read);
	if (e < 0) { /* it was never started */
		(void)ff_err_set(&r->err, e, "no thread: %s", uv_strerror(e));
		r->running = false;
		r->d->reading--;
		refuse(r);
	}
}

void reload_describe(const struct reload *r, struct ff_jw *w)
{
	ff_jw_open(w, '{');
	ff_jw_ktime(w, "taken", r->taken_us);
	ff_jw_ktime(w, "refused", r->refused_us);
	ff_jw_kstrz(w, "error", r->refused);
	ff_jw_kstrz(w, "needs_restart", r->restart);
	ff_jw_close(w, '}');
}
