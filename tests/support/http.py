"""HTTP over a unix socket: what the client and a scheduler's epilog speak to the daemon."""
import http.client
import json
import socket


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
