/* tail_reach: from an open folder to what a name in it stands for, without being led elsewhere.
 *
 * No link is followed but root's own (one name, uid 0), and of those each on the way has to be
 * root's. A file is looked at by a descriptor that opens nothing (O_PATH) and read through that
 * very descriptor: what is put in its place in between is neither opened nor read, so that no pipe
 * gets a reader and no device is touched.
 *
 * Descriptors are the caller's; errors are negative errno.
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

/* A folder, for reading. -EXDEV: something is mounted there, which is not touched (on kernels
 * before 5.6 it is opened: compare its device). -ELOOP or -ENOTDIR: it is none. */
int tail_reach_folder(int dir, const char *name);
/* What has this name itself, with its stat. */
int tail_reach_name(int dir, const char *name, struct stat *ret);
/* What root's own link leads to, with its stat. -EPERM: a link on the way is not root's. */
int tail_reach_through(int dir, const char *name, struct stat *ret);
/* A regular file from above, for reading. */
int tail_reach_read(int place);
/* The file of this (device, inode) at this path, for reading; -ESTALE: another one is there. */
int tail_reach_same(const char *path, uint64_t device, uint64_t inode, struct stat *ret);
