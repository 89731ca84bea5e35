#include "token.h"

#include "base/mem.h"
#include "client.h"
#include "shell/file.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX 4096

static const char *named;

void token_use_file(const char *path)
{
	named = path;
}

/* The first word of the file; malloc'd, NULL with a message. */
static char *load(const char *path, int *ret_status)
{
	char text[FILE_MAX];
	struct ff_err err = {0};
	struct stat st;
	int fd = ff_file_open(path, &err);
	ssize_t n = fd < 0 ? fd : ff_file_read(fd, path, text, sizeof text, &err);
	bool open = n >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 077);
	if (fd >= 0) {
		(void)close(fd);
	}
	struct ff_str all = ff_str_trim(ff_str_n(text, n > 0 ? (size_t)n : 0));
	struct ff_str word = ff_str_n(all.p, 0);
	while (word.n < all.n && !memchr(" \t\r\n", all.p[word.n], 4)) {
		word.n++;
	}
	if (n < 0) {
		*ret_status = client_fail(CLIENT_IO, err.text, NULL);
	} else if (open) {
		*ret_status = client_failf(CLIENT_USAGE, "chmod 600 makes it yours alone",
			"\"%s\" can be read by others: it holds a token", path);
	} else if (!word.n) {
		*ret_status = client_failf(CLIENT_USAGE, NULL, "\"%s\" holds no token", path);
	} else {
		return ff_xmemdup(word.p, word.n);
	}
	return NULL;
}

const char *token_get(int *ret_status)
{
	static char *loaded;
	const char *text = getenv("FIRSTFAULT_TOKEN"), *file = getenv("FIRSTFAULT_TOKEN_FILE");
	*ret_status = CLIENT_OK;
	if (!named && text && *text) {
		return text;
	}
	file = named ? named : file;
	if (!loaded && file && *file) {
		loaded = load(file, ret_status);
	}
	return loaded;
}
