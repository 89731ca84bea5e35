/* fault: the closed sets that events and signatures speak in. Append only: numbers are stored. */
#pragma once

#include "core/origin.h"

/* X(enum suffix, name, meaning) */
#define FF_ROLES(X) \
	X(PRIMARY, "primary", "a process's own fault: can start a failure") \
	X(SECONDARY, "secondary", "by nature the report of somebody else's failure") \
	X(TEARDOWN, "teardown", "being ended because the job is over") \
	X(NOISE, "noise", "looks like a fault, is none") \
	X(CONTEXT, "context", "no fault; carries facts")

#define FF_EVENT_KINDS(X) \
	X(FAULT, "fault", "a fault of some role") \
	X(EXIT, "exit", "how a process ended, as somebody reports it") \
	X(FACT, "fact", "what a line tells about the run") \
	X(SIGN, "sign", "a sign of life or state of a process")

#define FF_DOMAINS(X) \
	X(USER, "user", "the user's program or data") \
	X(FRAMEWORK, "framework", "torch, launchers, libraries") \
	X(NETWORK, "network", "fabric, sockets, name service") \
	X(HARDWARE, "hardware", "GPU, host, disk") \
	X(SYSTEM, "system", "kernel, limits, file systems") \
	X(SCHEDULER, "scheduler", "Slurm, Kubernetes: a word from outside the job")

enum ff_role {
#define X(e, name, text) FF_ROLE_##e,
	FF_ROLES(X)
#undef X
};

enum ff_event_kind {
#define X(e, name, text) FF_EVENT_##e,
	FF_EVENT_KINDS(X)
#undef X
};

enum ff_domain {
#define X(e, name, text) FF_DOMAIN_##e,
	FF_DOMAINS(X)
#undef X
};

/* Names are constants; parse gives -1 for an unknown name. */
const char *ff_role_name(enum ff_role r);
int ff_role_parse(struct ff_str s);
const char *ff_event_kind_name(enum ff_event_kind k);
int ff_event_kind_parse(struct ff_str s);
int ff_domain_parse(struct ff_str s);

/* Typed fields: X(name, TYPE, meaning) in field.def. */
enum ff_field_type {
	FF_FIELD_INT,
	FF_FIELD_US,
	FF_FIELD_MS,
	FF_FIELD_STR,
	FF_FIELD_ADDR,
	FF_FIELD_RANKS,
	FF_FIELD_BYTES,
};

enum ff_field_id {
#define X(name, type, text) FF_F_##name,
#include "core/field.def"
#undef X
	FF_F_COUNT
};

const char *ff_field_name(enum ff_field_id id);
enum ff_field_type ff_field_type(enum ff_field_id id);
int ff_field_parse(struct ff_str name); /* id, or -1 */

/* Ranks of a text such as "3", "0-3,7", "1, 2", "[0, 1]": ascending, without repeats; at most cap
 * of them. Returns how many there are (may exceed cap), 0 if the text is no such list. */
size_t ff_ranks_parse(struct ff_str s, int32_t *ret, size_t cap);
