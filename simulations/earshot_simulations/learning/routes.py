"""The two routes, or both on one crowd."""

from __future__ import annotations

import enum

from earshot_simulations.learning.settings import Discovery


class Routes(enum.StrEnum):
    """Routes of a simulation."""

    SECURE_SUM = Discovery.SECURE_SUM.value
    LOCAL = Discovery.LOCAL.value
    BOTH = "both"
    """Both routes one after the other, on recordings that the crowd hears once."""

    @property
    def each(self) -> tuple[Discovery, ...]:
        """Routes in the order in which they are run: the thesis's comes first."""
        if self is Routes.BOTH:
            return Discovery.LOCAL, Discovery.SECURE_SUM
        return (Discovery(self),)
