"""An interruption is quiet, and whatever else goes wrong in a thread is not."""

from __future__ import annotations

import threading

import pytest

from earshot_simulations.engine.quiet import let_cancelled_jobs_go


def add_call_item_to_queue() -> None:
    raise KeyError(19)


def another() -> None:
    raise KeyError(19)


def test_only_a_job_that_was_cancelled_is_not_talked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", shown.append)
    let_cancelled_jobs_go()
    once = threading.excepthook
    let_cancelled_jobs_go()
    assert threading.excepthook is once
    for target in (add_call_item_to_queue, another, lambda: 1 / 0):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    assert [failed.exc_type for failed in shown] == [KeyError, ZeroDivisionError]
    assert shown[0].exc_traceback is not None
