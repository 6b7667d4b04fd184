"""How many examples a test of a property tries when it does not try as many as the rest."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""As many as hypothesis tries by itself, and as the profile of the whole check does."""


def examples(whole: int) -> int:
    """`whole` of them in the whole check, and of a quick one the same part as of all others."""
    return max(5, whole * settings().max_examples // USUAL)
