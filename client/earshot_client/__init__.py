"""The phone: hears, keeps embeddings under encryption, and takes part in phases.

An app needs one import; each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earshot_client.client import Client
    from earshot_client.contact import Contact
    from earshot_client.features import UnusableRecordingError
    from earshot_client.labels import LabelHierarchy, Poll, UnknownLabelError
    from earshot_client.phone import Phone
    from earshot_client.policy import Policy
    from earshot_client.store.interface import (
        DamagedStoreError,
        LostLedgerError,
        NewerStoreError,
        Recording,
        StoreUnavailableError,
        WrongKeyError,
    )
    from earshot_client.store.recovery import recover_ledger
    from earshot_client.transport.enrolment import NotEnrolledError
    from earshot_client.transport.http import InvitationRefusedError
    from earshot_client.visits.conditions import AllOf, Condition, Hours, When
    from earshot_client.visits.participation import Event, Visit

_MODULES = {
    "client": ["Client"],
    "contact": ["Contact"],
    "features": ["UnusableRecordingError"],
    "labels": ["LabelHierarchy", "Poll", "UnknownLabelError"],
    "phone": ["Phone"],
    "policy": ["Policy"],
    "store.interface": [
        "DamagedStoreError",
        "LostLedgerError",
        "NewerStoreError",
        "Recording",
        "StoreUnavailableError",
        "WrongKeyError",
    ],
    "store.recovery": ["recover_ledger"],
    "transport.enrolment": ["NotEnrolledError"],
    "transport.http": ["InvitationRefusedError"],
    "visits.conditions": ["AllOf", "Condition", "Hours", "When"],
    "visits.participation": ["Event", "Visit"],
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AllOf",
    "Client",
    "Condition",
    "Contact",
    "DamagedStoreError",
    "Event",
    "Hours",
    "InvitationRefusedError",
    "LabelHierarchy",
    "LostLedgerError",
    "NewerStoreError",
    "NotEnrolledError",
    "Phone",
    "Policy",
    "Poll",
    "Recording",
    "StoreUnavailableError",
    "UnknownLabelError",
    "UnusableRecordingError",
    "Visit",
    "When",
    "WrongKeyError",
    "recover_ledger",
]


def __getattr__(name: str) -> Any:
    """Load the object of this name (PEP 562)."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
