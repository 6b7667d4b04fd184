"""The loop that all trainings share: a fixed number of steps, with progress and checkpoints.

An early end of a training can be observed. So only numbers that may be published may cause it:
weights from noisy sums or votes, never weights trained on sensitive clips directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.progress import Progress
from earshot_studies.pate_aae.generators.checkpoint import EVERY, Checkpoint, finite
from earshot_studies.pate_aae.generators.clips import Clips, digest
from earshot_studies.pate_aae.generators.networks import Shape
from earshot_studies.pate_aae.generators.randomness import Randomness

State = TypeVar("State")


class DivergedError(InvalidInputError):
    """Weights that became infinite, or are not numbers."""


def all_of(state: Any) -> Any:
    """Return the whole state, of which any number may end the training."""
    return state


class Loop:
    """The loop over the steps of one training, from its checkpoint if there is one.

    Args:
        system: Name of the system that is trained.
        clips: Training clips, (clips, frames, bands), checked.
        about: Other values that must equal those of the checkpoint, plain and by name.
        seed: Seed for all randomness; None for the operating system's.
        checkpoint: File from which an interrupted training continues; it is removed afterwards.

    Attributes:
        shape: Frames and bands of a clip.
        randomness: Source of all randomness.

    Raises:
        OtherTrainingError, DamagedFileError: The checkpoint is one that `Checkpoint` refuses.
    """

    def __init__(
        self,
        system: str,
        clips: Clips,
        about: Mapping[str, Any],
        seed: int | None,
        checkpoint: Path | None,
    ) -> None:
        self.shape: Shape = (clips.shape[1], clips.shape[2])
        own = {"system": system, "clips": digest(clips), "seed": seed, **about}
        self._kept = Checkpoint(checkpoint, own, seed)
        self.randomness = Randomness(self._kept.secret)

    def run(
        self,
        start: State,
        step: Callable[[State, int], State],
        steps: int,
        progress: Progress | None,
        seen: Callable[[State], Any] = all_of,
    ) -> State:
        """Return the state after all steps, including those of an interrupted training.

        Args:
            start: State before the first step, arrays in any nesting.
            step: Deterministic function from a state and a step's number to the state after it.
            steps: Number of steps, independent of their results.
            progress: Callback for the number of steps done.
            seen: Function that returns the part of a state that may end the training.

        Raises:
            DivergedError: A number of `seen` is not finite.
            DamagedFileError: The checkpoint is one that `Checkpoint` refuses.
        """
        state, done = self._kept.restored(start)
        if done == 0:
            # The secret must be on the disk before noise is drawn from it.
            self._kept.save(state, 0)
        while done < steps:
            state = step(state, done)
            done += 1
            if done % EVERY == 0 or done == steps:
                _refuse_infinite(seen(state), done)
                self._kept.save(state, done)
                if progress is not None:
                    progress("training", done, steps)
        self._kept.erase()
        return state


def averaged(average: Any, now: Any, share: float) -> Any:
    """Return weights that keep a share of their old values."""
    return jax.tree.map(lambda old, new: share * old + (1 - share) * new, average, now)


def _refuse_infinite(seen: Any, done: int) -> None:
    if not finite(seen):
        raise DivergedError(
            f"weights are not finite numbers after {done} steps: train with lower rates"
        )
