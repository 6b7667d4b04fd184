"""Readers that stop early, full disks, closed streams, old encodings: a line or silence."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO
from unittest import mock

import pytest
from support.command import ended
from support.full_disk import room_for

from earshot_client.commands import standard_streams

LONG = "word " * 100_000
"""More than any buffer and any pipe holds."""
FAREWELL = "earshot: standard output: No space left on device\n"


@contextlib.contextmanager
def unread(encoding: str = "utf-8") -> Iterator[TextIO]:
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding=encoding, closefd=False) as stream:
        yield stream
    os.close(writer)


def full() -> TextIO:
    """A disk without room."""
    return open("/dev/full", "w", encoding="utf-8")


def status_of(command: Callable[[], object]) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        standard_streams.run(lambda: command() and None)
    return ended.value.code


# -------------------------------------------------------------------------------- readers and disks


@pytest.mark.parametrize("text", ["word", LONG])
def test_a_reader_that_has_gone_is_silence_and_a_pipe_s_status(
    text: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with unread() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert status_of(lambda: print(text)) == standard_streams.UNREAD == 141
        assert capfd.readouterr().err == ""


def test_a_reader_that_has_gone_ends_a_command_that_would_write_for_ever(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = 0

    def write_for_ever() -> None:
        nonlocal lines
        for lines in range(1, 100_001):  # noqa: B007 - counted
            with contextlib.suppress(OSError):  # as commands do around their own files
                print("word")

    with unread() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert status_of(write_for_ever) == standard_streams.UNREAD
        assert 0 < lines < 100_000  # once the first buffer is full
        assert capfd.readouterr().err == ""


def test_a_reader_that_has_gone_is_remembered_where_the_end_was_not_heard(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As in a thread, which ends alone."""

    def work() -> None:
        with contextlib.suppress(SystemExit):
            print("word", flush=True)

    with unread() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert status_of(work) == standard_streams.UNREAD
        assert capfd.readouterr().err == ""


@pytest.mark.parametrize("text", ["word", LONG])
def test_a_full_disk_is_a_line_after_the_work_is_done(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        print(text, flush=True)
        (tmp_path / "result").write_text("found", encoding="utf-8")
        print(text, flush=True)

    with full() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert status_of(work) == standard_streams.UNWRITTEN == 1
    assert (tmp_path / "result").exists()
    assert capfd.readouterr().err == FAREWELL


@pytest.mark.parametrize("code", [2, "why"])
def test_a_command_that_fails_besides_keeps_its_own_status(
    code: int | str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        print("word", flush=True)
        sys.exit(code)

    with full() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert status_of(fail) == code
    assert capfd.readouterr().err == ""


def test_standard_error_that_nobody_takes_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> None:
        for _ in range(3):
            print(LONG, file=sys.stderr, flush=True)
        print("found")

    for refused in (full, unread):
        with refused() as stream, (tmp_path / "out").open("w", encoding="utf-8") as out:
            monkeypatch.setattr(sys, "stderr", stream)
            monkeypatch.setattr(sys, "stdout", out)
            assert status_of(work) == 0
            assert (tmp_path / "out").read_text("utf-8") == "found\n"


def test_a_disk_that_has_room_again_is_written_to_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the log of a phone that runs for months."""
    with (tmp_path / "log").open("w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)

        def work() -> None:
            with room_for(10):
                print("first", file=sys.stderr)
                print("left out", file=sys.stderr)
            print("last", file=sys.stderr)

        assert status_of(work) == 0
    assert (tmp_path / "log").read_text("utf-8") == "first\nleftlast\n"


def test_a_stream_that_does_not_wait_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A program that shares its terminal or pipe with ours may have set it so."""
    go, wait = os.pipe()[::-1]
    selecting = select.select

    def waiting(*given: list[object]) -> tuple[list[object], ...]:
        os.write(go, b".")  # only now is anything read
        return selecting(*given)

    waited = mock.Mock(wraps=waiting)
    monkeypatch.setattr(select, "select", waited)
    program = (
        f"import os, sys; os.read({wait}, 1); assert sys.stdin.read() == {'word '!r} * 100_000"
    )
    with subprocess.Popen(  # noqa: S603 - the program is written above
        [sys.executable, "-c", program], stdin=subprocess.PIPE, pass_fds=[wait]
    ) as reader:
        assert reader.stdin is not None
        os.set_blocking(reader.stdin.fileno(), False)
        with os.fdopen(reader.stdin.fileno(), "w", encoding="utf-8", closefd=False) as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            assert status_of(lambda: print(LONG, end="")) == 0
        reader.stdin.close()
        assert reader.wait() == 0
    os.close(go)
    os.close(wait)
    assert waited.called, "or it would have asked again and again, as fast as it can"
    assert capfd.readouterr().err == ""


# ---------------------------------------------------------------------------------------- encodings


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_what_an_encoding_has_not_is_written_as_json_writes_it(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "ε ≤ 2 – Café, \U0001f3a4 \udcff"  # the last one of a file's name that is not UTF-8
    with (
        (tmp_path / "out").open("w", encoding=encoding) as out,
        (tmp_path / "err").open("w", encoding=encoding) as err,
    ):
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)

        def say() -> None:
            print(json.dumps({"name": text}, ensure_ascii=False))
            print(text, file=sys.stderr)

        assert status_of(say) == 0
        assert json.loads((tmp_path / "out").read_text(encoding)) == {"name": text}
        said = (tmp_path / "err").read_text(encoding)
    assert ("\\u03b5 \\u2264 2" in said) == (encoding != "utf-8")
    assert "\\udcff" in said


def test_what_is_typed_in_another_encoding_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "typed").write_bytes("caf\xe9\n".encode("latin-1"))
    with (tmp_path / "typed").open(encoding="utf-8") as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        assert status_of(lambda: print(input())) == 0
    assert capfd.readouterr().out == "caf\\xe9\n"


# --------------------------------------------------------------------------------------------- ends


def test_control_c_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    try:
        assert status_of(interrupted) == standard_streams.INTERRUPTED == 130
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)
    assert capfd.readouterr().err == ""


def test_a_mistake_of_ours_is_not_hidden(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise OSError(errno.EPIPE, "of another stream")

    with pytest.raises(BrokenPipeError):
        standard_streams.run(fail)


# ---------------------------------------------------------------------------------- a whole process


def shell(line: str, **environment: str) -> tuple[int, str, str]:
    """Exit status, output and errors of a line in which EARSHOT stands for the command."""
    command = line.replace("EARSHOT", f"{sys.executable} -m earshot_client")
    run = subprocess.run(  # noqa: S603
        ["bash", "-o", "pipefail", "-c", command],  # noqa: S607
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    return run.returncode, run.stdout, run.stderr


@pytest.mark.parametrize(
    ("line", "came"),
    [
        ("EARSHOT --help | true", (141, "", "")),
        ("EARSHOT --version >/dev/full", (1, "", FAREWELL)),
        ("EARSHOT frob 2>/dev/full", (2, "", "")),
    ],
)
def test_the_command_takes_its_streams_as_they_are(line: str, came: tuple[int, str, str]) -> None:
    assert shell(line) == came


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_every_stream_may_stay_unread_unwritten_or_closed(unbuffered: str) -> None:
    status, whole, err = shell("EARSHOT --help", PYTHONUNBUFFERED=unbuffered)
    assert (status, err) == (0, "")
    for way, came in {
        "| true": (141, "", ""),
        "2>&1 | true": (141, "", ""),
        ">/dev/full": (1, "", FAREWELL),
        ">/dev/full 2>&1": (1, "", ""),
        ">&-": (0, "", ""),
        "2>&-": (0, whole, ""),
        "<&- >&- 2>&-": (0, "", ""),
    }.items():
        assert shell(f"EARSHOT --help {way}", PYTHONUNBUFFERED=unbuffered) == came, way


@pytest.mark.slow
def test_what_was_simulated_is_kept_whatever_becomes_of_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "--phones 120 --recordings 8 --scenes 3 --summation ideal --jobs 1 --out"
    for name, place, status in (
        ("full", full, 1),
        ("unread", unread, 141),
        ("ascii", lambda: (tmp_path / "table").open("w", encoding="ascii"), 0),
    ):
        with place() as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            assert ended(monkeypatch, "simulate", *words.split(), tmp_path / name) == status
        assert json.loads((tmp_path / name / "result.json").read_bytes())["survivors"] == 120
    assert (tmp_path / "table").read_text("ascii").startswith("phones ")
