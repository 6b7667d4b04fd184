"""The server's own secrets: the operator's token, and the keys that sign invitations and sums."""

from __future__ import annotations

import base64
import hmac
import re
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.errors import LocalError
from earshot_protocol.files import NO_PERMISSIONS, made_whole
from earshot_protocol.text import bare

TOKEN_FILE = "operator.token"  # noqa: S105 - the name of a file
KEY_FILE = "invitation.key"
LEADER_FILE = "leader.key"
TOKEN_BYTES = 32

_VOID = "restore it, or delete it to have a new one made, under which older invitations are void"
_UNPINNED = (
    "restore it, or delete it to have a new one made, under which no phone reports until its app "
    "pins it"
)
TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
"""Pattern of an operator's token: 32 bytes in base64url."""


class CredentialsError(LocalError):
    """A file of credentials cannot be read, is open to other users, or is damaged."""


@dataclass(frozen=True)
class Credentials:
    """The first operator's token, and the keys that sign.

    Attributes:
        operator_token: Token of the first operator: 32 random bytes in base64url, 43 characters.
        invitation_key: Key that signs invitation codes.
        leader_key: Key with which the server leads sums by two operators, and which apps pin; None
            if it leads none.
    """

    operator_token: str = field(repr=False)
    invitation_key: Ed25519PrivateKey
    leader_key: Ed25519PrivateKey | None = None

    @classmethod
    def load_or_create(cls, folder: Path, *, leads: bool = False) -> Self:
        """Read the files of the folder; create missing ones, readable by us alone.

        Processes that start at the same time agree: the first creates a file, the others read it.

        Args:
            folder: The server's data folder.
            leads: Whether the server leads sums by two operators, for which it needs a key.

        Raises:
            CredentialsError: A file cannot be read or written, is open to others, or is damaged.
        """
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            token = load_token(folder)
            key = load_or_create(folder / KEY_FILE, new_key())
            leader = load_or_create(folder / LEADER_FILE, new_key()) if leads else None
        except OSError as error:
            raise CredentialsError(f"credentials in {folder}: {error.strerror}") from error
        return cls(
            token,
            key_of(key, folder / KEY_FILE, _VOID),
            None if leader is None else key_of(leader, folder / LEADER_FILE, _UNPINNED),
        )

    @property
    def leader(self) -> str:
        """Public key of the leader of sums by two operators, in hexadecimal; empty without one."""
        key = self.leader_key
        return "" if key is None else key.public_key().public_bytes_raw().hex()

    def fingerprints(self) -> dict[str, bytes]:
        """Return a fingerprint of each file, 32 bytes; it reveals nothing about the content."""
        secret = {
            TOKEN_FILE: self.operator_token.encode(),
            KEY_FILE: self.invitation_key.private_bytes_raw(),
        }
        if self.leader_key is not None:
            secret[LEADER_FILE] = self.leader_key.private_bytes_raw()
        return {
            file: hmac.digest(key, b"earshot fingerprint of " + file.encode(), "sha256")
            for file, key in secret.items()
        }

    def is_operator(self, token: str) -> bool:
        """Return whether this is the first operator's token, in constant time."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.operator_token.encode())


def load_token(folder: Path) -> str:
    """Return the token in the folder; create it if it is missing.

    Raises:
        CredentialsError: The file is open to other users, or does not hold a token.
        OSError: It cannot be read or written.
    """
    path, new_token = folder / TOKEN_FILE, secrets.token_urlsafe(TOKEN_BYTES) + "\n"
    return _token_of(load_or_create(path, new_token.encode()), path)


def new_key() -> bytes:
    """Return a new Ed25519 private key in PEM (PKCS #8, unencrypted)."""
    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def load_or_create(path: Path, fresh: bytes) -> bytes:
    """Return the content of a file of credentials; create it with `fresh` if it is missing.

    Raises:
        CredentialsError: The file is open to other users.
        OSError: It cannot be read or written.
    """
    if not path.exists():
        with made_whole(path) as draft:
            _check_closed(draft, path)
            draft.write_bytes(fresh)
    _check_closed(path, path)
    return path.read_bytes()


def _check_closed(file: Path, path: Path) -> None:
    if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise CredentialsError(f"{path} is open to other users: chmod 600 {path}; {NO_PERMISSIONS}")


def _token_of(content: bytes, path: Path) -> str:
    token = bare(content.decode("utf-8", "replace"))
    if not TOKEN.fullmatch(token) or len(base64.urlsafe_b64decode(token + "=")) != TOKEN_BYTES:
        raise CredentialsError(
            f"{path} holds no operator token (43 characters of base64url): restore it, or delete "
            "it to have a new one made"
        )
    return token


def key_of(content: bytes, path: Path, otherwise: str) -> Ed25519PrivateKey:
    """Parse an Ed25519 private key in PEM.

    Args:
        content: Content of the file.
        path: Path of the file, for the error message.
        otherwise: Remedy, for the error message.

    Raises:
        CredentialsError: The content is not such a key.
    """
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise CredentialsError(f"{path} holds no Ed25519 private key in PEM: {otherwise}")
    return key
