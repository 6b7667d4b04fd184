"""`earshot operator`, `earshot phones` and `earshot phase`, over HTTP to a server of the test."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from support import dashboard_records as made
from support.api_caller import Server
from support.command import earshot
from support.played_phase import PARAMETERS
from support.reproduced import rows_of
from werkzeug.serving import make_server

from earshot_server.api.views import PhaseExport, PhaseView, PrivacySpent
from earshot_server.dashboard.spending import OF_NAMED_RECORDINGS
from earshot_server.operator_client import TOKEN_VARIABLE, OperatorClient
from earshot_server.records import PhaseRecord
from earshot_server.store.database import Database
from earshot_server.store.driving import Driving
from earshot_server.store.operators import FIRST


class Desk:
    """Somebody who types commands, with a token."""

    def __init__(self, server: Server, url: str, token: str) -> None:
        self.server = server
        self._environment = {"EARSHOT_SERVER": url, TOKEN_VARIABLE: token}

    def types(self, *words: str, status: int = 0) -> str:
        """What comes out: on standard output, or why it is refused."""
        run = earshot(*words, **self._environment)
        assert run.returncode == status, run.stderr
        return run.stderr if status else run.stdout

    def with_token(self, token: str) -> Desk:
        return Desk(self.server, self._environment["EARSHOT_SERVER"], token)


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> Iterator[Desk]:
    server = Server.over(database, tmp_path)
    listener = make_server("127.0.0.1", 0, server.app, threaded=True)
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{listener.server_port}"
    yield Desk(server, url, server.credentials.operator_token)
    listener.shutdown()
    thread.join()
    listener.server_close()


def test_operators_come_work_and_go(desk: Desk, tmp_path: Path) -> None:
    token = desk.types("operator", "add", "olga", "--role", "operator").strip()
    olga = desk.with_token(token)
    assert desk.types("operator", "list").split() == [FIRST, "admin", "olga", "operator"]
    assert "olga has the role operator; this needs admin" in olga.types(
        "operator", "list", status=2
    )
    assert olga.types("phase", "list") == ""
    rotated = json.loads(desk.types("operator", "rotate", "olga", "--json"))
    assert rotated["name"] == "olga"
    assert "Operators only" in olga.types("phase", "list", status=2)
    assert olga.with_token(rotated["token"]).types("phase", "list") == ""
    desk.types("operator", "remove", "olga")
    assert "no operator 'olga'" in desk.types("operator", "remove", "olga", status=2)

    lines = desk.types("operator", "audit").splitlines()
    assert [line.split("  ")[1:] for line in lines] == [
        [FIRST, "remove operator", "olga"],
        [FIRST, "rotate token", "olga"],
        [FIRST, "add operator", "olga", "operator"],
    ]
    desk.types("operator", "audit", "--out", str(tmp_path / "audit.csv"))
    again = ("operator", "audit", "--out", str(tmp_path / "audit.csv"))
    assert "audit.csv exists: name another file, or add --overwrite" in desk.types(*again, status=2)
    desk.types(*again, "--overwrite")
    rows = rows_of(tmp_path / "audit.csv")
    assert [row["action"] for row in rows] == ["remove operator", "rotate token", "add operator"]
    assert token not in (tmp_path / "audit.csv").read_text(encoding="utf-8")


def test_a_name_that_nobody_can_have_says_what_would_do(desk: Desk) -> None:
    assert "'Olga': a name has 1 to 32 lower-case letters" in desk.types(
        "operator", "add", "Olga", status=2
    )


def test_phones_are_counted_and_erased(desk: Desk) -> None:
    caller = desk.server.phone()
    assert desk.types("phones", "list") == "enrolled: 1; of these in a phase: 0\n"
    assert json.loads(desk.types("phones", "list", "--json")) == {"enrolled": 1, "in_phases": 0}
    assert desk.types("phones", "erase", caller.name) == f"phone {caller.name} is erased\n"
    assert "There is no such phone" in desk.types("phones", "erase", caller.name, status=2)


def test_trouble_of_a_phase_is_shown(desk: Desk, database: Database) -> None:
    started = desk.server.start(PARAMETERS)
    assert "trouble" not in desk.types("phase", "show", started.hex())
    Driving(database).begin(started)
    assert "trouble" not in desk.types("phase", "show", started.hex())
    Driving(database).fail(started, "KeyError")
    assert "in trouble: KeyError, 1 of 12 tries" in desk.types("phase", "show", started.hex())
    page = desk.server.read(f"/phases/{started.hex()}").text
    assert "could not move this phase on (KeyError)" in page
    assert "It has tried 1 time and tries again in" in page


def test_an_export_replaces_nothing_unasked(desk: Desk, tmp_path: Path) -> None:
    phase = desk.server.start(PARAMETERS).hex()
    out = tmp_path / "phase.json"
    out.write_text("a year's work")
    words = ("phase", "export", phase, "--out", str(out))
    assert f"{out} exists: name another file, or add --overwrite" in desk.types(*words, status=2)
    assert out.read_text() == "a year's work"
    desk.types(*words, "--overwrite")
    assert json.loads(out.read_text())["phase"]["phase"] == phase
    nowhere = ("phase", "export", phase, "--out", str(tmp_path / "nowhere" / "phase.json"))
    assert "cannot write" in desk.types(*nowhere, status=2)


def test_a_phase_that_default_phones_refuse_says_how_to_start_it(desk: Desk) -> None:
    said = desk.types("phase", "start", "--phones", "60", status=2)
    assert "If yours do, start it all the same: --anyway on the command line" in said
    assert "anyway=true" not in said


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (made.empty_discovery(50, made.NOW), "none of 11 labels names anything"),
        (made.empty_learning(51, made.NOW), "none of 8 places has a name"),
        (made.published_discovery(52, made.NOW), ""),
    ],
)
def test_a_phase_in_which_nothing_stands_clear_says_so_in_a_sentence(
    record: PhaseRecord, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = PhaseExport(phase=PhaseView.of(record), ending=record.ending)
    monkeypatch.setattr(OperatorClient, "find", lambda self, written: written)
    monkeypatch.setattr(OperatorClient, "export", lambda self, phase: kept)
    shown = earshot("phase", "show", record.phase.hex(), **{TOKEN_VARIABLE: "x" * 43}).stdout
    sentence = f"  nothing stands clear of the noise: {said}; a larger crowd would show more"
    assert (shown.splitlines()[-1] == sentence) == bool(said)
    assert "may be noise" not in shown or not said


def test_a_refusal_is_told_as_past_because_its_phone_may_have_answered_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = msgspec.structs.replace(
        made.published_discovery(55, made.NOW), refusals={"least_phones": 1, "encoder": 2}
    )
    kept = PhaseExport(phase=PhaseView.of(record), ending=record.ending)
    monkeypatch.setattr(OperatorClient, "find", lambda self, written: written)
    monkeypatch.setattr(OperatorClient, "export", lambda self, phase: kept)
    shown = earshot("phase", "show", record.phase.hex(), **{TOKEN_VARIABLE: "x" * 43}).stdout
    assert "  1 phone has refused by least_phones: too few phones take part" in shown
    assert "  2 phones have refused by encoder: " in shown


@pytest.mark.parametrize(
    ("record", "limited"),
    [
        (made.published_learning(53, made.NOW), True),
        (made.published_discovery(54, made.NOW), False),
    ],
)
def test_a_list_says_for_which_phones_its_cost_holds(
    record: PhaseRecord, limited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OperatorClient, "phases", lambda self: (PhaseView.of(record),))
    monkeypatch.setattr(OperatorClient, "privacy", lambda self: PrivacySpent.of([record]))
    shown = earshot("phase", "list", **{TOKEN_VARIABLE: "x" * 43}).stdout
    assert "a phone that took part in all of them has spent" in shown
    assert (OF_NAMED_RECORDINGS in shown) == limited


def test_invitations_are_listed_revoked_and_refused_by_name(desk: Desk, tmp_path: Path) -> None:
    code = desk.types("invite", "--uses", "3", "--name", "class-7b", "--cohort", "north").strip()
    made = json.loads(desk.types("invite", "--json"))
    assert (made["uses"], len(made["name"])) == (1, 12)
    desk.server.phone(code)
    newest, named = desk.types("invite", "list").splitlines()
    assert newest.startswith(f"{made['name']}      open      0 of 1 phone  made ")
    assert re.fullmatch(
        r"class-7b {10}open {6}1 of 3 phones  made .*  expires in .*  cohort north", named
    )
    assert code not in desk.types("invite", "list", "--json")
    assert "choose another name" in desk.types("invite", "--name", "class-7b", status=2)
    assert "lower-case letters" in desk.types("invite", "--name", "Class 7b", status=2)

    assert desk.types("invite", "revoke", "class-7b") == "the invitation class-7b is revoked\n"
    assert "class-7b' is revoked already" in desk.types("invite", "revoke", "class-7b", status=2)
    assert "no invitation 'nothing'" in desk.types("invite", "revoke", "nothing", status=2)
    assert "earshot invite list" in desk.types("invite", "revoke", "Class 7b", status=2)
    assert "  revoked " in desk.types("invite", "list")
    phone = ("phone", "--data", str(tmp_path / "phone"), "--once", "--invitation", code)
    assert "this invitation was revoked" in desk.types(*phone, status=2)


def test_a_campaign_is_run_by_commands(desk: Desk, database: Database, tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    file = tmp_path / "north.toml"
    file.write_text(
        f'name = "North"\nfrom = {today}\nweeks = 3\n[expected]\nphones = 5000\n'
        "contacts = 3\n[budget]\ncontinues = false\n"
    )
    digest = desk.types("campaign", "start", str(file)).strip()
    assert re.fullmatch("[0-9a-f]{64}", digest)
    assert "it runs" in desk.types("campaign", "start", str(file), status=2)
    line = desk.types("campaign", "list").strip()
    assert line == (
        f"{digest[:12]}  running  {today} to {today + timedelta(weeks=3)}  3 planned  “North”"
    )
    listed = json.loads(desk.types("campaign", "list", "--json"))["campaigns"]
    assert [each["campaign"] for each in listed] == [digest]
    for name in ("North", digest[:6], digest):
        shown = desk.types("campaign", "show", name)
        assert shown.splitlines()[:2] == [line, f"  plan: {digest}"]
        assert f"may open from {today + timedelta(weeks=1)}" in shown
    assert len(json.loads(desk.types("campaign", "show", "North", "--json"))["slots"]) == 3
    assert "no campaign is called 'South': there are" in desk.types(
        "campaign", "show", "South", status=2
    )
    assert "not paused" in desk.types("campaign", "resume", "North", status=2)
    assert "stopped  " in desk.types("campaign", "stop", "North")
    shown = desk.types("campaign", "show", "North")
    assert "  for a week a phone sends " in shown
    assert "this server’s database keeps up to " in shown
    assert "stopped: stopped by an operator" in shown
    assert shown.count(": stopped") == 4
    out = tmp_path / "series"
    files = desk.types("campaign", "export", "North", "--out", str(out)).split()
    assert files == [str(out / each) for each in ("series.csv", "series.json", "datapackage.json")]
    assert "the campaign was stopped" in (out / "series.csv").read_text()
    assert "--overwrite" in desk.types("campaign", "export", "North", "--out", str(out), status=2)
    damage = "UPDATE campaigns SET plan = 'no plan' WHERE campaign = %s"
    database.query(damage, (bytes.fromhex(digest),))
    assert desk.types("campaign", "list").startswith(f"{digest[:12]}  damaged  cannot be read")
    why = desk.types("campaign", "show", digest[:6], status=2)
    assert f"the campaign {digest}, started on {today}" in why
    assert f"there are {digest[:12]} (damaged)" in desk.types("campaign", "show", "North", status=2)
