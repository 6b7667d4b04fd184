"""A server in processes of its own, and a proxy before it that loses, repeats and delays."""

from __future__ import annotations

import contextlib
import http.client
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from earshot_server.operator_client import OperatorClient, read_token
from support.listening import PATIENCE, answering


def await_(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Return as soon as the condition holds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def own_port() -> int:
    """A loopback port that nobody takes while its server is not, or not yet, there.

    The system gives connections only ports of its range, and this one is outside. Other tests ask
    here, where a name that lasts as long as this process says that it is taken.
    """
    given = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
    least = int(given.split()[0])
    ports = range(10_000, least) if least > 12_000 else range(10_000, 32_768)
    for port in random.sample(ports, len(ports)):
        with socket.socket(socket.AF_UNIX) as taken:
            try:
                taken.bind(f"\0earshot's tests: {port}")
                socket.create_server(("127.0.0.1", port)).close()
            except OSError:
                continue
            taken.detach()  # open until this process ends
            return port
    raise AssertionError("there is no free port")


class ServerProcess:
    """`earshot serve` as an operator runs it; may be killed and started again on the same port."""

    def __init__(
        self, data: Path, database: str | None = None, *options: str, separate: bool = True
    ) -> None:
        self.data = data
        self._database = database
        self._processes = ("web", "driver") if separate else ()
        self._options = options
        self.port = own_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None
        self.log = data / "server.log"
        data.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        if self._database is not None:
            environment["EARSHOT_DATABASE"] = self._database
            for process in self._processes:
                url = self._database.replace("//earshot@", f"//earshot_{process}@")
                environment[f"EARSHOT_{process.upper()}_DATABASE"] = url
        with self.log.open("a") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                [
                    *(sys.executable, "-m", "earshot_client", "serve"),
                    *("--data", str(self.data), "--port", str(self.port), "--pause", "0.05"),
                    # Tests ask again and again where phones wait as long as they are told to.
                    *("--requests-per-minute", "1000000"),
                    *("--address-requests-per-minute", "1000000"),
                    *self._options,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )
        assert self.process.stdout is not None
        try:
            line = self.process.stdout.readline()
            assert self.address in line, self.log.read_text()[-3000:]
            await_(self.is_ready, "the server")
        except BaseException:
            self.kill()
            raise

    def is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def processes(self) -> list[psutil.Process]:
        """The supervisor and all its children, the driver and the workers; not the database."""
        assert self.process is not None
        try:
            own = psutil.Process(self.process.pid)
            family = [own, *own.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []
        return [each for each in family if "postgres" not in each.name()]

    def workers(self) -> list[psutil.Process]:
        """The web processes that answer requests."""
        # The arbiter is a child of the supervisor, as the driver is; its workers are the arbiter's.
        assert self.process is not None
        children = psutil.Process(self.process.pid).children()
        grandchildren = [worker for child in children for worker in child.children()]
        return [each for each in grandchildren if "postgres" not in each.name()]

    def drivers(self) -> list[psutil.Process]:
        """The driver, unless it is about to come back."""
        # It has no children, as the arbiter of web workers has.
        assert self.process is not None
        children = psutil.Process(self.process.pid).children()
        return [each for each in children if "postgres" not in each.name() and not each.children()]

    def kill(self) -> None:
        """SIGKILL to everything at once, as if the machine had lost its power."""
        family = self.processes()
        for each in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(family, timeout=PATIENCE)
        assert self.process is not None
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()

    def restart(self) -> None:
        self.kill()
        self.start()

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        if self.process.stdout:
            self.process.stdout.close()
        return status

    def operator(self) -> OperatorClient:
        return OperatorClient(self.address, read_token(self.data))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.stop()


Forward = Callable[[], tuple[int, dict[str, str], bytes]]
"""Sends a request on and returns status, fields and body of the response."""
Fault = Callable[[str, Forward], tuple[int, dict[str, str], bytes] | None]
"""What the proxy does with a request to a path; None: the connection breaks without a response."""


def faithful(path: str, forward: Forward) -> tuple[int, dict[str, str], bytes] | None:
    return forward()


class Proxy:
    """Stands before a server and treats each request as `fault` says."""

    def __init__(self, port: int) -> None:
        self.fault: Fault = faithful
        self.errors: queue.SimpleQueue[BaseException] = queue.SimpleQueue()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))

                def forward() -> tuple[int, dict[str, str], bytes]:
                    upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
                    try:
                        upstream.request("POST", self.path, body, dict(self.headers))
                        response = upstream.getresponse()
                        # Names of fields have no case; these are as `send_header` gets them below.
                        fields = {name.title(): value for name, value in response.headers.items()}
                        return response.status, fields, response.read()
                    finally:
                        upstream.close()

                try:
                    answer = proxy.fault(self.path, forward)
                except (OSError, http.client.HTTPException):
                    answer = None  # the server is gone
                except BaseException as error:
                    proxy.errors.put(error)
                    answer = None
                if answer is None:
                    self.close_connection = True
                    self.connection.close()
                    return
                status, fields, content = answer
                self.send_response(status)
                for name in ("Content-Type", "Retry-After"):
                    if name in fields:
                        self.send_header(name, fields[name])
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: object) -> None:
                """Tests are quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        with answering(self._server):
            yield self
        if not self.errors.empty():
            raise self.errors.get()
