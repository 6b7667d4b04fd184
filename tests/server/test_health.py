"""Ready is who can take an answer and keep it; alive is who says so."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from support.api_caller import Server, problem_of

from earshot_server.api import health
from earshot_server.store.database import Database


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def server(own_database: Database, tmp_path: Path) -> Server:
    return Server.over(own_database, tmp_path, data_folder=tmp_path)


def test_a_database_whose_disk_is_full_is_not_ready(server: Server, own_database: Database) -> None:
    own_database.query(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
    )
    own_database.query(
        "CREATE TRIGGER full_disk BEFORE INSERT ON readiness EXECUTE FUNCTION full_disk()"
    )
    for _ in range(3):  # a failure is not remembered: it may be over
        problem = problem_of(server.get("/health/ready"), 503, "database")
        assert "its disk is full; free some space" in problem.detail
    assert server.get("/health/live").status_code == 200
    own_database.query("DROP FUNCTION full_disk CASCADE")
    assert server.get("/health/ready").get_json() == {"status": "ready"}


def test_a_process_whose_threads_are_held_is_not_ready(server: Server) -> None:
    held = {health.STUCK: True}
    response = server.app.test_client().get("/health/ready", environ_overrides=held)
    assert "every thread" in problem_of(response, 503, "stuck").detail
    assert server.get("/health/ready").status_code == 200


def test_it_is_written_now_and_then_however_often_it_is_asked(
    server: Server, own_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written() -> float:
        return float(own_database.query("SELECT written FROM readiness")[0][0])

    assert server.get("/health/ready").status_code == 200
    first = written()
    assert first == pytest.approx(own_database.now(), abs=60)
    for _ in range(20):
        assert server.get("/health/ready").status_code == 200
    monkeypatch.setattr(health, "WRITE_EVERY", 0.0)
    assert server.get("/health/ready").status_code == 200
    assert written() > first
    assert own_database.query("SELECT count(*) FROM readiness") == [(1,)]


def test_a_data_folder_without_room_is_not_ready(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def usage(folder: Path) -> Usage:
        asked.append(folder)
        return Usage(100 << 30, 0, 5 << 20)

    with monkeypatch.context() as nearly_full:
        nearly_full.setattr(shutil, "disk_usage", usage)
        problem = problem_of(server.get("/health/ready"), 503, "disk")
    assert asked == [tmp_path]
    assert "5 MiB are free" in problem.detail
    assert "128 MiB" in problem.detail
    assert server.get("/health/ready").status_code == 200


def test_a_data_folder_that_is_gone_is_not_ready(own_database: Database, tmp_path: Path) -> None:
    server = Server.over(own_database, tmp_path, data_folder=tmp_path / "gone")
    assert "data folder" in problem_of(server.get("/health/ready"), 503, "disk").detail
