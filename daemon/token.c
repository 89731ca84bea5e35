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
	for (size_t i = 0; i < t->n; i++) {
		free(t->v[i].text);
	}
	free(t->v);
	*t = (struct token_table){0};
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
	token.text = ff_xmemdup(text.p, text.n);
	*FF_ARR_ADD(t->v, t->n, t->cap) = token;
	return 0;
}

static int check_mode(const char *path, struct ff_err *err)
{
	struct stat st;
	if (stat(path, &st) < 0) {
		return ff_err_set(err, -errno, "cannot read \"%s\": %s", path, strerror(errno));
	}
	if (st.st_mode & 077) {
		return ff_err_set(err, FF_EUSAGE,
			"\"%s\" can be read by others: its mode has to be 0600", path);
	}
	return 0;
}

int token_load(const char *path, struct token_table *ret, struct ff_err *err)
{
	struct token_table t = {0};
	struct ff_buf text = {0};
	int r = check_mode(path, err);
	if (r == 0) {
		r = ff_file_load(path, FILE_MAX, &text, err);
	}
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
	ff_buf_finish(&text);
	if (r < 0) {
		token_finish(&t);
		return r;
	}
	*ret = t;
	return 0;
}

static bool is_same(const char *a, const char *b)
{
	size_t n = strlen(a);
	size_t m = strlen(b);
	unsigned differ = n != m;
	for (size_t i = 0; i < n; i++) {
		differ |= (unsigned)(a[i] ^ (m ? b[i % m] : 0));
	}
	return !differ;
}

const struct token *token_find(const struct token_table *t, const char *text)
{
	const struct token *found = NULL;
	for (size_t i = 0; i < t->n; i++) {
		if (text && is_same(t->v[i].text, text)) {
			found = &t->v[i];
		}
	}
	return found;
}
