/* catalog: the signatures, read from JSON once, never changed afterwards. (Includes PCRE2
 * inside.)
 *
 * In: documents in the form of shared/README.md 6.6. Out: an immutable set with one scanner
 * over all literals. A signature is an entry; a *text* is one (literal, pattern) of it. Texts are
 * numbered per fault id in order of loading: "cuda-oom/1".
 *
 * Ownership: everything returned is borrowed from the catalogue, which outlives all jobs.
 */
#pragma once

#include "base/embed.h"
#include "base/err.h"
#include "core/fault.h"
#include "core/record.h"

struct ff_catalog; /* opaque */

struct ff_verify {
	const char *run, *expect; /* a command; what it shows if the explanation is right */
};

struct ff_signature {
	const char *id, *title, *category;
	const char *did; /* what the rank did, as a verb phrase; NULL if none */
	enum ff_role role;
	enum ff_domain domain;
	enum ff_event_kind kind;
	bool generic; /* gives way to any other match on the same line */
	bool progress, success; /* context entries with field `step` / `done` */
	const char *cause;      /* NULL if none */
	const char **mechanism, **fix; /* NULL-terminated, never NULL */
	const struct ff_verify *verify;
	size_t nverify;
};

/* A group of a pattern and the field that it fills; a field may have several groups. */
struct ff_group {
	uint32_t number;
	enum ff_field_id id;
};

struct ff_text {
	uint32_t index;        /* in the catalogue: the id of its literal's marks */
	const struct ff_signature *sig;
	const char *name;      /* "cuda-oom/1" */
	struct ff_str literal;
	const char *pattern;
	const void *code;      /* pcre2_code, for match.c */
	const struct ff_group *groups; /* by field, then number */
	size_t ngroups;
};

struct ff_catalog *ff_catalog_create(void);
void ff_catalog_destroy(struct ff_catalog *c);
/* Adds one document: an array of entries. Returns 0, or FF_EJSON, FF_ESCHEMA, FF_EREGEX with file
 * and entry in err; the catalogue is then good for nothing but destroy. */
int ff_catalog_add(struct ff_catalog *c, const char *file, struct ff_str json, struct ff_err *err);
/* The same, but an entry that is wrong is told to fn and left out. Returns how many were; a
 * document that is no array of entries counts as one. */
typedef void ff_catalog_bad_fn(void *ud, const struct ff_err *err);
size_t ff_catalog_add_each(struct ff_catalog *c, const char *file, struct ff_str json,
			   ff_catalog_bad_fn *fn, void *ud);
/* Documents of another origin are in it too (a user's own): their hash stands behind the first. */
void ff_catalog_also(struct ff_catalog *c, const char *sha256);
/* No more documents: builds the scanner. sha256 (hex digits) becomes the catalogue's name. */
int ff_catalog_seal(struct ff_catalog *c, const char *sha256, struct ff_err *err);
/* create + add of each + seal. Returns 0 and *ret, or what add returned. */
int ff_catalog_load(const struct ff_embedded *files, size_t n, const char *sha256,
	struct ff_catalog **ret, struct ff_err *err);
/* What was compiled in (schema/embed.py); its hash is what `cat shared/catalog/FILE... | sha256sum`
 * shows for the files in the order of shared/meson.build. */
extern const struct ff_embedded ff_catalog_files[];
extern const size_t ff_catalog_files_count;
extern const char ff_catalog_files_sha256[];

const struct ff_scan *ff_catalog_scan(const struct ff_catalog *c); /* texts, then openers */
size_t ff_catalog_ntexts(const struct ff_catalog *c);
const struct ff_text *ff_catalog_text(const struct ff_catalog *c, size_t i);
/* True if the mark's id is that of a record opener and not of a text. */
bool ff_catalog_is_opener(const struct ff_catalog *c, uint32_t id);
/* What a fault id means where no text says more: its generic primary signature, else the first with
 * a cause, else the first; NULL if the id is unknown. */
const struct ff_signature *ff_catalog_find(const struct ff_catalog *c, const char *fault);
/* "sha256:..." of seal, then those of ff_catalog_also in their order; NULL-terminated. */
const char *const *ff_catalog_hashes(const struct ff_catalog *c);
