"""Which encoders come with every phone: their names, by which phases ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DEFAULT_ENCODER = "contrast-2"
"""What a phone embeds with, and what a phase asks for, unless they are told otherwise."""

SHIPPED_ENCODERS: Mapping[str, str] = MappingProxyType(
    {
        "contrast-1": "622142b15ef98273a8225aa2adcc1b90486152e775367086d8ec031f7c112816",
        "contrast-2": "14ae0846538a7766673de8004f5db4338c8b1ca1944fe220f275080eeefba22d",
    }
)
"""SHA-256 of the encoder file of each name, hexadecimal: all phones share the same."""
