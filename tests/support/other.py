"""The other job: whatever a test does to a daemon, its verdict has to stay as it was, byte for byte."""
import json

from support import trial, world
from support.replay import Feed


class Healthy:
    def __init__(self, t, daemon):
        self.t, self.daemon = t, daemon
        job = world.storm(7, "healthy-job", 4, 20 << 10)
        feed = Feed(daemon, job, "other").start()
        feed.send(chunk=64)
        self.verdict = feed.finish()
        t.same(json.loads(self.verdict)["verdict"], "rank", "verdict of the other job")

    def check(self, what):
        self.daemon.running()
        got = self.daemon.api.verdict("healthy-job").rstrip(b"\n")
        self.t.check(got == self.verdict, lambda: f"after {what} another job changed{trial.difference(self.verdict, got)}")
