"""HTTP over a unix socket: what the client and a scheduler's epilog speak to the daemon."""
import http.client
import json
import socket

from support import poll


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


class Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Watch:
    """Server-sent events, one after the other: (type, id, data)."""

    def __init__(self, path, url, last_id=None, timeout=20):
        self.connection = Connection(path, timeout)
        self.connection.request("GET", url, headers={"Last-Event-ID": last_id} if last_id else {})
        self.reply = self.connection.getresponse()
        self.status = self.reply.status
        self.last_id = last_id
        if self.status == 200:
            self.reply.fp.flush()
            self.next()  # its first word: where it begins, or that something was missed

    def next(self):
        """The next event, (None, id, None) for an id alone; raises EOFError at the end."""
        kind, data = None, None
        while True:
            line = self.reply.readline()
            if not line:
                raise EOFError
            line = line.decode().rstrip("\n")
            if not line:
                self.first = (kind, self.last_id, json.loads(data) if data else None)
                return self.first
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "id":
                self.last_id = value
            elif name == "data":
                data = value

    def until(self, condition, seconds=30):
        """Events up to the one that fits."""
        out = []
        deadline = poll.Deadline(seconds)
        while not out or not condition(out[-1]):
            if deadline.over():
                raise AssertionError(f"not told within {seconds} s; told: {out}")
            event = self.next()
            if event[0]:
                out.append(event)
        return out

    def close(self):
        self.connection.close()


class Api:
    """The daemon's api socket. A request is a connection of its own."""

    def __init__(self, path):
        self.path = path

    def request(self, method, url, body=None, headers=None, timeout=70):
        connection = Connection(self.path, timeout)
        try:
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            headers = {**({"Content-Type": "application/json"} if body is not None else {}), **(headers or {})}
            connection.request(method, url, body=body, headers=headers)
            reply = connection.getresponse()
            return Answer(reply.status, dict(reply.headers), reply.read())
        finally:
            connection.close()

    def get(self, url, ok=(200,)):
        answer = self.request("GET", url)
        if answer.status not in ok:
            raise AssertionError(f"GET {url}: {answer}")
        return answer

    def post(self, url, body, ok=(200, 201, 202)):
        answer = self.request("POST", url, body)
        if answer.status not in ok:
            raise AssertionError(f"POST {url}: {answer}")
        return answer

    def start(self, job, **facts):
        return self.post(f"/v1/jobs/{job}/start", facts)

    def end(self, job, wait="10s", **facts):
        """Posts the job's end; the verdict that came with the answer."""
        return self.post(f"/v1/jobs/{job}/end?wait={wait}", facts).json()

    def watch(self, url="/v1/watch", last_id=None, **more):
        return Watch(self.path, url, last_id, **more)

    def verdict(self, job):
        """The verdict's bytes."""
        return self.get(f"/v1/jobs/{job}/verdict").body

    def items(self, url):
        """All items of a list, page by page."""
        out, cursor = [], None
        while True:
            answer = self.get(url + (f"{'&' if '?' in url else '?'}cursor={cursor}" if cursor else "")).json()
            out += answer["items"]
            cursor = answer["next"]
            if not cursor:
                return out

    def alive(self, url="/readyz"):
        try:
            return self.request("GET", url, timeout=5).status == 200
        except (OSError, http.client.HTTPException):
            return False
