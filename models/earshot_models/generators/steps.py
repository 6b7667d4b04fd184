"""The loop that all trainings share: a fixed number of steps, with progress and checkpoints.

Everyone who waits for a training's file sees that it ends early. So only numbers that may be seen
may end it: weights that came of noisy sums or votes, never those that met sensitive clips.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from earshot_models.generators.checkpoint import EVERY, Checkpoint, finite
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.progress import Progress

State = TypeVar("State")


class DivergedError(InvalidInputError):
    """Weights that became infinite, or are not numbers."""


def all_of(state: Any) -> Any:
    """Return a state of which every number may be seen."""
    return state


def taken(
    start: State,
    step: Callable[[State, int], State],
    steps: int,
    checkpoint: Checkpoint,
    progress: Progress | None,
    seen: Callable[[State], Any] = all_of,
) -> State:
    """Return the state after all steps, including those of a training that was killed before.

    Args:
        start: State before the first step, arrays in any nesting.
        step: Function from a state and a step's number to the state after it, always the same.
        steps: Number of steps, whatever comes of them.
        checkpoint: Checkpoint to continue from and to keep states in; the caller erases it.
        progress: Callback for the number of steps done.
        seen: Function that returns the part of a state that may end the training.

    Raises:
        DivergedError: if numbers of `seen` are not finite.
        OtherTrainingError, DamagedFileError: see `Checkpoint`.
    """
    state, done = checkpoint.restored(start)
    if done == 0:
        checkpoint.save(state, 0)  # the secret must be on the disk before noise is drawn from it
    while done < steps:
        state = step(state, done)
        done += 1
        if done % EVERY == 0 or done == steps:
            _refuse_infinite(seen(state), done)
            checkpoint.save(state, done)
            if progress is not None:
                progress("training", done, steps)
    return state


def averaged(average: Any, now: Any, share: float) -> Any:
    """Return weights that keep a share of their old values."""
    return jax.tree.map(lambda old, new: share * old + (1 - share) * new, average, now)


def _refuse_infinite(seen: Any, done: int) -> None:
    if not finite(seen):
        raise DivergedError(
            f"weights are not finite numbers after {done} steps: train with lower rates"
        )
