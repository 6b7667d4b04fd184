"""The code of the embedding guide does what it says; programs of pages have their types."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.documented import blocks
from support.networked import ServerProcess
from support.phone_server import PhoneServer, Reply, serving

import earshot_client
from earshot_client import Client, Event, NotEnrolledError
from earshot_protocol.messages import Failed, Wait
from earshot_protocol.wire import encode

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WEB = ROOT / "client" / "web"
KEY = bytes(range(32))
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def app() -> dict[str, Any]:
    *_, example = blocks(GUIDE, "python")  # test_readme.py runs the first
    names: dict[str, Any] = {}
    # S102: the program is the one that the guide shows.
    exec(compile(example, "embedding.md", "exec"), names)  # noqa: S102
    return names


@pytest.fixture
def open_client(app: dict[str, Any], tmp_path: Path) -> Iterator[Callable[..., Client]]:
    opened: list[Client] = []

    def make(server: str, invitation: str | None, charging: bool = True) -> Client:
        path = str(tmp_path / "phone.db")
        opened.append(
            app["open_client"](path, KEY, server, invitation, lambda: charging, lambda: True)
        )
        return opened[-1]

    yield make
    for client in opened:
        client.close()


def a_second() -> tuple[np.ndarray, int]:
    return np.random.default_rng(3).normal(0, 3000, 16_000).astype(np.int16), 16_000


def test_an_app_hears_critical_contacts_asks_and_shows_what_it_keeps(
    app: dict[str, Any], open_client: Callable[..., Client]
) -> None:
    client, now = open_client(NOWHERE, None), datetime.now(UTC)
    assert app["met"](client, now, 20.0, 1.0, False, a_second) is None
    assert app["met"](client, now, 14.0, 1.0, True, a_second) is None
    recording = app["met"](client, now, 14.0, 1.5, True, a_second)
    app["poll"](client, recording, "train")
    (kept,), released = app["privacy_screen"](client)
    assert (kept.number, kept.choice, kept.day) == (recording, "train", now.date())
    assert released == []
    bars = app["budgets"](client.phone.ledger, client.phone.today)
    assert [(each.span, each.unit) for each in bars] == [
        (span, unit) for span in ("year", "life") for unit in ("recording", "phone")
    ]
    assert all(each.left == each.largest_epsilon > each.epsilon == 0 for each in bars)
    client.phone.forget(recording)
    assert app["privacy_screen"](client) == ((), [])


def test_a_background_job_says_when_to_come_again_and_what_is_over(
    app: dict[str, Any], open_client: Callable[..., Client]
) -> None:
    tasks = [Wait(seconds=9.0), Failed(phase=bytes(16), reason="nobody came"), Wait(seconds=70.0)]
    server = PhoneServer(lambda path, phone, body: Reply(encode(tasks.pop(0))))
    said: list[str] = []
    with serving(server):
        client = open_client(server.url, "welcome")
        assert app["background_job"](client, said.append) == 9.0
        assert app["background_job"](client, said.append) == 70.0
    (line,) = said
    assert "nobody came" in line


def test_a_visit_needs_an_invitation_and_asks_the_conditions_before_the_network(
    app: dict[str, Any], open_client: Callable[..., Client]
) -> None:
    with open_client(NOWHERE, None) as client, pytest.raises(NotEnrolledError):
        app["background_job"](client, print)
    visit = open_client(NOWHERE, "welcome", charging=False).visit()
    assert (visit.event, visit.detail) == (Event.POSTPONED, "not charging")
    assert visit.seconds > 0


@pytest.mark.slow
def test_fifty_phones_of_the_guide_find_what_they_heard(tmp_path: Path) -> None:
    """As they stand, but for the port, which may be taken here."""
    (start,) = [each for each in blocks(GUIDE, "sh") if "first_phase.py" in each]
    (tmp_path / "first_phase.py").write_text(blocks(GUIDE, "python")[1], encoding="utf-8")
    path = f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}"
    with ServerProcess(tmp_path / "earshot-trial") as server:
        run = subprocess.run(  # noqa: S603 - the words of our page
            ["/bin/bash", "-euc", start.replace("http://127.0.0.1:8000", server.address)],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "'environments': ['hiss', 'hum']" in run.stdout
    assert run.stdout.endswith("a hum is called hum\n")


@pytest.mark.slow
def test_the_examples_pass_a_strict_type_checker(tmp_path: Path) -> None:
    files = []
    for number, example in enumerate([*blocks(GUIDE, "python"), *blocks(ARCHITECTURE, "python")]):
        files.append(tmp_path / f"example_{number}.py")
        files[-1].write_text(example, encoding="utf-8")
    assert len(files) == 4
    folders = ("protocol", "client", "server", "models", "simulations")
    run = subprocess.run(  # noqa: S603
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"),
            *("--config-file", os.devnull, "--cache-dir", str(ROOT / ".mypy_cache" / "examples")),
            *map(str, files),
        ],
        env={**os.environ, "MYPYPATH": os.pathsep.join(str(ROOT / name) for name in folders)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_file_and_name_that_the_guide_mentions_is_there() -> None:
    for name in re.findall(r"\]\(([^)#:]+)\)", GUIDE):
        assert (ROOT / "docs" / name).exists(), name
    in_browsers = "".join(path.read_text("utf-8") for path in WEB.rglob("*.ts"))
    known = {*earshot_client.__all__, *re.findall(r"export class (\w+Error)", in_browsers)}
    named = set(re.findall(r"`(\w+Error)`", GUIDE))
    assert len(named) >= 12
    assert named <= known
    for name in re.findall(r"`earshot_client\.(\w+)`", GUIDE):
        assert name in earshot_client.__all__ or (ROOT / "client/earshot_client" / name).is_file()
    for name in re.findall(r"`([A-Z]{4,})`", GUIDE.split("## When it says no")[1]):
        assert name in Event.__members__, name
