"""Coordinators for web workers: they answer phones and stop phases, and never close a step."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import WrongStateError
from earshot_protocol.geometry import Geometry
from earshot_server.discovery.interface import Discovered
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.interface import PhaseStore


class _NoDiscovery:
    """Steps are closed, and environments found, by the driver alone."""

    def discover(self, points: npt.NDArray[np.float32], geometry: Geometry) -> Discovered:
        """Refuse.

        Raises:
            WrongStateError: always.
        """
        raise WrongStateError("a web worker closes no step")


def coordinator_of(store: PhaseStore, phase: bytes) -> Coordinator:
    """The coordinator of a phase; it reads nothing before it is asked."""
    return Coordinator(store, _NoDiscovery(), phase)
