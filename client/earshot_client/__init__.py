"""The phone: it hears, keeps embeddings encrypted, and takes part in phases.

An app needs one import; each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earshot_client.client import Client
    from earshot_client.contact import Contact
    from earshot_client.encoder import Encoder
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
    from earshot_client.visits.outcome import Event, Visit
    from earshot_protocol.one_process import OtherProcessError
    from earshot_protocol.privacy.budgets import Standing
    from earshot_protocol.privacy.ledger import Ledger

_MODULES = {
    "earshot_client.client": ["Client"],
    "earshot_client.contact": ["Contact"],
    "earshot_client.encoder": ["Encoder"],
    "earshot_client.features": ["UnusableRecordingError"],
    "earshot_client.labels": ["LabelHierarchy", "Poll", "UnknownLabelError"],
    "earshot_client.phone": ["Phone"],
    "earshot_client.policy": ["Policy"],
    "earshot_client.store.interface": [
        "DamagedStoreError",
        "LostLedgerError",
        "NewerStoreError",
        "Recording",
        "StoreUnavailableError",
        "WrongKeyError",
    ],
    "earshot_client.store.recovery": ["recover_ledger"],
    "earshot_client.transport.enrolment": ["NotEnrolledError"],
    "earshot_client.transport.http": ["InvitationRefusedError"],
    "earshot_client.visits.conditions": ["AllOf", "Condition", "Hours", "When"],
    "earshot_client.visits.outcome": ["Event", "Visit"],
    "earshot_protocol.one_process": ["OtherProcessError"],
    "earshot_protocol.privacy.budgets": ["Standing"],
    "earshot_protocol.privacy.ledger": ["Ledger"],
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AllOf",
    "Client",
    "Condition",
    "Contact",
    "DamagedStoreError",
    "Encoder",
    "Event",
    "Hours",
    "InvitationRefusedError",
    "LabelHierarchy",
    "Ledger",
    "LostLedgerError",
    "NewerStoreError",
    "NotEnrolledError",
    "OtherProcessError",
    "Phone",
    "Policy",
    "Poll",
    "Recording",
    "Standing",
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
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
