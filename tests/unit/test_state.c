#include "state.h"

#include <check.h>

#define N(table) (sizeof(table) / sizeof(table)[0])

/* What statfs(2) says, the type in mountinfo, and a name (NULL: good). */
static const struct {
	uint64_t magic;
	const char *type, *name;
} rows[] = {
	{0x6969, "nfs4", "NFS"},
	{0x517B, "smbfs", "SMB"},
	{0xFF534D42, "cifs", "CIFS"},
	{0xFE534D42, "smb3", "SMB"},
	{0xFFFFFFFFFF534D42, "cifs", "CIFS"}, /* sign extended: f_type is a signed word */
	{0x00C36400, "ceph", "CephFS"},
	{0x5346414F, "afs", "AFS"},
	{0x6B414653, "afs", "AFS"},
	{0x01021997, "9p", "9p"},
	{0x0BD00BD0, "lustre", "Lustre"},
	{0x47504653, "gpfs", "GPFS"},
	{0x19830326, "beegfs", "BeeGFS"},
	{0xAAD7AAEA, "panfs", "PanFS"},
	{0x7461636F, "ocfs2", "OCFS2"},
	{0x01161970, "gfs2", "GFS2"},
	{0x65735546, "fuse.sshfs", "sshfs"},
	{0x65735546, "fuse.glusterfs", "glusterfs"},
	{0x65735546, "fuse.s3fs", "s3fs"},
	{0x65735546, "fuse.ceph-fuse", "ceph-fuse"},
	{0x65735546, "fuse.sshfs2", NULL},
	{0x65735546, "fuse.fuse-overlayfs", NULL},
	{0x65735546, "fuseblk", NULL},
	{0x65735546, "", NULL},
	{0xEF53, "ext4", NULL},
	{0x58465342, "xfs", NULL},
	{0x9123683E, "btrfs", NULL},
	{0x01021994, "tmpfs", NULL},
	{0x794C7630, "overlay", NULL},
	{0x2FC12FC1, "zfs", NULL},
	{0xEF53, "fuse.sshfs", NULL},
};

START_TEST(test_remote)
{
	const char *name = state_remote(rows[_i].magic, ff_str_z(rows[_i].type));
	if (rows[_i].name) {
		ck_assert_ptr_nonnull(name);
		ck_assert_str_eq(name, rows[_i].name);
	} else {
		ck_assert_ptr_null(name);
	}
}
END_TEST

static const char mounts[] =
	"22 1 254:0 / / rw,relatime - ext4 /dev/root rw\n"
	"36 35 98:0 /a /mnt\\040one rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw\n"
	"40 22 0:37 / /home rw shared:7 - fuse.sshfs host:/home rw,user_id=0\n"
	"41 22 0:38 / /short -\n"
	"42 22 0:370 / /x rw - nfs4 h:/x rw";

START_TEST(test_mount_type)
{
	static const struct {
		unsigned major, minor;
		const char *type;
	} devices[] = {{254, 0, "ext4"}, {98, 0, "ext3"}, {0, 37, "fuse.sshfs"}, {0, 38, ""},
		{0, 370, "nfs4"}, {0, 3, ""}};
	for (size_t i = 0; i < N(devices); i++) {
		struct ff_str got =
			state_mount_type(FF_STR(mounts), devices[i].major, devices[i].minor);
		ck_assert_msg(ff_str_eqz(got, devices[i].type), "%u:%u is %.*s", devices[i].major,
			devices[i].minor, FF_STR_ARG(got));
	}
	/* every cut of it is read without harm */
	for (size_t n = 0; n < sizeof mounts; n++) {
		(void)state_mount_type(ff_str_n(mounts, n), 0, 370);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("state");
	TCase *tc = tcase_create("state");
	tcase_add_loop_test(tc, test_remote, 0, (int)N(rows));
	tcase_add_test(tc, test_mount_type);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? 1 : 0;
}
