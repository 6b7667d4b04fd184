"""A whole learning phase over HTTP: a real server, real phones, real cryptography, on loopback.

The floor is measured in the same run, before the phones start: a request for which the server does
nothing, and a durable commit of one row of the size of an answer.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.api import Invite, StartPhase
from earshot_protocol.checks import whole
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.progress import Progress
from earshot_server.api.views import PhaseExport
from earshot_simulations.benchmarks.api import server
from earshot_simulations.benchmarks.api.phones import (
    ANSWER,
    ENROL,
    RECORDINGS,
    TASK,
    Figures,
    Member,
    population,
    run_phones,
)
from earshot_simulations.benchmarks.api.usage import Usage
from earshot_simulations.benchmarks.failure import BenchmarkError
from earshot_simulations.benchmarks.machine import machine
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.phases.settings import Discovery, Settings
from earshot_simulations.temporary import TemporaryFolder
from earshot_simulations.workers import spawned

_PATIENCE = 3600.0
_PERCENTILES = (50, 95, 99)
_SPARE = 0.01
"""Fraction of phones that may be missing beyond those that vanish: a phone that is late on a
busy machine must not end the phase. A real operator would plan such a reserve, too."""


@dataclass(frozen=True)
class Setup:
    """The settings of one measurement.

    Attributes:
        phones: Phones that take part.
        over_http: Phones whose enrolment over HTTP is measured; the others are in the registry
            beforehand.
        dropout: Fraction of phones that vanish for good, each before a random step.
        step_seconds: Seconds that a step waits for vanished phones.
        workers: Web processes of the server.
        processes: Processes that the phones share.
        seed: Seed of points, labels and dropouts.
    """

    phones: int
    over_http: int
    dropout: float
    step_seconds: float
    workers: int
    processes: int
    seed: int

    def check(self) -> None:
        """Check that these settings can be measured.

        Raises:
            InvalidParametersError: A number is out of range; the message names it and the range.
        """
        check_processes("workers", self.workers)
        check_processes("processes", self.processes)
        whole("seed", self.seed, 0)
        whole("enrol", self.over_http, 0)
        self.parameters().check_feasible()

    def parameters(self) -> Parameters:
        """Return the parameters of the phase: the local route, with two secure sums."""
        settings = Settings(
            phones=self.phones,
            recordings=RECORDINGS,
            dropout=self.dropout + (_SPARE if self.dropout else 0.0),
            corrupted=0.05,
            local_centroids=4,
            discovery=Discovery.LOCAL,
        )
        parameters = settings.parameters(population(self.phones, 0))
        return msgspec.structs.replace(parameters, step_seconds=self.step_seconds)

    def members(self, url: str) -> list[Member]:
        """Return the phones; enrol in the registry those that do not enrol over HTTP."""
        steps = len(self.parameters().plan().steps)
        random = np.random.default_rng([self.seed, 0xA])
        answers = np.full(self.phones, steps)
        vanishing = random.choice(self.phones, int(self.dropout * self.phones), replace=False)
        answers[vanishing] = random.integers(steps, size=len(vanishing))
        keys = [Ed25519PrivateKey.generate().private_bytes_raw() for _ in range(self.phones)]
        few = min(self.over_http, self.phones)
        names = [""] * few + server.enrol(url, keys[few:])
        # Shuffled, so that phones that enrol are spread over the processes.
        mixed = random.permutation(self.phones)
        return [
            Member(place, int(answers[place]), keys[place], names[place])
            for place in map(int, mixed)
        ]


def benchmark(
    setup: Setup,
    progress: Progress,
    beside: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> dict[str, Any]:
    """Run the phase and measure it.

    Args:
        setup: Settings of the measurement.
        progress: Callback that receives the number of phones that have answered.
        beside: Returns, from the server's address, a context to keep open while the phones run.

    Returns:
        Figures by name; the names state the units, `_mb` is MiB.

    Raises:
        BenchmarkError: The server does not start, or the phase does not end.
        InvalidParametersError: A number is out of range; raised before any work.
    """
    setup.check()
    from earshot_server.processes.embedded import embedded

    with TemporaryFolder("bench") as folder:
        data = folder.path
        with (
            embedded(data / "database") as postgres,
            server.serving(data, postgres.url, setup.workers) as (address, process),
        ):
            url = postgres.url
            floor = server.floor(address, url)
            members = setup.members(url)
            size = server.database_bytes(url)
            began = time.perf_counter()
            with (
                Usage(process, server.database_process(url)) as usage,
                beside(address),
            ):
                figures, export = _run(setup, address, data, members, progress)
            seconds = time.perf_counter() - began
            grown = server.database_bytes(url) - size
            complaints = server.complaints(data)
    report = _outcome(setup, export, seconds) | _requests(figures, seconds)
    report |= usage.figures() | {"database_growth_bytes": grown}
    report |= _generator(figures, seconds)
    errors: Counter[str] = sum((each.errors for each in figures), Counter())
    report |= {"errors": dict(errors), "server_errors": complaints}
    return report | floor | {"machine": machine()}


def _run(
    setup: Setup, address: str, data: Path, members: list[Member], progress: Progress
) -> tuple[list[Figures], PhaseExport]:
    from earshot_server.operator_client import OperatorClient, read_token

    client = OperatorClient(address, read_token(data))
    code = client.invite(Invite(uses=setup.phones)).code
    start = StartPhase(parameters=setup.parameters(), gather_seconds=_PATIENCE, anyway=True)
    phase = client.start(start)
    with spawned(setup.processes) as pool:
        futures = [
            pool.submit(
                run_phones,
                *(address, code, setup.phones, members[place :: setup.processes], setup.seed),
            )
            for place in range(setup.processes)
        ]
        began = time.perf_counter()
        while not all(future.done() for future in futures):
            view = client.phase(phase)
            joined = view.steps[-1].answered if view.steps else view.joined
            progress(view.step, joined, setup.phones)
            if time.perf_counter() - began > _PATIENCE:
                raise BenchmarkError(f"the phase does not end: {view.step}")
            time.sleep(1.0)
        figures = [future.result() for future in futures]
    return figures, client.export(phase)


def _outcome(setup: Setup, export: PhaseExport, seconds: float) -> dict[str, Any]:
    phase, ending = export.phase, export.ending
    found = len(set(ending.environments)) if isinstance(ending, NamedCentroids) else 0
    return {
        "phones": setup.phones,
        "vanishing": int(setup.dropout * setup.phones),
        "step_seconds": setup.step_seconds,
        "status": phase.status,
        "failure": phase.failure,
        "environments": found,
        "answered_last": phase.steps[-1].answered,
        "seconds": seconds,
    }


def _requests(figures: list[Figures], seconds: float) -> dict[str, float]:
    times = {
        kind: np.concatenate([np.array(each.seconds.get(kind, ())) for each in figures]) * 1e3
        for kind in (ENROL, TASK, ANSWER)
    }
    every = np.concatenate([*times.values()])
    found: dict[str, float] = {
        "requests": len(every),
        "requests_per_second": len(every) / seconds,
        "request_p99_ms": float(np.percentile(every, 99)),
        "request_longest_ms": float(every.max()),
    }
    for kind, values in times.items():
        found[f"{kind}_requests"] = len(values)
        if len(values):
            found |= {f"{kind}_p{p}_ms": float(np.percentile(values, p)) for p in _PERCENTILES}
    return found


def _generator(figures: list[Figures], seconds: float) -> dict[str, float]:
    """Return the cost of the phones' processes, and how late their turns began."""
    late = np.concatenate([np.array(each.late) for each in figures]) * 1e3
    spent = sum(each.cpu_seconds for each in figures)
    return {
        "answers_bytes": sum(each.bytes_up for each in figures),
        "tasks_bytes": sum(each.bytes_down for each in figures),
        "phones_cpu_seconds": spent,
        "phones_cpu_share": spent / seconds / (os.cpu_count() or 1),
        "phones_peak_memory_mb": sum(each.peak_memory for each in figures) / 2**20,
        **{f"phones_late_p{p}_ms": float(np.percentile(late, p)) for p in _PERCENTILES},
    }
