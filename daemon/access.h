/* access: who a peer is and which runs it may read and write (shared/README.md 6.8).
 *
 * A peer of a unix socket is the user that the kernel says connected (SO_PEERCRED); one over TCP is
 * who its token says, and nobody before it showed one. Administrators are root, the daemon's own
 * user, the members of `admin-group` (by the peer's groups, its supplementary ones too) and tokens
 * with `admin`: they may read and write every run.
 *
 * A run is owned by the first who speaks for it, or by whom an administrator names in a job-start:
 * a prolog runs as root and speaks first. Its owner and administrators may read and write
 * it; others on the unix sockets, or with a token, see that it exists: its job and run id in
 * `jobs`, nothing else. With allow-open-tcp whoever comes over TCP without a token is nobody: what
 * nobody began is owned by nobody, and everybody may read and write it; nobody may touch what has
 * an owner.
 *
 * Reserved: `raw-uid-N`, where text of user N without a job goes, is for that user: nobody can
 * begin it before him. Whose words a node's own logs are says feed/nodes.h.
 *
 * No call here waits: users, groups and the token file are read at the start, and by SIGHUP.
 */
#pragma once

#include "base/sha256.h"
#include "daemon.h"

#include <sys/types.h>

/* Owners that are no uid. */
#define ACCESS_UNOWNED ((int64_t)-1) /* nobody spoke for it yet */
#define ACCESS_NOBODY ((int64_t)-2)  /* it began over open TCP: it is everybody's */

struct access_peer {
	int64_t uid;   /* ACCESS_NOBODY: no token was shown */
	bool admitted; /* may speak at all */
	bool admin;
	bool host;    /* root or the daemon's own user, on a socket of this machine */
	char token[FF_SHA256_HEX]; /* digest of the one that it showed; empty: none */
	bool trusted; /* its kernel and scheduler streams are believed: root, the daemon's user, a
		       * token with `admin` */
};

struct access; /* opaque */

/* Reads the token file and the group. Returns 0 or a negative code with err. */
int access_open(const struct config *c, struct access **ret, struct ff_err *err);
void access_close(struct access *a);

/* The peer of a connected unix socket. */
struct access_peer access_local(const struct access *a, int fd);
/* A peer over TCP before it showed a token. */
struct access_peer access_remote(const struct access *a);
/* The peer shows a token; false if it is none of ours: it stays who it was, and is counted. */
bool access_show(const struct access *a, struct ff_str token, struct access_peer *peer);

/* Other tokens and another group may hold since the peer came: is it still who it was, with all its
 * rights? fd: of its unix socket, -1: it came over TCP. */
bool access_holds(const struct access *a, const struct access_peer *peer, int fd);

/* May the peer read and write this run? */
bool access_may(const struct access_peer *peer, const struct ff_run *run);
/* May it speak for this job, a job that nobody knows included? */
bool access_may_job(const struct access_peer *peer, const struct ff_runs *runs, const char *job);
/* The peer speaks for the run; it is the owner if there is none yet. */
void access_claim(const struct access_peer *peer, struct ff_run *run, struct run_state *rs);
/* The peer says whose run it is. Only an administrator may, and only of a run that nobody has or
 * that is an administrator's: what belongs to a user, or to everybody, stays so. False: it is
 * as it was; an administrator's word is in the log then. */
bool access_name(const struct access *a, const struct access_peer *peer, int64_t uid,
	struct ff_run *run, struct run_state *rs);
