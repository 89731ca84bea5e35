#include "store_text.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void store_text_init(struct store_text *t, const char *state)
{
	*t = (struct store_text){.state = state};
	for (int i = 0; i < STORE_TEXT_FILES; i++) {
		t->files[i].fd = -1;
	}
}

static void file_close(struct store_text_file *f)
{
	if (f->fd >= 0) {
		close(f->fd);
	}
	*f = (struct store_text_file){.fd = -1};
}

void store_text_finish(struct store_text *t)
{
	for (int i = 0; t->state && i < STORE_TEXT_FILES; i++) {
		file_close(&t->files[i]);
	}
	free(t->going);
	t->going = NULL;
}

static int fail(const struct store_text *t, const struct store_text_file *f, int e,
	struct ff_err *err)
{
	struct ff_buf path = {0};
	segment_path(t->state, f->run, f->number, &path);
	(void)ff_err_set(err, e, "cannot write \"%s\": %s", path.p, ff_strerror(e));
	ff_buf_finish(&path);
	return e;
}

static int file_sync(const struct store_text *t, struct store_text_file *f, struct ff_err *err)
{
	if (f->dirty && fdatasync(f->fd) < 0) {
		return fail(t, f, -errno, err);
	}
	f->dirty = false;
	return 0;
}

/* The entry of this file; the one that was not used longest makes room. */
static struct store_text_file *file_of(struct store_text *t, uint32_t run, uint32_t number,
	int *ret, struct ff_err *err)
{
	struct store_text_file *found = &t->files[0];
	for (struct store_text_file *f = t->files; f < t->files + STORE_TEXT_FILES; f++) {
		if (f->fd >= 0 && f->run == run && f->number == number) {
			f->used = ++t->uses;
			return f;
		}
		if (f->used < found->used) {
			found = f;
		}
	}
	*ret = file_sync(t, found, err);
	if (*ret < 0) {
		return NULL;
	}
	file_close(found);
	*found = (struct store_text_file){run, number, -1, false, ++t->uses};
	return found;
}

int store_text_write(struct store_text *t, const struct batch *b, struct ff_err *err)
{
	int r = 0;
	for (size_t i = 0; i < b->ntexts && r == 0; i++) {
		const struct batch_text *text = &b->texts[i];
		struct store_text_file *f = file_of(t, text->run, text->place.number, &r, err);
		if (f) {
			r = segment_write(t->state, text->run, text->place, text->bytes, &f->fd);
			r = r < 0 ? fail(t, f, r, err) : 0;
			f->dirty = f->fd >= 0;
			f->used = f->fd >= 0 ? f->used : 0;
		}
	}
	for (struct store_text_file *f = t->files; f < t->files + STORE_TEXT_FILES; f++) {
		int e = file_sync(t, f, err);
		r = r == 0 ? e : r;
	}
	return r;
}

static void close_run(struct store_text *t, uint32_t run)
{
	for (struct store_text_file *f = t->files; f < t->files + STORE_TEXT_FILES; f++) {
		if (f->fd >= 0 && f->run == run) {
			file_close(f);
		}
	}
}

void store_text_committed(struct store_text *t, const struct batch *b, bool held)
{
	for (size_t i = 0; i < b->ngoing; i++) {
		close_run(t, b->going[i]);
	}
	for (size_t i = 0; i < b->ntexts; i++) {
		if (b->texts[i].remove) {
			*FF_ARR_ADD(t->going, t->ngoing, t->cgoing) =
				(struct segment_name){b->texts[i].run, b->texts[i].remove};
		}
	}
	for (size_t i = 0; i < t->ngoing && !held; i++) {
		segment_remove(t->state, t->going[i].run, t->going[i].number);
	}
	t->ngoing = held ? t->ngoing : 0;
}
