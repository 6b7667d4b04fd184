"""A helper behind HTTP in this process, as a leader meets it, with faults that a test chooses."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.api import JSON, MESSAGEPACK, PROBLEM, PROBLEM_PREFIX, Problem, encode_body
from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.messages import decode_helper_task
from earshot_protocol.signatures import (
    SignatureError,
    StaleSignatureError,
    key_id_of,
    verify_body,
    verify_fields,
)
from earshot_protocol.two_operators.messages import AddUp
from earshot_protocol.two_operators.refusals import HelperRefusalError, UnknownLeaderError
from earshot_protocol.two_operators.transport import PART_PATH, ListPart
from earshot_protocol.wire import Answer, Task, encode
from earshot_server.helper.book import MemoryBook
from earshot_server.helper.helper import Helper, HelperPolicy
from support.listening import answering

Response = tuple[int, str, bytes]
"""Status, content type and content."""
Trouble = Callable[[str], Response | None]
"""What a helper in trouble answers to a request of that path; None: it breaks the connection."""


def down(path: str) -> None:
    """Break every connection."""


class ServedHelper:
    """A helper at an address of its own.

    Attributes:
        leaders: Identities that it serves.
        trouble: What it does in place of answering; None to answer.
        asked: Paths of all requests, in order.
        clock: Its clock.
        away: Seconds for which it sends a leader away when it is busy.
        bend: What it answers to a task; another function than `Helper.answer` for a helper that
            lies.
    """

    def __init__(self) -> None:
        self.identity = Ed25519PrivateKey.generate()
        self.book = MemoryBook()
        self.leaders = frozenset[bytes]()
        self.trouble: Trouble | None = None
        self.asked: list[str] = []
        self.clock: Callable[[], float] = time.time
        self.away = 1
        self.bend: Callable[[Helper, Task], Answer] = Helper.answer
        self._parts: dict[bytes, dict[int, bytes]] = {}
        self._lock = threading.Lock()
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                served.asked.append(self.path)
                fields = {name.title(): value for name, value in self.headers.items()}
                response = (served.trouble or (lambda path: served.answer(path, fields, body)))(
                    self.path
                )
                if response is None:
                    self.close_connection = True
                    return
                status, media, content = response
                self.send_response(status)
                self.send_header("Content-Type", media)
                if status != 204:
                    self.send_header("Content-Length", str(len(content)))
                if status == 503:
                    self.send_header("Retry-After", str(served.away))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: object) -> None:
                """Tests are quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def key(self) -> str:
        return self.identity.public_key().public_bytes_raw().hex()

    def answer(self, path: str, fields: dict[str, str], body: bytes) -> Response:
        policy = HelperPolicy(leaders=self.leaders, least_reports=2, least_noise=0.0)
        helper = Helper(self.identity, self.book, policy, self.clock)
        try:
            leader = bytes.fromhex(key_id_of(fields))
            if leader not in self.leaders:
                raise UnknownLeaderError("not served here")
            verify_fields(leader, fields, self.clock(), path, fields["Content-Type"])
            verify_body(fields, body)
            with self._lock:
                if path == PART_PATH:
                    part = msgspec.msgpack.decode(body, type=ListPart)
                    self._parts.setdefault(part.sum_id, {})[part.number] = part.entries
                    return 204, MESSAGEPACK, b""
                return 200, MESSAGEPACK, encode(self.bend(helper, self._whole(body)))
        except SignatureError as error:
            now = self.clock() if isinstance(error, StaleSignatureError) else None
            return problem("bad_signature", 401, str(error), now)
        except UnknownLeaderError as error:
            return problem(error.name, 401, str(error))
        except HelperRefusalError as error:
            return problem(error.name, 503 if error.again else 409, str(error))
        except MalformedMessageError as error:
            return problem("malformed", 400, str(error))

    def _whole(self, body: bytes) -> Task:
        task = decode_helper_task(body)
        if isinstance(task, AddUp) and task.reports and task.sum_id in self._parts:
            raise MalformedMessageError("a list that travels whole and in parts")
        if isinstance(task, AddUp) and not task.reports:
            parts = self._parts.pop(task.sum_id)
            return msgspec.structs.replace(
                task, reports=b"".join(parts[at] for at in sorted(parts))
            )
        return task

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        with answering(self._server):
            yield self


def problem(name: str, status: int, detail: str = "", now: float | None = None) -> Response:
    """Return the problem of that name."""
    kind = PROBLEM_PREFIX + name.replace("_", "-")
    body = Problem(type=kind, title="A refusal", status=status, detail=detail, now=now)
    return status, PROBLEM, encode_body(body, JSON)
