"""A whole learning phase over HTTP: a real server, real phones, real cryptography, on loopback.

The floor is measured in the same run: a request for which the server does nothing, and a durable
commit of one row of the size of an answer, each one after the other on the same machine before the
phones come.
"""

from __future__ import annotations

import heapq
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_protocol.api import ANSWER, ENROL, TASK, Invite, StartPhase
from earshot_protocol.checks import whole
from earshot_protocol.errors import EarshotError, LocalError
from earshot_protocol.messages import Wait
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.wire import Ending
from earshot_server.api.views import PhaseExport
from earshot_simulations.benchmarks.slow_clients import SlowClients
from earshot_simulations.engine.interface import HeardPoints
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.learning.settings import Discovery, Settings
from earshot_simulations.populations import Blobs, Population

_T = TypeVar("_T")
Progress = Callable[[str, int, int], None]

_FLOOR_REQUESTS = 500
_FLOOR_COMMITS = 200
_RECORDINGS = 20
_SCENES = 6
_LONGEST_PAUSE = 5.0
_PAUSE = 0.5
"""Seconds after an answer until a phone asks again."""
_THREADS = 8
_PATIENCE = 3600.0


class BenchmarkError(LocalError):
    """The server that is measured does not start, or its phase does not end."""


class _Figures(NamedTuple):
    """What one process of phones measured: per path, from request to response, one entry each."""

    seconds: dict[str, list[float]]
    errors: Counter[str]
    cpu_seconds: float


def benchmark(
    phones: int,
    dropout: float,
    step_seconds: float,
    workers: int,
    processes: int,
    slow: int,
    seed: int,
    progress: Progress,
) -> dict[str, Any]:
    """Run the phase and measure it.

    Args:
        phones: that enrol and take part.
        dropout: the fraction that vanishes, each for good before a random step.
        step_seconds: how long a step waits for the vanished.
        workers: web processes of the server.
        processes: that the phones share.
        slow: connections of clients that let the server wait, all the time.
        seed: of points, labels and dropouts.
        progress: told how many phones know the result.

    Returns:
        Figures by name; milliseconds, seconds, bytes as the names say.

    Raises:
        BenchmarkError: the server does not start, or the phase does not end.
        InvalidParametersError: a number with which it would not, before any work.
    """
    check_processes("workers", workers)
    check_processes("processes", processes)
    whole("seed", seed, 0)
    _parameters(phones, dropout, step_seconds).check_feasible()
    from earshot_server.processes.embedded import embedded

    with tempfile.TemporaryDirectory(prefix="earshot-bench-") as folder:
        data = Path(folder)
        with (
            embedded(data / "database") as postgres,
            _server(data, postgres.url, workers) as (address, server),
        ):
            url = postgres.url
            floor = _floor(address, url)
            size = _database_bytes(url)
            began = time.perf_counter()
            with SlowClients(address, slow) as others:
                figures, export = _run(
                    address, data, phones, dropout, step_seconds, processes, seed, progress
                )
            seconds = time.perf_counter() - began
            grown = _database_bytes(url) - size
            server_cpu = _cpu_seconds_of(server.pid)
    report = _report(figures, export, phones, seconds, server_cpu, grown)
    return report | floor | others.figures()


def _report(
    figures: list[_Figures],
    export: PhaseExport,
    phones: int,
    seconds: float,
    server_cpu: float,
    grown: int,
) -> dict[str, Any]:
    times = {
        path: np.concatenate([np.array(each.seconds.get(path, ())) for each in figures]) * 1e3
        for path in (ENROL, TASK, ANSWER)
    }
    requests = sum(map(len, times.values()))
    report: dict[str, Any] = {
        "phones": phones,
        "status": export.phase.status,
        "failure": export.phase.failure,
        "environments": len(set(export.ending.environments))
        if isinstance(export.ending, NamedCentroids)
        else 0,
        "answered_last": export.phase.steps[-1].answered,
        "seconds": seconds,
        "requests": requests,
        "requests_per_second": requests / seconds,
    }
    every = np.concatenate([*times.values()])
    report["request_p99_ms"] = float(np.percentile(every, 99))
    report["request_longest_ms"] = float(every.max())
    for path, values in times.items():
        name = path.rsplit("/", 1)[-1]
        report[f"{name}_p50_ms"] = float(np.percentile(values, 50))
        report[f"{name}_p95_ms"] = float(np.percentile(values, 95))
    report["server_cpu_seconds"] = server_cpu
    report["phones_cpu_seconds"] = sum(each.cpu_seconds for each in figures)
    report["database_growth_bytes"] = grown
    report["errors"] = dict(sum((each.errors for each in figures), Counter()))
    return report


# ------------------------------------------------------------------------------------ the server


@contextmanager
def _server(data: Path, url: str, workers: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    log = (data / "server.log").open("w")
    # S603: our own command.
    process = subprocess.Popen(  # noqa: S603
        [
            *(sys.executable, "-m", "earshot_client", "serve", "--data", str(data)),
            *("--port", "0", "--workers", str(workers), "--pause", "0.2"),
            *("--requests-per-minute", "6000", "--address-requests-per-minute", "10000000"),
        ],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, "EARSHOT_DATABASE": url},
    )
    try:
        address = re.search(r"http://\S+", process.stdout.readline() if process.stdout else "")
        if address is None:
            log.flush()
            raise BenchmarkError(
                f"the server does not start: {(data / 'server.log').read_text()[-2000:]}"
            )
        yield address[0], process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        log.close()


def _floor(address: str, url: str) -> dict[str, float]:
    import psycopg

    host, port = urlsplit(address).hostname, urlsplit(address).port
    with closing(HTTPConnection(host or "", port)) as connection:

        def request() -> None:
            connection.request("GET", "/health/live")
            connection.getresponse().read()

        timed = _Timed()
        for _ in range(_FLOOR_REQUESTS):
            timed("request", request)
    with psycopg.connect(url, autocommit=True) as database:
        insert = "INSERT INTO benchmark_floor VALUES (%s)"
        database.execute("CREATE TABLE benchmark_floor (body bytea)")
        for _ in range(_FLOOR_COMMITS):
            timed("commit", lambda: database.execute(insert, (os.urandom(4096),)))
        database.execute("DROP TABLE benchmark_floor")
    return {
        f"floor_{name}_p95_ms": float(np.percentile(seconds, 95)) * 1e3
        for name, seconds in timed.seconds.items()
    }


def _database_bytes(url: str) -> int:
    import psycopg

    with psycopg.connect(url) as database:
        row = database.execute("SELECT pg_database_size(current_database())").fetchone()
    return int(row[0]) if row else 0


def _cpu_seconds_of(pid: int) -> float:
    """Of the server and all its processes that are alive; the database's are not among them."""
    import psutil

    process = psutil.Process(pid)
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


# ------------------------------------------------------------------------------------ the phones


def _run(
    address: str,
    data: Path,
    phones: int,
    dropout: float,
    step_seconds: float,
    processes: int,
    seed: int,
    progress: Progress,
) -> tuple[list[_Figures], PhaseExport]:
    from earshot_server.operator_client import OperatorClient, read_token

    client = OperatorClient(address, read_token(data))
    code = client.invite(Invite(uses=phones)).code
    parameters = _parameters(phones, dropout, step_seconds)
    phase = client.start(StartPhase(parameters=parameters, gather_seconds=_PATIENCE, anyway=True))
    steps = len(parameters.plan().steps)
    random = np.random.default_rng([seed, 0xA])
    answers = np.full(phones, steps)
    vanishing = random.choice(phones, int(dropout * phones), replace=False)
    answers[vanishing] = random.integers(steps, size=len(vanishing))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = [
            pool.submit(
                _phones, address, code, phones, share.tolist(), answers[share].tolist(), seed
            )
            for share in np.array_split(np.arange(phones), processes)
        ]
        began = time.perf_counter()
        while not all(future.done() for future in futures):
            view = client.phase(phase)
            progress(view.step, view.steps[-1].answered if view.steps else view.joined, phones)
            if time.perf_counter() - began > _PATIENCE:
                raise BenchmarkError(f"the phase does not end: {view.step}")
            time.sleep(1.0)
        figures = [future.result() for future in futures]
    return figures, client.export(phase)


def _parameters(phones: int, dropout: float, step_seconds: float) -> Parameters:
    settings = Settings(
        phones=phones,
        recordings=_RECORDINGS,
        dropout=dropout,
        corrupted=0.05,
        local_centroids=4,
        discovery=Discovery.LOCAL,
    )
    parameters = settings.parameters(_population(phones, 0))
    return msgspec.structs.replace(parameters, step_seconds=step_seconds)


def _population(phones: int, seed: int) -> Population:
    return Blobs(phones, _RECORDINGS, _SCENES, 0.5, seed)


def _policy(phones: int) -> Policy:
    """For the local route; a benchmark may have a smaller crowd than phones would join."""
    return Policy.per_recording(least_phones=min(phones, Policy.least_phones))


class _Member:
    """One phone: its key, its recordings, its line to the server, and when it vanishes."""

    def __init__(self, address: str, number: int, answers: int, population: Population) -> None:
        recordings = population.recordings(number)
        choices = [population.labels[label] if label >= 0 else None for label in recordings.labels]
        self.transport = HttpTransport(address, Ed25519PrivateKey.generate(), tries=8)
        self._phone = Phone(
            MemoryStore(recordings.points, choices),
            HeardPoints(population.encoder, population.dimensions),
            _policy(population.phones),
            hierarchy=LabelHierarchy.flat(population.labels),
        )
        self._answers = answers
        self.known = False

    def turn(self, code: str, timed: _Timed) -> float | None:
        """One request and what follows from it; when to come back, None if never."""
        if not self.known:
            timed(ENROL, lambda: self.transport.enrol(code))
            self.known = True
        task = timed(TASK, self.transport.task)
        if isinstance(task, Ending):
            self.transport.close()
            return None
        answer = self._phone.answer(task)
        if answer is None:
            return min(task.seconds, _LONGEST_PAUSE) if isinstance(task, Wait) else _LONGEST_PAUSE
        if not self._answers:
            self.transport.close()
            return None
        self._answers -= 1
        timed(ANSWER, lambda: self.transport.send(answer))
        return _PAUSE


class _Timed:
    """Calls, and keeps how long each took."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    def __call__(self, path: str, call: Callable[[], _T]) -> _T:
        began = time.perf_counter()
        try:
            return call()
        finally:
            self.seconds[path].append(time.perf_counter() - began)


def _phones(
    address: str, code: str, phones: int, numbers: list[int], answers: list[int], seed: int
) -> _Figures:
    """All phones of one process, until each has the result or is gone; several at a time."""
    population = _population(phones, seed)
    crowd = [_Member(address, *member, population) for member in zip(numbers, answers, strict=True)]
    timed, errors = _Timed(), Counter[str]()
    waiting = [(0.0, place) for place in range(len(crowd))]
    lock, finished = threading.Lock(), 0

    def work() -> None:
        nonlocal finished
        while True:
            with lock:
                if finished == len(crowd):
                    return
                now = time.monotonic()
                place = heapq.heappop(waiting)[1] if waiting and waiting[0][0] <= now else None
            if place is None:
                time.sleep(0.01)
                continue
            pause: float | None = _LONGEST_PAUSE
            try:
                pause = crowd[place].turn(code, timed)
            except EarshotError as error:
                errors[f"{type(error).__name__}: {error}"[:100]] += 1
            with lock:
                if pause is None:
                    finished += 1
                else:
                    heapq.heappush(waiting, (time.monotonic() + pause, place))

    threads = [threading.Thread(target=work) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return _Figures(timed.seconds, errors, spent.ru_utime + spent.ru_stime)
