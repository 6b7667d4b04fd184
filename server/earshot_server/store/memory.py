"""A store in memory, for simulations and tests."""

from __future__ import annotations

from earshot_protocol.errors import InvalidInputError


class MemoryPhaseStore:
    """A `PhaseStore` that lasts as long as the process."""

    def __init__(self) -> None:
        self._snapshots: dict[bytes, bytes] = {}
        self._answers: dict[bytes, list[tuple[int, bytes]]] = {}

    def create(self, phase: bytes, snapshot: bytes) -> None:
        """Add a phase."""
        if phase in self._snapshots:
            raise InvalidInputError(f"phase {phase.hex()} exists already")
        self._snapshots[phase] = snapshot
        self._answers[phase] = []

    def phases(self) -> tuple[bytes, ...]:
        """All phases, oldest first."""
        return tuple(self._snapshots)

    def snapshot(self, phase: bytes) -> bytes:
        """The newest snapshot."""
        self._known(phase)
        return self._snapshots[phase]

    def replace(self, phase: bytes, snapshot: bytes) -> None:
        """Put a new snapshot in place and delete the answers that went into it."""
        self._known(phase)
        self._snapshots[phase] = snapshot
        self._answers[phase] = []

    def add_answer(self, phase: bytes, phone: int, answer: bytes) -> None:
        """Keep an accepted answer."""
        self._known(phase)
        self._answers[phase].append((phone, answer))

    def answers(self, phase: bytes) -> tuple[tuple[int, bytes], ...]:
        """The answers accepted since the snapshot, in order of arrival."""
        self._known(phase)
        return tuple(self._answers[phase])

    def _known(self, phase: bytes) -> None:
        if phase not in self._snapshots:
            raise InvalidInputError(f"no phase {phase.hex()}")
