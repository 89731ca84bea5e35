#include "pipe.h"

#include "base/mem.h"
#include "pieces.h"
#include "shell/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define READ_MAX 65536u
#define PIECE_AFTER_MS 1000

struct pipe {
	pthread_t thread;
	char *path; /* NULL: standard input */
	struct spool *spool;
	const struct ff_mask_rules *mask;
	int wake, stop; /* eventfds */
	bool started;
	atomic_bool ended;
	ff_usec stamp; /* of what was read last */
	struct ff_err trouble;
};

static ff_usec wall(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (ff_usec)t.tv_sec * FF_SECOND + t.tv_nsec / 1000;
}

static bool take(void *ud, char *text, size_t n, bool newline)
{
	const struct pipe *p = ud;
	spool_put(p->spool, p->stamp, text, n, newline);
	return true;
}

static void tell(const struct pipe *p)
{
	uint64_t one = 1;
	(void)!write(p->wake, &one, sizeof one); /* full: it is awake already */
}

/* Whole lines go to the spool, the rest stays in b. */
static void give(struct pipe *p, struct ff_buf *b, enum pieces_rest rest)
{
	ff_buf_consume(b, pieces_take(p->mask, b->p, b->len, rest, take, p));
	spool_flush(p->spool);
	tell(p);
}

/* False: it was stopped. */
static bool wait_for(struct pipe *p, int fd, struct ff_buf *b)
{
	struct pollfd fds[] = {{fd, POLLIN, 0}, {p->stop, POLLIN, 0}};
	int n;
	do {
		n = poll(fds, 2, b->len ? PIECE_AFTER_MS : -1);
		if (n == 0) {
			give(p, b, PIECES_PAUSE);
		}
	} while (n <= 0 || !(fds[0].revents | fds[1].revents));
	return fds[0].revents || !fds[1].revents;
}

/* To its end; false: stopped before. A FIFO without a writer has none yet: poll waits for it. */
static bool read_all(struct pipe *p, int fd)
{
	struct ff_buf b = {0};
	ssize_t n = 1;
	bool stopped = false;
	while (n > 0 && !stopped) {
		stopped = !wait_for(p, fd, &b);
		if (!stopped) {
			n = ff_file_read(fd, p->path ? p->path : "standard input",
				ff_buf_reserve(&b, READ_MAX), READ_MAX, &p->trouble);
			b.len += n > 0 ? (size_t)n : 0;
			p->stamp = wall();
			give(p, &b, PIECES_WAIT);
		}
	}
	if (b.len) {
		give(p, &b, PIECES_END);
	}
	ff_buf_finish(&b);
	return !stopped;
}

static void *run(void *ud)
{
	struct pipe *p = ud;
	int fd = p->path ? open(p->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : STDIN_FILENO;
	if (fd < 0) {
		int error = errno;
		(void)ff_err_set(&p->trouble, -error, "cannot open \"%s\": %s", p->path,
			ff_strerror(-error));
	}
	if (fd < 0 || read_all(p, fd)) {
		spool_end(p->spool);
	}
	if (fd > STDIN_FILENO) {
		(void)close(fd);
	}
	atomic_store(&p->ended, true);
	tell(p);
	return NULL;
}

struct pipe *pipe_start(
	const char *path, struct spool *spool, const struct ff_mask_rules *mask, int wake)
{
	struct pipe *p = ff_xcalloc(1, sizeof *p);
	sigset_t all, before;
	p->path = path ? ff_xstrdup(path) : NULL;
	p->spool = spool;
	p->mask = mask;
	p->wake = wake;
	p->stop = eventfd(0, EFD_CLOEXEC);
	(void)sigfillset(&all); /* signals are the main thread's */
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	p->started = pthread_create(&p->thread, NULL, run, p) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!p->started) {
		abort(); /* as without memory */
	}
	return p;
}

bool pipe_ended(const struct pipe *p)
{
	return atomic_load(&p->ended);
}

void pipe_stop(struct pipe *p)
{
	uint64_t one = 1;
	(void)!write(p->stop, &one, sizeof one);
}

void pipe_wait(struct pipe *p)
{
	if (p->started) {
		(void)pthread_join(p->thread, NULL);
		p->started = false;
	}
}

void pipe_destroy(struct pipe *p)
{
	if (!p) {
		return;
	}
	pipe_stop(p);
	pipe_wait(p);
	(void)close(p->stop);
	free(p->path);
	free(p);
}

const char *pipe_trouble(const struct pipe *p)
{
	return p->trouble.text;
}
