#include "access.h"

#include "base/mem.h"
#include "ledger.h"
#include "shell/log.h"
#include "token.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUPS_MAX 65536u /* NGROUPS_MAX of Linux */
#define USER_JOB "raw-uid-"

struct access {
	struct token_table tokens;
	bool open;      /* TCP without tokens */
	bool has_admin; /* the group exists */
	gid_t admin;
};

int access_open(const struct config *c, struct access **ret, struct ff_err *err)
{
	struct access *a = ff_xcalloc(1, sizeof *a);
	const struct group *g = getgrnam(c->admin_group);
	struct ff_err why = {0};
	int r = c->token_file ? token_load(c->token_file, &a->tokens, &why) : 0;
	if (r < 0) {
		(void)ff_err_set(err, r, "token-file: %s", why.text);
	}
	a->open = c->allow_open_tcp;
	a->has_admin = g != NULL;
	a->admin = g ? g->gr_gid : 0;
	*ret = a;
	return r;
}

void access_close(struct access *a)
{
	if (a) {
		token_finish(&a->tokens);
		free(a);
	}
}

/* ---- who it is */

/* The peer's groups are those of the moment when it connected (socket(7), unix(7)). */
static bool has_group(int fd, gid_t wanted)
{
	struct ucred cred;
	socklen_t n = sizeof cred;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0 && cred.gid == wanted) {
		return true;
	}
	n = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &n) == 0 || errno != ERANGE ||
		n > GROUPS_MAX * sizeof(gid_t)) {
		return false; /* it has none */
	}
	gid_t *groups = ff_xmalloc(n);
	bool found = false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n) == 0) {
		for (size_t i = 0; i < n / sizeof *groups; i++) {
			found = found || groups[i] == wanted;
		}
	}
	free(groups);
	return found;
}

struct access_peer access_local(const struct access *a, int fd)
{
	struct access_peer p = {.uid = ACCESS_NOBODY};
	struct ucred cred;
	socklen_t n = sizeof cred;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0 || n != sizeof cred) {
		return p;
	}
	p.uid = cred.uid;
	p.admitted = true;
	p.host = p.trusted = cred.uid == 0 || cred.uid == geteuid();
	p.admin = p.trusted || (a->has_admin && has_group(fd, a->admin));
	return p;
}

struct access_peer access_remote(const struct access *a)
{
	return (struct access_peer){.uid = ACCESS_NOBODY, .admitted = a->open};
}

bool access_show(const struct access *a, struct ff_str text, struct access_peer *peer)
{
	const struct token *token = token_find(&a->tokens, text);
	if (token) {
		*peer = (struct access_peer){
			.uid = token->owner,
			.admitted = true,
			.admin = token->admin,
			.trusted = token->admin,
		};
		memcpy(peer->token, token->digest, sizeof peer->token);
	}
	return token != NULL;
}

bool access_holds(const struct access *a, const struct access_peer *peer, int fd)
{
	if (peer->token[0]) {
		const struct token *token = token_find_digest(&a->tokens, peer->token);
		return token && token->owner == peer->uid && token->admin == peer->admin;
	}
	struct access_peer now = fd >= 0 ? access_local(a, fd) : access_remote(a);
	return now.admitted >= peer->admitted && now.admin >= peer->admin;
}

/* ---- what it may */

static bool may_own(const struct access_peer *peer, int64_t owner)
{
	return peer->admin || owner == ACCESS_UNOWNED || owner == ACCESS_NOBODY ||
		(owner >= 0 && owner == peer->uid);
}

bool access_may(const struct access_peer *peer, const struct ff_run *run)
{
	const struct run_state *rs = run->user;
	return peer->admitted && may_own(peer, rs ? rs->owner : ACCESS_UNOWNED);
}

/* Is the job one that is for another user? */
static bool is_reserved(int64_t user, const char *job)
{
	int64_t uid;
	return ff_str_starts(ff_str_z(job), FF_STR(USER_JOB)) &&
		ff_str_int(ff_str_skip(ff_str_z(job), sizeof USER_JOB - 1), &uid) && uid != user;
}

bool access_may_job(const struct access_peer *peer, const struct ff_runs *runs, const char *job)
{
	const struct ff_run *run = ff_map_get(&runs->latest, ff_str_z(job));
	if (!peer->admitted || (!peer->admin && is_reserved(peer->uid, job))) {
		return false;
	}
	return !run || access_may(peer, run);
}

void access_claim(const struct access_peer *peer, struct ff_run *run, struct run_state *rs)
{
	if (rs->owner == ACCESS_UNOWNED) {
		rs->owner = peer->uid;
		run->dirty = true;
	}
}

/* Root, the daemon's own user, who shows an administrator's token. A member of the group is a user
 * besides: what he began may be his own. */
static bool is_admin(const struct access *a, int64_t uid)
{
	bool found = uid == 0 || uid == geteuid();
	for (size_t i = 0; i < a->tokens.n && !found; i++) {
		found = a->tokens.v[i].admin && a->tokens.v[i].owner == uid;
	}
	return found;
}

bool access_name(const struct access *a, const struct access_peer *peer, int64_t uid,
	struct ff_run *run, struct run_state *rs)
{
	const char *job = run->job->facts.job;
	bool vacant = rs->owner == ACCESS_UNOWNED || rs->owner == uid ||
		(rs->owner >= 0 && (rs->owner == peer->uid || is_admin(a, rs->owner)));
	if (!peer->admin) {
		return false;
	}
	if (!vacant || is_reserved(uid, job)) {
		ff_log_warn("access", "job=%s is not given to uid %lld: %s", job, (long long)uid,
			!vacant ? "it has another owner" : "its name is another user's");
		return false;
	}
	run->dirty = run->dirty || rs->owner != uid;
	rs->owner = uid;
	return true;
}
