"""Databases that a fork has carried into another process are refused there."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from earshot_protocol.one_process import OtherProcessError
from earshot_server.helper.database import HelperDatabase
from earshot_server.store.database import Database


def enter(database: Database | HelperDatabase) -> None:
    with database.transaction():
        pass


def elsewhere(monkeypatch: pytest.MonkeyPatch, *calls: Callable[[], object]) -> None:
    """Make each call as a process with another number, without its copy of threads and locks."""
    here = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: here + 1)
        for call in calls:
            with pytest.raises(OtherProcessError, match=f"belongs to process {here}, and a fork"):
                call()


def test_a_helpers_database_is_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "helper.db"
    HelperDatabase.make(path, b"identity")
    with closing(HelperDatabase(path)) as database:
        elsewhere(
            monkeypatch,
            lambda: enter(database),
            lambda: database.rows("SELECT 1"),
            lambda: database.change("DELETE FROM refusals"),
            database.write,
            database.close,
        )
        assert database.rows("SELECT identity FROM helper") == [(b"identity",)]


def test_a_pool_of_connections_is_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Database("postgresql://127.0.0.1:9/nobody", patience=0.1)) as database:
        elsewhere(
            monkeypatch,
            lambda: enter(database),
            lambda: database.query("SELECT 1"),
            database.write,
            database.close,
        )
