"""A file system that a test serves itself, and may leave unanswered: FUSE without a library (linux/fuse.h, protocol 7.31).

    with Fuse(folder, {"rank-0.log": b"step 1\n"}) as fs:
        fs.files["rank-0.log"] += b"step 2\n"
        fs.hang()      # whoever asks it for anything waits in the kernel
        fs.answer()    # ... until now

One folder of files. Nothing is cached. Needs /dev/fuse and the right to mount; `mount` and `unmount` serve other file systems too.
"""
import ctypes
import errno
import os
import select
import stat
import struct
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
MNT_DETACH = 2
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = \
    1, 2, 3, 14, 15, 17, 18, 25, 26, 27, 28, 29, 36, 38, 42
IN = struct.Struct("<IIQQIIII")
ATTR = struct.Struct("<QQQQQQIIIIIIIIII")
ROOT = 1


def mount(source, target, kind, flags=0, data=""):
    """OSError where it is not allowed."""
    if LIBC.mount(source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {kind} on {target}: {os.strerror(ctypes.get_errno())}")


def unmount(target):
    """Whoever has files open in it keeps them."""
    if LIBC.umount2(os.fsencode(target), MNT_DETACH) != 0:
        raise OSError(ctypes.get_errno(), f"umount {target}: {os.strerror(ctypes.get_errno())}")


class Fuse:
    def __init__(self, folder, files):
        self.folder = folder
        self.files = {name: bytearray(data) for name, data in files.items()}
        self.times = dict.fromkeys(self.files, 1)
        self.names = []   # by node number - 2
        self.hanging = threading.Event()
        self.asked = threading.Event()   # somebody waits for a file system that hangs
        self.ended = threading.Event()
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        try:
            mount("fuse", folder, "fuse", 0, f"fd={self.fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other")
        except OSError:
            os.close(self.fd)
            raise
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        os.close(self.fd)   # those who wait get an error
        unmount(self.folder)

    def hang(self):
        self.asked.clear()
        self.hanging.set()

    def answer(self):
        self.hanging.clear()

    def append(self, name, data):
        self.files[name] += data
        self.times[name] += 1

    def serve(self):
        while not self.ended.is_set():
            if not select.select([self.fd], [], [], 0.02)[0]:
                continue
            if self.hanging.is_set():
                self.asked.set()
                self.ended.wait(0.02)
                continue
            try:
                request = os.read(self.fd, 1 << 18)
            except OSError as e:
                if e.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                return   # unmounted
            _, op, unique, node, *_ = IN.unpack_from(request)
            if op in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            try:
                error, out = 0, self.reply(op, node, request[IN.size:])
            except OSError as e:
                error, out = -e.errno, b""
            try:
                os.write(self.fd, struct.pack("<IiQ", 16 + len(out), error, unique) + out)
            except OSError:
                pass   # nobody waits for it any more

    def name_of(self, node):
        return self.names[node - 2]

    def attributes(self, node):
        if node == ROOT:
            return ATTR.pack(ROOT, 4096, 8, 0, 1, 1, 0, 0, 0, stat.S_IFDIR | 0o755, 2, os.getuid(), os.getgid(), 0, 4096, 0)
        name = self.name_of(node)
        time = self.times[name]
        return ATTR.pack(node, len(self.files[name]), 8, 0, time, time, 0, 0, 0, stat.S_IFREG | 0o644, 1, os.getuid(), os.getgid(), 0, 4096, 0)

    def reply(self, op, node, body):
        if op == INIT:
            return struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 12, 10, 65536, 1, 16, 0, 0, *[0] * 7)
        if op == LOOKUP:
            name = body.rstrip(b"\0").decode()
            if name not in self.files:
                raise OSError(errno.ENOENT, name)
            if name not in self.names:
                self.names.append(name)
            node = self.names.index(name) + 2
            return struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + self.attributes(node)
        if op == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if op in (OPEN, OPENDIR):
            return struct.pack("<QII", node, 1, 0)   # direct I/O
        if op == READ:
            offset, size = struct.unpack_from("<8xQI", body)
            return bytes(self.files[self.name_of(node)][offset:offset + size])
        if op == READDIR:
            offset, size = struct.unpack_from("<8xQI", body)
            out = b""
            for n, name in enumerate(list(self.files)[offset:], offset + 1):
                raw = name.encode()
                entry = struct.pack("<QQII", n + 1, n, len(raw), stat.S_IFREG >> 12) + raw + bytes(-len(raw) % 8)
                if len(out) + len(entry) > size:
                    break
                out += entry
            return out
        if op == STATFS:
            return bytes(80)
        if op in (RELEASE, RELEASEDIR, FLUSH, DESTROY):
            return b""
        raise OSError(errno.ENOSYS, str(op))
