"""Files that people write, as editors, spreadsheets and other machines leave them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from earshot_models.commands.train import _credits
from earshot_models.datasets import audioset, speech_commands
from earshot_models.datasets.dataset import rows
from earshot_models.distillation import targets
from earshot_models.teachers import ensemble
from earshot_models.training import CheckpointError, _Checkpoint
from earshot_models.votes.students import read_answers
from earshot_models.votes.tally import journal as labellings
from earshot_protocol.errors import InvalidInputError
from earshot_server.commands.phase.hierarchy import asked
from earshot_server.credentials import TOKEN_FILE
from earshot_server.operator_client import read_token
from earshot_simulations.phases import kept
from earshot_simulations.sweeps import plan
from earshot_simulations.sweeps import rows as sweeps

MARK = b"\xef\xbb\xbf"
"""Byte order mark, with which Windows begins a file of UTF-8."""
DEEP = b"[" * 100_000

SWEEP = (
    'seeds = 2\r\n[settings]\r\nphones = 200\r\npolicy = "café"\r\n[grid]\r\nepsilon = [1.0]\r\n'
)
SETTINGS = "[settings]\r\nphones = 200\r\n# café\r\n"
HIERARCHY = '{"café": ["taxi"],\r\n "home": ["kitchen"]}\r\n'
TABLE = "file,class\r\na.wav,café\r\n"
SEGMENTS = '# YTID, start\r\nabc, 1.0, 2.0, "/m/1,/m/é"\r\n'
WORDS = "yes/1_nohash_0.wav\r\ncafé/1_nohash_0.wav\r\n"


def _hierarchy(file: Path) -> object:
    return asked(None, file)


def _table(file: Path) -> object:
    return rows(file, ("file", "class"))


def _words(file: Path) -> object:
    (file.parent / "validation_list.txt").write_bytes(file.read_bytes())
    (file.parent / "testing_list.txt").touch()
    (file.parent / "yes").mkdir(exist_ok=True)
    (file.parent / "yes" / "1_nohash_0.wav").touch()
    return speech_commands.load(file.parent).clips[0].split


@pytest.mark.parametrize(
    ("name", "read", "text"),
    [
        ("sweep.toml", plan.read, SWEEP.replace("café", "anything")),
        ("run.toml", plan.read_settings, SETTINGS),
        ("hierarchy.json", _hierarchy, HIERARCHY),
        ("table.csv", _table, TABLE),
        ("eval_segments.csv", audioset._segments, SEGMENTS),
        ("list.txt", _words, WORDS),
        ("answers.csv", read_answers, "query,answer\r\n0,1\r\n1,\r\n"),
    ],
)
def test_a_byte_order_mark_changes_nothing(
    name: str, read: Callable[[Path], object], text: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(text.encode())
    without = read(file)
    file.write_bytes(MARK + text.encode())
    np.testing.assert_equal(read(file), without)


@pytest.mark.parametrize(
    ("name", "read", "text", "line"),
    [
        ("sweep.toml", plan.read, SWEEP, 4),
        ("run.toml", plan.read_settings, SETTINGS, 3),
        ("hierarchy.json", _hierarchy, HIERARCHY, 1),
        ("table.csv", _table, TABLE, 2),
        ("eval_segments.csv", audioset._segments, SEGMENTS, 2),
        ("validation_list.txt", _words, WORDS, 2),
    ],
)
def test_another_encoding_is_named_with_its_line(
    name: str, read: Callable[[Path], object], text: str, line: int, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(
        InvalidInputError, match=rf"{name}, line {line}: is not UTF-8 \(byte 0xe9\)"
    ):
        read(file)
    file.write_bytes(text.encode("utf-16"))
    with pytest.raises(InvalidInputError, match=r"line 1: is not UTF-8.*save the file as UTF-8"):
        read(file)


def _targets(file: Path) -> object:
    return targets._open(file.parent, {}, (1, 1))


def _ensemble(file: Path) -> object:
    return ensemble._listed(file.parent)


def _sweep_rows(file: Path) -> object:
    with sweeps.opened(file) as found:
        return found


def _labelling(file: Path) -> object:
    file.chmod(0o600)
    with labellings.opened(file, {}) as found:
        return found


def _checkpoint(file: Path) -> object:
    return _Checkpoint(file.parent.parent, {}).restore(None)  # type: ignore[arg-type]  # not reached


@pytest.mark.parametrize(
    ("name", "read", "content"),
    [
        ("sweep.toml", plan.read, b"a = " + DEEP),
        ("run.toml", plan.read_settings, b"a = " + DEEP),
        ("run.toml", plan.read_settings, b"a = " + b"9" * 5000),
        ("result.json", kept.read, DEEP),
        ("result.json", kept.read, b"9" * 5000),
        ("hierarchy.json", _hierarchy, DEEP),
        ("hierarchy.json", _hierarchy, b'{"a": ' + b"9" * 5000 + b"}"),
        ("hierarchy.json", _hierarchy, b'{"home": ["kitchen"], "home": ["garden"]}'),
        ("hierarchy.json", _hierarchy, b'{"home": ["\\ud800"]}'),
        ("ensemble.json", _ensemble, DEEP),
        (targets._ABOUT, _targets, DEEP),
        ("rows.jsonl", _sweep_rows, DEEP + b"\n"),
        ("labelling.jsonl", _labelling, DEEP + b"\n"),
        ("checkpoint/state.json", _checkpoint, DEEP),
        ("answers.csv", read_answers, b'"' + b"a" * 200_000),
        ("table.csv", _table, b'"' + b"a" * 200_000),
        ("eval_segments.csv", audioset._segments, b'"' + b"a" * 200_000),
        ("eval_segments.csv", audioset._segments, b"abc, soon, later, /m/1\n"),
    ],
)
def test_what_is_too_deep_too_long_or_twice_is_named(
    name: str, read: Callable[[Path], object], content: bytes, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    with pytest.raises((InvalidInputError, CheckpointError)) as refused:
        read(file)
    assert str(file.parent) in str(refused.value)


@pytest.mark.parametrize("content", ["José, 1998".encode("latin-1"), MARK + "José, 1998".encode()])
def test_a_licence_is_kept_in_whatever_encoding(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_bytes(content)
    assert _credits([tmp_path]) == f"{tmp_path.name}/LICENSE\n\nJosé, 1998"


@pytest.mark.parametrize("around", ["{}\r\n", "\ufeff{}\n", " {} \n\n"])
def test_what_an_editor_adds_is_no_part_of_a_token(
    around: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EARSHOT_OPERATOR_TOKEN", raising=False)
    (tmp_path / TOKEN_FILE).write_bytes(around.format("token").encode())
    assert read_token(tmp_path) == "token"
    assert json.dumps(read_token(tmp_path)) == '"token"'
