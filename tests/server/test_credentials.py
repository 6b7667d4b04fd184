"""The server's own secrets on disk: made once, for one user, and never half."""

from __future__ import annotations

import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from earshot_server.credentials import (
    KEY_FILE,
    LEADER_FILE,
    TOKEN_FILE,
    Credentials,
    CredentialsError,
)


def key_of(credentials: Credentials) -> bytes:
    return credentials.invitation_key.private_bytes_raw()


def test_credentials_are_made_once_and_then_read(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    made, read = Credentials.load_or_create(folder), Credentials.load_or_create(folder)
    assert (read.operator_token, key_of(read)) == (made.operator_token, key_of(made))
    assert sorted(path.name for path in folder.iterdir()) == [KEY_FILE, TOKEN_FILE]
    assert (folder / TOKEN_FILE).read_text().strip() == made.operator_token


def test_two_servers_share_no_secret(tmp_path: Path) -> None:
    one, other = (Credentials.load_or_create(tmp_path / name) for name in ("one", "other"))
    assert one.operator_token != other.operator_token
    assert key_of(one) != key_of(other)


def test_files_are_for_their_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Credentials.load_or_create(tmp_path)
    finally:
        os.umask(before)
    for name in (TOKEN_FILE, KEY_FILE):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_the_token_has_256_bits_and_fits_into_a_header(tmp_path: Path) -> None:
    token = Credentials.load_or_create(tmp_path).operator_token
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)


def test_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        with ThreadPoolExecutor(8) as threads:
            made = list(threads.map(lambda _: Credentials.load_or_create(folder), range(8)))  # noqa: B023
        assert len({(each.operator_token, key_of(each)) for each in made}) == 1
        assert len(list(folder.iterdir())) == 2


def test_only_the_token_is_the_token(tmp_path: Path) -> None:
    credentials = Credentials.load_or_create(tmp_path)
    token = credentials.operator_token
    assert credentials.is_operator(token)
    for wrong in ("", token[:-1], token + "A", token.swapcase(), " " + token, "é", "\ud800"):
        assert not credentials.is_operator(wrong)


@pytest.mark.parametrize("name", [TOKEN_FILE, KEY_FILE])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_open_is_refused(tmp_path: Path, name: str, mode: int) -> None:
    Credentials.load_or_create(tmp_path)
    (tmp_path / name).chmod(mode)
    with pytest.raises(CredentialsError, match=f"{name} is open to other users: chmod 600"):
        Credentials.load_or_create(tmp_path)


@pytest.mark.parametrize("content", [b"", b"short", b"A" * 44, b"\xff" * 43, b"=" * 43])
def test_a_damaged_token_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    Credentials.load_or_create(tmp_path)
    (tmp_path / TOKEN_FILE).write_bytes(content)
    with pytest.raises(CredentialsError, match="43 characters of base64url"):
        Credentials.load_or_create(tmp_path)
    assert (tmp_path / TOKEN_FILE).read_bytes() == content


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    Credentials.load_or_create(tmp_path)
    other = generate_private_key(SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    for content in (b"", b"not a key", other):
        (tmp_path / KEY_FILE).write_bytes(content)
        with pytest.raises(CredentialsError, match="no Ed25519 private key"):
            Credentials.load_or_create(tmp_path)


def test_errors_never_show_a_secret(tmp_path: Path) -> None:
    token = Credentials.load_or_create(tmp_path).operator_token
    (tmp_path / TOKEN_FILE).write_text(token + "x")
    with pytest.raises(CredentialsError) as refused:
        Credentials.load_or_create(tmp_path)
    assert token not in str(refused.value)


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(CredentialsError, match="file"):
        Credentials.load_or_create(blocked)


def test_nothing_is_left_behind_where_the_disk_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(CredentialsError, match="No space left"):
        Credentials.load_or_create(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_leader_has_a_key_of_its_own_made_on_first_use_and_kept(tmp_path: Path) -> None:
    assert Credentials.load_or_create(tmp_path).leader == ""
    assert not (tmp_path / LEADER_FILE).exists()
    made, read = (Credentials.load_or_create(tmp_path, leads=True) for _ in range(2))
    assert made.leader == read.leader
    assert re.fullmatch("[0-9a-f]{64}", made.leader)
    assert made.leader != made.invitation_key.public_key().public_bytes_raw().hex()
    assert stat.S_IMODE((tmp_path / LEADER_FILE).stat().st_mode) == 0o600
    assert LEADER_FILE in made.fingerprints()
    (tmp_path / LEADER_FILE).write_bytes(b"damaged")
    with pytest.raises(CredentialsError, match="no phone reports until its app pins it"):
        Credentials.load_or_create(tmp_path, leads=True)
