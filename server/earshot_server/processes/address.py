"""Address at which a server listens, which its data folder remembers."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from pathlib import Path

import msgspec

from earshot_protocol.errors import LocalError
from earshot_protocol.files import OWNER_ONLY, replace_file

ADDRESS_FILE = "address.json"


class AddressFileError(LocalError):
    """The file that remembers the address cannot be read, or holds something else."""


class Address(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Address of a server.

    Attributes:
        host: Address to listen at.
        port: Port to listen at.
    """

    host: str = "127.0.0.1"
    port: int = 8000

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def reachable(self) -> Address:
        """The same where callers on this machine reach it: a server may listen at all addresses."""
        with suppress(ValueError):
            host = ipaddress.ip_address(self.host)
            if host.is_unspecified:
                return Address("127.0.0.1" if host.version == 4 else "::1", self.port)
        return self


def remembered(folder: Path) -> Address:
    """Return the address at which a server with this data folder listened last, or the default.

    Raises:
        AddressFileError: The file cannot be read or holds something else.
    """
    path = folder / ADDRESS_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Address)
    except (FileNotFoundError, NotADirectoryError):
        return Address()
    except (OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise AddressFileError(
            f"{path} does not hold an address ({error}): delete it, and give --port once more"
        ) from error


def remember(folder: Path, address: Address) -> None:
    """Let the data folder remember an address."""
    path = folder / ADDRESS_FILE
    content = msgspec.json.encode(address)
    if not path.exists() or path.read_bytes() != content:
        replace_file(path, content, OWNER_ONLY)
