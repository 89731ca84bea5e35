"""firstfaultd on a private folder: start, kill -9, stop, start again, look at its store."""
import os
import pathlib
import signal
import sqlite3
import subprocess

from support import poll
from support.http import Api


def environment(folder, **more):
    """A private home. Freed memory is given back soon, so that sanitizers do not blur what a process needs."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FIRSTFAULT_", "XDG_", "SLURM_"))}
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=4:abort_on_error=0"
    env.update(HOME=str(folder), XDG_STATE_HOME=str(folder / "state-home"), XDG_RUNTIME_DIR=str(folder / "run"), NO_COLOR="1", **more)
    return env


class Daemon:
    """Options are lines of the config file: ("tail", PATTERN), ...; prefix: a command that starts it (prlimit ...)."""

    def __init__(self, program, folder, options=(), state=None, prefix=()):
        self.program = str(program)
        self.prefix = prefix
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.state = pathlib.Path(state or self.folder / "state")
        self.ingest = self.folder / "ingest.sock"
        self.api = Api(self.folder / "api.sock")
        self.log_path = self.folder / "daemon.log"
        self.config = self.folder / "firstfaultd.conf"
        self.process = None
        self.configure(options)

    def configure(self, options):
        lines = [("state", self.state), ("ingest-socket", self.ingest), ("api-socket", self.api.path), *options]
        self.config.write_text("# of a test\n" + "".join(f"{key} = {value}\n" for key, value in lines))

    @property
    def to(self):
        return f"unix:{self.ingest}"

    @property
    def env(self):
        """For a client of this daemon."""
        return environment(self.folder, FIRSTFAULT_ADDR=self.to, FIRSTFAULT_API=f"unix:{self.api.path}")

    def spawn(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([*self.prefix, self.program, "--config", str(self.config)], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=environment(self.folder))
        return self

    def start(self, ready="/readyz"):
        self.spawn()
        poll.until(lambda: f"{ready} of {self.program}\n{self.log_tail()}", lambda: self.running() and self.api.alive(ready), 30)
        return self

    def running(self):
        if self.process.poll() is not None:
            raise AssertionError(f"firstfaultd ended with {self.process.returncode}:\n{self.log_tail()}")
        return True

    def kill(self):
        """kill -9: the power goes."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process:
            self.process.wait()

    def restart(self):
        self.kill()
        return self.start()

    def stop(self, seconds=5):
        """SIGTERM; it has to end with status 0 in time."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"firstfaultd did not end within {seconds} s of SIGTERM:\n{self.log_tail()}") from None
        if status != 0:
            raise AssertionError(f"firstfaultd ended with {status}:\n{self.log_tail()}")

    def log_tail(self, lines=60):
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def status(self):
        return self.api.get("/v1/status").json()

    def memory(self, what="VmHWM"):
        """In bytes."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(what + ":"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {what} of {self.process.pid}")

    def store_path(self):
        found = [p for p in self.state.rglob("*") if p.suffix in (".db", ".sqlite", ".sqlite3")]
        if len(found) != 1:
            raise AssertionError(f"one store expected in {self.state}, found {found}")
        return found[0]

    def store(self):
        """A read-only connection to the store of a daemon that has ended."""
        connection = sqlite3.connect(f"file:{self.store_path()}?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        return connection
