"""What a statistics phase publishes, made by hand."""

from __future__ import annotations

from typing import Any

from earshot_protocol.phases.statistics import Statistics


def published(labels: tuple[str, ...], **changes: Any) -> Statistics:
    """Return what a statistics phase published, by default no contact that stands clear."""
    nothing, noise = (0.0,) * len(labels), (1.0,) * len(labels)
    usual: dict[str, Any] = {
        "phase": bytes(16),
        "label_names": labels,
        "labelled": nothing,
        "named": nothing,
        "unknown": 0.0,
        "labelled_p_values": noise,
        "named_p_values": noise,
        "unknown_p_value": 1.0,
        "deviation": 1.5,
        "contacts": 5,
        "phones": 9,
        "privacy": (),
    }
    return Statistics(**usual | changes)
