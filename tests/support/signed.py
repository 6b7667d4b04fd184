"""A signed request is checked as a server does it: the body against its digest, then the fields."""

from __future__ import annotations

from collections.abc import Mapping

from earshot_protocol.signatures import verify_body, verify_fields


def verify(
    key: bytes, fields: Mapping[str, str], now: float, path: str, content_type: str, body: bytes
) -> None:
    """Raise what a server would raise."""
    verify_body(fields, body)
    verify_fields(key, fields, now, path, content_type)
