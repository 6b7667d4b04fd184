"""A helper in processes of its own, and a leader that asks it over HTTP."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.api import MESSAGEPACK, Problem
from earshot_protocol.signatures import sign
from support.command import earshot
from support.listening import PATIENCE
from support.networked import await_


class HelperProcess:
    """`earshot helper serve` as its operator runs it.

    Attributes:
        address: URL, once it has started.
        identity: Its Ed25519 public key.
        log: File of what it says.
        program: Words that start a process of `earshot`.
    """

    def __init__(self, data: Path, *options: str) -> None:
        self.data, self._options = data, options
        self.program: tuple[str, ...] = (sys.executable, "-m", "earshot_client")
        self.log = data.with_name(f"{data.name}.log")
        self.address, self.port = "", 0
        self.identity = bytes.fromhex(self.earshot("init").strip())
        self.process: subprocess.Popen[str] | None = None

    def earshot(self, command: str, *words: str) -> str:
        """Run one of its commands in this process, and return what it prints."""
        run = earshot("helper", command, *words, "--data", self.data)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def allow(self, leader: bytes, *options: str) -> None:
        self.earshot("allow", leader.hex(), *options)

    def start(self) -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                [
                    *(*self.program, "helper", "serve", "--data", str(self.data)),
                    *("--port", str(self.port), "--workers", "1", *self._options),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        assert self.process.stdout is not None
        try:
            found = re.search(r"http://\S+:(\d+)", self.process.stdout.readline())
            assert found, self.log.read_text()[-3000:]
            self.address, self.port = found[0], int(found[1])
            await_(self.is_ready, "the helper")
        except BaseException:
            self.kill()
            raise

    def is_ready(self) -> bool:
        try:
            return self.get("/health/ready").status == 200
        except (OSError, http.client.HTTPException):
            return False

    def kill(self) -> None:
        """SIGKILL to all its processes at once."""
        assert self.process is not None
        family = [self.process.pid]
        if psutil.pid_exists(self.process.pid):
            own = psutil.Process(self.process.pid)
            family = [each.pid for each in (own, *own.children(recursive=True))]
        for pid in family:
            if psutil.pid_exists(pid):
                os.kill(pid, signal.SIGKILL)
        self._closed()
        await_(lambda: not any(map(psutil.pid_exists, family[1:])), "the end of all")

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self._closed()

    def _closed(self) -> int:
        assert self.process is not None
        status = self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def get(self, path: str, **fields: str) -> Heard:
        return self._ask("GET", path, None, fields)

    def post(self, leader: Ed25519PrivateKey, path: str, body: bytes) -> Heard:
        """Send a body that the leader has signed."""
        name = leader.public_key().public_bytes_raw().hex()
        fields = sign(leader, name, int(time.time()), path, MESSAGEPACK, body)
        return self.send(path, body, fields)

    def send(self, path: str, body: bytes, fields: dict[str, str]) -> Heard:
        return self._ask("POST", path, body, {"Content-Type": MESSAGEPACK} | fields)

    def _ask(self, method: str, path: str, body: bytes | None, fields: dict[str, str]) -> Heard:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, fields)
            response = connection.getresponse()
            return Heard(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


class Heard(NamedTuple):
    """A response."""

    status: int
    fields: dict[str, str]
    body: bytes

    @property
    def problem(self) -> str:
        """Last part of the problem's type."""
        return msgspec.json.decode(self.body, type=Problem).type.rpartition(":")[2]


@contextmanager
def helper_running(
    data: Path, *leaders: bytes, options: tuple[str, ...] = ()
) -> Iterator[HelperProcess]:
    """Run a helper on a free port that serves these leaders on any terms; it ends with the block.

    Args:
        data: folder that is made for it.
        leaders: identities.
        options: further options of `earshot helper serve`.
    """
    helper = HelperProcess(data, *options)
    for leader in leaders:
        helper.allow(leader, "--least-reports", "2", "--least-noise", "0")
    helper.start()
    try:
        yield helper
    finally:
        if helper.process is not None and helper.process.poll() is None:
            helper.stop()
