"""Credentials of any form, at every endpoint of both programs: what is none counts as none."""

from __future__ import annotations

import base64
import contextlib
import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.api_caller import Server
from support.desk import ACCEPT
from support.examples import examples
from support.front_door import PATIENT, Door
from support.hostile_requests import Request, send
from werkzeug.routing import Rule

from earshot_protocol.api import JSON, MESSAGEPACK, PHASES, PROBLEM
from earshot_server.api.metrics import PATH as METRICS
from earshot_server.api.problems import BAD_REQUEST
from earshot_server.front.fields import DETAILS
from earshot_server.helper.api import HelperSettings, create_helper_app
from earshot_server.helper.folder import HelperFolder
from earshot_server.store.database import Database

MANY = 10**9
FILLED = {"phase": b"\0" * 16, "operator": "olga", "phone": 1}
_addresses = itertools.count(1)


@pytest.fixture
def server(database: Database, tmp_path: Path) -> Server:
    return Server.over(
        database,
        tmp_path,
        address_requests_per_minute=MANY,
        address_failures_per_minute=MANY,
        phone_page="here",
    )


@pytest.fixture
def helper(tmp_path: Path) -> Iterator[Flask]:
    with closing(HelperFolder.make(tmp_path / "helper").database):
        yield create_helper_app(HelperSettings(tmp_path / "helper", MANY, proxies=1))


def endpoints(app: Flask) -> list[tuple[str, str]]:
    """Method and path of everything that the application answers."""
    found = []
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"OPTIONS"}:
            found.append((method, path_of(app, rule)))
    return sorted(found)


def path_of(app: Flask, rule: Rule) -> str:
    adapter = app.url_map.bind("localhost")
    values = {name: FILLED.get(name, "x") for name in rule.arguments}
    for given_ in (values, dict.fromkeys(rule.arguments, FILLED["phase"])):
        with contextlib.suppress(Exception):
            return adapter.build(rule.endpoint, given_)
    raise AssertionError(rule)


# ------------------------------------------------------------------------------- what may be sent


LATIN = st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f")
PIECES = st.one_of(
    st.sampled_from(
        ["Basic", "Bearer", "Digest", "Negotiate", "Signature", "earshot", "=", ",", ";", ":", '"',
         "\\", "*", "*0*", "%ff", "utf-8''", "=?utf-8?b?", " ", "  ", "\t", "\x85", "\xa0", "\xff",
         "é", "()", "keyid", "created", "alg", "ed25519", "sha-256", "new", "1", "-1", "9" * 30,
         "A" * 43, "=:AAAA:", "earshot-session", "__Host-earshot-session", "\\377", "null"]
    ),
    st.text(LATIN, max_size=9),
    st.binary(max_size=12).map(lambda data: base64.b64encode(data).decode()),
)  # fmt: skip
VALUES = st.lists(PIECES, max_size=9).map("".join)
SCHEMES = st.sampled_from(["", "Basic ", "basic\t", "Bearer ", "BEARER  ", "Digest ", "x "])
BASIC = [b"\xff:\xff", b"\xff", b"no colon", b":", b"a:", b":\0", b"operator:" + b"A" * 43, b""]
KNOWN = [
    *("Basic " + base64.b64encode(each).decode() for each in BASIC),
    *("Basic", "Basic ", "Basic =", "Basic ¢", "Basic A", "Basic AAA", "Basic *", "Basic AA=A"),
    *("Bearer", "Bearer ", "Bearer é", "Bearer \xff\xfe", "Bearer a b", "Bearer " + "A" * 20_000),
    *("", " ", "=", "Digest", "Digest a=b", "Digest a*=b", "Digest =", 'Digest "', "Negotiate x"),
    *("Bearer " + "A" * 43 + ", Bearer " + "A" * 43, "Basic QQ==,Basic QQ==", "A" * 20_000),
]
CREDENTIALS = st.fixed_dictionaries(
    {},
    optional={
        "Authorization": st.sampled_from(KNOWN) | st.tuples(SCHEMES, VALUES).map("".join),
        "Cookie": VALUES,
        "Signature": VALUES,
        "Signature-Input": VALUES,
        "Content-Digest": VALUES,
    },
)


def status(app: Flask, endpoint: tuple[str, str], fields: dict[str, str], accept: str) -> int:
    method, path = endpoint
    number = next(_addresses)
    whole = {
        # Each from another address, as limits would answer otherwise.
        "X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "Content-Type": MESSAGEPACK,
        "Accept": accept,
    } | fields
    response = send(app, Request(path, b"", tuple(whole.items()), method))
    assert response.status < 500, (endpoint, fields, response)
    if response.status == 401:
        assert response.fields["WWW-Authenticate"].endswith(' realm="earshot"')
        if method != "HEAD" and accept != ACCEPT:
            assert response.fields["Content-Type"] == PROBLEM
    return response.status


def compared(app: Flask, tries: int) -> None:
    """What is sent with odd credentials is answered as what is sent without any."""
    without: dict[tuple[str, str], int] = {}
    everything = endpoints(app)
    for endpoint in everything:
        without[endpoint] = status(app, endpoint, {}, JSON)
    assert 401 in without.values()

    @settings(
        max_examples=tries, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(endpoint=st.sampled_from(everything), fields=CREDENTIALS)
    def odd(endpoint: tuple[str, str], fields: dict[str, str]) -> None:
        assert status(app, endpoint, fields, JSON) == without[endpoint], (endpoint, fields)

    odd()


def test_odd_credentials_are_none_at_every_endpoint(server: Server) -> None:
    compared(server.app, examples(300))


def test_nor_are_they_any_to_a_helper(helper: Flask) -> None:
    compared(helper, examples(300))


@pytest.mark.slow
def test_five_thousand_odd_credentials_are_none(server: Server, helper: Flask) -> None:
    compared(server.app, 4000)
    compared(helper, 1000)


@pytest.mark.parametrize("given_", KNOWN)
def test_a_browser_with_odd_credentials_is_told_so(server: Server, given_: str) -> None:
    """One without any is led to the form in which to sign in."""
    assert status(server.app, ("GET", "/"), {}, ACCEPT) == 303
    assert status(server.app, ("GET", "/"), {"Authorization": given_}, ACCEPT) == 401


def test_the_right_token_is_the_only_one(server: Server) -> None:
    """The harness tells right from wrong."""
    token = server.credentials.operator_token
    known = base64.b64encode(f"operator:{token}".encode()).decode()
    for right in (f"Bearer {token}", f"bearer  {token} ", f"BASIC {known}"):
        assert status(server.app, ("GET", PHASES), {"Authorization": right}, JSON) == 200
    for wrong in (
        token,
        f"Basic *{known}",
        f"Digest {token}",
        f"Bearer {token},",
        f"Bearer {token}, Bearer {token}",
    ):
        assert status(server.app, ("GET", PHASES), {"Authorization": wrong}, JSON) == 401
    assert status(server.app, ("POST", PHASES), {"Authorization": f"Basic {known}"}, JSON) == 401


# ---------------------------------------------------------------------------- at the front door


@pytest.mark.parametrize(
    ("fields", "answered"),
    [
        (b"Authorization: Basic \xa2\xff\r\n", 401),
        (b"Authorization: Bearer \xc3\xa9\xe2\x80\x9c\r\n", 401),
        (b"Authorization: Bearer " + b"A" * 30_000 + b"\r\n", 401),
        (b"Authorization: Bearer a\r\nAuthorization: Basic YTpi\r\n", 401),
        (b"Authorization:\r\n", 401),
        (b"Authorization:\t \t\r\n", 401),
        (b"Cookie: earshot-session=\xff; =; ;;earshot-session\r\n", 401),
        (b"Authorization: Bearer a\x00b\r\n", 400),
        (b"Authorization: Bearer a\x1bb\r\n", 400),
        (b"Authorization: Bearer a\x7fb\r\n", 400),
        (b"Authorization: Bearer a\r\n b\r\n", 400),  # a folded line
        (b"Authorization : Bearer a\r\n", 400),
        (b"Authoriz\xe4tion: Bearer a\r\n", 400),
        (b"Authorization: Bearer " + b"A" * 40_000 + b"\r\n", 431),
        (b"Authorization: a\r\n" * 101, 431),
    ],
)
def test_what_a_field_may_hold_at_all(server: Server, fields: bytes, answered: int) -> None:
    with Door(server.app, PATIENT, 1).open() as door:
        for path in (PHASES.encode(), METRICS.encode()):
            words = b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + fields
            assert_answered(door, words + b"\r\n", answered)


HOSTS = {
    b"earshot.example": True,
    b"earshot.example:8443": True,
    b"EARSHOT_example.": True,
    b"127.0.0.1:80": True,
    b"[::1]:80": True,
    b"[2001:db8::1]": True,
    b"": True,
    b"xn--": True,
    b"x:": True,
    b"x" * 63 + b".example.": True,
    b"x" * 64: False,
    b"x" * 64 + b".example": False,
    b"a..b": False,
    b".a": False,
    b".": False,
    b"[": False,
    b"[::1": False,
    b"[x]": False,
    b"::1": False,
    b"a b": False,
    b"a/b": False,
    b"a\\b": False,
    b"a@b": False,
    b"a,b": False,
    b"a?b": False,
    b"a#b": False,
    b"a%00": False,
    b"\xff": False,
    b"b\xc3\xbccher.example": False,
    b"<script>": False,
    b'"': False,
    b"x:999999": False,
    b"x:-1": False,
    b"x:y": False,
    b"x:1:2": False,
}


def test_a_host_is_a_name_or_an_address_and_perhaps_a_port(server: Server) -> None:
    with Door(server.app, PATIENT, 1).open() as door:
        for host, is_one in HOSTS.items():
            end = b" HTTP/1.1\r\nConnection: close\r\nAccept: text/html\r\nHost: " + host
            for path, answered in ((b"/health/live", 200), (b"/", 303)):
                words = b"GET " + path + end + b"\r\n\r\n"
                assert_answered(door, words, answered if is_one else 400)
        for target in (b"/\xff", b"/\xc3\xa9", b"/?a=\xff", b"/\x7f", b"/\x01"):
            words = b"GET " + target + b" HTTP/1.1\r\nConnection: close\r\nHost: x\r\n\r\n"
            assert_answered(door, words, 400)


def assert_answered(door: Door, words: bytes, answered: int) -> None:
    heard = b""
    with door.say(words) as client, contextlib.suppress(ConnectionResetError):
        while received := client.recv(65_536):
            heard += received
    assert int(heard.split()[1]) == answered, (words[:200], heard)
    if answered == 400:
        assert DETAILS[BAD_REQUEST].encode() in heard
    if answered >= 400:
        assert b"urn:earshot:problem:" in heard
