/* A file compiled into the program by schema/embed.py: its name, its bytes. */
#pragma once

#include <stddef.h>

struct ff_embedded {
	const char *name;          /* file name without folder */
	const unsigned char *data; /* not NUL-terminated */
	size_t len;                /* bytes */
};
