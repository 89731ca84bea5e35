#include "feed/tell.h"

#include "base/limits.h"
#include "base/mask_rules.h"

#include <stdio.h>

#define TEXT_MAX (1024u * 1024u) /* bytes of one value */
#define UID_LAST (UINT32_MAX - 1) /* the one behind it means no user (chown(2)) */

enum key_type { KEY_INT, KEY_TEXT, KEY_NAMES, KEY_OWNER };

struct key {
	const char *name;
	enum key_type type;
	int64_t min, max;
};

#define KEYS_MAX 9

struct control {
	const char *name;
	struct key keys[KEYS_MAX];
};

#define WHO \
	{"attempt", KEY_INT, 0, INT32_MAX}, {"rank", KEY_INT, 0, FF_RANKS_MAX - 1}, \
		{"node", KEY_TEXT, 0, 0}, {"pid", KEY_INT, 0, INT64_MAX}

static const struct control controls[] = {
	{"job-start",
		{{"world_size", KEY_INT, 1, FF_RANKS_MAX}, {"launcher", KEY_TEXT, 0, 0},
			{"nodes", KEY_NAMES, 0, 0}, {"name", KEY_TEXT, 0, 0},
			{"user", KEY_TEXT, 0, 0}, {"uid", KEY_OWNER, 0, UID_LAST}}},
	{"job-end",
		{{"exit_code", KEY_INT, INT32_MIN, INT32_MAX}, {"signal", KEY_INT, 1, 64},
			{"state", KEY_TEXT, 0, 0}, {"reason", KEY_TEXT, 0, 0},
			{"restarts", KEY_INT, 0, INT32_MAX}}},
	{"exit",
		{WHO, {"exit_code", KEY_INT, INT32_MIN, INT32_MAX}, {"signal", KEY_INT, 1, 64},
			{"state", KEY_TEXT, 0, 0}}},
	{"sign",
		{WHO, {"state", KEY_TEXT, 0, 0}, {"step", KEY_INT, 0, INT64_MAX},
			{"wchan", KEY_TEXT, 0, 0}}},
};

/* Read elsewhere, or what the object is about (the last two: job.json tells its job-start as a
 * whole). */
static const char *const other_keys[] = {
	"event", "job", "run", "source", "time", "clock", "token", "streams", "job_end"};

static const struct control *find_control(const char *name)
{
	for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
		if (!strcmp(controls[i].name, name)) {
			return &controls[i];
		}
	}
	return NULL;
}

bool ff_tell_knows(const char *name)
{
	return name && find_control(name);
}

static const struct key *find_key(const struct control *c, const char *name)
{
	for (size_t i = 0; i < KEYS_MAX && c->keys[i].name; i++) {
		if (!strcmp(c->keys[i].name, name)) {
			return &c->keys[i];
		}
	}
	return NULL;
}

static bool is_other_key(const char *name)
{
	for (size_t i = 0; i < sizeof other_keys / sizeof *other_keys; i++) {
		if (!strcmp(other_keys[i], name)) {
			return true;
		}
	}
	return false;
}

/* The value as the text that facts keep. */
static int read_value(const struct control *c, const struct key *k, const struct ff_json_node *v,
		      struct ff_buf *ret, struct ff_err *err)
{
	int64_t n;
	const char *s = ff_json_string(v);
	ff_buf_clear(ret);
	switch (k->type) {
	case KEY_INT:
	case KEY_OWNER:
		if (!ff_json_int(v, &n) || n < k->min || n > k->max) {
			return ff_err_set(err, FF_ESCHEMA,
				"%s: %s is no whole number from %lld to %lld", c->name, k->name,
				(long long)k->min, (long long)k->max);
		}
		ff_buf_addf(ret, "%lld", (long long)n);
		return 0;
	case KEY_TEXT:
		if (!s || strlen(s) > TEXT_MAX) {
			return ff_err_set(err, FF_ESCHEMA, "%s: %s is no text", c->name, k->name);
		}
		ff_buf_addz(ret, s);
		return 0;
	case KEY_NAMES:
		if (!ff_json_is_array(v)) {
			return ff_err_set(err, FF_ESCHEMA, "%s: %s is no list", c->name, k->name);
		}
		for (v = ff_json_first(v); v; v = ff_json_next(v)) {
			s = ff_json_string(v);
			if (!s || ret->len + strlen(s) > TEXT_MAX) {
				return ff_err_set(err, FF_ESCHEMA, "%s: %s holds what is no name",
						  c->name, k->name);
			}
			ff_buf_addf(ret, "%s%s", ret->len ? "," : "", s);
		}
		return 0;
	}
	return FF_ESCHEMA;
}

bool ff_tell_owner(const char *name, const struct ff_json_node *doc, int64_t *ret_uid)
{
	return !strcmp(name, "job-start") && ff_json_int(ff_json_get(doc, "uid"), ret_uid);
}

static int read_time(const struct control *c, const struct ff_json_node *doc, ff_usec *ret,
		     struct ff_err *err)
{
	const struct ff_json_node *v = ff_json_get(doc, "time");
	const char *s = ff_json_string(v);
	*ret = FF_TIME_NONE;
	if (ff_json_is_null(v) || (s && ff_usec_rfc3339(ff_str_z(s), ret))) {
		return 0;
	}
	return ff_err_set(
		err, FF_ESCHEMA, "%s: time is not of the form 2026-01-01T00:00:00Z", c->name);
}

static int read_clock(const struct control *c, const struct ff_json_node *doc, enum ff_clock *ret,
		      struct ff_err *err)
{
	const struct ff_json_node *v = ff_json_get(doc, "clock");
	const char *s = ff_json_string(v);
	if (ff_json_is_null(v)) {
		return 0;
	}
	if (s && !strcmp(s, "node")) {
		*ret = FF_CLOCK_CAPTURED;
	} else if (s && !strcmp(s, "collector")) {
		*ret = FF_CLOCK_ARRIVED;
	} else {
		return ff_err_set(
			err, FF_ESCHEMA, "%s: clock is neither node nor collector", c->name);
	}
	return 0;
}

static int check(const struct control *c, const struct ff_json_node *doc, struct ff_err *err)
{
	struct ff_buf value = {0};
	int r = 0;
	if (!ff_json_is_object(doc)) {
		return ff_err_set(err, FF_ESCHEMA, "%s: not an object", c->name);
	}
	for (const struct ff_json_node *v = ff_json_first(doc); v && r == 0; v = ff_json_next(v)) {
		const struct key *k = find_key(c, ff_json_key(v));
		if (k && !ff_json_is_null(v)) {
			r = read_value(c, k, v, &value, err);
		}
	}
	ff_buf_finish(&value);
	return r;
}

/* Who an exit or sign is about: the object's own words, else the connection's. */
static void read_who(const struct ff_mask_rules *mask, const struct ff_json_node *doc,
	const struct ff_tell *as, struct ff_tell *ret)
{
	const char *node = ff_json_string(ff_json_get(doc, "node"));
	*ret = *as;
	if (!ff_json_is_null(ff_json_get(doc, "rank")) ||
		!ff_json_is_null(ff_json_get(doc, "pid"))) {
		ret->rank = ret->pid = FF_UNKNOWN; /* it may speak about somebody else */
	}
	(void)ff_json_int(ff_json_get(doc, "rank"), &ret->rank);
	(void)ff_json_int(ff_json_get(doc, "pid"), &ret->pid);
	(void)ff_json_int(ff_json_get(doc, "attempt"), &ret->attempt);
	if (node) { /* a part of the id; the document is ours */
		(void)ff_mask_rules_text(mask, (char *)node, strlen(node), NULL);
	}
	ret->node = node ? node : as->node;
}

static int make_id(const struct control *c, const struct ff_tell *who, ff_usec time,
		   struct ff_buf *ret, struct ff_err *err)
{
	if (!strcmp(c->name, "job-start") || !strcmp(c->name, "job-end")) {
		ff_buf_addz(ret, c->name[4] == 's' ? "job@start" : "job@end");
		return 0;
	}
	if (who->rank >= 0) {
		ff_buf_addf(ret, "%s@%lld.%lld", c->name,
			(long long)(who->attempt < 0 ? 0 : who->attempt), (long long)who->rank);
	} else if (who->pid >= 0) {
		ff_buf_addf(ret, "%s@%s.%lld", c->name, who->node ? who->node : "",
			(long long)who->pid);
	} else {
		return ff_err_set(err, FF_ESCHEMA, "%s: without rank and without pid", c->name);
	}
	if (!strcmp(c->name, "sign")) {
		ff_buf_addf(ret, ".%lld", (long long)(time == FF_TIME_NONE ? 0 : time));
	}
	return 0;
}

struct telling {
	struct ff_facts *facts;
	const char *id;
	ff_usec time;
	enum ff_clock clock;
	bool changed;
	size_t told;
};

static void tell(struct telling *t, const char *key, struct ff_str value)
{
	t->told++;
	t->changed |= ff_facts_tell(t->facts, t->id, key, value, t->time, t->clock);
}

static void tell_int(struct telling *t, const char *key, int64_t v)
{
	char text[24];
	if (v != FF_UNKNOWN) {
		(void)snprintf(text, sizeof text, "%lld", (long long)v);
		tell(t, key, ff_str_z(text));
	}
}

static void tell_all(struct ff_run *run, const struct control *c, const struct ff_json_node *doc,
		     struct telling *t)
{
	struct ff_buf value = {0};
	for (const struct ff_json_node *v = ff_json_first(doc); v; v = ff_json_next(v)) {
		const struct key *k = find_key(c, ff_json_key(v));
		if (!k) {
			run->job->counts[FF_COUNT_unknown_keys] += !is_other_key(ff_json_key(v));
			continue;
		}
		/* who it is about is told from what is known in all */
		bool who =
			c->keys[0].name && !strcmp(c->keys[0].name, "attempt") && k < c->keys + 4;
		bool fact = !who && k->type != KEY_OWNER;
		if (fact && !ff_json_is_null(v) && read_value(c, k, v, &value, NULL) == 0) {
			if (k->type != KEY_INT) { /* a pattern may fit any number */
				(void)ff_mask_rules_text(run->mask, value.p, value.len, NULL);
			}
			tell(t, k->name, ff_buf_str(&value));
		}
	}
	ff_buf_finish(&value);
}

int ff_tell_control(struct ff_run *run, const char *name, const struct ff_json_node *doc,
		    const struct ff_tell *as, struct ff_err *err)
{
	const struct control *c = find_control(name);
	struct telling t = {.facts = &run->job->facts, .clock = as->clock};
	struct ff_tell who;
	struct ff_buf id = {0};
	if (!c) {
		return ff_err_set(err, FF_ESCHEMA, "no control object \"%s\"", name);
	}
	int r = check(c, doc, err);
	if (r == 0) {
		r = read_time(c, doc, &t.time, err);
	}
	if (r == 0) {
		r = read_clock(c, doc, &t.clock, err);
	}
	if (r == 0) {
		read_who(run->mask, doc, as, &who);
		r = make_id(c, &who, t.time, &id, err);
	}
	if (r == 0) {
		t.id = id.p;
		size_t before = t.facts->ncontrols;
		ff_facts_know(t.facts, t.id);
		tell_all(run, c, doc, &t);
		if (!strcmp(name, "exit") || !strcmp(name, "sign")) {
			tell_int(&t, "attempt", who.attempt);
			tell_int(&t, "rank", who.rank);
			tell_int(&t, "pid", who.pid);
			if (who.node) {
				tell(&t, "node", ff_str_z(who.node));
			}
		}
		/* an object of nothing but a time still has that */
		if (!t.told && t.time != FF_TIME_NONE) {
			tell_int(&t, "time", t.time);
		}
		r = t.changed || t.facts->ncontrols != before;
		run->dirty = run->dirty || r;
	}
	ff_buf_finish(&id);
	return r;
}
