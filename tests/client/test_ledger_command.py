"""`earshot ledger`: read, exported, found damaged, and recovered without freeing any budget."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from support.command import earshot
from support.parameters import statistics_parameters
from support.phase_tasks import first_task

from earshot_client import LostLedgerError, recover_ledger
from earshot_client.commands import folder, statement
from earshot_client.encoder import default_encoder
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import StoreUnavailableError, WrongKeyError
from earshot_client.store.recovery import LOST
from earshot_protocol.errors import InvalidInputError, RefusedError
from earshot_protocol.phases.learning import CLUSTER
from earshot_protocol.privacy.accounting import expenses
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.local_mechanisms import COUNTED_RECORDINGS, LaplaceLloyd
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, BallotSum

DAY = date(2026, 3, 2)
PHASES = 3
STATISTICS = statistics_parameters(contacts=4, noise=10.0)


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return earshot("ledger", *words)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder of a phone that has taken part in three phases, and heard something."""
    data = tmp_path / "phone"
    with closing(folder.opened(data)) as store:
        store.add(np.ones(128), DAY)
        store.put("something", b"else")
        folder.keep_limits(store, Policy(largest_yearly_phone_epsilon=5.0))
        ledger = Ledger()
        for number in range(PHASES):
            spent = expenses("histogram", BallotSum(0.5, 3, 75))
            for entry in ledger.append(bytes(15) + bytes([number]), spent, DAY):
                store.append_ledger(entry)
    return data


def entries_of(data: Path) -> tuple[bytes, ...]:
    path, key = folder.existing(data)
    with closing(EncryptedStore(path, key)) as store:
        return store.ledger()


def changed(data: Path, *statements: str) -> None:
    with closing(sqlite3.connect(data / "phone.db")) as database, database:
        for statement in statements:
            database.execute(statement)


def cut(data: Path, size: int) -> None:
    os.truncate(data / "phone.db", size)


DAMAGES: dict[str, tuple[Callable[[Path], None], int]] = {
    "the newest entry is gone": (
        lambda data: changed(data, "DELETE FROM ledger WHERE id = 6"),
        5,
    ),
    "the newest entry is gone, and the length with it": (
        lambda data: changed(data, "DELETE FROM ledger WHERE id = 6", "DELETE FROM ledger_length"),
        5,
    ),
    "an old entry is gone": (lambda data: changed(data, "DELETE FROM ledger WHERE id = 3"), 2),
    "an entry is edited": (
        lambda data: changed(
            data, "UPDATE ledger SET sealed = zeroblob(length(sealed)) WHERE id = 4"
        ),
        3,
    ),
    "entries are swapped": (
        lambda data: changed(
            data,
            "UPDATE ledger SET id = 10 WHERE id = 1",
            "UPDATE ledger SET id = 1 WHERE id = 2",
            "UPDATE ledger SET id = 2 WHERE id = 10",
        ),
        0,
    ),
    "everything is gone": (
        lambda data: changed(data, "DELETE FROM ledger", "DELETE FROM ledger_length"),
        0,
    ),
    "an entry is added": (
        lambda data: changed(data, "INSERT INTO ledger SELECT 7, sealed FROM ledger WHERE id = 6"),
        6,
    ),
    "a table is gone": (lambda data: changed(data, "DROP TABLE ledger"), 0),
    "the file is cut off": (lambda data: cut(data, 9000), 0),
    "the file is no store": (lambda data: (data / "phone.db").write_bytes(b"x" * 9000) and None, 0),
}  # fmt: skip


# ------------------------------------------------------------------------------------- as it is


def test_a_person_reads_what_left_when_and_what_is_left(data: Path) -> None:
    seen = run("--data", data)
    assert (seen.returncode, seen.stderr) == (0, "")
    shown = seen.stdout.splitlines()
    assert shown[0].split() == [
        *("day", "(UTC)", "phase", "what", "was", "released", "how"),
        *("per", "recording", "per", "phone"),
    ]
    for number in range(PHASES):
        assert shown[1 + number].startswith("2026-03-02  00000000  histogram")
        assert "ε 0.5, δ" in shown[1 + number]
        assert "ε 0.75, δ" in shown[1 + number]
    (ever,) = (line for line in shown if line.startswith("ever, per phone"))
    assert ever.split()[-4:] == ["ε", "30", "ε", ever.split()[-1]]
    (year,) = (line for line in shown if line.startswith("this year (366 days), per phone"))
    assert "ε 5 " in year  # the limit with which this phone last went to a server


def test_a_person_reads_how_many_recordings_a_clustering_counts(tmp_path: Path) -> None:
    shown = {}
    for step, mechanism in {
        "histogram": BallotSum(0.5, 3, 75),
        CLUSTER: LaplaceLloyd(1.0, COUNTED_RECORDINGS),
    }.items():
        ledger = Ledger()
        ledger.append(bytes(16), expenses(step, mechanism), DAY)
        shown[step] = "\n".join(statement.lines(ledger, Policy.per_recording(), DAY))
    said = f"count at least {COUNTED_RECORDINGS} recordings"
    assert said in shown[CLUSTER]
    assert said not in shown["histogram"]


def test_programs_get_the_same_as_json_and_in_a_file_of_its_owners(
    data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.json"
    seen = run("--data", data, "--json", "--export", file)
    assert (seen.returncode, seen.stderr) == (0, "")
    read = json.loads(seen.stdout)
    assert json.loads(file.read_text()) == read
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(read["entries"]) == 2 * PHASES
    assert read["entries"][0]["event"]["event"] == "discrete-laplace-sum"
    assert read["entries"][0]["day"] == "2026-03-02"
    standing = {(each["span"], each["unit"]): each for each in read["standing"]}
    assert set(standing) == {(span, unit) for span in ("year", "life") for unit in LEDGER_UNITS}
    life = standing["life", "phone"]
    assert 0 < life["epsilon"] <= 0.75 * PHASES
    assert life["left"] == pytest.approx(30 - life["epsilon"])
    again = run("--data", data, "--export", file)
    assert again.returncode == 2
    assert "no new file can be made" in again.stderr


def test_what_was_never_released_and_where_nobody_lives(tmp_path: Path) -> None:
    folder.opened(tmp_path / "new").close()
    assert "Nothing has been released." in run("--data", tmp_path / "new").stdout
    seen = run("--data", tmp_path / "nowhere")
    assert (seen.returncode, seen.stdout) == (2, "")
    assert "no phone lives there" in seen.stderr
    assert not (tmp_path / "nowhere").exists()


# ------------------------------------------------------------------------------------- damaged


def test_a_file_that_cannot_be_put_aside_stays(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, key = folder.existing(data)
    path.write_bytes(b"")
    rename = os.rename

    def refuse(source: str | Path, target: str | Path) -> None:
        if ".damaged-" in str(target):
            raise PermissionError("no")
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(StoreUnavailableError, match="cannot be put aside"):
        recover_ledger(path, key)
    assert path.read_bytes() == b""


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_and_recovery_frees_nothing(damage: str, data: Path) -> None:
    spoil, kept = DAMAGES[damage]
    before = entries_of(data)
    path, key = folder.existing(data)
    spoil(data)
    with pytest.raises(LostLedgerError, match=r"releases nothing; `earshot ledger --data FOLDER"):
        EncryptedStore(path, key)
    with pytest.raises(LostLedgerError):  # so no phone lives, and none takes part
        Phone.open(path, key=key)
    recovery = recover_ledger(path, key)
    assert (recovery.kept, recovery.lost) == (kept, True)
    entries = entries_of(data)
    assert entries[:kept] == before[:kept]
    rest = Ledger(entries).export()[kept:]
    assert [(each["step"], each["unit"], each["epsilon"], each["delta"]) for each in rest] == [
        (LOST, unit.value, float("inf"), 1.0) for unit in LEDGER_UNITS
    ]
    with Phone.open(path, key=key) as phone, pytest.raises(RefusedError, match="_epsilon"):
        phone.answer(first_task(STATISTICS))
    assert {each["phase"] for each in rest}.isdisjoint({bytes(16).hex()}), "of no phase that was"
    # What is whole now stays as it is.
    assert recover_ledger(path, key) == (len(entries), False, None)
    assert entries_of(data) == entries


def test_the_command_finds_damage_says_what_to_do_and_recovers(data: Path) -> None:
    changed(data, "DELETE FROM ledger WHERE id = 6")
    found = run("--data", data)
    assert (found.returncode, found.stdout) == (2, "")
    assert "entries are missing from the store's ledger. Without its ledger" in found.stderr
    assert "earshot ledger --data FOLDER --recover" in found.stderr
    recovered = run("--data", data, "--recover")
    assert recovered.returncode == 0, recovered.stderr
    assert "5 entries could be read; lost entries count as infinite cost" in recovered.stdout
    assert "lost entries" in recovered.stdout
    assert "ε ∞" in recovered.stdout
    again = run("--data", data, "--recover", "--json")
    assert "nothing to recover: all 7 entries are intact" in again.stderr
    standing = json.loads(again.stdout)["standing"]
    assert [(each["epsilon"], each["left"]) for each in standing] == [(None, 0.0)] * 4


def test_a_year_after_a_recovery_its_budget_is_free_and_that_of_life_is_not(data: Path) -> None:
    changed(data, "DELETE FROM ledger")
    path, key = folder.existing(data)
    recover_ledger(path, key, clock=lambda: 0.0)
    ledger = Ledger(entries_of(data))
    for days, infinite in ((date(1970, 12, 31), 4), (date(1971, 1, 2), 2)):
        standing = Policy().standing(ledger, days)
        assert sum(each.epsilon == float("inf") for each in standing) == infinite


def test_a_file_that_is_no_store_any_more_is_put_aside(data: Path) -> None:
    path, key = folder.existing(data)
    spoilt = b"x" * 9000
    path.write_bytes(spoilt)
    recovery = recover_ledger(path, key)
    assert recovery.aside is not None
    assert recovery.aside.read_bytes() == spoilt
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(spoilt)
    again = recover_ledger(path, key)
    assert again.aside not in (None, recovery.aside)


def test_what_else_is_damaged_is_removed_and_the_ledger_kept(data: Path) -> None:
    """Recordings that nobody can unseal are lost; that costs no budget."""
    path, key = folder.existing(data)
    changed(
        data, "UPDATE recordings SET sealed = zeroblob(600)", "UPDATE named_values SET sealed = x''"
    )
    with pytest.raises(LostLedgerError, match="is damaged"):
        EncryptedStore(path, key)
    assert recover_ledger(path, key) == (2 * PHASES, False, None)
    with closing(EncryptedStore(path, key)) as store:
        assert store.descriptions() == ()
        assert store.get("something") is None
        assert len(store.ledger()) == 2 * PHASES


def test_nothing_is_recovered_under_another_key_or_where_there_is_nothing(
    data: Path, tmp_path: Path
) -> None:
    path, key = folder.existing(data)
    changed(data, "DELETE FROM ledger WHERE id = 6")
    before = path.read_bytes()
    with pytest.raises(WrongKeyError):
        recover_ledger(path, bytes(32))
    assert path.read_bytes() == before
    with pytest.raises(InvalidInputError, match="no phone's file"):
        recover_ledger(tmp_path / "nothing", key)
    assert not (tmp_path / "nothing").exists()


def test_the_phone_whose_ledger_is_whole_takes_part(data: Path) -> None:
    """Else the refusals above would say nothing."""
    path, key = folder.existing(data)
    with Phone.open(path, key=key) as phone:
        assert phone._encoder.name == default_encoder().name
        assert phone.answer(first_task(STATISTICS)) is not None
