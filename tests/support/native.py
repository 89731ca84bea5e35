"""A native sender (firstfault/1): hello and welcome, data lines and pieces, acks, pings, end, resume, takeover.

    parts = [Part(stamp_us, b"text", True), ...]          what a stream holds, in its order
    sender = Sender(path, {"job": "j", "source": "s", "streams": ["a"]}, [parts])
    sender.connect()            after a kill too: goes on where the welcome says
    sender.send_all()           keeps within max_unacked
    sender.end()                and waits until that is stored
"""
import bisect
import collections
import itertools
import json
import socket

from support import poll

PIECE = 65536  # bytes of text that one data line may have

Part = collections.namedtuple("Part", "stamp text newline")


class Refused(AssertionError):
    """The daemon answered with an error object."""

    def __init__(self, answer):
        super().__init__(f"error {answer.get('code')}: {answer.get('text')}")
        self.code = answer.get("code")
        self.text = answer.get("text")


class Gone(ConnectionError):
    """The daemon closed the connection."""


def parts_of(lines):
    """(stamp_us, text) with long texts cut in pieces."""
    out = []
    for stamp, text in lines:
        while len(text) > PIECE:
            out.append(Part(stamp, text[:PIECE], False))
            text = text[PIECE:]
        out.append(Part(stamp, text, True))
    return out


def size(part):
    return len(part.text) + part.newline


class Lane:
    """One stream of a sender: its parts and where it stands."""

    def __init__(self, parts):
        self.parts = parts
        self.starts = [0, *itertools.accumulate(map(size, parts))]  # offsets of the parts, and the end
        self.next = 0     # part to send
        self.inside = 0   # bytes of it that are known already
        self.acked = self.done = 0   # as the acks say; done: of this connection
        self.welcomed = 0            # as the last welcome says: known to the daemon, but an ack alone promises

    @property
    def total(self):
        return self.starts[-1]

    @property
    def sent(self):
        return self.starts[self.next] + self.inside

    def seek(self, offset):
        if offset > self.total:
            raise AssertionError(f"welcome says offset {offset} of a stream of {self.total} bytes")
        self.next = min(bisect.bisect_right(self.starts, offset) - 1, len(self.parts))
        self.inside = offset - self.starts[self.next]


class Sender:
    def __init__(self, path, hello, streams, seconds=30):
        self.path = str(path)
        self.hello = {"event": "hello", "protocol": "firstfault/1", **hello}
        self.lanes = [Lane(parts) for parts in streams]
        self.seconds = seconds
        self.sock = None
        self.welcomes = []   # offsets of each welcome

    # -- the connection

    def connect(self):
        self.open()
        answer = self.receive()
        if answer["event"] != "welcome":
            raise AssertionError(f"welcome expected, got {answer}")
        self.max_unacked = answer["max_unacked"]
        self.welcomes.append(answer["offsets"])
        for lane, offset in zip(self.lanes, answer["offsets"], strict=True):
            if offset < lane.acked:
                raise AssertionError(f"{self.hello['streams']}: acknowledged up to {lane.acked}, welcomed at {offset}: bytes were lost")
            lane.welcomed = offset
            lane.done = 0  # of this connection
            lane.seek(offset)
        return self

    def open(self):
        """Connects and says hello; the answer is not waited for."""
        self.close()
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.seconds)
        self.sock.connect(self.path)
        self.buffer = b""
        self.controls = 0     # that an ack covers
        self.controls_sent = 0
        self.pongs = []
        self.control(self.hello, counted=False)

    def close(self):
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    def write(self, raw):
        try:
            self.sock.sendall(raw)
        except (BrokenPipeError, ConnectionResetError) as e:
            self.last_words()
            raise Gone(str(e)) from None

    def last_words(self):
        """An error object that came before the end says more than the end."""
        try:
            while True:
                self.receive()
        except (Gone, OSError):
            pass

    def receive(self):
        """The next object from the daemon; acks and pongs are taken note of."""
        while b"\n" not in self.buffer:
            try:
                more = self.sock.recv(65536)
            except ConnectionResetError as e:
                raise Gone(str(e)) from None
            if not more:
                raise Gone("closed by the daemon")
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\n", 1)
        answer = json.loads(line)
        event = answer["event"]
        if event == "error":
            raise Refused(answer)
        if event == "ack":
            self.take_ack(answer)
        elif event == "pong":
            self.pongs.append(answer)
        return answer

    def take_ack(self, answer):
        for lane, offset, done in zip(self.lanes, answer["offsets"], answer["done"], strict=True):
            if offset < lane.acked or done < lane.done or done < offset:
                raise AssertionError(f"ack goes back: {answer} after resume {lane.acked}, done {lane.done}")
            if done > lane.sent:
                raise AssertionError(f"ack of bytes that were never sent: {answer}, sent {lane.sent}")
            lane.acked, lane.done = offset, done
        self.controls = answer["controls"]

    def pump(self):
        """Takes what has come, without waiting."""
        self.sock.setblocking(False)
        try:
            while True:
                self.receive()
        except BlockingIOError:
            pass
        finally:
            if self.sock is not None:
                self.sock.settimeout(self.seconds)

    def wait(self, what, condition):
        """Reads until condition() holds."""
        deadline = poll.Deadline(self.seconds)
        while not condition():
            if deadline.over():
                raise poll.Late(f"{self.hello['job']} {self.hello['streams']}: no {what} within {self.seconds} s; "
                                f"sent {[x.sent for x in self.lanes]}, acked {[x.acked for x in self.lanes]}, "
                                f"done {[x.done for x in self.lanes]}, controls {self.controls} of {self.controls_sent}")
            self.sock.settimeout(deadline.left())
            try:
                self.receive()
            except TimeoutError:
                pass
        self.sock.settimeout(self.seconds)

    # -- what is said

    def control(self, document, counted=True):
        self.controls_sent += counted
        self.write(json.dumps(document).encode() + b"\n")

    def encode(self, k, i, inside=0):
        part = self.lanes[k].parts[i]
        text = part.text[inside:]
        return b"%d %d%c %s\n" % (part.stamp, k, b"." if part.newline else b"-", text)

    def room(self, k, bytes_):
        """Waits until so many more bytes of stream k may be on the way."""
        lane = self.lanes[k]
        if lane.sent + bytes_ - lane.acked > self.max_unacked:
            self.wait("ack", lambda: lane.sent + bytes_ - lane.acked <= self.max_unacked)

    def send_part(self, k, i):
        """Part i of stream k, unless the daemon has it."""
        lane = self.lanes[k]
        if i < lane.next:
            return
        if i > lane.next:
            raise AssertionError(f"part {i} before part {lane.next}")
        self.room(k, size(lane.parts[i]))
        self.write(self.encode(k, i, lane.inside))
        lane.next, lane.inside = i + 1, 0

    def send_run(self, k, upto, chunk=32768):
        """Parts of stream k below `upto`, several to a write."""
        lane = self.lanes[k]
        while lane.next < upto:
            raw, n, i = [], 0, lane.next
            while i < upto and n < chunk:
                raw.append(self.encode(k, i, lane.inside if i == lane.next else 0))
                n += size(lane.parts[i])
                i += 1
            self.room(k, n)
            self.write(b"".join(raw))
            lane.next, lane.inside = i, 0

    def send_all(self):
        for k, lane in enumerate(self.lanes):
            self.send_run(k, len(lane.parts))

    def ping(self, t1):
        self.control({"event": "ping", "t1": t1}, counted=False)
        self.wait("pong", lambda: any(p["t1"] == t1 for p in self.pongs))
        return next(p for p in self.pongs if p["t1"] == t1)

    def wait_done(self):
        self.wait("ack of all that was sent", lambda: all(max(x.done, x.welcomed) >= x.sent for x in self.lanes))

    def say_end(self):
        self.control({"event": "end", "offsets": [x.total for x in self.lanes]})

    def wait_end(self):
        self.wait("ack of the end", lambda: self.controls >= self.controls_sent and all(x.acked >= x.total for x in self.lanes))

    def end(self):
        self.say_end()
        self.wait_end()
        self.close()
