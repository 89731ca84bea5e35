"""Waiting for something that another process does: the only place of the tests that waits by the clock."""
import time


class Late(AssertionError):
    """What was waited for did not come in time."""


def until(what, condition, seconds=20.0, every=0.005):
    """Calls condition() until it gives something true, and returns that. Late names what did not come."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Late(f"after {seconds:g} s still not: {what() if callable(what) else what}")
        time.sleep(every)
        every = min(every * 1.5, 0.1)


class Deadline:
    """How much of a number of seconds is left."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    def left(self):
        return max(self.end - time.monotonic(), 0.001)

    def over(self):
        return time.monotonic() > self.end

    def spent(self):
        return time.monotonic() - (self.end - self.seconds)


def pace(seconds):
    """Between two lines of a replay that people watch."""
    time.sleep(seconds)
