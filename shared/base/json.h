/* JSON: a streaming writer, and a reader of whole small documents (catalogue, configuration,
 * control objects, API bodies) over cJSON.
 *
 * Data objects of JSON Lines are not read here: their text may hold NUL (wire/jsonl.h).
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/usec.h"

/* ---- writer: appends to a buffer; keeps track of commas; the caller balances open and close. */
struct ff_jw {
	struct ff_buf *out;
	unsigned depth;
	uint64_t first; /* bit per depth: nothing written at this depth yet */
	bool after_key;
};

void ff_jw_init(struct ff_jw *w, struct ff_buf *out);
void ff_jw_open(struct ff_jw *w, char c);  /* '{' or '[' */
void ff_jw_close(struct ff_jw *w, char c); /* '}' or ']' */
void ff_jw_key(struct ff_jw *w, const char *key);
/* Text from logs: UTF-8 stays, each byte that isn't becomes U+FFFD, controls are \u escapes. */
void ff_jw_str(struct ff_jw *w, struct ff_str s);
void ff_jw_strz(struct ff_jw *w, const char *z); /* NULL: null */
void ff_jw_int(struct ff_jw *w, int64_t v);
void ff_jw_bool(struct ff_jw *w, bool v);
void ff_jw_null(struct ff_jw *w);
void ff_jw_time(struct ff_jw *w, ff_usec t); /* FF_TIME_NONE: null */
/* key and value at once */
void ff_jw_kstr(struct ff_jw *w, const char *key, struct ff_str s);
void ff_jw_kstrz(struct ff_jw *w, const char *key, const char *z);
void ff_jw_kint(struct ff_jw *w, const char *key, int64_t v);
void ff_jw_kbool(struct ff_jw *w, const char *key, bool v);
void ff_jw_knull(struct ff_jw *w, const char *key);
void ff_jw_ktime(struct ff_jw *w, const char *key, ff_usec t);

/* ---- reader */
struct ff_json;      /* a document */
struct ff_json_node; /* a value in it, borrowed from the document (is a cJSON) */

/* Parses one whole value of at most FF_JSON_DEPTH levels; trailing blanks are allowed.
 * Returns NULL with err (line and column) on a fault. */
struct ff_json *ff_json_parse(struct ff_str text, struct ff_err *err);
/* The same for what quotes logs: \u0000 may stand in a string, and the bytes C0 80 (which no UTF-8
 * has) stand for it until ff_json_add_text or ff_json_render. ff_json_parse refuses it. */
struct ff_json *ff_json_parse_text(struct ff_str text, struct ff_err *err);
/* A string of such a document, with its NULs. */
void ff_json_add_text(struct ff_buf *out, const char *z);
void ff_json_destroy(struct ff_json *doc);
const struct ff_json_node *ff_json_root(const struct ff_json *doc);
bool ff_json_is_object(const struct ff_json_node *v);
bool ff_json_is_array(const struct ff_json_node *v);
bool ff_json_is_null(const struct ff_json_node *v); /* also true for NULL */
/* A member by name (case-sensitive), NULL if absent. */
const struct ff_json_node *ff_json_get(const struct ff_json_node *obj, const char *key);
/* Children of an array or object in order: first and next, NULL at the end. */
const struct ff_json_node *ff_json_first(const struct ff_json_node *v);
const struct ff_json_node *ff_json_next(const struct ff_json_node *v);
const char *ff_json_key(const struct ff_json_node *v); /* the name of an object's member */
/* NULL unless a string. */
const char *ff_json_string(const struct ff_json_node *v);
/* True and *ret for a whole number below 2^53 in size. */
bool ff_json_int(const struct ff_json_node *v, int64_t *ret);
bool ff_json_number(const struct ff_json_node *v, double *ret);
bool ff_json_bool(const struct ff_json_node *v, bool *ret);
/* Adds the value as compact JSON text. */
void ff_json_render(const struct ff_json_node *v, struct ff_buf *out);
