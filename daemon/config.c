#include "config.h"

#include "base/arr.h"
#include "base/limits.h"
#include "base/mask_rules.h"
#include "base/mem.h"
#include "feed/library.h"
#include "feed/path.h"
#include "feed/runs.h"
#include "shell/addr.h"
#include "shell/file.h"
#include "shell/log.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (1024u * 1024u)

/* When a key's new value holds. */
enum change { RELOAD, RESTART };

struct key {
	size_t at; /* of its field in struct config */
	struct ff_option option;
	const char *initial;
	enum change change;
};

static const struct key keys[] = {
#define KEY(field, name, type, arg, initial, min, max, change, help) \
	{offsetof(struct config, field), \
		{name, 0, FF_OPTION_##type, NULL, arg, help, min, max}, initial, change},
#include "config.def"
#undef KEY
};

/* What is no key of the file. */
static const struct key flags_only[] = {
	{offsetof(struct config, file),
		{"config", 0, FF_OPTION_TEXT, NULL, "FILE",
			"read `key = value` lines of the options above", 1, CONFIG_PATH},
		NULL, RESTART},
	{offsetof(struct config, set_aside),
		{"set-aside", 0, FF_OPTION_FLAG, NULL, NULL,
			"rename a damaged store and begin with an empty one; a sound one is "
			"refused",
			0, 0},
		NULL, RESTART},
	{offsetof(struct config, check),
		{"check-config", 0, FF_OPTION_FLAG, NULL, NULL, "check all options and end", 0, 0},
		NULL, RESTART},
	{offsetof(struct config, print),
		{"print-config", 0, FF_OPTION_FLAG, NULL, NULL, "print all options and end", 0, 0},
		NULL, RESTART},
	{offsetof(struct config, help),
		{"help", 'h', FF_OPTION_FLAG, NULL, NULL, "print this and end", 0, 0}, NULL,
		RESTART},
	{offsetof(struct config, version),
		{"version", 0, FF_OPTION_FLAG, NULL, NULL, "print the version and end", 0, 0},
		NULL, RESTART},
};

enum {
	KEYS = sizeof keys / sizeof keys[0],
	OPTIONS = KEYS + sizeof flags_only / sizeof flags_only[0],
};

/* The options of c: first the keys, then what is no key. */
static void fill_table(struct config *c, struct ff_option t[OPTIONS])
{
	for (size_t i = 0; i < OPTIONS; i++) {
		const struct key *k = i < KEYS ? &keys[i] : &flags_only[i - KEYS];
		t[i] = k->option;
		t[i].target = (char *)c + k->at;
	}
}

void config_finish(struct config *c)
{
	struct ff_option t[OPTIONS];
	fill_table(c, t);
	ff_option_finish(t, OPTIONS);
	*c = (struct config){0};
}

/* What holds where nothing is said, but for places. */
static void set_initial(struct config *c)
{
	struct ff_option t[OPTIONS];
	fill_table(c, t);
	for (size_t i = 0; i < KEYS; i++) {
		struct ff_err err = {0};
		if (keys[i].initial) {
			int r = ff_option_set(&t[i], ff_str_z(keys[i].initial), &err);
			assert(r == 0);
			(void)r;
		}
	}
}

static void set_default(char **target, char *value)
{
	if (*target) {
		free(value);
	} else {
		*target = value;
	}
}

static void set_places(struct config *c)
{
	set_default(&c->state, ff_addr_state_folder());
	set_default(&c->ingest_socket, ff_addr_ingest_socket());
	set_default(&c->api_socket, ff_addr_api_socket());
}

/* The keys with their defaults behind what they mean. */
static void help_keys(struct ff_buf *out)
{
	struct config c = {0};
	struct ff_option t[OPTIONS];
	fill_table(&c, t);
	set_initial(&c);
	set_places(&c);
	for (size_t i = 0; i < KEYS; i++) {
		struct ff_buf help = {0}, value = {0};
		size_t skip = strlen(t[i].name) + strlen(" = ");
		ff_buf_addz(&help, t[i].help);
		ff_option_print(&t[i], 1, &value);
		if (value.len > skip && t[i].type != FF_OPTION_FLAG) {
			ff_buf_addf(&help, " (default %.*s)", (int)(value.len - skip - 1),
				value.p + skip);
		}
		t[i].help = help.p;
		ff_option_help(&t[i], 1, out);
		ff_buf_finish(&help);
		ff_buf_finish(&value);
	}
	config_finish(&c);
}

void config_help(struct ff_buf *out)
{
	struct config c = {0};
	struct ff_option t[OPTIONS];
	fill_table(&c, t);
	ff_buf_addz(out,
		"usage: firstfaultd [OPTION]...\n\n"
		"Collects the output of distributed training jobs and says which rank failed "
		"first.\n"
		"Runs in the foreground; SIGTERM ends it.\n\n"
		"Keys of the configuration file, and flags:\n");
	help_keys(out);
	ff_buf_addz(out, "\nFlags only:\n");
	ff_option_help(t + KEYS, OPTIONS - KEYS, out);
	ff_buf_addz(out,
		"\nExit status: 0 ended as asked, 1 the store failed for 30 s, 64 bad option or\n"
		"configuration, 70 internal error, 74 store, socket or file.\n");
}

void config_print(const struct config *c, struct ff_buf *out)
{
	struct config copy = *c;
	struct ff_option t[OPTIONS];
	fill_table(&copy, t);
	ff_option_print(t, KEYS, out);
}

/* All flags; the first word that is none is an error. */
static int read_flags(struct config *c, size_t argc, char **argv, struct ff_err *err)
{
	struct ff_option t[OPTIONS];
	fill_table(c, t);
	int rest = ff_option_args(t, OPTIONS, (int)argc, argv, err);
	if (rest < 0) {
		return rest;
	}
	if ((size_t)rest < argc) {
		return ff_err_set(err, FF_EUSAGE, "\"%s\" is no option", argv[rest]);
	}
	return 0;
}

/* The file first and then the flags once more, so that flags win and lists add up. */
static int read_file(struct config *c, const char *path, struct ff_err *err)
{
	struct ff_option t[OPTIONS];
	struct ff_buf text = {0};
	fill_table(c, t);
	int r = ff_file_load(path, FILE_MAX, &text, err);
	if (r >= 0) {
		r = ff_option_file(t, KEYS, path, ff_buf_str(&text), err);
	}
	ff_buf_finish(&text);
	return r;
}

/* "unix:PATH" is taken as PATH, as a client would write it. */
static void strip_unix(char *path)
{
	if (!strncmp(path, "unix:", 5)) {
		memmove(path, path + 5, strlen(path) - 4);
	}
}

static int check_socket(const char *path, const char *key, struct ff_err *err)
{
	size_t max = 107; /* of sun_path, with its NUL 108 */
	if (!*path || strlen(path) > max) {
		return ff_err_set(err, FF_EUSAGE,
			"%s: \"%s\" has %zu bytes, a unix socket's path at most %zu", key, path,
			strlen(path), max);
	}
	return 0;
}

/* Port 0 lets the kernel choose; `status` says what it chose. */
int config_split_listen(
	const char *key, const char *text, char **ret_host, char **ret_port, struct ff_err *err)
{
	const char *colon = strrchr(text, ':');
	struct ff_str host = ff_str_n(text, colon ? (size_t)(colon - text) : 0);
	int64_t port = -1;
	if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']') {
		host = ff_str_n(host.p + 1, host.n - 2);
	}
	if (!host.n || !ff_str_int(ff_str_z(colon + 1), &port) || port < 0 || port > 65535) {
		return ff_err_set(err, FF_EUSAGE, "%s: \"%s\" is not HOST:PORT", key, text);
	}
	*ret_host = ff_xmemdup(host.p, host.n);
	*ret_port = ff_xstrdup(colon + 1);
	return 0;
}

static int check_listen(const struct config *c, const char *key, const struct ff_option_list *list,
	struct ff_err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		char *host = NULL, *port = NULL;
		int r = config_split_listen(key, list->v[i], &host, &port, err);
		free(host);
		free(port);
		if (r < 0) {
			return r;
		}
	}
	if (list->n && !c->token_file && !c->allow_open_tcp) {
		return ff_err_set(err, FF_EUSAGE,
			"%s: \"%s\" would let everybody speak; give token-file, or "
			"allow-open-tcp = yes",
			key, list->v[0]);
	}
	return 0;
}

static int check_patterns(
	const struct ff_option_list *list, const char *key, struct ff_err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		struct ff_err why = {0};
		struct ff_path_pattern *p = ff_path_pattern_parse(list->v[i], &why);
		if (!p) {
			return ff_err_set(err, FF_EUSAGE, "%s: %s", key, why.text);
		}
		ff_path_pattern_destroy(p);
	}
	return 0;
}

/* A node's log is no job's and no rank's. */
static int check_node_patterns(const struct ff_option_list *list, struct ff_err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		for (const char *p = strchr(list->v[i], '{'); p; p = strchr(p + 1, '{')) {
			if (strncmp(p, "{node}", 6) != 0 && strncmp(p, "{name}", 6) != 0) {
				return ff_err_set(err, FF_EUSAGE,
					"tail-node: pattern \"%s\": only {node} and {name} stand "
					"in it; files of jobs are followed by tail",
					list->v[i]);
			}
		}
	}
	return check_patterns(list, "tail-node", err);
}

static int check_default_job(const char *id, struct ff_err *err)
{
	struct ff_err why = {0};
	if (id && ff_runs_check_name(ff_str_z(id), "job id", &why) < 0) {
		return ff_err_set(err, FF_EUSAGE, "default-job: %s", why.text);
	}
	return 0;
}

static int check_catalog(const struct config *c, struct ff_err *err)
{
	struct ff_catalog *catalog = NULL;
	struct ff_err why = {0};
	int r = c->catalog ? ff_library_open(c->catalog, &catalog, &why) : 0;
	ff_catalog_destroy(catalog);
	return r < 0 ? ff_err_set(err, FF_EUSAGE, "catalog: %s", why.text) : 0;
}

static int check_mask(const struct config *c, struct ff_err *err)
{
	struct ff_mask_rules *rules;
	struct ff_err why = {0};
	int r = ff_mask_rules_create(c->mask.v, c->mask.n, &rules, &why);
	ff_mask_rules_destroy(rules);
	return r < 0 ? ff_err_set(err, FF_EUSAGE, "mask: %s", why.text) : 0;
}

/* One file that can be run: there is no shell that would look for it or take arguments apart. */
static int check_hooks(const struct config *c, struct ff_err *err)
{
	const char *program = c->hook_command, *url = c->hook_url;
	struct stat st;
	if (program &&
		(*program != '/' || stat(program, &st) < 0 || !S_ISREG(st.st_mode) ||
			access(program, X_OK) < 0)) {
		return ff_err_set(err, FF_EUSAGE,
			"hook-command: \"%s\" is not the absolute path of a program", program);
	}
	if (url && strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
		return ff_err_set(
			err, FF_EUSAGE, "hook-url: \"%s\" is no http or https address", url);
	}
	return 0;
}

static int check_log(const struct config *c, struct ff_err *err)
{
	enum ff_log_level level;
	return ff_log_level_parse(ff_str_z(c->log_level), &level) ? 0 :
		ff_err_set(err, FF_EUSAGE, "log-level: \"%s\" is not error, warn, info or debug",
			c->log_level);
}

int config_check(const struct config *c, struct ff_err *err)
{
	int r = check_socket(c->ingest_socket, "ingest-socket", err);
	if (r == 0) {
		r = check_socket(c->api_socket, "api-socket", err);
	}
	if (r == 0 && !strcmp(c->ingest_socket, c->api_socket)) {
		r = ff_err_set(err, FF_EUSAGE, "ingest-socket and api-socket are both \"%s\"",
			c->api_socket);
	}
	if (r == 0) {
		r = check_listen(c, "listen", &c->listen, err);
	}
	if (r == 0) {
		r = check_listen(c, "api-listen", &c->api_listen, err);
	}
	if (r == 0) {
		r = check_patterns(&c->tail, "tail", err);
	}
	if (r == 0) {
		r = check_node_patterns(&c->tail_node, err);
	}
	if (r == 0) {
		r = check_catalog(c, err);
	}
	if (r == 0) {
		r = check_mask(c, err);
	}
	if (r == 0) {
		r = check_hooks(c, err);
	}
	if (r == 0) {
		r = check_log(c, err);
	}
	if (r == 0) {
		r = check_default_job(c->default_job, err);
	}
	return r;
}

int config_read(struct config *c, int argc, char **argv, struct ff_err *err)
{
	size_t n = argc > 0 ? (size_t)argc : 0;
	char **words = ff_xcalloc(n + 1, sizeof *words); /* reading reorders them */
	memcpy(words, argv, n * sizeof *words);
	struct config flags = {0};
	int r = read_flags(&flags, n, words, err);
	set_initial(c);
	if (r == 0 && flags.file && !flags.help && !flags.version) {
		r = read_file(c, flags.file, err);
	}
	if (r == 0) {
		memcpy(words, argv, n * sizeof *words);
		r = read_flags(c, n, words, err);
	}
	config_finish(&flags);
	free(words);
	if (r < 0 || c->help || c->version) {
		return r;
	}
	set_places(c);
	strip_unix(c->ingest_socket);
	strip_unix(c->api_socket);
	return config_check(c, err);
}

static void print_value(const struct ff_option *o, struct ff_buf *out)
{
	ff_buf_clear(out);
	ff_option_print(o, 1, out);
}

/* What `from` has, in `to`. */
static void copy_value(const struct ff_option *to, const struct ff_option *from)
{
	switch (to->type) {
	case FF_OPTION_FLAG: *(bool *)to->target = *(const bool *)from->target; return;
	case FF_OPTION_INT:
	case FF_OPTION_SIZE:
	case FF_OPTION_SPAN: *(int64_t *)to->target = *(const int64_t *)from->target; return;
	case FF_OPTION_TEXT: {
		const char *text = *(char *const *)from->target;
		ff_option_finish(to, 1);
		*(char **)to->target = ff_xstrdup(text);
		return;
	}
	case FF_OPTION_LIST: {
		const struct ff_option_list *list = from->target;
		struct ff_option_list *copy = to->target;
		ff_option_finish(to, 1);
		for (size_t i = 0; i < list->n; i++) {
			*FF_ARR_ADD(copy->v, copy->n, copy->cap) = ff_xstrdup(list->v[i]);
		}
		return;
	}
	}
}

void config_keep(struct config *fresh, const struct config *now, struct ff_buf *ret)
{
	struct config present = *now; /* the table's targets are not const */
	struct ff_option a[OPTIONS], b[OPTIONS];
	struct ff_buf before = {0}, after = {0};
	fill_table(&present, a);
	fill_table(fresh, b);
	for (size_t i = 0; i < KEYS; i++) {
		print_value(&a[i], &before);
		print_value(&b[i], &after);
		if (keys[i].change == RESTART &&
			!ff_str_eq(ff_buf_str(&before), ff_buf_str(&after))) {
			ff_buf_addf(ret, "%s%s", ret->len ? ", " : "", a[i].name);
			copy_value(&b[i], &a[i]);
		}
	}
	ff_buf_finish(&before);
	ff_buf_finish(&after);
}
