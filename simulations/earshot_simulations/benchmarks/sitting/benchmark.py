"""A sitting: a real server, its helper, and many real pages in browsers, on this machine."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from earshot_client.client import Client
from earshot_client.policy import Policy
from earshot_protocol.api import Invite, StartPhase
from earshot_protocol.checks import whole
from earshot_protocol.encoder_file import read
from earshot_protocol.environments import default_hierarchy
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.progress import Progress
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, packaged
from earshot_server.api.views import PhaseExport, PhaseView
from earshot_server.dashboard.outcomes import nothing_clear
from earshot_server.dashboard.verdict import verdict
from earshot_server.operator_client import OperatorClient, read_token
from earshot_server.phases import sitting
from earshot_server.phases.options import PhaseOptions, of_encoder
from earshot_simulations.benchmarks.api import server
from earshot_simulations.benchmarks.api.usage import Usage
from earshot_simulations.benchmarks.failure import BenchmarkError
from earshot_simulations.benchmarks.machine import machine
from earshot_simulations.benchmarks.sitting.browsers import BrowserCost, PlacedBrowsers, browsers
from earshot_simulations.benchmarks.sitting.helping import helping
from earshot_simulations.benchmarks.sitting.operator_page import OperatorPage
from earshot_simulations.benchmarks.sitting.phone_pages import (
    OpenedPages,
    ended,
    events,
    opened,
    pictured,
)
from earshot_simulations.benchmarks.sitting.python_phones import RECORDINGS, joined, taking_part
from earshot_simulations.temporary import TemporaryFolder

PLACES = ("café", "birds", "train")
"""Places of the sitting: synthesized scenes, under names that polls offer."""
_WORKERS = 2
_LONGEST_GATHERING = 3600.0
"""Seconds in which pages may join: they share one machine, so opening them is slow."""
_PATIENCE = 300.0
"""Seconds for the last page to join once all are open, and for the result."""
_LAST = 30.0
"""Seconds for pages to show the result."""
_MEBIBYTE = 2**20


@dataclass(frozen=True)
class Sitting:
    """Settings of one measurement.

    Attributes:
        pages: Pages that take part.
        phones: Phones in Python that take part beside them.
        out: Folder for pictures and figures.
        seed: Seed of the sound.
        say: Function that receives the address of the wall page.
    """

    pages: int
    phones: int
    out: Path
    seed: int
    say: Callable[[str], None]

    def check(self) -> None:
        """Check that these settings can be measured.

        Raises:
            InvalidParametersError: A number is out of range; the message states the range.
        """
        whole("pages", self.pages, 3, 10_000)
        whole("phones", self.phones, 0, 10_000)
        whole("seed", self.seed, 0)

    def start(self) -> StartPhase:
        """Return a phase for twice as many phones, so that it waits for an operator to begin it."""
        hierarchy = default_hierarchy()
        labels, choices = hierarchy.classes, tuple(hierarchy.groups.values())
        crowd = self.pages + self.phones
        asked = sitting.seated(PhaseOptions(phones=2 * crowd, labels=labels, choices=choices))
        encoder = read(packaged(DEFAULT_ENCODER))
        parameters = asked.discovery_parameters(encoder.card.name, of_encoder(encoder))
        return StartPhase(
            parameters=msgspec.structs.replace(parameters, step_seconds=sitting.STEP_SECONDS),
            least_phones=sitting.enough(crowd),
            gather_seconds=_LONGEST_GATHERING,
            name=f"Sitting of {crowd} phones",
            anyway=True,
            choices=choices,
        )


def benchmark(setup: Sitting, progress: Progress) -> dict[str, Any]:
    """Run the sitting and measure it; write pictures and figures to the folder.

    Args:
        setup: Settings of the measurement.
        progress: Callback that receives the step, and the pages or phones done and in all.

    Returns:
        Figures by name; the names state the units, `_mb` is MiB.

    Raises:
        BenchmarkError: There is no browser, a process does not start, or the phase does not end.
        InvalidParametersError: A number is out of range; raised before any work.
    """
    setup.check()
    from earshot_server.processes.embedded import embedded

    setup.out.mkdir(parents=True, exist_ok=True)
    with TemporaryFolder("sitting") as folder:
        data = folder.path
        with (
            embedded(data / "database") as postgres,
            helping(data) as helper,
            server.serving(
                *(data, postgres.url, _WORKERS),
                *("--phone-page", "here", "--helper", helper.address),
                *("--helper-key", helper.key, "--address-connections", "100000"),
            ) as (address, process),
        ):
            client = OperatorClient(address, read_token(data))
            helper.allow(client.two_operators().leader, 2)
            with Usage(process, server.database_process(postgres.url)) as usage:
                figures = asyncio.run(_run(setup, address, data, client, progress))
            figures |= usage.figures() | {"server_errors": server.complaints(data)}
    figures["machine"] = machine()
    (setup.out / "figures.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return figures


async def _run(
    setup: Sitting, address: str, data: Path, client: OperatorClient, progress: Progress
) -> dict[str, Any]:
    async with browsers(PLACES, setup.seed, data) as running:
        operator = await OperatorPage.signed_in(
            running.silent, address, read_token(data), setup.out
        )
        start = setup.start()
        phase = client.start(start)
        wall = f"{address}/phases/{phase}/wall"
        setup.say(wall)
        link = await operator.invitation(wall)
        began = time.monotonic()
        there = await opened(running.by_place, setup.pages, link, progress, setup.out)
        seconds = time.monotonic() - began
        phones = await asyncio.to_thread(_phones, setup, address, client, progress)
        with taking_part(phones):
            await _all_joined(client, phase, there, len(phones), progress)
            here = running.cost()
            await operator.picture("wall-gathering.png")
            export = await _played(operator, client, phase, progress)
        await operator.over()
        shown = await ended(there.pages, phase, _LAST)
        await operator.picture("wall-end.png")
        if there.pages:
            await pictured(there.pages[0].page, setup.out / "page-end.png")
        after = running.cost()
        said = await events(there.pages)
        await _closed(running)
    figures = {
        "pages": setup.pages,
        "phones": setup.phones,
        "pages_that_took_part": len(there.pages),
        "pages_that_failed": list(there.failures),
        "pages_that_showed_the_result": shown,
        "last_events": dict(said),
        "recordings": RECORDINGS,
        "opening_seconds": seconds,
    }
    return figures | _times(export.phase) | _found(export, start.parameters) | _cost(here, after)


def _phones(
    setup: Sitting, address: str, client: OperatorClient, progress: Progress
) -> list[Client]:
    """Return the phones in Python, after their first visit."""
    if not setup.phones:
        return []
    keys, code = client.two_operators(), client.invite(Invite(uses=setup.phones)).code
    policy = Policy(
        least_phones=3,  # as people agree to in their page
        leaders=(bytes.fromhex(keys.leader),),
        helpers=(bytes.fromhex(keys.helper),),
    )
    return joined(address, code, policy, setup.phones, PLACES, setup.seed, progress)


async def _all_joined(
    client: OperatorClient, phase: str, there: OpenedPages, phones: int, progress: Progress
) -> None:
    """Wait until every page that takes part and every phone in Python has joined."""
    until, all_of_them = time.monotonic() + _PATIENCE, len(there.pages) + phones
    while (here := client.phase(phase).joined) < all_of_them:
        if time.monotonic() > until:
            raise BenchmarkError(f"only {here} of {all_of_them} phones have joined")
        progress("joined", here, all_of_them)
        await asyncio.sleep(0.5)
    if not there.pages:
        raise BenchmarkError(f"no page takes part: {'; '.join(there.failures[:3])}")


async def _played(
    operator: OperatorPage, client: OperatorClient, phase: str, progress: Progress
) -> PhaseExport:
    """Begin the phase, wait for its end, and return its export."""
    await operator.begin()
    until, pictured = time.monotonic() + _PATIENCE, False
    while (view := client.phase(phase)).finished is None:
        if time.monotonic() > until:
            raise BenchmarkError(f"the sitting does not end: {view.step}")
        if view.steps:
            last = view.steps[-1]
            progress(last.step, last.answered, last.expected)
            if not (pictured or view.parameters.plan().asks_helper(last.step)):
                await operator.answering()
                await operator.picture("wall-running.png")
                pictured = True
        await asyncio.sleep(0.25)
    return client.export(phase)


async def _closed(running: PlacedBrowsers) -> None:
    for browser in running.by_place.values():
        for context in browser.contexts:
            await context.close()


def _times(view: PhaseView) -> dict[str, Any]:
    """Return the duration of the phase, step by step, and the rate of reports."""
    plan = view.parameters.plan()
    steps = [each for each in view.steps if each.closed is not None]
    opened = steps[0].opened if steps else view.created
    asked = [each for each in steps if not plan.asks_helper(each.step)]
    took = {each.step: (each.closed or each.opened) - each.opened for each in steps}
    return {
        "status": view.status,
        "failure": view.failure,
        "joined": view.joined,
        "answered": {each.step: each.answered for each in asked},
        "refusals": view.refusals,
        "gathering_seconds": opened - view.created,
        "step_seconds": took,
        "result_seconds": (view.finished or opened) - opened,
        "reports_per_second": max(
            (each.answered / took[each.step] for each in asked if took[each.step] > 0), default=0.0
        ),
    }


def _found(export: PhaseExport, parameters: Parameters) -> dict[str, Any]:
    """Return the published names, whether they are right, and whether they may be noise."""
    classes = default_hierarchy()
    right = sorted({classes.class_of(place) for place in PLACES})
    ending, joined = export.ending, max(3, export.phase.joined)
    named: list[str] = []
    if isinstance(ending, Discovered):
        named = sorted({name for name in ending.names if name is not None})
    return {
        "places": right,
        "named": named,
        "right": [name for name in named if name in right],
        "wrong": [name for name in named if name not in right],
        "nothing_clear": "" if ending is None else nothing_clear(ending),
        "verdict": verdict(msgspec.structs.replace(parameters, phones=joined)),
    }


def _cost(here: BrowserCost, after: BrowserCost) -> dict[str, Any]:
    return {
        "browser_processes": here.processes,
        "browser_opening_cpu_seconds": here.cpu_seconds,
        "browser_sitting_cpu_seconds": after.cpu_seconds - here.cpu_seconds,
        "browser_memory_mb": here.memory / _MEBIBYTE,
    }
