#include "client.h"

#include "base/mem.h"
#include "shell/file.h"
#include "shell/log.h"
#include "token.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct client_command *const commands[] = {
	&cmd_analyze, &cmd_ship, &cmd_why, &cmd_ranks, &cmd_timeline, &cmd_jobs, &cmd_events,
	&cmd_logs, &cmd_report, &cmd_export, &cmd_explain, &cmd_catalog, &cmd_job, &cmd_forget,
	&cmd_backup, &cmd_status, &cmd_watch,
};

#define NCOMMANDS (sizeof commands / sizeof *commands)

/* ---- saying what went wrong */

int client_fail(int status, const char *text, const char *hint)
{
	struct ff_buf b = {0};
	ff_buf_addz(&b, "firstfault: ");
	ff_log_escape(ff_str_z(text), &b);
	ff_buf_addc(&b, '\n');
	if (hint) {
		ff_buf_addz(&b, "hint: ");
		ff_log_escape(ff_str_z(hint), &b);
		ff_buf_addc(&b, '\n');
	}
	(void)ff_file_write(STDERR_FILENO, b.p, b.len);
	ff_buf_finish(&b);
	return status;
}

int client_failf(int status, const char *hint, const char *fmt, ...)
{
	struct ff_buf b = {0};
	va_list ap;
	va_start(ap, fmt);
	ff_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	(void)client_fail(status, b.p, hint);
	ff_buf_finish(&b);
	return status;
}

void client_warn(const char *fmt, ...)
{
	struct ff_buf b = {0};
	va_list ap;
	va_start(ap, fmt);
	ff_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	(void)client_fail(0, b.p, NULL);
	ff_buf_finish(&b);
}

int client_status(int code)
{
	if (code >= 0) {
		return CLIENT_OK;
	}
	switch (code) {
	case FF_EUSAGE:
	case FF_ENAME: return CLIENT_USAGE;
	case FF_EINPUT:
	case FF_EJSON:
	case FF_ESCHEMA:
	case FF_ELIMIT: return CLIENT_INPUT;
	case FF_EREGEX:
	case FF_EDB:
	case FF_EDAMAGE:
	case FF_EVERSION:
	case FF_EPROTO: return CLIENT_INTERNAL;
	default: return CLIENT_IO;
	}
}

int client_usage(const struct client_command *c, const char *fmt, ...)
{
	struct ff_buf b = {0}, hint = {0};
	va_list ap;
	va_start(ap, fmt);
	ff_buf_addf(&b, "%s: ", c->name);
	ff_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	ff_buf_addf(&hint, "firstfault %s --help", c->name);
	(void)client_fail(CLIENT_USAGE, b.p, hint.p);
	ff_buf_finish(&b);
	ff_buf_finish(&hint);
	return CLIENT_USAGE;
}

int client_catalog_fail(int code, const char *path, const struct ff_err *err)
{
	bool wrong = code == FF_EJSON || code == FF_ESCHEMA || code == FF_EREGEX;
	if (!path) {
		return client_fail(CLIENT_INTERNAL, err->text, NULL);
	}
	return client_fail(wrong ? CLIENT_INPUT : client_status(code), err->text,
		wrong ? "firstfault catalog check PATH says all that is wrong" : NULL);
}

/* ---- the screen */

int client_print(const struct ff_buf *b)
{
	int r = b->len ? ff_file_write(STDOUT_FILENO, b->p, b->len) : 0;
	if (r < 0 && r != -EPIPE) {
		return client_failf(CLIENT_IO, NULL, "cannot write the answer: %s", ff_strerror(r));
	}
	return CLIENT_OK;
}

bool client_color(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(STDOUT_FILENO) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

unsigned client_width(void)
{
	struct winsize w;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || !w.ws_col || w.ws_col > 100) {
		return 100;
	}
	return w.ws_col < 60 ? 60 : w.ws_col;
}

/* ---- help */

static const char exit_help[] =
	"EXIT STATUS\n"
	"  0   it did its job, whatever the verdict\n"
	"  64  bad usage          65  bad input          69  no daemon\n"
	"  70  internal error     74  input or output failed\n";

static const char judge_help[] =
	"  With --exit-status the verdict instead of 0: 0 clean, 10 rank, 11 node, 12 common,\n"
	"  13 external, 14 undetermined.\n";

/* Each line of text, indented; one that begins with a blank goes on the line before it. */
static void add_lines(struct ff_buf *out, const char *front, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		const char *in = !n ? "" : *text == ' ' ? "  " : front;
		ff_buf_addf(out, "%s%.*s\n", in, (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static char *token_path;
static const struct ff_option token_file = {"token-file", 0, FF_OPTION_TEXT, &token_path, "FILE",
	"the token for a daemon over TCP is in this file, mode 0600 (else FIRSTFAULT_TOKEN)", 1,
	4096};

static void add_help(const struct client_command *c, const struct ff_option *o, size_t n,
		     struct ff_buf *out)
{
	static bool flag;
	const struct ff_option common[] = {
		{"help", 'h', FF_OPTION_FLAG, &flag, NULL, "print this text", 0, 0},
		{"version", 0, FF_OPTION_FLAG, &flag, NULL, "print the version", 0, 0},
	};
	ff_buf_addf(out, "NAME\n  firstfault %s - %s\n\nSYNOPSIS\n", c->name, c->summary);
	add_lines(out, "  firstfault ", c->synopsis);
	ff_buf_addz(out, "\nDESCRIPTION\n");
	add_lines(out, "  ", c->description);
	ff_buf_addz(out, "\nOPTIONS\n");
	ff_option_help(o, n, out);
	ff_option_help(&token_file, !c->local, out);
	ff_option_help(common, 2, out);
	if (c->examples) {
		ff_buf_addz(out, "\nEXAMPLES\n");
		add_lines(out, "  ", c->examples);
	}
	ff_buf_addf(out, "\n%s%s", exit_help, c->judges ? judge_help : "");
}

static int print_version(void)
{
	struct ff_buf b = {0};
	ff_buf_addz(&b, "firstfault " FF_VERSION "\n");
	int r = client_print(&b);
	ff_buf_finish(&b);
	return r;
}

/* --help and --version hold wherever they stand before "--". */
static bool asks_for(int argc, char **argv, const char *name, const char *letter)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (!strcmp(argv[i], name) || (letter && !strcmp(argv[i], letter))) {
			return true;
		}
	}
	return false;
}

int client_options(const struct client_command *c, const struct ff_option *o, size_t n, int argc,
		   char **argv, int *ret_status)
{
	struct ff_err err = {0};
	if (asks_for(argc, argv, "--help", "-h")) {
		struct ff_buf b = {0};
		add_help(c, o, n, &b);
		*ret_status = client_print(&b);
		ff_buf_finish(&b);
		return -1;
	}
	if (asks_for(argc, argv, "--version", NULL)) {
		*ret_status = print_version();
		return -1;
	}
	struct ff_option *all = ff_xcalloc(n + 1, sizeof *all);
	if (n) { /* a command without options has no table */
		memcpy(all, o, n * sizeof *all);
	}
	all[n] = token_file;
	int rest = ff_option_args(all, n + !c->local, argc, argv, &err);
	free(all);
	token_use_file(token_path);
	if (rest < 0) {
		*ret_status = client_usage(c, "%s", err.text);
		return -1;
	}
	return rest;
}

static int print_overview(void)
{
	struct ff_buf b = {0};
	ff_buf_addz(&b,
		"NAME\n"
		"  firstfault - which rank of a distributed job failed first, why, and what is "
		"collateral\n\n"
		"SYNOPSIS\n"
		"  firstfault COMMAND [OPTION]... [ARG]...\n"
		"  firstfault help COMMAND\n\n"
		"COMMANDS\n");
	for (size_t i = 0; i < NCOMMANDS; i++) {
		ff_buf_addf(&b, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
	}
	ff_buf_addz(&b,
		"\nENVIRONMENT\n"
		"  FIRSTFAULT_ADDR  where firstfaultd takes logs: unix:PATH or HOST:PORT\n"
		"  FIRSTFAULT_API   where it answers questions, likewise\n"
		"  FIRSTFAULT_TOKEN, FIRSTFAULT_TOKEN_FILE  the token for a daemon over TCP, or a\n"
		"                   file of mode 0600 that holds it\n"
		"  NO_COLOR         no colour, even on a terminal\n\n");
	ff_buf_addz(&b, exit_help);
	int r = client_print(&b);
	ff_buf_finish(&b);
	return r;
}

static const struct client_command *find(const char *name)
{
	for (size_t i = 0; i < NCOMMANDS; i++) {
		if (!strcmp(name, commands[i]->name)) {
			return commands[i];
		}
	}
	return NULL;
}

static int unknown(const char *name)
{
	return client_failf(CLIENT_USAGE, "firstfault --help lists the commands",
			    "unknown command \"%s\"", name);
}

/* `help COMMAND` is `COMMAND --help`. */
static int help_of(const char *name)
{
	const struct client_command *c = find(name);
	char self[] = "", help[] = "--help", *argv[] = {self, help, NULL};
	return c ? c->run(c, 2, argv) : unknown(name);
}

int main(int argc, char **argv)
{
	(void)signal(SIGPIPE, SIG_IGN); /* a pager that left early is no error; sockets say EPIPE */
	if (argc < 2) {
		return client_fail(CLIENT_USAGE, "no command given", "firstfault --help");
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		return argc > 2 ? help_of(argv[2]) : print_overview();
	}
	if (!strcmp(argv[1], "--version")) {
		return print_version();
	}
	const struct client_command *c = find(argv[1]);
	return c ? c->run(c, argc - 1, argv + 1) : unknown(argv[1]);
}
