"""Files that were written in the middle of phases are opened, and nothing in them is lost.

They are those of every release that `former/` keeps, which `former/make.py` wrote, and those that
the present code has just written (`support.former`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from support.former import (
    HERTZ,
    NOON,
    RATE,
    Expected,
    Pitch,
    World,
    new_database,
    opened,
    phone_of,
    read,
    restored,
    scenes_named,
    tone,
    write,
)

from earshot_client.visits.outcome import Event
from earshot_server.api.views import PhaseView
from earshot_server.processes.embedded import EmbeddedPostgres, embedded
from earshot_simulations.phases import kept as kept_runs

pytestmark = pytest.mark.slow

RELEASES = sorted(each.parent for each in (Path(__file__).parent / "former").glob("*/database.sql"))
PRESENT = "present"
_numbers = count()


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    quick = {"fsync": "off", "synchronous_commit": "off"}
    with embedded(tmp_path_factory.mktemp("former"), quick) as running:
        yield running


@pytest.fixture(scope="module", params=[PRESENT, *(each.name for each in RELEASES)])
def folder(
    request: pytest.FixtureRequest,
    postgres: EmbeddedPostgres,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The files of a release, or those that the present code writes now."""
    if request.param == PRESENT:
        written: Path = tmp_path_factory.mktemp("written")
        write(written, postgres, tmp_path_factory.mktemp("scratch"))
        return written
    return Path(__file__).parent / "former" / request.param


@pytest.fixture(scope="module")
def expected(folder: Path) -> Expected:
    return read(folder)


def _restored(folder: Path, postgres: EmbeddedPostgres, scratch: Path) -> World:
    return restored(folder, new_database(postgres, f"restored_{next(_numbers)}"), scratch)


@pytest.fixture(scope="module")
def world(
    folder: Path, postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Everything as it was left; it is only read."""
    left = _restored(folder, postgres, tmp_path_factory.mktemp("left"))
    yield left
    left.close()


@pytest.fixture(scope="module")
def later(
    folder: Path, postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """The same once everything is over, with the phones' files closed and opened again."""
    left = _restored(folder, postgres, tmp_path_factory.mktemp("later"))
    left.go_on()
    left.close_phones()
    left.open_phones()
    yield left
    left.close()


# ------------------------------------------------------------------------------ as it was left


def test_all_phases_are_seen_as_they_were(world: World, expected: Expected) -> None:
    records = world.archive.phases()
    assert [PhaseView.of(record) for record in records] == expected.phases
    assert [record.status for record in records] == [
        *("gathering", "running", "running"),
        *("stopped", "failed", "published"),
    ]
    steps = {
        name: world.record(bytes.fromhex(phase)).step for name, phase in expected.names.items()
    }
    assert steps["learning"] == "centroid vote: masked input"
    assert steps["statistics"] == "histogram: share keys"
    for name, ending in expected.endings.items():
        assert world.record(bytes.fromhex(expected.names[name])).ending == ending, name
    assert world.archive.counts().phones == len(expected.phones)


def test_the_dashboard_and_operators_are_shown_them(world: World, expected: Expected) -> None:
    overview = world.server.read("/")
    assert overview.status_code == 200
    for phase in expected.names.values():
        assert phase in overview.text
        assert world.server.read(f"/phases/{phase}").status_code == 200
        assert world.server.read(f"/v1/phases/{phase}/export").status_code == 200
    assert "park" in world.server.read("/statistics").text


def test_phones_know_what_they_knew(world: World, expected: Expected) -> None:
    for name, phone in world.phones.items():
        assert phone.ledger.export() == expected.phones[name].ledger, name
        assert phone.result == expected.endings["published"]
        assert scenes_named(phone) == expected.phones[name].scenes
    assert set(expected.phones["a0"].scenes.values()) == set(HERTZ)


def test_a_phones_file_is_whole_after_it_was_opened_and_closed(
    folder: Path, expected: Expected, postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    _restored(folder, postgres, tmp_path).close()
    for name, former in expected.phones.items():
        with closing(opened(tmp_path, name)) as store:
            embeddings, choices = store.recordings()
            before = store.descriptions()
            values = {key: store.get(key) for key in ("membership", "sum", "answered", "result")}
        with phone_of(opened(tmp_path, name), np.random.default_rng(9)) as phone:
            recording = phone.hear(tone(HERTZ["park"]), RATE)
            phone.label(recording, "garden")
        with closing(opened(tmp_path, name)) as store:
            heard, chosen = store.recordings()
            np.testing.assert_array_equal(heard[:-1], embeddings)
            np.testing.assert_array_equal(heard[-1:], Pitch().embed(tone(HERTZ["park"])[None]))
            assert chosen == (*choices, "garden")
            assert store.descriptions()[:-1] == before
            assert {key: store.get(key) for key in values} == values
            ledger = phone_of(store, np.random.default_rng(9)).ledger.export()
            assert ledger == former.ledger


def test_the_result_of_a_run_is_read_and_compared(folder: Path) -> None:
    run = kept_runs.read(folder / "result.json")
    run.settings.check()
    found = kept_runs.compare(run, run)
    assert found.same
    assert {"ari_test", "epsilon per phone"} <= found.figures.keys()


# ------------------------------------------------------------------------------- once it is over


def test_what_was_under_way_is_published_and_phones_paid_for_it_once(
    later: World, expected: Expected
) -> None:
    records = {name: later.record(bytes.fromhex(phase)) for name, phase in expected.names.items()}
    for name, ending in expected.endings.items():
        assert records[name].ending == ending, name
    for name in ("learning", "statistics", "gathering"):
        assert records[name].status == "published", name
    for name, phone in later.phones.items():
        ledger, before = phone.ledger.export(), expected.phones[name].ledger
        assert ledger[: len(before)] == before, name
        grown = ledger[len(before) :]
        assert grown
        paid = [(each["phase"], each["step"], each["unit"]) for each in ledger]
        assert len(set(paid)) == len(paid)
        under_way = {expected.names[each] for each in ("learning", "statistics", "gathering")}
        assert {each["phase"] for each in grown} <= under_way


def test_what_gathered_phones_has_found_all_of_them(later: World, expected: Expected) -> None:
    record = later.record(bytes.fromhex(expected.names["gathering"]))
    assert record.joined == len(later.phones)
    for name, phone in later.phones.items():
        assert set(scenes_named(phone).values()) == set(HERTZ), name
        assert later.parts[name].visit(NOON).event is Event.WAITING
