#!/usr/bin/env python3
"""20 times kill -9 at random moments while 8 native senders run: nothing acknowledged is lost, nothing is stored twice."""
import collections
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import poll, store, trial, world  # noqa: E402
from support.native import Gone  # noqa: E402
from support.replay import Feed  # noqa: E402

KILLS = 20
RANKS = 7      # and the console: 8 streams
SIZE = 600 << 10


class Senders:
    """A thread for each stream of a feed; it connects again whenever the daemon went. `gate` bounds what may be sent."""

    def __init__(self, feed):
        self.feed = feed
        self.turn = threading.Condition()
        self.limit = 0          # parts that each stream may have sent, in thousandths
        self.stopping = False
        self.errors = []
        self.threads = [threading.Thread(target=self.run, args=(s,), daemon=True) for s in feed.senders]
        for thread in self.threads:
            thread.start()

    def allowed(self, sender):
        return len(sender.lanes[0].parts) * self.limit // 1000

    def allow(self, limit):
        with self.turn:
            self.limit = limit
            self.turn.notify_all()

    def run(self, sender):
        try:
            connected, lane = False, sender.lanes[0]
            while not (lane.next == len(lane.parts) and max(lane.done, lane.welcomed) >= lane.total):
                with self.turn:
                    self.turn.wait_for(lambda: self.stopping or lane.next < self.allowed(sender) or lane.next == len(lane.parts))
                    if self.stopping:
                        return
                try:
                    if not connected:
                        sender.connect()
                        connected = True
                    sender.send_run(0, min(self.allowed(sender), lane.next + 50))
                    sender.pump()
                    if lane.next == len(lane.parts):
                        sender.wait_done()
                except (Gone, ConnectionError, FileNotFoundError):
                    connected = False
                    poll.pace(0.01)
        except Exception as e:  # shown by the main thread
            self.errors.append(f"{sender.hello['streams']}: {type(e).__name__}: {e}")

    def sent(self):
        return sum(s.lanes[0].sent for s in self.feed.senders)

    def check(self):
        if self.errors:
            raise AssertionError("\n".join(self.errors))
        return True

    def join(self):
        for thread in self.threads:
            thread.join(60)
        self.check()
        if any(thread.is_alive() for thread in self.threads):
            raise AssertionError("a sender did not finish")

    def stop(self):
        with self.turn:
            self.stopping = True
            self.turn.notify_all()


def test_kills(t):
    job = world.storm(t.seed, "kills", RANKS, SIZE)
    wanted = job.analyze(t)
    daemon = t.start()
    feed = Feed(daemon, job, "kills")
    daemon.api.start(job.job, **job.start)
    total = sum(s.lanes[0].total for s in feed.senders)
    senders = Senders(feed)
    try:
        for kill, at in enumerate(sorted(t.rng.sample(range(20, 980), KILLS)), 1):
            senders.allow(min(at + 60, 1000))
            aim = total * at // 1000
            poll.until(lambda: f"{aim} bytes sent, kill {kill}; {senders.sent()} are", lambda: senders.check() and senders.sent() >= aim, 60, 0.0005)
            daemon.kill()
            daemon.start()
        senders.allow(1000)
        senders.join()
    except AssertionError:
        if daemon.process.poll() is None:
            print(f"  status: {daemon.api.get('/v1/status').body.decode()}")
        raise
    finally:
        senders.stop()
    print(f"  {KILLS} kills, {total} bytes, {sum(len(s.welcomes) for s in feed.senders)} connections")
    for sender in feed.senders:  # a kill may have come between the last ack and now
        sender.connect()
    feed.send()
    got = feed.finish()
    daemon.stop()
    t.check(got == wanted, lambda: f"analyze | daemon after {KILLS} kills{trial.difference(wanted, got)}")

    lines = collections.Counter()
    size = collections.Counter()
    for _, k, text in job.rows:
        lines[job.streams[k]["name"]] += 1 + text.rstrip(b"\r").count(b"\r")  # redraws are lines of their own
        size[job.streams[k]["name"]] += len(text) + 1
    stored = store.lanes(daemon, job.job)
    for name in lines:
        t.same(stored[name].bytes, size[name], f"bytes of {name}")
        t.same(stored[name].lines, lines[name], f"lines of {name}")
    texts = store.texts(daemon, job.job)
    for k, s in enumerate(job.streams):
        wanted_text = b"".join(text + b"\n" for _, n, text in job.rows if n == k)
        got_text = texts[s["name"]]
        t.check(got_text == wanted_text, lambda: f"text of {s['name']} in the segments: {store.first_difference(got_text, wanted_text)}")


if __name__ == "__main__":
    trial.main(__doc__, test_kills)
