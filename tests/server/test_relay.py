"""Who writes never waits for who reads, and what is not passed on is counted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from support.full_disk import room_for
from support.networked import await_

from earshot_server.processes import relay
from earshot_server.processes.relay import Relay

LINE = b'{"level": "INFO", "number": %7d}\n'
PIPE = 2**16
"""Bytes that a pipe holds."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe: where it is read, and where it is written."""
    read, write = os.pipe()
    yield read, write
    for end in (read, write):
        with suppress(OSError):  # the test has closed it
            os.close(end)


def say(stream: int, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        os.write(stream, LINE % number)


def read_to(read: int, until: bytes) -> list[bytes]:
    """Read lines up to one that holds some bytes."""
    with os.fdopen(os.dup(read), "rb") as source:
        lines = []
        while not lines or until not in lines[-1]:
            lines.append(source.readline())
    return lines


def take(read: int, until: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in read_to(read, until)]


def test_lines_wait_for_a_reader_and_whoever_writes_does_not(pipe: tuple[int, int]) -> None:
    read, write = pipe
    count = 10 * PIPE // len(LINE)
    with Relay(write):
        say(write, count)
        lines = take(read, LINE % (count - 1))
    assert [line["number"] for line in lines] == list(range(count))


def test_lines_that_nobody_takes_are_counted_where_they_are_missing(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = pipe
    monkeypatch.setattr(relay, "LARGEST_BACKLOG", 2 * PIPE)
    count = 10 * PIPE // len(LINE)
    with Relay(write):
        say(write, count)
        lines = take(read, b"missing")
        say(write, 10, first=count)
        lines += take(read, LINE % (count + 9))
    (place,) = (at for at, line in enumerate(lines) if "number" not in line)
    lost = lines[place]["lines"]
    assert lines[place]["level"] == "WARNING"
    assert isinstance(lost, int)
    line = len(LINE % 0)
    # What waits, and what has passed into the pipe by then: nothing, where its thread is late.
    assert 2 * PIPE - line < place * line < 4 * PIPE
    assert place + lost == count
    numbers = [line["number"] for line in lines if "number" in line]
    assert numbers == [*range(place), *range(count, count + 10)]


def test_a_reader_that_is_gone_is_none_and_another_one_may_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "_PAUSE", 0.01)
    os.mkfifo(tmp_path / "log")
    first = os.open(tmp_path / "log", os.O_RDONLY | os.O_NONBLOCK)
    write = os.open(tmp_path / "log", os.O_WRONLY)
    with Relay(write):
        os.close(first)
        say(write, 1000)
        second = os.open(tmp_path / "log", os.O_RDONLY)
        lines = take(second, LINE % 999)
    assert [line["number"] for line in lines] == list(range(1000))
    for end in (second, write):
        os.close(end)


def test_a_full_disk_cuts_no_line_and_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "_PAUSE", 0.01)
    log = tmp_path / "log"
    size = len(LINE % 0)
    write = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with Relay(write):
        with room_for(10 * size + 7):
            say(write, 100)
            await_(lambda: log.stat().st_size == 10 * size + 7, "a full disk")
        await_(lambda: log.stat().st_size == 100 * size, "the rest")
    os.close(write)
    assert log.read_bytes() == b"".join(LINE % number for number in range(100))


@pytest.mark.parametrize("gone", [False, True])
def test_it_ends_soon_though_nobody_reads_and_last_words_wait_for_nobody(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """Otherwise a server that has a reason to end would not."""
    read, write = pipe
    monkeypatch.setattr(relay, "_PATIENCE", 0.05)
    if gone:
        os.close(read)
    with Relay(write):
        say(write, 10 * PIPE // len(LINE))
    say(write, 10 * PIPE // len(LINE))


def test_what_was_said_before_the_end_is_passed_on_though_others_hold_the_stream(
    pipe: tuple[int, int],
) -> None:
    read, write = pipe
    with ExitStack() as stack:
        with Relay(write):
            held = os.dup(write)
            stack.callback(os.close, held)
            say(write, 3)
            os.write(held, b'{"unfinished": 1')
        os.write(write, LINE % 3)  # goes where it went before
    said = os.read(read, PIPE)
    assert said.startswith(b"".join(LINE % number for number in range(3)))
    assert said.endswith(LINE % 3)


def test_the_last_complaint_is_found_among_lines_that_inform(pipe: tuple[int, int]) -> None:
    raised = "Traceback (most recent call last):\\n  File x\\nKeyError: 7"
    with Relay(pipe[1]) as said:

        def words(*lines: str, since: float = 0.0) -> str:
            for line in (*lines, '{"level": "INFO", "message": "the end"}'):
                os.write(pipe[1], f"{line}\n".encode("latin-1"))
            read_to(pipe[0], b"the end")
            return said.last_words(since)

        assert words('{"level": "INFO", "message": "well"}') == ""
        assert words('{"level": "ERROR", "message": "odd"}') == "odd"
        failed = f'{{"level": "ERROR", "message": "a turn", "exc_info": "{raised}"}}'
        assert words(failed) == "a turn: KeyError: 7"
        assert words('{"level": "ERROR", "message": "Worker exited"}') == "a turn: KeyError: 7"
        assert words("Traceback:", "ImportError: no x") == "ImportError: no x"
        assert words('{"path": "\xff"}') == '{"path": "\ufffd"}', "it is not UTF-8"
        later = time.monotonic()
        assert words(since=later) == ""
