"""A phone's identity in its store: its Ed25519 key, and the name that a server gave it.

The key is stored before it is sent, and a server gives the same key the same name, so a phone that
is killed while it enrols repeats the same request and uses no second invitation.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_client.store.interface import Store
from earshot_client.transport.http import HttpTransport
from earshot_protocol.errors import LocalError
from earshot_protocol.signatures import SignatureError, StaleSignatureError

_KEY = "signing key"
_NAME = "enrolled as"


class NotEnrolledError(LocalError):
    """A phone that is not enrolled and has no invitation to enrol with."""


def signing_key(store: Store) -> Ed25519PrivateKey:
    """Return the phone's own key, made from the system's randomness when it is first needed."""
    saved = store.get(_KEY)
    if saved is None:
        saved = Ed25519PrivateKey.generate().private_bytes_raw()
        store.put(_KEY, saved)
    return Ed25519PrivateKey.from_private_bytes(saved)


def is_enrolled(store: Store) -> bool:
    """Return whether a server has given this phone a name with which it can sign."""
    return _name(store) is not None


def _name(store: Store) -> str | None:
    """Return the name that a server gave this phone; None without one."""
    saved = store.get(_NAME)
    return None if saved is None else saved.decode()


def enrol(store: Store, transport: HttpTransport, attestation: str | None) -> str:
    """Enrol the phone unless it is enrolled, and set its name in the transport.

    Args:
        store: Store of the phone.
        transport: Transport that signs with this phone's `signing_key`.
        attestation: Proof that the server requires of a new phone, by default an invitation code;
            not needed once the phone is enrolled.

    Returns:
        The name under which the server knows the phone.

    Raises:
        NotEnrolledError: An attestation is needed.
        RemoteError: The server cannot be reached or refuses, as in `HttpTransport.enrol`.
    """
    saved = _name(store)
    if saved is not None:
        transport.phone = saved
    elif attestation is None:
        raise NotEnrolledError("this phone is not enrolled yet: it needs an invitation code")
    else:
        store.put(_NAME, transport.enrol(attestation).encode())
    return transport.phone


def leave(store: Store, transport: HttpTransport) -> None:
    """Un-enrol: the server forgets this phone, and the phone its name and key; idempotent.

    A server that does not know the phone has no data about it: an earlier response may have been
    lost.

    Args:
        store: Store of the phone.
        transport: Transport that signs with this phone's `signing_key`; of no use afterwards.

    Raises:
        NotEnrolledError: No server knows the phone.
        UnavailableError: The server cannot be reached now; nothing has changed here.
    """
    saved = _name(store)
    if saved is None:
        raise NotEnrolledError("this phone is not enrolled: there is nothing to leave")
    transport.phone = saved
    try:
        transport.leave()
    except StaleSignatureError:
        raise
    except SignatureError:
        pass
    with store.transaction():
        store.delete(_NAME)
        store.delete(_KEY)
