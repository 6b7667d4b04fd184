"""The loop that all trainings share: a fixed number of steps, with progress and checkpoints.

That a training ends early is seen by all who wait for its file. So only numbers that may be seen
may end one: weights that came of noisy sums or votes, never those that met sensitive clips.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from earshot_models.commands.progress import Progress
from earshot_models.generators.checkpoint import EVERY, Checkpoint, finite
from earshot_protocol.errors import InvalidInputError

State = TypeVar("State")


class DivergedError(InvalidInputError):
    """Weights became infinite, or no numbers at all."""


def all_of(state: Any) -> Any:
    """A state of which every number may be seen."""
    return state


def taken(
    start: State,
    step: Callable[[State, int], State],
    steps: int,
    checkpoint: Checkpoint,
    progress: Progress | None,
    seen: Callable[[State], Any] = all_of,
) -> State:
    """The state after all steps, those of a training that was killed before included.

    Args:
        start: before the first step, arrays in any nesting.
        step: state and number of a step to the state after it; the same each time.
        steps: how many there are, whatever becomes of them.
        checkpoint: asked for a state to go on from, told now and then; the caller erases it.
        progress: told how many steps are done.
        seen: what of a state may end the training.

    Raises:
        DivergedError: numbers of `seen` are not finite.
        OtherTrainingError, DamagedFileError: see `Checkpoint`.
    """
    state, done = checkpoint.restored(start)
    if done == 0:
        checkpoint.save(state, 0)  # so that a secret is on the disk before noise is drawn from it
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
    """Weights that keep so large a share of what they were."""
    return jax.tree.map(lambda old, new: share * old + (1 - share) * new, average, now)


def _refuse_infinite(seen: Any, done: int) -> None:
    if not finite(seen):
        raise DivergedError(
            f"weights are no finite numbers after {done} steps: train with lower rates"
        )
