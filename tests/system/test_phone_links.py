"""Links that invite a phone in a browser: written, read and shown."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.textbook_link import NoLinkError, read

from earshot_protocol.api import Invitation
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phone_link import PhoneLink
from earshot_protocol.wire import canonical
from earshot_server import phone_links
from earshot_server.api.views import TwoOperators
from earshot_server.commands import invite
from earshot_server.origins import read_page
from earshot_server.processes.settings import Serving

VECTORS = json.loads(
    (Path(__file__).parents[2] / "docs" / "vectors" / "links.json").read_text("utf-8")
)
PAGE = "https://phone.example.org/1/"
LEADER, HELPER = bytes(range(32)), bytes(range(1, 33))
OPERATORS = TwoOperators(leader=LEADER.hex(), helper=HELPER.hex())


def link(**changes: Any) -> PhoneLink:
    usual = PhoneLink(
        server="https://earshot.example.org", invitation="a", leader=LEADER, helper=HELPER
    )
    return msgspec.structs.replace(usual, **changes)


@pytest.mark.parametrize("case", VECTORS["links"], ids=lambda case: case["server"])
def test_a_link_is_written_as_the_document_says(case: dict[str, str]) -> None:
    keys = {name: bytes.fromhex(case[name]) for name in ("leader", "helper")}
    texts = {name: case[name] for name in ("server", "invitation")}
    assert read(case["fragment"]) == texts | keys
    ours = PhoneLink(**texts, **keys)
    assert canonical(ours).hex() == case["map"]
    assert ours.fragment() == case["fragment"]


@pytest.mark.parametrize("case", VECTORS["refused"], ids=lambda case: case["why"])
def test_what_is_no_link_is_refused(case: dict[str, str]) -> None:
    with pytest.raises(NoLinkError):
        read(case["fragment"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"server": "http://earshot.example.org"}, "use https"),
        ({"server": "https://earshot.example.org/v1"}, "not the URL of a server"),
        ({"server": "https://earshot.example.org/"}, "slash"),
        ({"helper": LEADER}, "the same key"),
        ({"invitation": "ä" * 1000}, "at most 2048"),
    ],
)
def test_what_no_phone_would_read_is_not_written(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        link(**changes).fragment()


def test_the_longest_code_of_ours_fits() -> None:
    fragment = link(
        server="https://" + ("a" * 62 + ".") * 3 + "a" * 59, invitation="a" * 180
    ).fragment()
    assert read(fragment)["invitation"] == "a" * 180


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("http://phone.example.org/", "use https"),
        ("phone.example.org", "give its scheme"),
        (PAGE + "?a", "without a query"),
        (PAGE + "#", "without a query"),
        (PAGE + "a b", "without a query"),
        (PAGE + "a" * 300, "at most 256"),
        ("https://[", "not a URL"),
    ],
)
def test_what_is_no_page_is_refused(page: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        read_page(page)
    with pytest.raises(InvalidInputError, match="--phone-page"):
        Serving(phone_page=page).check()


def test_the_origin_of_the_page_is_let_in() -> None:
    serving = Serving(phone_page=PAGE, phone_origins=("capacitor://localhost",))
    serving.check()
    assert set(serving.origins) == {"https://phone.example.org", "capacitor://localhost"}
    assert Serving(phone_page="").origins == ()


# ------------------------------------------------------------------------------------ the command


class Operator:
    """An operator's connection without a server; it keeps what was signed."""

    def __init__(self, operators: TwoOperators) -> None:
        self.address = "https://earshot.example.org/"
        self._operators = operators
        self.signed: list[object] = []

    def operator(self) -> Operator:
        return self

    def two_operators(self) -> TwoOperators:
        return self._operators

    def invite(self, wanted: object) -> Invitation:
        self.signed.append(wanted)
        return Invitation(name="people", code="the-code", uses=1, expires=1.0)


def test_the_command_prints_a_link(capsys: pytest.CaptureFixture[str]) -> None:
    server = Operator(OPERATORS)
    invite.invite(phone_page=PAGE, connection=server)  # type: ignore[arg-type]
    printed = capsys.readouterr().out.splitlines()
    page, _, fragment = printed[0].partition("#")
    assert (len(printed), page) == (1, PAGE)  # no QR code where nobody looks at it
    assert read(fragment) == {
        "server": "https://earshot.example.org",
        "invitation": "the-code",
        "leader": LEADER,
        "helper": HELPER,
    }
    elsewhere = {"phone_server": "https://other.example.org", "as_json": True}
    invite.invite(phone_page=PAGE, connection=server, **elsewhere)  # type: ignore[arg-type]
    said = json.loads(capsys.readouterr().out)
    assert said["code"] == "the-code"
    assert read(said["link"].partition("#")[2])["server"] == "https://other.example.org"


def test_a_terminal_shows_the_code_to_a_camera(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    invite.invite(phone_page=PAGE, connection=Operator(OPERATORS))  # type: ignore[arg-type]
    first, *rows = capsys.readouterr().out.rstrip().splitlines()
    assert first.startswith(PAGE + "#")
    assert rows == phone_links.printed(first).rstrip().splitlines()
    assert max(map(len, rows)) <= 80
    assert set("".join(rows)) <= set(" ▀▄█")


def test_without_a_helper_no_code_is_signed() -> None:
    server = Operator(TwoOperators(leader="", helper=""))
    with pytest.raises(InvalidInputError, match="--helper"):
        invite.invite(phone_page=PAGE, connection=server)  # type: ignore[arg-type]
    assert server.signed == []


def test_for_a_server_that_phones_do_not_reach_no_code_is_signed() -> None:
    server = Operator(OPERATORS)
    wrong = {"phone_server": "http://earshot.example.org"}
    with pytest.raises(InvalidInputError, match="https"):
        invite.invite(phone_page=PAGE, connection=server, **wrong)  # type: ignore[arg-type]
    assert server.signed == []


def test_without_a_page_only_the_code_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    invite.invite(connection=Operator(OPERATORS))  # type: ignore[arg-type]
    assert capsys.readouterr().out == "the-code\n"


def test_the_drawing_is_of_the_text_and_needs_no_style() -> None:
    shown = phone_links.drawn(PAGE)
    assert shown == phone_links.drawn(PAGE) != phone_links.drawn(PAGE + "a")
    assert re.fullmatch(r"<svg viewBox=[^<]*>(<g[^<]*>|</g>|<path[^<]*/>)+</svg>", shown.strip())
    assert "style" not in shown
