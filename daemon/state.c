#include "state.h"

#include "base/buf.h"
#include "shell/file.h"
#include "shell/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MOUNTINFO_MAX (4u * 1024u * 1024u)

/* Types that are remote, or shared by the machines of a cluster, whatever the mount says. Those
 * without a name in linux/magic.h are as coreutils has them (src/stat.c, S_MAGIC_*). */
static const struct {
	uint64_t magic;
	const char *name;
} remotes[] = {
	{NFS_SUPER_MAGIC, "NFS"},
	{SMB_SUPER_MAGIC, "SMB"},
	{0xFF534D42, "CIFS"}, /* CIFS_SUPER_MAGIC since Linux 5.16's header */
	{0xFE534D42, "SMB"},  /* SMB2_SUPER_MAGIC, the same */
	{0x00C36400, "CephFS"}, /* CEPH_SUPER_MAGIC, the same */
	{AFS_SUPER_MAGIC, "AFS"},
	{0x6B414653, "AFS"}, /* AFS_FS_MAGIC, the kernel's own client */
	{V9FS_MAGIC, "9p"},
	{CODA_SUPER_MAGIC, "Coda"},
	{NCP_SUPER_MAGIC, "NCP"},
	{0x7461636F, "OCFS2"},      /* OCFS2_SUPER_MAGIC */
	{0x0BD00BD0, "Lustre"},     /* S_MAGIC_LUSTRE */
	{0x47504653, "GPFS"},       /* S_MAGIC_GPFS */
	{0x19830326, "BeeGFS"},     /* S_MAGIC_FHGFS, its name until 2014 */
	{0xAAD7AAEA, "PanFS"},      /* S_MAGIC_PANFS */
	{0x01161970, "GFS2"},       /* S_MAGIC_GFS */
	{0x013111A8, "Ibrix"},      /* S_MAGIC_IBRIX */
	{0xBEEFDEAD, "StorNext"},   /* S_MAGIC_SNFS */
	{0x61636673, "ACFS"},       /* S_MAGIC_ACFS */
	{0xBACBACBC, "VMware shared folders"}, /* S_MAGIC_VMHGFS */
	{0x7C7C6673, "Parallels shared folders"}, /* S_MAGIC_PRL_FS */
};

/* FUSE has one magic for all: the subtype that a program mounts itself with tells (mount.fuse3(8):
 * "fuse.SUBTYPE"). Those of local disks (fuseblk, fuse-overlayfs, gocryptfs ...) are good. */
static const char *const remote_fuse[] = {
	"sshfs", "glusterfs", "ceph", "ceph-fuse", "s3fs", "s3ql", "goofys", "mount-s3", "rclone",
	"gcsfuse", "blobfuse", "blobfuse2", "juicefs", "mfs", "moosefs", "lizardfs", "saunafs",
	"seaweedfs", "alluxio-fuse", "curlftpfs", "davfs", "cvmfs2", "fuse_dfs", "smbnetfs",
};

const char *state_remote(uint64_t magic, struct ff_str type)
{
	for (size_t i = 0; i < sizeof remotes / sizeof *remotes; i++) {
		if (remotes[i].magic == (magic & 0xffffffffu)) {
			return remotes[i].name;
		}
	}
	struct ff_str front = FF_STR("fuse.");
	if (magic != FUSE_SUPER_MAGIC || !ff_str_starts(type, front)) {
		return NULL;
	}
	for (size_t i = 0; i < sizeof remote_fuse / sizeof *remote_fuse; i++) {
		if (ff_str_eqz(ff_str_skip(type, front.n), remote_fuse[i])) {
			return remote_fuse[i];
		}
	}
	return NULL;
}

/* The next word of *line, up to a blank. */
static struct ff_str next_word(struct ff_str *line)
{
	ptrdiff_t end = ff_str_chr(*line, ' ', 0);
	struct ff_str word = ff_str_n(line->p, end < 0 ? line->n : (size_t)end);
	*line = ff_str_skip(*line, word.n + (end >= 0));
	return word;
}

/* "36 35 98:0 /a /mnt rw,noatime master:1 - ext3 /dev/sda rw" (proc(5), mountinfo): the third
 * word is the device, the type follows the hyphen. */
struct ff_str state_mount_type(struct ff_str text, unsigned major, unsigned minor)
{
	char device[32];
	(void)snprintf(device, sizeof device, "%u:%u", major, minor);
	while (text.n) {
		ptrdiff_t lf = ff_str_chr(text, '\n', 0);
		struct ff_str line = ff_str_n(text.p, lf < 0 ? text.n : (size_t)lf);
		text = ff_str_skip(text, line.n + (lf >= 0));
		(void)next_word(&line);
		(void)next_word(&line);
		if (!ff_str_eqz(next_word(&line), device)) {
			continue;
		}
		while (line.n && !ff_str_eqz(next_word(&line), "-")) {
		}
		return next_word(&line);
	}
	return FF_STR("");
}

/* Before anything is written there. */
static int refuse_remote(const char *folder, struct ff_err *err)
{
	struct statfs fs;
	struct stat st;
	struct ff_buf mounts = {0};
	struct ff_err why = {0};
	if (statfs(folder, &fs) < 0 || stat(folder, &st) < 0) {
		return ff_err_set(
			err, -errno, "cannot look at \"%s\": %s", folder, strerror(errno));
	}
	(void)ff_file_load("/proc/self/mountinfo", MOUNTINFO_MAX, &mounts, &why);
	struct ff_str type =
		state_mount_type(ff_buf_str(&mounts), major(st.st_dev), minor(st.st_dev));
	const char *name = state_remote((uint64_t)fs.f_type, type);
	ff_buf_finish(&mounts);
	return name ? ff_err_set(err, -EREMOTE,
			      "the state folder \"%s\" is on a network file system (%s), where "
			      "SQLite's locks and WAL do not hold; set `state` to a local disk",
			      folder, name) :
		0;
}

/* The pid that the holder wrote, for the message. */
static int refuse(int fd, const char *folder, struct ff_err *err)
{
	char pid[24] = "";
	ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
	int64_t number = 0;
	(void)ff_str_digits(ff_str_n(pid, n > 0 ? (size_t)n : 0), &number);
	return ff_err_set(err, -EWOULDBLOCK,
		"another firstfaultd (pid %lld) uses the state folder \"%s\"", (long long)number,
		folder);
}

static void write_pid(int fd)
{
	char pid[24];
	int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) == 0) {
		(void)!pwrite(fd, pid, (size_t)n, 0);
	}
}

int state_lock(const char *folder, struct ff_err *err)
{
	int r = ff_file_make_folder(folder, err);
	if (r == 0) {
		r = refuse_remote(folder, err);
	}
	if (r < 0) {
		return r;
	}
	struct ff_buf path = {0};
	ff_buf_addf(&path, "%s/lock", folder);
	int fd = open(path.p, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		r = ff_err_set(err, -errno, "cannot open \"%s\": %s", path.p, strerror(errno));
	} else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? refuse(fd, folder, err)
					 : ff_err_set(err, -errno, "cannot lock \"%s\": %s", path.p,
						   strerror(errno));
	}
	ff_buf_finish(&path);
	if (r < 0) {
		if (fd >= 0) {
			close(fd);
		}
		return r;
	}
	write_pid(fd);
	return fd;
}

/* The names of one damaged store in the order in which they go: the log before its database, for it
 * would be taken for that of the next one. FROM, and what stands before and behind the number. */
static const char *const aside[][3] = {
	{"segments", "segments.damaged-", ""},
	{"store.db-wal", "store.db.damaged-", "-wal"},
	{"store.db-shm", "store.db.damaged-", "-shm"},
	{"store.db", "store.db.damaged-", ""},
};

enum { ASIDE = sizeof aside / sizeof *aside };

static bool is_taken(int dir, unsigned number)
{
	char name[64];
	for (size_t i = 0; i < ASIDE; i++) {
		(void)snprintf(name, sizeof name, "%s%u%s", aside[i][1], number, aside[i][2]);
		if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
			return true;
		}
	}
	return false;
}

static int set_aside(int dir, const char *folder, struct ff_err *err)
{
	unsigned number = 1;
	while (is_taken(dir, number)) {
		number++;
	}
	for (size_t i = 0; i < ASIDE; i++) {
		char name[64];
		(void)snprintf(name, sizeof name, "%s%u%s", aside[i][1], number, aside[i][2]);
		if (renameat(dir, aside[i][0], dir, name) < 0 && errno != ENOENT) {
			return ff_err_set(err, -errno, "cannot rename \"%s/%s\" to \"%s\": %s",
				folder, aside[i][0], name, strerror(errno));
		}
	}
	if (fsync(dir) < 0) {
		return ff_err_set(err, -errno, "cannot sync \"%s\": %s", folder, strerror(errno));
	}
	ff_log_warn("main",
		"the damaged store is kept as \"%s/store.db.damaged-%u\", its text as "
		"\"segments.damaged-%u\", ignoring",
		folder, number, number);
	return 0;
}

int state_set_aside(const char *folder, struct ff_err *err)
{
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		return ff_err_set(err, -errno, "cannot open \"%s\": %s", folder, strerror(errno));
	}
	int r = set_aside(dir, folder, err);
	close(dir);
	return r;
}
