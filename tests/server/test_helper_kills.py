"""A helper that is killed at every write, and helpers that answer at once: one answer, no key."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support.killed_helper import MOMENTS, dying, moments, opened, side_by_side, trace
from support.kills import in_child
from support.operators import (
    NOW,
    WINDOW,
    Operators,
    another_list,
    inputs_of,
    listed,
    request,
    terms,
)
from werkzeug.serving import make_server

from earshot_protocol.messages import decode_helper_answer
from earshot_protocol.prio3.shapes import Counts
from earshot_protocol.privacy.sum_noise import WholeLaplace
from earshot_protocol.two_operators.messages import AddUp, MakeOffer, OfferMade
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.refusals import AnsweredError, HelperRefusalError
from earshot_protocol.two_operators.sizes import sizes
from earshot_protocol.wire import Task, encode
from earshot_server.helper.api import HelperSettings, create_helper_app
from earshot_server.helper.book import Book, MemoryBook
from earshot_server.helper_line import HelperLine, HelperTroubleError
from earshot_server.proofs.engine import fastest

# A helper that is killed is a fork of this process. A test before these may have imported JAX,
# which then warns of every fork: its threads are not in the fork, where nothing needs them.
pytestmark = pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called.*JAX:RuntimeWarning")


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """The engine by which helpers verify; or each fork would load it."""
    fastest()


CHANCES = 12
"""Kills at chance instants, also in the midst of what SQLite writes."""
AGREED = terms(noise=WholeLaplace.of(20.0))
PROVED = terms(noise=WholeLaplace.of(20.0), proof=Counts(3, 42, 6))


def counts_of(phones: Iterable[int]) -> dict[int, npt.NDArray[np.int64]]:
    return {phone: abs(vector) for phone, vector in inputs_of(phones).items()}


def answered(path: Path, operators: Operators, task: Task) -> str:
    """Answer as a process that is started for it; hexadecimal."""
    with opened(path, operators.now) as folder:
        operators.book = folder.book
        return encode(operators.helper.answer(task)).hex()


def keys(path: Path) -> list[str]:
    return sorted(each.name for each in (path / "keys").iterdir() if ".key" in each.name)


def undisturbed(operators: Operators, task: AddUp) -> str:
    """The answer by a book in memory with the same key and noise."""
    book, memory = operators.book, MemoryBook()
    record, secret = book.record(task.sum_id), book.secret(task.sum_id)
    assert record is not None
    assert secret is not None
    memory.offer(task.sum_id, record, secret)
    operators.book = memory
    told = encode(operators.helper.answer(task)).hex()
    operators.book = book
    return told


def after_the_window(
    path: Path, agreed: TwoOperatorParameters = AGREED
) -> tuple[Operators, AddUp, str]:
    """A sum whose list is due, and its undisturbed answer."""
    operators = Operators(arithmetic=fastest)
    with opened(path) as folder:
        operators.book = folder.book
        leader, _ = operators.collected(counts_of(range(15)), parameters=agreed)
        task = listed(leader)
        return operators, task, undisturbed(operators, task)


def chances(run: Callable[[], object]) -> Iterator[float]:
    """Instants within the time that a run takes, in seconds."""
    began = time.perf_counter()
    run()
    took = time.perf_counter() - began
    yield from (random.uniform(1e-4, took) for _ in range(CHANCES))


def dying_answer(path: Path, operators: Operators, task: Task, number: int, moment: str) -> str:
    with dying(number, moment):
        return answered(path, operators, task)


def alarmed_answer(path: Path, operators: Operators, task: Task, seconds: float) -> str:
    """Answer in a process that is killed after that time, if it still lives."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    return answered(path, operators, task)


# ------------------------------------------------------------------------------------------ kills


@pytest.mark.slow
def test_killed_at_any_write_of_an_answer_it_gives_the_undisturbed_one(tmp_path: Path) -> None:
    """One helper has all the sums: what a kill leaves behind is gone before the next."""
    operators, task, told = after_the_window(tmp_path, PROVED)
    every = moments(lambda: answered(tmp_path, operators, task))
    assert len(every) > 20
    left_behind = 0
    for number, moment in every:
        operators, task, told = after_the_window(tmp_path, PROVED)
        dies = partial(dying_answer, tmp_path, operators, task, number, moment)
        assert in_child(dies) == (True, None), (number, moment)
        left_behind += bool(keys(tmp_path))
        check_one_answer(tmp_path, operators, task, told)
    assert left_behind  # by kills before the end, which the next start cleans up


def test_killed_at_chance_it_gives_the_undisturbed_answer(tmp_path: Path) -> None:
    path = tmp_path / "first"
    operators, task, _ = after_the_window(path)
    for number, seconds in enumerate(chances(partial(answered, path, operators, task))):
        path = tmp_path / f"helper-{number}"
        operators, task, told = after_the_window(path)
        killed, answer = in_child(partial(alarmed_answer, path, operators, task, seconds))
        assert killed or answer == told
        check_one_answer(path, operators, task, told)


def handled(path: Path, listener: socket.socket) -> None:
    """Answer one request as a helper's web worker does."""
    app = create_helper_app(HelperSettings(path))
    with make_server("127.0.0.1", 0, app, fd=os.dup(listener.fileno())) as server:
        server.handle_request()


@pytest.mark.slow
def test_killed_at_any_write_of_an_answer_over_http_it_gives_the_undisturbed_answer(
    tmp_path: Path,
) -> None:
    """Its leader hears nothing, asks again, and a new worker answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def asked(worker: Callable[[], object], operators: Operators, task: Task) -> tuple[str, int]:
        """The answer, or the name of the trouble, and how the worker ended."""
        process = get_context("fork").Process(target=worker)
        process.start()
        with HelperLine(address, operators.leader) as line:
            try:
                told = encode(line.answer(task)).hex()
            except HelperTroubleError as trouble:
                told = trouble.name
        process.join()
        assert process.exitcode is not None
        return told, process.exitcode

    def ready(path: Path) -> tuple[Operators, AddUp, str]:
        with opened(path, time.time()) as folder:
            operators = Operators(identity=folder.identity, now=time.time(), book=folder.book)
            folder.leaders.allow(operators.helper._policy)
            leader, _ = operators.collected(counts_of(range(20)), parameters=PROVED)
            task = listed(leader)
            return operators, task, undisturbed(operators, task)

    def counting(path: Path) -> None:
        made = trace(lambda: handled(path, listener))
        (tmp_path / "calls").write_text(json.dumps([name for name, _ in made]))

    path = tmp_path / "first"
    operators, task, told = ready(path)
    _, begun = in_child(lambda: len(trace(lambda: create_helper_app(HelperSettings(path)))))
    assert asked(partial(counting, path), operators, task) == (told, 0)
    names = json.loads((tmp_path / "calls").read_text())
    every = [
        (number, moment)
        for number, name in enumerate(names)
        for moment in MOMENTS[name]
        if number >= begun
    ]
    assert len(every) > 10
    for number, moment in every:
        path = tmp_path / f"{number}-{moment}"
        operators, task, told = ready(path)

        def dies(path: Path = path, number: int = number, moment: str = moment) -> None:
            with dying(number, moment):
                handled(path, listener)

        assert asked(dies, operators, task) == ("unreachable", -signal.SIGKILL), (number, moment)
        assert asked(partial(handled, path, listener), operators, task) == (told, 0)
        assert keys(path) == []
    listener.close()


def check_one_answer(path: Path, operators: Operators, task: AddUp, told: str) -> None:
    with opened(path, operators.now) as folder:
        record = folder.book.record(task.sum_id)
        assert record is not None
        # A start leaves the key of what is still to be answered, and nothing else.
        assert keys(path) == ([f"{task.sum_id.hex()}.key"] if record.total is None else [])
        operators.book = folder.book
        for _ in range(2):
            assert encode(operators.helper.answer(task)).hex() == told
            assert keys(path) == []
        first = sum(sizes(record.terms.parameters).entry)
        other = another_list(operators, task, task.reports[first:])
        with pytest.raises(AnsweredError):
            operators.helper.answer(other)


def test_a_total_is_kept_before_its_key_goes_and_the_key_gone_before_it_is_told(
    tmp_path: Path,
) -> None:
    operators, task, _ = after_the_window(tmp_path)
    with opened(tmp_path, operators.now):
        pass
    calls = trace(lambda: answered(tmp_path, operators, task))
    wrote = [i for i, (_, about) in enumerate(calls) if about.startswith("UPDATE sums")]
    (written,) = wrote
    committed = calls.index(("execute", "COMMIT"), written)
    gone = calls.index(("unlink", f"{task.sum_id.hex()}.key"))
    assert written < committed < gone
    assert ("fsync", "keys") in calls[gone:]


def test_a_key_is_kept_whole_before_its_record(tmp_path: Path) -> None:
    operators = Operators(arithmetic=fastest)
    asked = request(operators.begin(AGREED))
    with opened(tmp_path):
        pass
    calls = trace(lambda: answered(tmp_path, operators, asked))
    named = next(i for i, (name, _) in enumerate(calls) if name == "replace")
    on_disk = calls.index(("fsync", "keys"), named)
    (written,) = [i for i, (_, about) in enumerate(calls) if about.startswith("INSERT INTO sums")]
    assert calls[named - 1][0] == "fsync"
    assert named < on_disk < written


@pytest.mark.slow
def test_killed_at_any_write_of_an_offer_no_key_is_left_and_the_sum_can_be_had(
    tmp_path: Path,
) -> None:
    """One helper has all the sums: what a kill leaves behind is gone before the next."""
    operators = Operators(arithmetic=fastest)
    with opened(tmp_path):
        pass
    asked = request(operators.begin(AGREED))
    every = moments(lambda: answered(tmp_path, operators, asked))
    assert len(every) > 20
    left_behind = 0
    for number, moment in every:
        before, asked = keys(tmp_path), request(operators.begin(AGREED))
        dies = partial(dying_answer, tmp_path, operators, asked, number, moment)
        assert in_child(dies) == (True, None), (number, moment)
        left_behind += keys(tmp_path) != before
        with opened(tmp_path) as folder:
            offered = folder.book.record(asked.sum_id) is not None
            assert keys(tmp_path) == sorted([*before, *[f"{asked.sum_id.hex()}.key"] * offered])
            check_offer(folder.book, operators, asked)
            folder.book.erase(asked.sum_id)
    assert left_behind


def check_offer(book: Book, operators: Operators, asked: MakeOffer) -> None:
    """The offer stays the same, and its key is the one that is kept."""
    operators.book = book
    first = encode(operators.helper.answer(asked))
    assert encode(operators.helper.answer(asked)) == first
    made, secret = decode_helper_answer(first), book.secret(asked.sum_id)
    assert isinstance(made, OfferMade)
    assert secret is not None
    public = X25519PrivateKey.from_private_bytes(secret.key).public_key()
    assert public.public_bytes_raw() == made.offer.key


# -------------------------------------------------------------------------------------- at once


def in_turn(path: Path, operators: Operators, tasks: list[Task]) -> list[str]:
    """What a process says to each task: the answer in hexadecimal, or the name of its refusal."""
    said = []
    with opened(path, operators.now) as folder:
        operators.book = folder.book
        for task in tasks:
            try:
                said.append(encode(operators.helper.answer(task)).hex())
            except HelperRefusalError as refusal:
                said.append(refusal.name)
    return said


def at_once(path: Path, operators: Operators, orders: list[list[Task]]) -> list[list[str]]:
    """What processes say that all begin together."""
    runs = [partial(in_turn, path, operators, tasks) for tasks in orders]
    return side_by_side(runs)


def test_of_processes_that_answer_different_lists_at_once_one_list_wins(tmp_path: Path) -> None:
    operators = Operators(arithmetic=fastest)
    ones: list[Task] = []
    others: list[Task] = []
    with opened(tmp_path) as folder:
        operators.book = folder.book
        for _ in range(12):
            leader, _ = operators.collected(counts_of(range(15)), parameters=AGREED)
            task = listed(leader)
            ones.append(task)
            fewer = task.reports[sum(sizes(AGREED).entry) :]
            others.append(another_list(operators, task, fewer))
            operators.now = NOW
    operators.now = NOW + WINDOW + 1
    said = at_once(tmp_path, operators, [ones, others, ones, others])
    for first, second, third, fourth in zip(*said, strict=True):
        assert first == third
        assert second == fourth
        assert [first, second].count("already_answered") == 1
    assert keys(tmp_path) == []


def test_of_processes_that_offer_a_sum_at_once_all_make_the_same_offer(tmp_path: Path) -> None:
    operators = Operators(arithmetic=fastest)
    asked: list[Task] = [request(operators.begin(AGREED)) for _ in range(12)]
    with opened(tmp_path):
        pass
    said = at_once(tmp_path, operators, [asked] * 4)
    assert said == [said[0]] * 4
    with opened(tmp_path) as folder:
        for task in asked:
            assert isinstance(task, MakeOffer)
            check_offer(folder.book, operators, task)
