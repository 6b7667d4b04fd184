"""The training loop: checkpoints, exact resumption, logs, and early stopping without labels."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import keras
import numpy as np
from numpy.typing import NDArray
from tensorboard.summary import Writer

from earshot_models.batches import in_batches
from earshot_models.contrastive import Contrastive
from earshot_models.origins import Seconds
from earshot_models.training_schedule import Schedule
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import to_disk
from earshot_protocol.progress import Progress, silent


class Batches(Protocol):
    """Batches to train on."""

    def batch(
        self, number: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
        """Return batch `number` as `Contrastive` takes it, the same each time."""


_CHECKPOINT = "checkpoint"
_WEIGHTS, _STATE, _BEST = "weights.npz", "state.json", "best.npz"


class CheckpointError(InvalidInputError):
    """The checkpoint is damaged, or of another architecture or other settings."""


def train(
    model: Contrastive,
    batches: Batches,
    schedule: Schedule,
    held_out: Seconds,
    folder: Path,
    settings: dict[str, Any],
    progress: Progress = silent,
) -> list[dict[str, float]]:
    """Train a model, or continue where a run with the same settings was interrupted.

    Batches and learning rates depend on the step alone, and all other state is in the checkpoint,
    so an interrupted run ends with the same weights as an uninterrupted one. (Under PyTorch only
    without dropout, whose generator Keras does not save.)

    Args:
        model: Fresh model; afterwards `model.network` holds the weights of the best epoch by
            retrieval if there is patience, and otherwise those of the last.
        batches: Batches to train on.
        schedule: Length and learning rate of the training.
        held_out: Seconds on which retrieval is measured.
        folder: Folder for checkpoints and TensorBoard logs.
        settings: Settings that identify this run; a checkpoint with other settings is refused.
        progress: Callback after each batch.

    Returns:
        Per epoch: `step`, `loss` (mean), `retrieval`.

    Raises:
        CheckpointError: The folder holds a checkpoint of another model or other settings.
        InvalidInputError: The loss is no longer finite.
    """
    optimizer = keras.optimizers.AdamW(schedule.rate(0), weight_decay=schedule.weight_decay)
    model.compile(optimizer=optimizer, jit_compile=keras.backend.backend() == "jax")
    optimizer.build(model.trainable_variables)
    checkpoint = _Checkpoint(folder, {**settings, "schedule": asdict(schedule)})
    history = checkpoint.restore(model)
    step = int(history[-1]["step"]) if history else 0
    with closing(Writer(str(folder / "logs"))) as logs:
        while step < schedule.steps and not _stalled(history, schedule.patience):
            last = min(step + schedule.steps_per_epoch, schedule.steps)
            loss = _epoch(model, batches, schedule, range(step, last), progress)
            step = last
            embeddings = embed(model.front_end, model.network, held_out.seconds)
            share = retrieval(embeddings, held_out.recordings)
            figures = {"step": float(step), "loss": loss, "retrieval": share}
            history.append(figures)
            for name, figure in {**figures, "learning_rate": schedule.rate(step)}.items():
                logs.add_scalar(name, figure, step)
            checkpoint.save(model, history)
    if schedule.patience is not None:
        checkpoint.restore_best(model)
    return history


def _epoch(
    model: Contrastive, batches: Batches, schedule: Schedule, steps: range, progress: Progress
) -> float:
    """Train on some batches, and return the mean loss."""
    losses: list[float] = []
    # Make the next batch while the network learns from this one.
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(batches.batch, steps[0])
        for step in steps:
            first, second, recordings = coming.result()
            if step + 1 in steps:
                coming = ahead.submit(batches.batch, step + 1)
            model.optimizer.learning_rate.assign(schedule.rate(step))
            losses.append(float(model.train_on_batch((first, second), recordings)))
            if not np.isfinite(losses[-1]):
                raise InvalidInputError(
                    f"the loss is {losses[-1]} at step {step}: train at a lower rate"
                )
            loss = f"loss {np.mean(losses[-50:]):.3f}"
            progress("training", step + 1, schedule.steps, loss)
    return float(np.mean(losses))


def embed(
    front_end: Callable[[Any], Any], network: keras.Model, seconds: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Embed seconds, float32 (seconds, rate), as unit rows, float32 (seconds, features)."""
    rows = in_batches(network, in_batches(front_end, seconds))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def retrieval(embeddings: NDArray[np.floating], recordings: NDArray[np.integer]) -> float:
    """Return how often the nearest other second, by cosine, comes from the same recording.

    It needs no labels, and grows as seconds of one recording cluster.

    Args:
        embeddings: Unit rows, (seconds, dimensions).
        recordings: Recording that each second was cut from, (seconds,).

    Returns:
        Fraction of the seconds whose recording has another second.

    Raises:
        InvalidInputError: No recording has two seconds.
    """
    _, which, counts = np.unique(recordings, return_inverse=True, return_counts=True)
    paired = counts[which] > 1
    if not paired.any():
        raise InvalidInputError("retrieval needs a recording with at least two seconds")
    likeness = embeddings @ embeddings.T
    np.fill_diagonal(likeness, -np.inf)
    nearest = likeness.argmax(axis=1)
    return float(np.mean(recordings[nearest][paired] == recordings[paired]))


def _stalled(history: Sequence[dict[str, float]], patience: int | None) -> bool:
    """Return whether the best epoch, the first of equal ones, is `patience` epochs back or more."""
    if patience is None or not history:
        return False
    retrievals = [figures["retrieval"] for figures in history]
    return len(history) - 1 - retrievals.index(max(retrievals)) >= patience


class _Checkpoint:
    """Newest state of a run, in a folder that is replaced as a whole."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder = folder / _CHECKPOINT
        self._new, self._old = (folder / f"{_CHECKPOINT}.{age}" for age in ("new", "old"))
        self._settings = json.loads(json.dumps(settings))

    def save(self, model: Contrastive, history: list[dict[str, float]]) -> None:
        """Write beside the old checkpoint, then replace it."""
        shutil.rmtree(self._new, ignore_errors=True)
        self._new.mkdir(parents=True)
        _save(self._new / _WEIGHTS, _state(model))
        best = max(history, key=lambda figures: figures["retrieval"])
        if best is history[-1]:
            _save(self._new / _BEST, model.network.variables)
        else:
            shutil.copy(self._folder / _BEST, self._new / _BEST)
        state = {"settings": self._settings, "back_end": keras.backend.backend(), "epochs": history}
        (self._new / _STATE).write_text(json.dumps(state, indent=1), encoding="utf-8")
        for written in (*self._new.iterdir(), self._new):
            to_disk(written)  # before the replacement, or a power cut may leave empty files
        if self._folder.exists():
            shutil.rmtree(self._old, ignore_errors=True)
            os.replace(self._folder, self._old)
        os.replace(self._new, self._folder)
        to_disk(self._folder.parent)
        shutil.rmtree(self._old, ignore_errors=True)

    def restore(self, model: Contrastive) -> list[dict[str, float]]:
        """Restore an interrupted run into the model, and return its history."""
        if self._old.exists() and not self._folder.exists():
            os.replace(self._old, self._folder)  # killed between the two replacements
        if not self._folder.exists():
            return []
        try:
            state = json.loads((self._folder / _STATE).read_bytes())
            settings, history = state["settings"], list(state["epochs"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise CheckpointError(
                f"{self._folder} holds no readable {_STATE} ({error}): remove the folder to start "
                "again"
            ) from error
        different = sorted(
            name
            for name in settings.keys() | self._settings.keys()
            if settings.get(name) != self._settings.get(name)
        )
        if different:
            raise CheckpointError(
                f"{self._folder} is of a run with other settings ({', '.join(different)}): choose "
                "another folder, or the same settings"
            )
        self._load(_state(model), _WEIGHTS)
        return history

    def restore_best(self, model: Contrastive) -> None:
        """Put the weights of the epoch with the best retrieval into the network."""
        self._load(model.network.variables, _BEST)

    def _load(self, variables: list[Any], name: str) -> None:
        path = self._folder / name
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
                arrays = [saved[f"arr_{index}"] for index in range(len(saved.files))]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"{path} is damaged: {error}") from error
        if [array.shape for array in arrays] != [tuple(each.shape) for each in variables]:
            raise CheckpointError(f"{path} is of another architecture: choose another folder")
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)


def _state(model: Contrastive) -> list[Any]:
    """Return all state of the next step; Keras's own files omit the state of seeds."""
    return [*model.variables, *model.optimizer.variables]


def _save(path: Path, variables: list[Any]) -> None:
    np.savez(path, *(each.numpy() for each in variables))
