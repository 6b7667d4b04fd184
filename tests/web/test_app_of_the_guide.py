"""The app that docs/embedding.md shows, as a stranger would copy it: it hears and takes part."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from playwright.sync_api import Page, expect
from support.command import earshot
from support.dashboard_browser import overheard
from support.documented import blocks
from support.fake_microphone import hearing
from support.networked import ServerProcess, await_
from support.node import ROOT
from support.policies import without_budget
from support.served_helper import ServedHelper
from support.web_pages import hosted

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_protocol.api import Invite, StartPhase
from earshot_protocol.messages import Wait
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.wire import Ending
from earshot_server.credentials import Credentials
from earshot_simulations.engine.interface import HeardPoints

GUIDE = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
MOST_LINES = 40
SERVER = "https://earshot.example"
KEYS = ('"1a".repeat(32)', '"2b".repeat(32)')
PHONES = 100
"""As few as the app's phone accepts by default."""
LABELS = ("kitchen", "park", "café")
STATISTICS = StatisticsParameters(
    phones=PHONES,
    labels=LABELS,
    contacts=4,
    noise=5.5,
    dropout=0.05,
    corrupted=0.05,
    # The app is waited for, however slow the machine is: without it, the phase never ends.
    step_seconds=3600.0,
    summation=SummationName.TWO_OPERATORS,
)

expect.set_options(timeout=60_000)


def filled(code: str, *pairs: tuple[str, str]) -> str:
    """The code with what the guide tells its reader to put in."""
    for placeholder, own in pairs:
        assert code.count(placeholder) == 1, placeholder
        code = code.replace(placeholder, own)
    return code


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files of the package by their addresses, from the folder that the guide takes."""
    site = tmp_path_factory.mktemp("site")
    said = earshot("phone-page", "--out", site, "--server", SERVER)
    assert said.returncode == 0, said.stderr
    (version,) = site.glob("*-*/")
    return {
        f"/earshot-phone/{path.relative_to(version).as_posix()}": path.read_bytes()
        for path in version.rglob("*")
        if path.is_file()
    }


def script_of_the_app() -> str:
    """The script of the page; another one is a test of it."""
    (script,) = [each for each in blocks(GUIDE, "js") if "node:test" not in each]
    return script


def written(server: str, leader: str, helper: str) -> dict[str, bytes]:
    """The two files that the guide lets its reader write."""
    (page,), script = blocks(GUIDE, "html"), script_of_the_app()
    keys = zip(KEYS, (f'"{leader}"', f'"{helper}"'), strict=True)
    return {
        "/": filled(page, (SERVER, server)).encode(),
        "/app.js": filled(script, (SERVER, server), *keys).encode(),
    }


@contextlib.contextmanager
def opened(files: dict[str, bytes], folder: Path) -> Iterator[tuple[Page, str]]:
    """A page in a browser whose microphone hears something, and the app's origin."""
    with hosted(files) as origin, hearing("machine hum", folder) as running:
        yield running.new_context(permissions=["microphone"]).new_page(), origin


def said(page: Page, text: str) -> None:
    expect(page.locator("#said")).to_contain_text(text)


def test_the_app_is_as_short_as_the_guide_says() -> None:
    lines = [line for line in script_of_the_app().splitlines() if line]
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= 100


def test_it_hears_labels_and_forgets_without_a_server(
    app: dict[str, bytes], tmp_path: Path
) -> None:
    nowhere = written("http://127.0.0.1:9", "1a" * 32, "2b" * 32)
    with opened({**app, **nowhere}, tmp_path) as (page, origin):
        complaints, requested = overheard(page)
        page.goto(origin)
        said(page, "NotEnrolledError: this phone is not enrolled yet: it needs an invitation")
        page.locator("#listen").click()
        said(page, "Heard one second.")
        choices = page.locator("#choice option").all_inner_texts()
        assert {"kitchen", "machine hum"} <= {*choices}
        page.locator("#choice").select_option("machine hum")
        page.locator("#keep").click()
        said(page, "Kept.")
        page.locator("#left").click()
        said(page, "[]")
        page.locator("#erase").click()
        said(page, "Forgotten.")
        page.locator("#keep").click()
        said(page, "InvalidInputError")
        assert all(each.startswith(origin) for each in requested)
        assert complaints == []


class Crowd(NamedTuple):
    """Everybody else of a phase: phones in Python."""

    phones: list[tuple[Phone, HttpTransport]]
    over: set[int]

    @classmethod
    def enrolled(cls, server: ServerProcess, leader: str, helper: str) -> Crowd:
        code = server.operator().invite(Invite(uses=PHONES - 1)).code
        policy = without_budget(leaders=(bytes.fromhex(leader),), helpers=(bytes.fromhex(helper),))
        phones = []
        for number in range(PHONES - 1):
            store = MemoryStore(np.eye(8)[[number % 8]], [LABELS[number % len(LABELS)]])
            encoder = HeardPoints(DEFAULT_ENCODER, 8)
            phone = Phone(store, encoder, policy, hierarchy=LabelHierarchy.flat(LABELS))
            line = HttpTransport(server.address, Ed25519PrivateKey.generate())
            line.enrol(code)
            phones.append((phone, line))
        return cls(phones, set())

    def visit(self) -> bool:
        """Let everybody visit; return whether the phase is over for all."""
        for number, (phone, line) in enumerate(self.phones):
            task = Wait(seconds=1.0) if number in self.over else line.task()
            if isinstance(task, Wait):
                continue
            answer = phone.answer(task)
            if isinstance(task, Ending):
                self.over.add(number)
            elif answer is not None:
                line.send(answer)
        return len(self.over) == len(self.phones)

    def close(self) -> None:
        for _, line in self.phones:
            line.close()


@pytest.mark.slow
def test_it_takes_part_as_one_of_a_crowd(
    app: dict[str, bytes], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = dict(app)
    with contextlib.ExitStack() as running:
        page, origin = running.enter_context(opened(files, tmp_path))
        helper = running.enter_context(ServedHelper().running())
        data = tmp_path_factory.mktemp("leader")
        terms = ("--helper", helper.address, "--helper-key", helper.key, "--phone-origin", origin)
        server = running.enter_context(ServerProcess(data, None, *terms))
        leader = Credentials.load_or_create(data, leads=True).leader
        helper.leaders = frozenset({bytes.fromhex(leader)})
        files.update(written(server.address, leader, helper.key))
        crowd = Crowd.enrolled(server, leader, helper.key)
        running.enter_context(contextlib.closing(crowd))
        operator = server.operator()
        code = operator.invite(Invite(uses=1)).code

        complaints, requested = overheard(page)
        page.goto(origin)
        page.locator("#listen").click()
        said(page, "Heard one second.")
        page.locator("#choice").select_option("kitchen")
        page.locator("#keep").click()
        said(page, "Kept.")
        phase = operator.start(StartPhase(parameters=STATISTICS))
        page.locator("#code").fill(code)
        page.locator("#join").click()

        def all_have() -> bool:
            shown = page.locator("#said").inner_text()
            assert "refused" not in shown
            over = shown.endswith("over: statistics")
            if shown.startswith("waiting") and not over:  # for minutes, which one may cut short
                page.evaluate("document.getElementById('said').textContent = ''")  # one at a time
                page.locator("#join").click()
            return crowd.visit() and over

        await_(all_have, "the result", 300)
        assert operator.phase(phase).refusals == {}

        page.locator("#left").click()
        said(page, "[")
        released = json.loads(page.locator("#said").inner_text())
        assert {entry["phase"] for entry in released} == {phase}
        spent = {each.release.unit: each.release.epsilon for each in STATISTICS.expenses(1)}
        assert {entry["unit"]: entry["epsilon"] for entry in released} == pytest.approx(spent)
        assert operator.phones().enrolled == PHONES
        page.locator("#erase").click()
        said(page, "Forgotten.")
        assert operator.phones().enrolled == PHONES - 1
        assert all(each.startswith((origin, server.address)) for each in requested)
        assert complaints == []
