#include "token.h"

#include "base/arr.h"
#include "shell/file.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define FILE_MAX (1024u * 1024u)
#define TOKEN_LEAST 16u /* bytes; a shorter one can be guessed */

void token_finish(struct token_table *t)
{
	free(t->v);
	*t = (struct token_table){0};
}

static void make_digest(struct ff_str text, char ret[FF_SHA256_HEX])
{
	struct ff_sha256 s;
	ff_sha256_init(&s);
	ff_sha256_add(&s, text.p, text.n);
	ff_sha256_hex(&s, ret);
}

static struct ff_str take_word(struct ff_str *line)
{
	*line = ff_str_trim(*line);
	size_t n = 0;
	while (n < line->n && line->p[n] != ' ' && line->p[n] != '\t') {
		n++;
	}
	struct ff_str word = ff_str_n(line->p, n);
	*line = ff_str_skip(*line, n);
	return word;
}

static bool find_owner(struct ff_str name, int64_t *ret)
{
	if (ff_str_int(name, ret)) {
		return *ret >= 0 && *ret < UINT32_MAX;
	}
	char *z = ff_xmemdup(name.p, name.n);
	const struct passwd *p = name.n ? getpwnam(z) : NULL;
	free(z);
	if (p) {
		*ret = p->pw_uid;
	}
	return p != NULL;
}

static int read_line(struct token_table *t, struct ff_str line, const char *path, unsigned number,
	struct ff_err *err)
{
	line = ff_str_trim(line);
	if (!line.n || line.p[0] == '#') {
		return 0;
	}
	struct token token = {0};
	struct ff_str text = take_word(&line);
	struct ff_str owner = take_word(&line);
	struct ff_str right = take_word(&line);
	token.admin = ff_str_eqz(right, "admin");
	if (text.n < TOKEN_LEAST) {
		return ff_err_set(err, FF_EUSAGE, "%s:%u: a token has at least %u bytes", path,
			number, TOKEN_LEAST);
	}
	if (!find_owner(owner, &token.owner)) {
		return ff_err_set(err, FF_EUSAGE, "%s:%u: \"%.*s\" is no user", path, number,
			FF_STR_ARG(owner));
	}
	if ((right.n && !token.admin) || ff_str_trim(line).n) {
		return ff_err_set(err, FF_EUSAGE, "%s:%u: not TOKEN OWNER [admin]", path, number);
	}
	make_digest(text, token.digest);
	*FF_ARR_ADD(t->v, t->n, t->cap) = token;
	return 0;
}

static int check_file(int fd, const char *path, struct ff_err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		return ff_err_set(err, -errno, "cannot read \"%s\": %s", path, strerror(errno));
	}
	if (!S_ISREG(st.st_mode)) {
		return ff_err_set(err, FF_EUSAGE, "\"%s\" is no regular file", path);
	}
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		return ff_err_set(err, FF_EUSAGE,
			"\"%s\" belongs to another user (uid %u): it has to be root's or the "
			"daemon's",
			path, (unsigned)st.st_uid);
	}
	if (st.st_mode & 077) {
		return ff_err_set(err, FF_EUSAGE,
			"\"%s\" can be read or written by others: its mode has to be 0600", path);
	}
	return 0;
}

/* What was checked is what is read: nobody can put another file there meanwhile. */
static int load(const char *path, struct ff_buf *ret, struct ff_err *err)
{
	char p[4096];
	int fd = ff_file_open(path, err);
	if (fd < 0) {
		return fd;
	}
	int r = check_file(fd, path, err);
	ssize_t n = 1;
	while (r == 0 && n > 0) {
		n = ff_file_read(fd, path, p, sizeof p, err);
		ff_buf_add(ret, p, n > 0 ? (size_t)n : 0);
		if (ret->len > FILE_MAX) {
			r = ff_err_set(err, FF_ELIMIT, "\"%s\" has more than %u bytes", path,
				FILE_MAX);
		}
	}
	(void)close(fd);
	explicit_bzero(p, sizeof p);
	return r < 0 ? r : (int)n;
}

int token_load(const char *path, struct token_table *ret, struct ff_err *err)
{
	struct token_table t = {0};
	struct ff_buf text = {0};
	int r = load(path, &text, err);
	struct ff_str rest = ff_buf_str(&text);
	for (unsigned number = 1; rest.n && r >= 0; number++) {
		ptrdiff_t lf = ff_str_chr(rest, '\n', 0);
		size_t n = lf < 0 ? rest.n : (size_t)lf;
		r = read_line(&t, ff_str_n(rest.p, n), path, number, err);
		rest = ff_str_skip(rest, n + 1);
	}
	if (r >= 0 && !t.n) {
		r = ff_err_set(err, FF_EUSAGE, "\"%s\" holds no token", path);
	}
	if (text.p) {
		explicit_bzero(text.p, text.cap);
	}
	ff_buf_finish(&text);
	if (r < 0) {
		token_finish(&t);
		return r;
	}
	*ret = t;
	return 0;
}

static bool is_same(const char a[FF_SHA256_HEX], const char b[FF_SHA256_HEX])
{
	unsigned differ = 0;
	for (size_t i = 0; i < FF_SHA256_HEX; i++) {
		differ |= (unsigned)(a[i] ^ b[i]);
	}
	return !differ;
}

const struct token *token_find_digest(const struct token_table *t, const char digest[FF_SHA256_HEX])
{
	const struct token *found = NULL;
	for (size_t i = 0; i < t->n; i++) {
		if (is_same(t->v[i].digest, digest)) {
			found = &t->v[i];
		}
	}
	return found;
}

const struct token *token_find(const struct token_table *t, struct ff_str text)
{
	char digest[FF_SHA256_HEX];
	make_digest(text, digest);
	return token_find_digest(t, digest);
}
