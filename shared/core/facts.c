#include "core/facts.h"

#include "base/arr.h"
#include "base/mask.h"

#include <stdlib.h>

#define TIME_MAX ((ff_usec)1 << 53) /* what the wire can say exactly (shared/README.md 6.3) */

void ff_facts_init(struct ff_facts *f, struct ff_str job, struct ff_str run)
{
	*f = (struct ff_facts){
		.job = ff_xmemdup(job.p, job.n),
		.run = ff_xmemdup(run.p, run.n),
	};
}

static void control_destroy(struct ff_control *c)
{
	for (size_t i = 0; i < c->nvalues; i++) {
		free(c->values[i].key);
		free(c->values[i].value);
	}
	free(c->values);
	free(c->id);
	free(c);
}

void ff_facts_finish(struct ff_facts *f)
{
	if (!f) {
		return;
	}
	for (size_t i = 0; i < f->ncontrols; i++) {
		control_destroy(f->controls[i]);
	}
	for (size_t i = 0; i < f->nclocks; i++) {
		free(f->clocks[i].node);
		free(f->clocks[i].samples);
	}
	free(f->controls);
	free(f->clocks);
	free(f->job);
	free(f->run);
	*f = (struct ff_facts){0};
}

/* Where id stands or would stand among the controls; *ret_found tells which. */
static size_t control_place(const struct ff_facts *f, const char *id, bool *ret_found)
{
	size_t lo = 0, hi = f->ncontrols;
	*ret_found = false;
	if (hi && strcmp(f->controls[hi - 1]->id, id) < 0) {
		return hi; /* told in order, as a restore does */
	}
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = strcmp(f->controls[mid]->id, id);
		if (!c) {
			*ret_found = true;
			return mid;
		}
		if (c < 0) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

/* The control of an id, made if it is new; NULL at the cap. At the cap, putting one into its place
 * moves 4 MiB of pointers at most. */
static struct ff_control *control_of(struct ff_facts *f, const char *id)
{
	bool found;
	size_t at = control_place(f, id, &found);
	if (found) {
		return f->controls[at];
	}
	if (f->ncontrols >= FF_CONTROLS_MAX) {
		f->controls_refused++;
		return NULL;
	}
	struct ff_control *c = ff_xcalloc(1, sizeof *c);
	c->id = ff_xstrdup(id);
	c->dirty = true;
	FF_ARR_ROOM(f->controls, f->ncontrols, f->ccontrols);
	memmove(f->controls + at + 1, f->controls + at, (f->ncontrols - at) * sizeof *f->controls);
	f->controls[at] = c;
	f->ncontrols++;
	return c;
}

static struct ff_fact_value *value_find(const struct ff_control *c, const char *key, size_t *ret_at)
{
	size_t at = 0;
	while (at < c->nvalues) {
		int order = strcmp(c->values[at].key, key);
		if (!order) {
			return &c->values[at];
		}
		if (order > 0) {
			break;
		}
		at++;
	}
	*ret_at = at;
	return NULL;
}

static void value_add(struct ff_control *c, size_t at, const char *key, struct ff_str value,
	ff_usec time, enum ff_clock clock)
{
	FF_ARR_ROOM(c->values, c->nvalues, c->cvalues);
	memmove(c->values + at + 1, c->values + at, (c->nvalues - at) * sizeof *c->values);
	c->values[at] = (struct ff_fact_value){
		.key = ff_xstrdup(key),
		.value = ff_xmemdup(value.p, value.n),
		.time = time,
		.clock = clock,
	};
	c->nvalues++;
	c->dirty = true;
}

/* Times in order, none last; then clocks, so that equal ones have an order too. */
static int time_cmp(ff_usec a, enum ff_clock aclock, ff_usec b, enum ff_clock bclock)
{
	if (a != b) {
		if (a == FF_TIME_NONE || b == FF_TIME_NONE) {
			return a == FF_TIME_NONE ? 1 : -1;
		}
		return a < b ? -1 : 1;
	}
	return (aclock > bclock) - (aclock < bclock);
}

static bool value_merge(struct ff_facts *f, struct ff_fact_value *v, struct ff_str value,
	ff_usec time, enum ff_clock clock)
{
	int text = ff_str_cmp(value, ff_str_z(v->value));
	if (text && !v->contradicted) {
		v->contradicted = true;
		f->contradictions++;
	}
	/* The least of (time, text, clock) holds: the same one in any order. */
	int order = time == v->time ? 0 : time_cmp(time, clock, v->time, v->clock);
	order = order ? order : text;
	order = order ? order : (int)clock - (int)v->clock;
	if (order >= 0) {
		return false;
	}
	if (text) {
		free(v->value);
		v->value = ff_xmemdup(value.p, value.n);
	}
	v->time = time;
	v->clock = clock;
	return true;
}

bool ff_facts_tell(struct ff_facts *f, const char *id, const char *key, struct ff_str value,
	ff_usec time, enum ff_clock clock)
{
	struct ff_control *c = control_of(f, id);
	if (!c) {
		return false;
	}
	value.n = value.n ? strnlen(value.p, value.n) : 0;
	if (time == FF_TIME_NONE) {
		clock = FF_CLOCK_NONE;
	}
	char *text = ff_xmemdup(value.p, value.n);
	(void)ff_mask(text, value.n);
	value.p = text;
	size_t at = 0;
	struct ff_fact_value *v = value_find(c, key, &at);
	bool changed = !v || value_merge(f, v, value, time, clock);
	if (!v) {
		value_add(c, at, key, value, time, clock);
	}
	c->dirty = c->dirty || changed;
	free(text);
	return changed;
}

void ff_facts_know(struct ff_facts *f, const char *id)
{
	(void)control_of(f, id);
}

static struct ff_node_clock *clock_of(struct ff_facts *f, struct ff_str node)
{
	size_t lo = 0, hi = f->nclocks;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = ff_str_cmp(ff_str_z(f->clocks[mid].node), node);
		if (!c) {
			return &f->clocks[mid];
		}
		if (c < 0) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	if (f->nclocks >= FF_NODES_MAX) {
		f->controls_refused++;
		return NULL;
	}
	FF_ARR_ROOM(f->clocks, f->nclocks, f->cclocks);
	memmove(f->clocks + lo + 1, f->clocks + lo, (f->nclocks - lo) * sizeof *f->clocks);
	f->clocks[lo] = (struct ff_node_clock){.node = ff_xmemdup(node.p, node.n)};
	f->nclocks++;
	return &f->clocks[lo];
}

static ff_usec round_trip(const struct ff_clock_sample *s)
{
	return (s->t4 - s->t1) - (s->t3 - s->t2);
}

static int sample_cmp(const struct ff_clock_sample *a, const struct ff_clock_sample *b)
{
	const ff_usec x[] = {round_trip(a), a->t1, a->t2, a->t3, a->t4};
	const ff_usec y[] = {round_trip(b), b->t1, b->t2, b->t3, b->t4};
	for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) {
		if (x[i] != y[i]) {
			return x[i] < y[i] ? -1 : 1;
		}
	}
	return 0;
}

static bool in_range(ff_usec t)
{
	return t >= 0 && t < TIME_MAX;
}

bool ff_facts_sample(struct ff_facts *f, struct ff_str node, struct ff_clock_sample s)
{
	if (!in_range(s.t1) || !in_range(s.t2) || !in_range(s.t3) || !in_range(s.t4) ||
		s.t4 < s.t1 || s.t3 < s.t2 || round_trip(&s) < 0) {
		return false;
	}
	if (node.n) {
		node.n = strnlen(node.p, node.n);
	}
	struct ff_node_clock *c = clock_of(f, node);
	if (!c) {
		return false;
	}
	size_t at = c->nsamples;
	while (at && sample_cmp(&s, &c->samples[at - 1]) < 0) {
		at--;
	}
	if (at == FF_CLOCK_SAMPLES || (at && !sample_cmp(&s, &c->samples[at - 1]))) {
		return true; /* worse than all that are kept, or known */
	}
	if (c->nsamples == FF_CLOCK_SAMPLES) {
		c->nsamples--;
	}
	FF_ARR_ROOM(c->samples, c->nsamples, c->csamples);
	memmove(c->samples + at + 1, c->samples + at, (c->nsamples - at) * sizeof *c->samples);
	c->samples[at] = s;
	c->nsamples++;
	c->dirty = true;
	return true;
}

const struct ff_control *ff_facts_control(const struct ff_facts *f, const char *id)
{
	bool found;
	size_t at = control_place(f, id, &found);
	return found ? f->controls[at] : NULL;
}

const char *ff_control_get(const struct ff_control *c, const char *key)
{
	size_t at;
	const struct ff_fact_value *v = c ? value_find(c, key, &at) : NULL;
	return v ? v->value : NULL;
}

int64_t ff_control_int(const struct ff_control *c, const char *key, int64_t def)
{
	const char *value = ff_control_get(c, key);
	int64_t v;
	return value && ff_str_int(ff_str_z(value), &v) ? v : def;
}

ff_usec ff_control_time(const struct ff_control *c, enum ff_clock *ret_clock)
{
	ff_usec time = FF_TIME_NONE;
	enum ff_clock clock = FF_CLOCK_NONE;
	for (size_t i = 0; c && i < c->nvalues; i++) {
		const struct ff_fact_value *v = &c->values[i];
		if (v->time != FF_TIME_NONE && time_cmp(v->time, v->clock, time, clock) < 0) {
			time = v->time;
			clock = v->clock;
		}
	}
	if (ret_clock) {
		*ret_clock = clock;
	}
	return time;
}

int32_t ff_facts_world(const struct ff_facts *f)
{
	int64_t n = ff_control_int(ff_facts_control(f, "job@start"), "world_size", 0);
	return n >= 1 && n <= FF_RANKS_MAX ? (int32_t)n : FF_UNKNOWN;
}

bool ff_facts_ended(const struct ff_facts *f)
{
	return ff_facts_control(f, "job@end") != NULL;
}

static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

const char *ff_facts_state(const struct ff_facts *f, struct ff_arena *a)
{
	char *state = ff_arena_strdup(a, ff_control_get(ff_facts_control(f, "job@end"), "state"));
	for (char *p = state; p && *p; p++) {
		*p = upper(*p);
	}
	return state && *state ? state : NULL;
}

static bool same_word(const char *said, const char *word)
{
	for (; *said && *word; said++, word++) {
		if (upper(*said) != *word) {
			return false;
		}
	}
	return !*said && !*word;
}

bool ff_facts_ended_well(const struct ff_facts *f)
{
	const struct ff_control *end = ff_facts_control(f, "job@end");
	if (!end || ff_control_int(end, "signal", 0)) {
		return false;
	}
	const char *state = ff_control_get(end, "state");
	const char *code = ff_control_get(end, "exit_code");
	bool said = state && *state;
	bool good = said && (same_word(state, "COMPLETED") || same_word(state, "SUCCEEDED"));
	if (!code) {
		return good;
	}
	return ff_control_int(end, "exit_code", 1) == 0 && (good || !said);
}
