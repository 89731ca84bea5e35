#include "api.h"

#include "backup.h"
#include "base/mem.h"
#include "clock.h"
#include "shell/log.h"
#include "store.h"

#include <stdlib.h>

struct saving {
	uv_work_t work;
	struct daemon *d;
	struct request *r; /* NULL: nobody waits any more; the backup goes on */
	atomic_bool stop;  /* the daemon is ending */
	char *state, *path;
	struct backup done;
	int result;
	struct ff_err err;
};

/* ---- in the thread */

static void on_work(uv_work_t *work)
{
	struct saving *s = work->data;
	s->result = backup_write(s->state, s->path, clock_wall(), &s->stop, &s->done, &s->err);
}

/* ---- in the loop */

static void answer(struct saving *s)
{
	struct request *r = s->r;
	struct ff_buf out = {0};
	struct ff_jw w;
	if (s->result < 0) {
		request_problem(r,
			s->result == -EEXIST           ? 409
				: s->result == -ECANCELED ? 503
							  : 422,
			"%s", s->err.text);
		return;
	}
	ff_jw_init(&w, &out);
	ff_jw_open(&w, '{');
	ff_jw_kstrz(&w, "schema", "firstfault.backup/1");
	ff_jw_kstrz(&w, "path", s->path);
	ff_jw_kint(&w, "bytes", (int64_t)s->done.bytes);
	ff_jw_kint(&w, "runs", (int64_t)s->done.runs);
	ff_jw_kint(&w, "files", (int64_t)s->done.files);
	ff_jw_kint(&w, "missing", (int64_t)s->done.missing);
	ff_jw_close(&w, '}');
	ff_buf_addc(&out, '\n');
	request_json(r, 200, &out);
}

static void after_work(uv_work_t *work, int status)
{
	struct saving *s = work->data;
	struct daemon *d = s->d;
	if (status < 0) {
		s->result = ff_err_set(&s->err, -ECANCELED, "the daemon is ending");
	}
	d->reading--;
	d->saving = NULL;
	store_hold(d->store, false);
	d->counts[s->result < 0 ? DAEMON_COUNT_backups_failed : DAEMON_COUNT_backups]++;
	if (s->result < 0) {
		ff_log_warn("backup", "%s, ignoring", s->err.text);
	} else {
		ff_log_info("backup", "path=%s bytes=%llu runs=%zu", s->path,
			(unsigned long long)s->done.bytes, s->done.runs);
	}
	if (s->r) {
		answer(s);
		s->r->saving = NULL;
		api_finish(s->r);
	}
	free(s->state);
	free(s->path);
	free(s);
}

void api_backup_orphan(struct request *r)
{
	struct saving *s = r->saving;
	if (s) {
		r->saving = NULL;
		s->r = NULL;
	}
}

void api_backup_stop(struct daemon *d)
{
	if (d->saving) {
		atomic_store(&d->saving->stop, true);
	}
}

static void start(struct request *r, const char *path)
{
	struct saving *s = ff_xcalloc(1, sizeof *s);
	s->work.data = s;
	s->d = r->d;
	s->r = r;
	s->state = ff_xstrdup(r->d->config->state);
	s->path = ff_xstrdup(path);
	r->pending = true;
	r->saving = s;
	r->d->reading++;
	r->d->saving = s;
	store_hold(r->d->store, true); /* before the thread looks */
	if (uv_queue_work(&r->d->loop, &s->work, on_work, after_work) < 0) {
		after_work(&s->work, -1);
	}
}

void api_backup_post(struct request *r)
{
	struct ff_err err = {0};
	struct ff_json *doc = ff_json_parse(ff_buf_str(&r->body), &err);
	const char *path =
		doc ? ff_json_string(ff_json_get(ff_json_root(doc), "path")) : NULL;
	size_t n = path ? strlen(path) : 0;
	if (!doc) {
		request_problem(r, 400, "the body is no JSON: %s", err.text);
	} else if (!n || path[0] != '/' || path[n - 1] == '/' || n > CONFIG_PATH) {
		request_problem(r, 422, "path is an absolute path of a file");
	} else if (r->d->saving) {
		request_problem(r, 503, "a backup is being written already; one at a time");
	} else {
		start(r, path);
	}
	ff_json_destroy(doc);
}
