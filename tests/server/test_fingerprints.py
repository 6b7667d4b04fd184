"""A database is served with one set of credentials, and tells nobody which."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot_server.credentials import KEY_FILE, TOKEN_FILE, Credentials
from earshot_server.store.database import Database
from earshot_server.store.fingerprints import OtherCredentialsError, claim


def made(folder: Path) -> dict[str, bytes]:
    return Credentials.load_or_create(folder).fingerprints()


def test_who_comes_first_decides_and_the_same_files_serve_elsewhere(
    database: Database, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for _ in range(2):
        claim(database, first, made(first))
    made(second)
    for file in (TOKEN_FILE, KEY_FILE):
        with pytest.raises(OtherCredentialsError, match=f"copy .*{file}") as caught:
            claim(database, second, made(second))
        assert str(second) in str(caught.value)
        assert "--renew-credentials" in str(caught.value)
        (second / file).write_bytes((first / file).read_bytes())
    claim(database, second, made(second))


def test_one_file_that_is_another_is_named_alone(database: Database, tmp_path: Path) -> None:
    claim(database, tmp_path, made(tmp_path))
    (tmp_path / TOKEN_FILE).unlink()
    with pytest.raises(OtherCredentialsError, match=TOKEN_FILE) as caught:
        claim(database, tmp_path, made(tmp_path))
    assert KEY_FILE not in str(caught.value)
    claim(database, tmp_path, made(tmp_path), renew=True)
    claim(database, tmp_path, made(tmp_path))


def test_the_database_keeps_no_secret(database: Database, tmp_path: Path) -> None:
    credentials = Credentials.load_or_create(tmp_path)
    claim(database, tmp_path, credentials.fingerprints())
    kept = dict(database.query("SELECT file, fingerprint FROM credentials"))
    assert kept == credentials.fingerprints()
    assert {len(value) for value in kept.values()} == {32}
    secrets = (credentials.operator_token.encode(), credentials.invitation_key.private_bytes_raw())
    assert not any(
        secret in value or value in secret for secret in secrets for value in kept.values()
    )
    other = Credentials.load_or_create(tmp_path / "other").fingerprints()
    assert not set(other.values()) & set(kept.values())
