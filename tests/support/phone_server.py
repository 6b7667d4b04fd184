"""A server for phones in tests: standard library, loopback, and every signature is verified."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from earshot_protocol.api import (
    ENROL,
    MESSAGEPACK,
    PROBLEM,
    TASK,
    Enrol,
    Enrolled,
    Problem,
    decode_body,
    encode_body,
)
from earshot_protocol.errors import RemoteError
from earshot_protocol.signatures import SignatureError, StaleSignatureError, key_id_of
from earshot_protocol.wire import Task, encode
from support.listening import answering
from support.signed import verify


class HangUp(Exception):  # noqa: N818 - it is no error
    """End the connection without a response."""


@dataclass
class Reply:
    body: bytes = b""
    status: int = 200
    media: str = MESSAGEPACK
    fields: dict[str, str] = field(default_factory=dict)


def problem(status: int, kind: str, detail: str = "", now: float | None = None) -> Reply:
    body = Problem(
        type=f"urn:earshot:problem:{kind}", title=kind, status=status, detail=detail, now=now
    )
    return Reply(msgspec.json.encode(body), status, PROBLEM)


@dataclass
class PhoneServer:
    """Enrols everybody with the invitation `welcome`; `reply` answers the rest.

    Each request first goes through `trap`, which may answer in the place of the server.
    """

    reply: Callable[[str, str, bytes], Reply]
    trap: Callable[[str, bytes], Reply | None] = lambda path, body: None
    clock: Callable[[], float] = time.time
    keys: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, bytes]] = field(default_factory=list)
    connections: int = 0
    url: str = ""

    def handle(self, path: str, media: str, fields: dict[str, str], body: bytes) -> Reply:
        self.requests.append((path, body))
        try:
            trapped = self.trap(path, body)
            if trapped is not None:
                return trapped
            if path == ENROL:
                return self._enrol(media, fields, body)
            name = key_id_of(fields)
            if name not in self.keys:
                raise SignatureError("no such phone")
            verify(self.keys[name], fields, self.clock(), path, media, body)
            return self.reply(path, name, body)
        except StaleSignatureError as error:
            return problem(401, "stale-signature", str(error), self.clock())
        except SignatureError as error:
            return problem(401, "signature", str(error))
        except RemoteError as error:
            kind = type(error).__name__.removesuffix("MessageError").lower()
            return problem(409, kind, str(error))

    def asked(self, path: str) -> int:
        """Count the requests of this path."""
        return sum(each == path for each, _ in self.requests)

    def _enrol(self, media: str, fields: dict[str, str], body: bytes) -> Reply:
        enrol = decode_body(body, media, Enrol)
        assert key_id_of(fields) == "new"
        verify(enrol.public_key, fields, self.clock(), ENROL, media, body)
        if enrol.attestation != "welcome":
            return problem(403, "invitation", "not an invitation code of this server")
        known = [name for name, key in self.keys.items() if key == enrol.public_key]
        name = known[0] if known else str(len(self.keys) + 1)
        self.keys[name] = enrol.public_key
        return Reply(encode_body(Enrolled(phone=name), MESSAGEPACK))


def asking(*tasks: Task) -> PhoneServer:
    """Hand out these tasks, and go on with the last; take every answer."""
    left = list(tasks)

    def reply(path: str, phone: str, body: bytes) -> Reply:
        if path == TASK:
            return Reply(encode(left.pop(0) if len(left) > 1 else left[0]))
        return Reply(status=204)

    return PhoneServer(reply)


@contextmanager
def serving(server: PhoneServer) -> Iterator[PhoneServer]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def setup(self) -> None:
            super().setup()
            with lock:
                server.connections += 1

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fields = dict(self.headers.items())
            try:
                with lock:
                    reply = server.handle(self.path, self.headers["Content-Type"], fields, body)
            except HangUp:
                self.close_connection = True
                return
            self.send_response(reply.status)
            if reply.status != 204:
                self.send_header("Content-Type", reply.media)
                self.send_header("Content-Length", str(len(reply.body)))
            for name, value in reply.fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *values: object) -> None:
            pass

    class Loopback(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, address: object) -> None:
            """A phone that was killed does not wait for its response."""

    listener = Loopback(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{listener.server_port}"
    with answering(listener):
        yield server
