"""`earshot helper`: what its commands make and say, and what they refuse."""

from __future__ import annotations

import json
import re
import shutil
import socket
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.command import earshot, earshot_apart
from support.killed_helper import opened
from support.operators import Operators, request

from earshot_server.credentials import new_key
from earshot_server.helper.helper import DAY

LEADER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = LEADER.public_key().public_bytes_raw().hex()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with opened(tmp_path / "helper"):
        pass
    return tmp_path / "helper"


def said(*words: object) -> str:
    run = earshot("helper", *words)
    assert run.returncode == 0, run.stderr
    return run.stdout


def shown(data: Path) -> dict[str, object]:
    state = json.loads(said("show", "--data", data, "--json"))
    assert isinstance(state, dict)
    return state


def refused(*words: object) -> str:
    """What a process of its own says, and that it ends."""
    run = earshot_apart("helper", *words)
    assert (run.returncode, run.stdout) == (2, "")
    assert "Traceback" not in run.stderr
    return run.stderr


def test_a_helper_is_made_once_and_keeps_its_key(tmp_path: Path) -> None:
    key = said("init", "--data", tmp_path / "new" / "helper").strip()
    assert len(bytes.fromhex(key)) == 32
    assert said("init", "--data", tmp_path / "new" / "helper").strip() == key
    assert said("init", "--data", tmp_path / "other").strip() != key
    assert shown(tmp_path / "other") == {
        "helper": said("init", "--data", tmp_path / "other").strip(),
        "leaders": [],
        "sums": {"offered": 0, "open": 0, "answered": 0, "lapsed": 0},
        "kept": {what: {"count": 0, "since": None} for what in ("keys", "totals", "sums")},
        "refused": {},
    }


def test_leaders_are_allowed_by_terms_of_their_own(data: Path) -> None:
    usual = {
        "leader": KEY,
        "least_reports": 50,
        "least_noise": 0.5,
        "largest_window_days": 31.0,
        "largest_crowd": 10**6,
        "offers_a_day": 100,
    }
    assert said("allow", KEY.upper(), "--data", data) == f"leader {KEY} is served\n"
    assert shown(data)["leaders"] == [usual]
    said(
        *("allow", KEY, "--data", data, "--least-reports", 7, "--least-noise", 1.5),
        *("--largest-window-days", 3, "--largest-crowd", 90, "--offers-a-day", 2),
    )
    own = dict(zip(usual, (KEY, 7, 1.5, 3.0, 90, 2), strict=True))
    assert shown(data)["leaders"] == [own]
    with opened(data) as folder:
        policy = folder.leaders.policy(bytes.fromhex(KEY))
        assert policy is not None
        assert policy.leaders == {bytes.fromhex(KEY)}
        assert (policy.least_reports, policy.least_noise) == (7, 1.5)
        assert (policy.largest_window, policy.offers_a_day) == (3 * DAY, 2)
        assert policy.largest_crowd == 90
        assert folder.leaders.policy(bytes(32)) is None
    assert said("forbid", KEY, "--data", data) == f"leader {KEY} is no longer served\n"
    assert shown(data)["leaders"] == []
    run = earshot("helper", "forbid", KEY, "--data", data)
    assert run.returncode == 2
    assert "is not served: `earshot helper show` lists those that are" in run.stderr


def test_what_became_of_sums_is_shown(data: Path) -> None:
    operators = Operators(leader=LEADER, now=time.time())
    with opened(data, operators.now) as folder:
        operators.book = folder.book
        asked = [request(operators.begin()) for _ in range(3)]
        for each in asked:
            operators.helper.answer(each)
        folder.book.answer(asked[0].sum_id, b"list", b"total", operators.now)
        folder.book.erase(asked[1].sum_id)
        for name in ("early", "early", "too-few"):
            folder.leaders.count_refusal(name)
    said("allow", KEY, "--data", data)
    state = shown(data)
    assert state["sums"] == {"offered": 3, "open": 1, "answered": 1, "lapsed": 1}
    assert state["refused"] == {"early": 2, "too-few": 1}
    one = {"count": 1, "since": operators.now}
    assert state["kept"] == {"keys": one, "totals": one, "sums": one | {"count": 3}}
    told = said("show", "--data", data)
    assert "sums: 3 offered, 1 open, 1 answered, 1 lapsed\n" in told
    assert "refused: 2 early, 1 too-few\n" in told
    since = r"since \d+ \w+ \d{4}, \d\d:\d\d UTC \(just now\)"
    assert re.search(f"kept keys: 1, {since}; each until its answer, or until the time", told)
    assert re.search(f"kept totals: 1, {since}; each until 1 day after that time", told)
    assert re.search(f"kept sums: 3, {since}; for good, only number, digests and times", told)
    assert f"leader: {KEY}, with at least 50 reports" in told


@pytest.mark.parametrize("command", ["allow", "forbid", "show", "serve"])
def test_a_folder_without_a_helper_is_named(tmp_path: Path, command: str) -> None:
    key = [KEY] if command in ("allow", "forbid") else []
    words = refused(command, *key, "--data", tmp_path / "missing")
    assert "holds no helper" in words
    assert f"earshot helper init --data {tmp_path / 'missing'}" in words
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("command", ["allow", "forbid"])
@pytest.mark.parametrize("key", ["abc", KEY[:-2], KEY + "00", "g" * 64])
def test_what_is_no_leader_s_key_is_refused(data: Path, command: str, key: str) -> None:
    run = earshot("helper", command, key, "--data", data)
    assert run.returncode == 2
    assert "which has 64 hexadecimal digits" in run.stderr


def test_who_cannot_serve_says_why(data: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = refused("serve", "--data", data, "--port", port)
    assert f"cannot listen at 127.0.0.1:{port}" in words
    assert "choose another --host or --port" in words
    words = refused("serve", "--data", data, "--host", "0.0.0.0")  # noqa: S104 - it is refused
    assert "--proxies 1" in words
    assert "--workers 0: must be from 1 to 64" in refused("serve", "--data", data, "--workers", 0)
    operators = Operators(leader=LEADER, now=time.time())
    with opened(data, operators.now) as folder:
        operators.book = folder.book
        operators.helper.answer(request(operators.begin()))
    shutil.copytree(data, tmp_path / "copy")
    words = refused("serve", "--data", tmp_path / "copy", "--port", 0)
    assert f"{tmp_path / 'copy' / 'keys'} is a copy" in words
    (data / "helper.key").write_bytes(new_key())
    assert "is not the key of" in refused("serve", "--data", data, "--port", 0)
