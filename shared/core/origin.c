#include "core/origin.h"

static const char *const kind_names[] = {
#define X(e, name, text) [FF_STREAM_##e] = name,
	FF_STREAM_KINDS(X)
#undef X
};

const char *ff_stream_kind_name(enum ff_stream_kind k)
{
	return kind_names[k];
}

int ff_stream_kind_parse(struct ff_str s)
{
	for (size_t i = 0; i < sizeof kind_names / sizeof kind_names[0]; i++) {
		if (ff_str_eqz(s, kind_names[i])) {
			return (int)i;
		}
	}
	return -1;
}

const char *ff_fd_name(enum ff_fd fd)
{
	switch (fd) {
	case FF_FD_UNKNOWN: return NULL;
	case FF_FD_STDOUT: return "stdout";
	case FF_FD_STDERR: return "stderr";
	}
	return NULL;
}

enum ff_fd ff_fd_parse(struct ff_str s)
{
	if (ff_str_eqz(s, "stdout")) {
		return FF_FD_STDOUT;
	}
	return ff_str_eqz(s, "stderr") ? FF_FD_STDERR : FF_FD_UNKNOWN;
}

bool ff_origin_is_stderr(const struct ff_origin *o)
{
	if (o->fd != FF_FD_UNKNOWN) {
		return o->fd == FF_FD_STDERR;
	}
	struct ff_str name = ff_str_z(o->name);
	return ff_str_find(name, FF_STR("stderr"), 0) >= 0 || ff_str_ends(name, FF_STR(".err"));
}
