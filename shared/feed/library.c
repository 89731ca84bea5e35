#include "feed/library.h"

#include "base/arr.h"
#include "shell/file.h"

#include <stdlib.h>

static void add_hash(struct ff_library *l)
{
	struct ff_sha256 hash;
	ff_sha256_init(&hash);
	for (size_t i = 0; i < l->n; i++) {
		ff_sha256_add(&hash, l->files[i].data, l->files[i].len);
	}
	ff_sha256_hex(&hash, l->sha256);
}

static int add_file(struct ff_library *l, const char *path, struct ff_err *err)
{
	struct ff_buf text = {0};
	if (l->n == LIBRARY_FILES) {
		return ff_err_set(err, FF_ELIMIT, "\"%s\": more than %u catalogue files", path,
			LIBRARY_FILES);
	}
	int r = ff_file_load(path, LIBRARY_BYTES - l->bytes, &text, err);
	if (r < 0) {
		ff_buf_finish(&text);
		return r;
	}
	size_t len = text.len;
	l->bytes += len;
	*FF_ARR_ADD(l->files, l->n, l->cap) = (struct ff_embedded){
		ff_xstrdup(path), (const unsigned char *)ff_buf_take(&text), len};
	return 0;
}

static bool is_catalogue(const struct ff_file_entry *e)
{
	return ff_str_ends(ff_str_z(e->below), FF_STR(".json")) && !strchr(e->below, '/');
}

static int add_folder(struct ff_library *l, const char *folder, struct ff_err *err)
{
	struct ff_file_list list = {0};
	size_t before = l->n;
	int r = ff_file_walk(folder, &list, err);
	for (size_t i = 0; i < list.n && r >= 0; i++) {
		if (is_catalogue(&list.v[i])) {
			r = add_file(l, list.v[i].path, err);
		}
	}
	if (r >= 0 && l->n == before) {
		r = ff_err_set(err, FF_EINPUT, "\"%s\" has no *.json", folder);
	}
	ff_file_list_finish(&list);
	return r < 0 ? r : 0;
}

int ff_library_read(struct ff_library *l, const char *path, struct ff_err *err)
{
	int r = ff_file_is_folder(path) ? add_folder(l, path, err) : add_file(l, path, err);
	if (r == 0) {
		add_hash(l);
	}
	return r;
}

void ff_library_finish(struct ff_library *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free((void *)l->files[i].name);
		free((void *)l->files[i].data);
	}
	free(l->files);
	*l = (struct ff_library){0};
}

static int add_all(struct ff_catalog *c, const struct ff_embedded *files, size_t n,
	struct ff_err *err)
{
	int r = 0;
	for (size_t i = 0; i < n && !r; i++) {
		r = ff_catalog_add(c, files[i].name, ff_str_n(files[i].data, files[i].len), err);
	}
	return r;
}

int ff_library_load(const struct ff_library *own, struct ff_catalog **ret, struct ff_err *err)
{
	if (!own || !own->n) {
		return ff_catalog_load(ff_catalog_files, ff_catalog_files_count,
			ff_catalog_files_sha256, ret, err);
	}
	struct ff_catalog *c = ff_catalog_create();
	int r = add_all(c, ff_catalog_files, ff_catalog_files_count, err);
	if (!r) {
		ff_catalog_also(c, own->sha256);
		r = add_all(c, own->files, own->n, err);
	}
	r = r ? r : ff_catalog_seal(c, ff_catalog_files_sha256, err);
	if (r) {
		ff_catalog_destroy(c);
		return r;
	}
	*ret = c;
	return 0;
}

static int add_pages(struct ff_pages *p, const struct ff_embedded *files, size_t n,
	struct ff_err *err)
{
	int r = 0;
	for (size_t i = 0; i < n && !r; i++) {
		r = ff_pages_add(p, files[i].name, ff_str_n(files[i].data, files[i].len), err);
	}
	return r;
}

int ff_library_pages(const struct ff_library *own, struct ff_pages *ret, struct ff_err *err)
{
	int r = add_pages(ret, ff_catalog_files, ff_catalog_files_count, err);
	if (!r && own) {
		r = add_pages(ret, own->files, own->n, err);
	}
	return r;
}

int ff_library_open(const char *path, struct ff_catalog **ret, struct ff_err *err)
{
	struct ff_library own = {0};
	int r = path ? ff_library_read(&own, path, err) : 0;
	if (r == 0) {
		r = ff_library_load(&own, ret, err);
	}
	ff_library_finish(&own);
	return r;
}
