"""A helper as its operator runs it: three requests over HTTP, and what is refused."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support.helper_server import Heard, HelperProcess, helper_running
from support.networked import await_
from support.operators import (
    NO_NOISE,
    Operators,
    another_list,
    closed,
    entries,
    inputs_of,
    listed,
    reported,
    request,
    terms,
    total_of,
)

from earshot_protocol.api import JSON, LARGEST_SMALL_BODY, MESSAGEPACK, Problem
from earshot_protocol.files import replace_file
from earshot_protocol.messages import decode_helper_answer
from earshot_protocol.privacy.sum_noise import WholeLaplace
from earshot_protocol.secure_sum import encoding
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.signatures import sign
from earshot_protocol.two_operators.leader import Leader
from earshot_protocol.two_operators.messages import (
    AddUp,
    HelperTotal,
    PhoneReport,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.refusals import HelperRefusalError
from earshot_protocol.two_operators.shares import unseal
from earshot_protocol.two_operators.transport import (
    LARGEST_PART,
    OFFER_PATH,
    PART_PATH,
    TOTAL_PATH,
    ListPart,
    parts_of,
)
from earshot_protocol.wire import encode
from earshot_server.api.health import LIVE
from earshot_server.helper.api import _TITLES, LARGEST_LIST_BODY
from earshot_server.helper.folder import HelperFolder

KEY, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
NOISY = WholeLaplace.of(20.0)


@pytest.fixture(scope="module")
def helper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HelperProcess]:
    identities = (key.public_key().public_bytes_raw() for key in (KEY, OTHER))
    with helper_running(tmp_path_factory.mktemp("helper") / "data", *identities) as running:
        yield running


@dataclass
class Sum:
    """A sum that was offered, and what phones reported."""

    operators: Operators
    leader: Leader
    reports: dict[int, PhoneReport]

    @property
    def list(self) -> AddUp:
        """The list of all reports."""
        reports = b"".join(each.report_id + each.sealed for each in self.reports.values())
        offer = self.leader._offer
        return another_list(
            self.operators,
            AddUp(sum_id=offer.sum_id, offer=offer.digest(), reports=reports, signature=bytes(64)),
            reports,
        )


def offered(
    helper: HelperProcess, phones: int = 20, agreed: TwoOperatorParameters | None = None
) -> Sum:
    """A sum with the reports of some of its twenty phones."""
    operators = Operators(leader=KEY, elsewhere=helper.identity)
    leader = operators.begin(agreed or terms())
    heard = helper.post(KEY, OFFER_PATH, encode(request(leader)))
    assert (heard.status, heard.fields["content-type"]) == (200, MESSAGEPACK), heard.body
    leader.accept(HELPER, decode_helper_answer(heard.body))
    leader.advance()
    inputs = inputs_of(range(phones), leader.parameters.shape)
    return Sum(
        operators,
        leader,
        {phone: reported(leader, phone, vector) for phone, vector in inputs.items()},
    )


def asked(helper: HelperProcess, task: AddUp) -> Heard:
    return helper.post(KEY, TOTAL_PATH, encode(task))


def total_in(heard: Heard) -> HelperTotal:
    assert heard.status == 200, heard.body
    return total_of(decode_helper_answer(heard.body))


def check_problem(heard: Heard, status: int, name: str) -> Problem:
    assert (heard.status, heard.problem) == (status, name), heard.body
    assert heard.fields["content-type"] == "application/problem+json"
    assert ("retry-after" in heard.fields) == (status == 503)
    assert heard.fields.get("www-authenticate", "").startswith("Signature") == (status == 401)
    return msgspec.json.decode(heard.body, type=Problem)


# ----------------------------------------------------------------------------------------- a sum


def test_a_sum_over_http_is_that_of_its_inputs(helper: HelperProcess) -> None:
    sum_ = offered(helper)
    for phone, report in sum_.reports.items():
        sum_.leader.accept(phone, report)
    sum_.leader.advance()
    task = listed(sum_.leader)
    assert task == sum_.list
    first = asked(helper, task)
    assert asked(helper, task).body == first.body
    assert not (helper.data / "keys" / f"{task.sum_id.hex()}.key").exists()
    total = closed(sum_.leader, total_in(first), sum_.reports.items())
    np.testing.assert_array_equal(total, sum(inputs_of(range(20)).values()))


PART_ENTRIES = LARGEST_PART // 96


def test_a_list_in_parts_is_added_up_and_its_parts_dropped(helper: HelperProcess) -> None:
    """Fifteen reports, in the midst of garbage that makes two full parts and a short one."""
    agreed = terms(phones=3 * PART_ENTRIES, window=0.2, noise=NO_NOISE)
    sum_ = offered(helper, 15, agreed)
    real = entries(sum_.list)
    garbage = [os.urandom(96) for _ in range(2 * PART_ENTRIES)]
    everything = garbage[:PART_ENTRIES] + real + garbage[PART_ENTRIES:]
    task = another_list(sum_.operators, sum_.list, b"".join(everything))
    parts = list(parts_of(task))
    assert [len(part.entries) for part in parts] == [LARGEST_PART, LARGEST_PART, 15 * 96]
    named = msgspec.structs.replace(task, reports=b"")
    lists = helper.data / "lists" / task.sum_id.hex()
    await_(lambda: time.time() > sum_.leader._offer.closes, "the end of the window")
    told = []
    for _ in range(2):  # the second time, it has forgotten the list, and not its answer
        check_problem(asked(helper, named), 400, "malformed")
        for part in (parts[0], *parts):  # one is repeated
            heard = helper.post(KEY, PART_PATH, encode(part))
            assert (heard.status, heard.body) == (204, b"")
        assert sorted(each.name for each in lists.iterdir()) == ["0", "1", "2"]
        told.append(asked(helper, named).body)
        assert not lists.exists()
    assert told[0] == told[1]
    answer = total_of(decode_helper_answer(told[0]))
    assert answer.refused == b"".join(each[:16] for each in garbage)
    opened = encoding.unpack(answer.total, agreed)
    for report in sum_.reports.values():
        opened = opened + encoding.unpack(report.share, agreed)
    np.testing.assert_array_equal(
        encoding.decode(opened, agreed), sum(inputs_of(range(15)).values())
    )


def test_a_list_in_parts_is_read_once_whatever_it_is_answered(helper: HelperProcess) -> None:
    """Otherwise requests of some bytes would each have the helper read a long list."""
    sum_ = offered(helper, 15, terms(phones=2 * PART_ENTRIES))
    task = another_list(sum_.operators, sum_.list, os.urandom(96 * (PART_ENTRIES + 1)))
    for named, status, name in (
        (msgspec.structs.replace(task, reports=b""), 503, "early"),
        (msgspec.structs.replace(task, reports=b"", signature=bytes(64)), 400, "malformed"),
    ):
        for part in parts_of(task):
            assert helper.post(KEY, PART_PATH, encode(part)).status == 204
        check_problem(asked(helper, named), status, name)
        assert not (helper.data / "lists" / task.sum_id.hex()).exists()


def test_another_list_in_parts_takes_the_place_of_the_first(helper: HelperProcess) -> None:
    sum_ = offered(helper)
    task, folder = sum_.list, helper.data / "lists" / sum_.list.sum_id.hex()
    agreed = terms(phones=3 * PART_ENTRIES)
    long = offered(helper, 1, agreed).list.sum_id
    folder = helper.data / "lists" / long.hex()

    def sent(number: int, entries: bytes) -> list[str]:
        part = ListPart(sum_id=long, number=number, entries=entries)
        assert helper.post(KEY, PART_PATH, encode(part)).status == 204
        return sorted(each.name for each in folder.iterdir())

    full, other = bytes(LARGEST_PART), b"\1" * LARGEST_PART
    assert sent(0, full) == ["0"]
    assert sent(1, full) == ["0", "1"]
    assert sent(2, full) == ["0", "1", "2"]
    assert sent(1, full[96:]) == ["0", "1"]  # a part that is not full is the last
    assert sent(0, full) == ["0", "1"]  # the same once more
    assert sent(0, other) == ["0"]
    assert total_in(asked(helper, task)).reports


# ------------------------------------------------------------------------------------ who may ask


def test_who_does_not_sign_as_an_allowed_leader_is_told_before_a_body_is_sent(
    helper: HelperProcess,
) -> None:
    body = bytes(LARGEST_PART)
    path, now = PART_PATH, int(time.time())
    stranger = Ed25519PrivateKey.generate()
    mine, theirs = (each.public_key().public_bytes_raw().hex() for each in (KEY, stranger))
    bad = "bad-signature"
    for name, fields in (
        (bad, {}),
        (bad, sign(stranger, mine, now, path, MESSAGEPACK, body)),
        (bad, sign(KEY, mine, now, OFFER_PATH, MESSAGEPACK, body)),
        (bad, sign(KEY, "new", now, path, MESSAGEPACK, body)),
        (bad, sign(KEY, mine[:-2], now, path, MESSAGEPACK, body)),
        (bad, sign(KEY, mine, now - 1000, path, MESSAGEPACK, body)),
        ("unknown-leader", sign(stranger, theirs, now, path, MESSAGEPACK, body)),
    ):
        check_problem(only_fields(helper, path, len(body), fields), 401, name)
    named = f'"leader": "{theirs}"'  # whom to allow, if it should be
    await_(lambda: named in helper.log.read_text(), "the refused leader in the log")
    stale = only_fields(helper, path, 9, sign(KEY, mine, now - 1000, path, MESSAGEPACK, body))
    assert msgspec.json.decode(stale.body, type=Problem).now == pytest.approx(now, abs=60)


def only_fields(helper: HelperProcess, path: str, size: int, fields: dict[str, str]) -> Heard:
    """What is said to who announces a body, and does not send it."""
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Type: {MESSAGEPACK}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    lines += [f"Content-Length: {size}", "", ""]
    with socket.create_connection(("127.0.0.1", helper.port), timeout=60) as connection:
        connection.sendall("\r\n".join(lines).encode())
        said = b""
        while (
            found := re.search(rb"content-length: (\d+).*?\r\n\r\n(.*)", said, re.S)
        ) is None or (len(found[2]) < int(found[1])):
            received = connection.recv(65_536)
            assert received, said
            said += received
    head = said.partition(b"\r\n\r\n")[0].decode().splitlines()
    named = dict(line.split(": ", 1) for line in head[1:])
    return Heard(int(head[0].split()[1]), named, found[2])


def test_a_body_that_is_not_the_signed_one_is_refused(helper: HelperProcess) -> None:
    sum_ = offered(helper)
    body = encode(sum_.list)
    name = KEY.public_key().public_bytes_raw().hex()
    fields = sign(KEY, name, int(time.time()), TOTAL_PATH, MESSAGEPACK, body)
    bent = body[:-1] + bytes([body[-1] ^ 1])
    check_problem(helper.send(TOTAL_PATH, bent, fields), 401, "bad-signature")
    total_in(asked(helper, sum_.list))


def test_a_leader_is_told_nothing_of_another_s_sums(helper: HelperProcess) -> None:
    sum_ = offered(helper)
    task = sum_.list
    part = ListPart(sum_id=task.sum_id, number=0, entries=task.reports)
    for path, message in ((TOTAL_PATH, task), (PART_PATH, part)):
        check_problem(helper.post(OTHER, path, encode(message)), 409, "unknown-sum")
    check_problem(
        helper.post(OTHER, OFFER_PATH, encode(request(sum_.operators.begin()))),
        401,
        "unknown-leader",
    )
    total_in(asked(helper, task))


def test_who_is_no_longer_allowed_is_not_served(helper: HelperProcess) -> None:
    sum_ = offered(helper)
    try:
        helper.earshot("forbid", KEY.public_key().public_bytes_raw().hex())
        check_problem(asked(helper, sum_.list), 401, "unknown-leader")
        helper.allow(KEY.public_key().public_bytes_raw(), "--least-reports", "21")
        task = encode(request(sum_.operators.begin()))
        detail = check_problem(helper.post(KEY, OFFER_PATH, task), 409, "against-policy").detail
        assert "least=10; at least 21" in detail
        helper.allow(
            KEY.public_key().public_bytes_raw(), *("--least-noise", "0", "--offers-a-day", "1")
        )
        asking = request(sum_.operators.begin(terms(phones=60, least=50)))
        heard = helper.post(KEY, OFFER_PATH, encode(asking))
        check_problem(heard, 503, "too-many-offers")
        assert heard.fields["retry-after"] == "3600"
        total_in(asked(helper, sum_.list))
    finally:
        allow_on_any_terms(helper)


def allow_on_any_terms(helper: HelperProcess) -> None:
    helper.allow(KEY.public_key().public_bytes_raw(), "--least-reports", "2", "--least-noise", "0")


# -------------------------------------------------------------------------------- what is refused


def test_a_list_that_comes_early_may_come_again(helper: HelperProcess) -> None:
    sum_ = offered(helper, 15)
    heard = asked(helper, sum_.list)
    check_problem(heard, 503, "early")
    assert 1 <= int(heard.fields["retry-after"]) <= 1000


def test_lists_that_cannot_be_answered_are_refused_by_name(helper: HelperProcess) -> None:
    sum_ = offered(helper)
    task = sum_.list
    few = offered(helper, 9, terms(phones=10, window=0.1))
    twice = another_list(sum_.operators, task, b"".join(entries(task)[:-1] + entries(task)[:1]))
    time.sleep(0.2)
    for name, bent in (
        ("unknown-sum", msgspec.structs.replace(task, sum_id=bytes(16))),
        ("wrong-list", twice),
        ("too-few", few.list),
    ):
        check_problem(asked(helper, bent), 409, name)
    check_problem(
        asked(helper, msgspec.structs.replace(task, signature=bytes(64))), 400, "malformed"
    )
    total_in(asked(helper, task))
    check_problem(
        asked(helper, another_list(sum_.operators, task, b"".join(entries(task)[::-1]))),
        409,
        "already-answered",
    )


def test_a_list_that_comes_late_is_refused_and_its_parts_are_too(helper: HelperProcess) -> None:
    operators = Operators(leader=KEY, elsewhere=helper.identity)
    asking = request(operators.begin(terms(window=0.1)))
    asking = operators.signed(msgspec.structs.replace(asking, patience=0.1))
    heard = helper.post(KEY, OFFER_PATH, encode(asking))
    offer = decode_helper_answer(heard.body).offer  # type: ignore[attr-defined]
    task = AddUp(sum_id=offer.sum_id, offer=offer.digest(), reports=bytes(96), signature=bytes(64))
    time.sleep(0.3)
    part = ListPart(sum_id=offer.sum_id, number=0, entries=bytes(96))
    check_problem(helper.post(KEY, PART_PATH, encode(part)), 409, "late")
    check_problem(asked(helper, another_list(operators, task, bytes(96))), 409, "late")
    assert not (helper.data / "keys" / f"{offer.sum_id.hex()}.key").exists()


def test_parts_beyond_the_crowd_are_not_kept(helper: HelperProcess) -> None:
    sum_id = offered(helper).list.sum_id
    for number, size in ((0, 20 * 96 + 1), (1, 96)):
        part = ListPart(sum_id=sum_id, number=number, entries=bytes(size))
        check_problem(helper.post(KEY, PART_PATH, encode(part)), 409, "wrong-list")
    assert not (helper.data / "lists" / sum_id.hex()).exists()


@pytest.mark.parametrize("path", [OFFER_PATH, PART_PATH, TOTAL_PATH])
def test_garbage_is_malformed(helper: HelperProcess, path: str) -> None:
    sum_ = offered(helper)
    wait = msgspec.msgpack.encode({"type": "wait", "seconds": 1.0})
    whole = encode(sum_.list)
    others = (
        [encode(sum_.list)] if path != TOTAL_PATH else [encode(request(sum_.operators.begin()))]
    )
    deep = b"\x91" * 20_000
    for body in (b"", b"\xc1", os.urandom(200), wait, whole[:-5], deep, *others):
        check_problem(helper.post(KEY, path, body), 400, "malformed")


def test_bodies_of_another_kind_or_size_are_not_read(helper: HelperProcess) -> None:
    now, name = int(time.time()), KEY.public_key().public_bytes_raw().hex()
    fields = sign(KEY, name, now, OFFER_PATH, JSON, b"{}") | {"Content-Type": JSON}
    check_problem(helper.send(OFFER_PATH, b"{}", fields), 415, "unsupported-media")
    for path, most in (
        (OFFER_PATH, LARGEST_SMALL_BODY),
        (PART_PATH, LARGEST_LIST_BODY),
        (TOTAL_PATH, LARGEST_LIST_BODY),
    ):
        fields = sign(KEY, name, now, path, MESSAGEPACK, b"")
        problem = check_problem(only_fields(helper, path, most + 1, fields), 413, "too-large")
        assert f"{LARGEST_LIST_BODY} bytes" in problem.detail


def test_offers_that_no_sum_can_have_are_refused_and_never_a_mistake_of_ours(
    helper: HelperProcess,
) -> None:
    operators = Operators(leader=KEY, elsewhere=helper.identity)
    asking = request(operators.begin())
    for bent in (
        terms(phones=2),
        terms(bound=0),
        terms(bound=2**63),
        terms(shape=()),
        terms(shape=(2**20, 2**20)),
        terms(shape=(0,)),
        terms(least=21),
        terms(window=float("inf")),
        terms(window=float("nan")),
        terms(noise=WholeLaplace(0)),
        terms(noise=WholeLaplace(2**62 + 1)),
    ):
        sent = operators.signed(
            msgspec.structs.replace(asking, parameters=bent, sum_id=os.urandom(16))
        )
        heard = helper.post(KEY, OFFER_PATH, encode(sent))
        if bent.shape == ():
            assert heard.status == 200  # one number
            continue
        assert heard.status in (400, 409), (bent, heard)
        assert heard.problem in ("malformed", "against-policy"), bent


def test_every_refusal_has_a_title() -> None:
    assert set(_TITLES) == set(HelperRefusalError.__subclasses__())
    assert len(set(_TITLES.values())) == len(_TITLES)


@pytest.mark.slow
def test_slow_leaders_hold_nobody_up_and_are_cut_off(helper: HelperProcess) -> None:
    name = KEY.public_key().public_bytes_raw().hex()
    fields = sign(KEY, name, int(time.time()), PART_PATH, MESSAGEPACK, b"x" * 10)
    with socket.create_connection(("127.0.0.1", helper.port), timeout=120) as half:
        half.sendall(b"POST /v1/offer HTTP/1.1\r\nHost")
        check_problem(only_fields(helper, OFFER_PATH, 10, fields), 401, "bad-signature")
        fields = sign(KEY, name, int(time.time()), OFFER_PATH, MESSAGEPACK, b"x" * 10)
        check_problem(only_fields(helper, OFFER_PATH, 10, fields), 408, "too-slow")
        assert half.recv(1) == b""  # cut off meanwhile
    total_in(asked(helper, offered(helper).list))


# -------------------------------------------------------------------------- beside what it is for


def test_health_figures_and_paths(helper: HelperProcess) -> None:
    assert helper.get(LIVE).body == b'{"status":"live"}'
    assert helper.get("/health/ready").body == b'{"status":"ready"}'
    token = (helper.data / "operator.token").read_text().strip()
    for fields in ({}, {"Authorization": f"Bearer {token[:-1]}x"}, {"Authorization": "Basic eDp5"}):
        heard = helper.get("/metrics", **fields)
        assert (heard.status, heard.problem) == (401, "operator")
    total_in(asked(helper, offered(helper).list))
    check_problem(asked(helper, offered(helper, 15).list), 503, "early")
    text = helper.get("/metrics", Authorization=f"Bearer {token}").body.decode()
    for figure in (
        r'earshot_helper_sums\{state="answered"\} [1-9]',
        r'earshot_helper_sums\{state="open"\} [1-9]',
        r"earshot_helper_leaders 2",
        r'earshot_helper_kept\{what="keys"\} [1-9]',
        r'earshot_helper_kept\{what="totals"\} [1-9]',
        r'earshot_helper_kept\{what="sums"\} [1-9]',
        r'earshot_helper_kept_seconds\{what="keys"\} [0-9.e-]+[1-9]',
        r"earshot_helper_late_keys 0",
        r'earshot_helper_refusals_total\{name="early"\} [1-9]',
        r'earshot_requests_total\{endpoint="/v1/total",method="POST",status="200"\} [1-9]',
        r'earshot_problems_total\{kind="early"\} [1-9]',
    ):
        assert re.search(figure, text), (figure, text)
    page = helper.get("/", Accept="text/html")
    assert (page.status, page.problem) == (404, "unknown-path")
    assert helper.get(OFFER_PATH).status == 405


def test_neither_identity_nor_seeds_keys_or_noise_are_in_log_or_database(
    helper: HelperProcess,
) -> None:
    data = helper.data
    done, left = (offered(helper, agreed=terms(noise=NOISY)) for _ in range(2))
    hidden = [(data / "operator.token").read_bytes().strip()]
    hidden += re.findall(rb"\n([A-Za-z0-9+/=]{40,})\n", (data / "helper.key").read_bytes())
    assert len(hidden) == 2
    folder = HelperFolder.open(data)
    for each in (done, left):
        secret = folder.book.secret(each.list.sum_id)
        assert secret is not None
        assert len(secret.noise) == 48
        hidden += [secret.key, secret.noise]
        key = X25519PrivateKey.from_private_bytes(secret.key)
        for report in each.reports.values():
            seed = unseal(report.sealed, key, each.list.offer, report.report_id)
            assert seed is not None
            hidden.append(seed)
    folder.database.close()
    total_in(asked(helper, done.list))
    check_problem(
        asked(helper, another_list(done.operators, done.list, bytes(96))),
        409,
        "already-answered",
    )
    helper.kill()  # so that the log of the database stays
    assert (data / "helper.db-wal").stat().st_size > 10_000
    for file in (helper.log, *data.glob("helper.db*")):
        content = file.read_bytes()
        for one in hidden:
            forms = (one, one.hex().encode(), base64.b64encode(one), repr(one).encode())
            assert not any(form in content for form in forms), (file, len(one))
    assert not (data / "keys" / f"{done.list.sum_id.hex()}.key").exists()
    helper.start()
    total_in(asked(helper, left.list))


MOVED = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from earshot_server.helper import serving, sqlite_book
clock = Path(sys.argv.pop(1))
serving._TIDY_EVERY, sqlite_book.KEPT_AFTER = 0.1, 0.0
serving.time = SimpleNamespace(
    monotonic=time.monotonic, time=lambda: time.time() + float(clock.read_text())
)
from earshot_client.command import main
main()
"""
"""Program whose supervisor looks at a clock that a file moves, and keeps nothing for a minute."""


def test_a_helper_that_nobody_asks_erases_keys_and_totals_by_its_own_clock(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    helper = HelperProcess(tmp_path / "data")
    allow_on_any_terms(helper)
    helper.program = (sys.executable, "-c", MOVED, str(clock))
    helper.start()
    try:
        open_ = offered(helper)
        left, done = (offered(helper, agreed=terms(window=0.1)) for _ in range(2))
        keys = [helper.data / "keys" / f"{each.list.sum_id.hex()}.key" for each in (open_, left)]
        assert all(key.exists() for key in keys)
        total_in(asked(helper, done.list))
        ends = left.leader._offer.answer_until
        assert ends < open_.leader._offer.answer_until - 900
        replace_file(clock, str(ends + 1 - time.time()).encode())
        # Nobody asks for anything from here on.
        await_(lambda: not keys[1].exists(), "the end of a late key")

        def kept() -> dict[str, int]:
            state = json.loads(helper.earshot("show", "--json"))
            assert state["sums"] == {"offered": 3, "open": 1, "answered": 1, "lapsed": 1}
            return {what: each["count"] for what, each in state["kept"].items()}

        await_(lambda: kept() == {"keys": 1, "totals": 0, "sums": 3}, "the end of a late total")
        total_in(asked(helper, open_.list))
        check_problem(asked(helper, done.list), 409, "late")
        assert helper.stop() == 0
    except BaseException:
        helper.kill()
        raise


def test_a_helper_that_is_killed_gives_the_same_answer_once_it_is_back(
    helper: HelperProcess,
) -> None:
    sum_, left = (offered(helper, agreed=terms(noise=NOISY)) for _ in range(2))
    asking = encode(request(sum_.operators.begin()))
    made, told = helper.post(KEY, OFFER_PATH, asking), asked(helper, sum_.list)
    total_in(told)
    helper.kill()
    helper.start()
    assert helper.post(KEY, OFFER_PATH, asking).body == made.body
    assert asked(helper, sum_.list).body == told.body
    total_in(asked(helper, left.list))
