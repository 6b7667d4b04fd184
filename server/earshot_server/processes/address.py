"""Address at which a server listens, stored in its data folder."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from pathlib import Path

import msgspec

from earshot_protocol.errors import LocalError
from earshot_protocol.files import OWNER_ONLY, replace_file

ADDRESS_FILE = "address.json"


class AddressFileError(LocalError):
    """The file of the address cannot be read, or is damaged."""


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
        """The address for callers on this machine, as a server may listen at all addresses."""
        with suppress(ValueError):
            host = ipaddress.ip_address(self.host)
            if host.is_unspecified:
                return Address("127.0.0.1" if host.version == 4 else "::1", self.port)
        return self


def remembered(folder: Path) -> Address:
    """Return the last address of the server with this data folder, or the default.

    Raises:
        AddressFileError: The file cannot be read, or is damaged.
    """
    path = folder / ADDRESS_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Address)
    except (FileNotFoundError, NotADirectoryError):
        return Address()
    except (OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise AddressFileError(
            f"{path} does not hold an address ({error}): delete it, and give --port again"
        ) from error


def remember(folder: Path, address: Address) -> None:
    """Store an address in the data folder."""
    path = folder / ADDRESS_FILE
    content = msgspec.json.encode(address)
    if not path.exists() or path.read_bytes() != content:
        replace_file(path, content, OWNER_ONLY)
