#include "wire/label.h"

#define PART_MAX 253u  /* bytes of a name: Kubernetes allows no longer one */
#define STREAM_MAX 512u /* of a stream's first part, which may be a path */

static const struct {
	const char *key;
	unsigned weight;
	bool batch;
} jobs[] = {
	{"training.kubeflow.org/job-name", 5, false},
	{"jobset.sigs.k8s.io/jobset-name", 4, false},
	{"volcano.sh/job-name", 3, false},
	{"batch.kubernetes.io/job-name", 2, true},
	{"job-name", 1, true},
};

void ff_label_add(struct ff_label *l, struct ff_str key, struct ff_str value)
{
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		if (value.n && jobs[i].weight > l->weight && ff_str_eqz(key, jobs[i].key)) {
			l->name = value;
			l->weight = jobs[i].weight;
			l->batch = jobs[i].batch;
		}
	}
	if (ff_str_eqz(key, "batch.kubernetes.io/controller-uid") ||
		(!l->uid.n && ff_str_eqz(key, "controller-uid"))) {
		l->uid = value;
	}
}

static void add(struct ff_buf *mem, const char *between, struct ff_str s, size_t max)
{
	if (s.n) {
		ff_buf_addz(mem, between);
		ff_buf_add(mem, s.p, s.n < max ? s.n : max);
	}
}

static struct ff_str made(const struct ff_buf *mem, size_t from)
{
	return mem->len > from ? ff_str_n(mem->p + from, mem->len - from) : (struct ff_str){0};
}

struct ff_str ff_label_job(const struct ff_label *l, struct ff_buf *mem)
{
	size_t from = mem->len;
	if (l->name.n) {
		add(mem, "", l->name, PART_MAX);
		add(mem, ".", l->space, PART_MAX);
	}
	return made(mem, from);
}

struct ff_str ff_label_stream(const struct ff_label *l, struct ff_str fd, struct ff_buf *mem)
{
	size_t from = mem->len;
	if (l->pod.n) {
		add(mem, "", l->pod, STREAM_MAX);
		add(mem, "/", l->container, PART_MAX);
		add(mem, "/", fd, PART_MAX);
	}
	return made(mem, from);
}

struct ff_str ff_label_run(const struct ff_label *l)
{
	return l->batch ? l->uid : (struct ff_str){0};
}
