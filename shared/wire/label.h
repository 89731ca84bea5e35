/* label: whose output a pod's is, as Kubernetes says it: the job's id, and a name for the stream.
 *
 * A job's name is taken from a label that its controller put on the pod: Kubeflow's
 * `training.kubeflow.org/job-name`, JobSet's `jobset.sigs.k8s.io/jobset-name`, Volcano's
 * `volcano.sh/job-name`, `batch.kubernetes.io/job-name` and its old form `job-name`; the one that
 * covers most pods holds. Names are unique in their namespace only: the id is NAME.NAMESPACE, so
 * that a prefix is the name. A batch Job's uid (`batch.kubernetes.io/controller-uid`) is the run:
 * the same Job made again is another one. Indexes of pods are no ranks: a pod may run several.
 *
 * Sources: https://kubernetes.io/docs/reference/labels-annotations-taints/ and the API packages of
 * kubeflow/trainer, kubernetes-sigs/jobset and volcano-sh/volcano.
 */
#pragma once

#include "base/buf.h"

#define FF_LABEL_TEXT 2048u /* bytes that a made id and a made name have together at most */

struct ff_label {
	struct ff_str name, uid, space; /* of the job, its uid, the namespace; borrowed */
	struct ff_str pod, container;
	unsigned weight; /* of name */
	bool batch;      /* name is that of a batch Job, whose uid says which one */
};

/* A label of the pod: its key and value. */
void ff_label_add(struct ff_label *l, struct ff_str key, struct ff_str value);
/* Both build in mem, which has room for FF_LABEL_TEXT more bytes and so does not move. An empty one
 * is absent. */
struct ff_str ff_label_job(const struct ff_label *l, struct ff_buf *mem);
/* POD/CONTAINER, and /fd where two descriptors of it are told apart. */
struct ff_str ff_label_stream(const struct ff_label *l, struct ff_str fd, struct ff_buf *mem);
/* The uid, if it says which run of the job this is; else absent. */
struct ff_str ff_label_run(const struct ff_label *l);
