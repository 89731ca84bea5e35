#include "daemon.h"

#include "access.h"
#include "api.h"
#include "base/mask_rules.h"
#include "clock.h"
#include "kmsg.h"
#include "ledger.h"
#include "nodes.h"
#include "notify.h"
#include "reload.h"
#include "retain.h"
#include "server.h"
#include "shell/log.h"
#include "state.h"
#include "store.h"
#include "tail.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>


#define EXIT_USAGE 64
#define EXIT_INTERNAL 70
#define EXIT_IO 74

#define COMMIT_US (3 * FF_SECOND)  /* for the last commit */
#define THREADS_US (4 * FF_SECOND) /* then threads that hang are left behind */
#define STOP_MS 10
#define PULSE_MS 200
#define FILES_WANTED 65536u

/* The daemon and what main alone knows of it. */
struct program {
	struct daemon d; /* first: what the parts see */
	uv_signal_t term, interrupt, hangup;
	uv_timer_t stop, pulse;
	bool signals_open, stop_open;
	struct notify notify;
	int lock;
	bool again;          /* a damaged store was set aside */
	ff_usec stopping_us; /* monotonic */
	bool closing;        /* the parts are being closed */
	bool closed;         /* all handles are */
	struct ledger_wait last;
	bool waits;
};

/* ---- the end: last commit, threads, handles; each step bounded */

static void close_parts(struct program *p)
{
	struct daemon *d = &p->d;
	p->closing = true;
	if (p->waits) {
		ledger_forget(d->ledger, &p->last);
		p->waits = false;
	}
	hook_close(d->hook);
	api_close(d->api);
	server_close(d->server);
	tail_stop(d->tail);
	if (d->store) {
		store_stop(d->store);
	}
}

/* Threads have ended. */
static void close_handles(struct program *p)
{
	struct daemon *d = &p->d;
	p->closed = true;
	retain_close(d->retain);
	tail_close_handle(d->tail);
	store_close_handle(d->store);
	ledger_close(d->ledger);
	nodes_close(d->nodes);
	kmsg_close(d->kmsg);
	if (p->signals_open) {
		uv_close((uv_handle_t *)&p->term, NULL);
		uv_close((uv_handle_t *)&p->interrupt, NULL);
		uv_close((uv_handle_t *)&p->hangup, NULL);
	}
	if (p->stop_open) {
		uv_close((uv_handle_t *)&p->stop, NULL);
		uv_close((uv_handle_t *)&p->pulse, NULL);
	}
}

static bool are_threads_done(const struct program *p)
{
	return (!p->d.store || store_stopped(p->d.store)) && tail_stopped(p->d.tail) &&
		!p->d.reading;
}

static void on_stop(uv_timer_t *timer)
{
	struct program *p = timer->data;
	ff_usec spent = clock_mono() - p->stopping_us;
	if (!p->closing && (!p->waits || spent >= COMMIT_US)) {
		close_parts(p);
	}
	if (p->closing && are_threads_done(p)) {
		close_handles(p);
	} else if (spent >= THREADS_US) {
		/* its thread can't be joined; all that was acknowledged is stored */
		ff_log_warn("main", "a thread waits for a file system, ending without it");
		_exit(p->d.status);
	}
}

static void on_last_commit(void *ud)
{
	struct program *p = ud;
	p->waits = false;
}

void daemon_stop(struct daemon *d, int status)
{
	struct program *p = (struct program *)d;
	if (d->stopping) {
		return;
	}
	d->stopping = true;
	d->status = status;
	p->stopping_us = clock_mono();
	notify_send(&p->notify, "STOPPING=1");
	daemon_hold(d, true);
	struct store_status t;
	store_status(d->store, &t);
	if (!t.failing) {
		p->waits = true;
		p->last =
			(struct ledger_wait){ledger_flush_all(d->ledger), on_last_commit, p, NULL};
		ledger_wait(d->ledger, &p->last);
	}
	uv_timer_start(&p->stop, on_stop, 0, STOP_MS);
}

void daemon_hold(struct daemon *d, bool hold)
{
	hold = hold || d->stopping;
	server_hold(d->server, hold);
	tail_hold(d->tail, hold);
	kmsg_hold(d->kmsg, hold);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct program *p = handle->data;
	ff_log_info("main", "signal=%d, ending", number);
	daemon_stop(&p->d, 0);
}

static void on_reload_done(void *ud)
{
	struct program *p = ud;
	notify_send(&p->notify, "READY=1");
}

static void on_hangup(uv_signal_t *handle, int number)
{
	struct program *p = handle->data;
	if (p->d.ready && !p->d.stopping) {
		notify_reloading(&p->notify, clock_mono());
		reload_start(p->d.reload);
	}
}

static void tell_manager(struct program *p)
{
	const struct daemon *d = &p->d;
	ff_usec now = clock_mono();
	struct store_status t;
	char text[sizeof t.text + 32];
	store_status(d->store, &t);
	(void)notify_watchdog(&p->notify, now, t.commits + t.retries, t.queued > 0);
	if (t.failing) {
		(void)snprintf(text, sizeof text, "reads nothing: %s", t.text);
	} else {
		(void)snprintf(text, sizeof text, "%zu runs, %zu connections", d->runs.nruns,
			d->server->nconns);
	}
	notify_status(&p->notify, now, text);
}

/* What is done each PULSE_MS. */
static void on_pulse(uv_timer_t *timer)
{
	struct program *p = timer->data;
	if (p->d.ready && !p->closing) {
		tell_manager(p);
		hook_pulse(p->d.hook);
	}
	ff_log_tick(false);
	p->d.counts[DAEMON_COUNT_log_omitted] = ff_log_omitted();
}

/* ---- the beginning */

static int open_signals(struct program *p, struct ff_err *err)
{
	uv_loop_t *loop = &p->d.loop;
	uv_timer_init(loop, &p->stop);
	uv_timer_init(loop, &p->pulse);
	p->stop.data = p->pulse.data = p;
	p->stop_open = true;
	uv_timer_start(&p->pulse, on_pulse, PULSE_MS, PULSE_MS);
	uv_signal_init(loop, &p->term);
	uv_signal_init(loop, &p->interrupt);
	uv_signal_init(loop, &p->hangup);
	p->term.data = p->interrupt.data = p->hangup.data = p;
	p->signals_open = true;
	int r = uv_signal_start(&p->term, on_signal, SIGTERM);
	if (r == 0) {
		r = uv_signal_start(&p->interrupt, on_signal, SIGINT);
	}
	if (r == 0) {
		r = uv_signal_start(&p->hangup, on_hangup, SIGHUP);
	}
	return r < 0 ? ff_err_set(err, r, "cannot take signals: %s", uv_strerror(r)) : 0;
}

/* Everything in the order of daemon.h. */
static int open_parts(struct program *p, struct ff_err *err)
{
	struct daemon *d = &p->d;
	int r = open_signals(p, err);
	if (r == 0) {
		r = access_open(d->config, &d->access, err);
	}
	d->nodes = nodes_create(d);
	d->ledger = ledger_create(d);
	d->hook = hook_create(d);
	if (r == 0) {
		r = store_open(d->config->state, &d->store, err);
	}
	if (r == 0) {
		r = store_load(d->store, d->ledger, &d->runs, err);
	}
	if (r == 0 && d->config->set_aside && !p->again) {
		r = ff_err_set(err, FF_EUSAGE,
			"the store in \"%s\" is sound and is not set aside: start without "
			"--set-aside",
			d->config->state);
	}
	if (r == 0) {
		r = store_start(d->store, &d->loop, ledger_on_store, d->ledger, err);
	}
	if (r == 0) {
		r = api_open(d, &d->api, err);
	}
	if (r == 0) {
		r = server_open(d, &d->server, err);
	}
	if (r == 0) {
		r = tail_open(d, &d->tail, err);
	}
	if (r == 0) {
		r = retain_open(d, &d->retain, err);
	}
	if (r == 0) {
		r = kmsg_open(d, &d->kmsg, err);
	}
	return r;
}

static void destroy_parts(struct program *p)
{
	struct daemon *d = &p->d;
	hook_destroy(d->hook);
	retain_destroy(d->retain);
	tail_destroy(d->tail);
	kmsg_destroy(d->kmsg);
	server_destroy(d->server);
	api_destroy(d->api);
	store_destroy(d->store);
	ledger_destroy(d->ledger);
	nodes_destroy(d->nodes);
	access_close(d->access);
}

static int status_of(int code)
{
	if (code == FF_EUSAGE || code == FF_ENAME) {
		return EXIT_USAGE;
	}
	bool io = code == FF_EDB || code == FF_EDAMAGE || code == FF_EVERSION || code > -5000;
	return io ? EXIT_IO : EXIT_INTERNAL;
}

/* The loop until it is empty. */
static void serve(struct program *p)
{
	struct daemon *d = &p->d;
	d->ready = true;
	ff_log_info("main", "firstfault " FF_VERSION " is ready, state=%s runs=%zu",
		d->config->state, d->runs.nruns);
	hook_configure(d->hook);
	(void)ledger_flush_all(d->ledger); /* what the restore changed */
	notify_send(&p->notify, "READY=1");
	tell_manager(p);
	uv_run(&d->loop, UV_RUN_DEFAULT);
}

/* After a failed start: closes what was opened. */
static void give_up(struct program *p)
{
	p->d.stopping = true;
	close_parts(p);
	/* the threads have nothing to do: they end at once */
	while (!are_threads_done(p)) {
		uv_run(&p->d.loop, UV_RUN_NOWAIT);
	}
	close_handles(p);
	uv_run(&p->d.loop, UV_RUN_DEFAULT);
}

/* Nothing has the store open any more. */
static bool set_aside(const struct config *config, struct daemon *d)
{
	struct ff_err err = {0};
	if (state_set_aside(config->state, &err) == 0) {
		return true;
	}
	ff_log_error("main", "%s", err.text);
	d->status = EXIT_IO;
	return false;
}

/* *again: a damaged store was set aside; true then says that it shall be run again. */
static int run_once(struct config *config, int argc, char **argv, bool *again)
{
	struct program p = {
		.d = {.config = config, .started_us = clock_wall()}, .lock = -1, .again = *again};
	struct daemon *d = &p.d;
	struct ff_err err = {0};
	p.lock = state_lock(config->state, &err);
	if (p.lock < 0) {
		ff_log_error("main", "%s", err.text);
		return EXIT_IO;
	}
	notify_open(&p.notify);
	d->reload = reload_create(d, config, argc, argv, on_reload_done, &p);
	int r = config->catalog ? ff_library_read(&d->own, config->catalog, &err) : 0;
	r = r ? r : ff_library_load(&d->own, &d->catalog, &err);
	if (r < 0) {
		ff_log_error("main", "%s", err.text);
		ff_library_finish(&d->own);
		reload_destroy(d->reload);
		notify_close(&p.notify);
		close(p.lock);
		return config->catalog ? EXIT_IO : EXIT_INTERNAL; /* it was good a moment ago */
	}
	struct ff_mask_rules *mask = NULL;
	ff_runs_init(&d->runs, d->catalog);
	uv_loop_init(&d->loop);
	r = ff_mask_rules_create(config->mask.v, config->mask.n, &mask, &err);
	d->runs.mask = mask;
	r = r ? r : open_parts(&p, &err);
	if (r == 0) {
		serve(&p);
	} else {
		ff_log_error("main", "%s", err.text);
		d->status = status_of(r);
		give_up(&p);
	}
	int busy = uv_loop_close(&d->loop);
	destroy_parts(&p);
	ff_runs_finish(&d->runs);
	ff_mask_rules_destroy(mask);
	tail_let_go_finish(&d->let_go);
	ff_catalog_destroy(d->catalog);
	ff_pages_finish(&d->pages);
	ff_library_finish(&d->own);
	reload_destroy(d->reload);
	notify_close(&p.notify);
	*again = r == FF_EDAMAGE && config->set_aside && !p.again && set_aside(config, d);
	close(p.lock);
	if (busy) {
		ff_log_error("main", "the loop ended with open handles");
		return EXIT_INTERNAL;
	}
	return d->status;
}

static int run(struct config *config, int argc, char **argv)
{
	bool again = false;
	int status = run_once(config, argc, argv, &again);
	return again ? run_once(config, argc, argv, &again) : status;
}

/* Many connections and files need many descriptors: as many as the hard limit gives. */
static void raise_limits(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < FILES_WANTED) {
		limit.rlim_cur = limit.rlim_max < FILES_WANTED ? limit.rlim_max : FILES_WANTED;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int print(struct ff_buf *out)
{
	bool good = fwrite(out->p, 1, out->len, stdout) == out->len && fflush(stdout) == 0;
	ff_buf_finish(out);
	return good ? 0 : EXIT_IO;
}

/* config_read looked at the rest. */
static int check(const struct config *config)
{
	struct access *access = NULL;
	struct ff_err err = {0};
	int r = access_open(config, &access, &err);
	access_close(access);
	if (r < 0) {
		(void)fprintf(stderr, "firstfaultd: %s\n", err.text);
	}
	return r < 0 ? status_of(r) : 0;
}

int main(int argc, char **argv)
{
	struct config config = {0};
	struct ff_err err = {0};
	struct ff_buf out = {0};
	int status = 0;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN); /* until it is ready */
	int r = config_read(&config, argc, argv, &err);
	if (r < 0) {
		(void)fprintf(stderr, "firstfaultd: %s\n", err.text);
		status = r > -5000 ? EXIT_IO : EXIT_USAGE;
	} else if (config.help) {
		config_help(&out);
		status = print(&out);
	} else if (config.version) {
		ff_buf_addz(&out, "firstfaultd " FF_VERSION "\n");
		status = print(&out);
	} else if (config.print) {
		config_print(&config, &out);
		status = print(&out);
	} else if (config.check) {
		status = check(&config);
	} else {
		enum ff_log_level level = FF_LOG_INFO;
		(void)ff_log_level_parse(ff_str_z(config.log_level), &level);
		ff_log_open(level, clock_mono);
		raise_limits();
		status = run(&config, argc, argv);
		ff_log_tick(true);
	}
	config_finish(&config);
	return status;
}
