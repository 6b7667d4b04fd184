from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from earshot_models.datasets.dataset import Clip, Dataset
from earshot_models.datasets.splits import folds, split
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

GROUPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 19)), min_size=1, max_size=40, unique=True
)


def clip(label: str, name: str, group: str, fold: int | None = None) -> Clip:
    return Clip(Path(label) / name, label, group, fold=fold)


def of(*clips: Clip) -> Dataset:
    return Dataset("test", clips)


@given(groups=GROUPS, fraction=st.floats(0.05, 0.95), seed=st.integers(0, 99))
@settings(max_examples=examples(200), deadline=None)
def test_no_group_is_torn_and_no_class_is_lost(
    groups: list[tuple[str, int]], fraction: float, seed: int
) -> None:
    clips = [clip(label, f"{i}.wav", f"group {group}") for i, (label, group) in enumerate(groups)]
    of_class = {c.label: {d.group for d in clips if d.label == c.label} for c in clips}
    if any(len(groups) == 1 for groups in of_class.values()):
        with pytest.raises(InvalidInputError, match="two recordings"):
            split(of(*clips), fraction, np.random.default_rng(seed))
        return
    try:
        train, held_out = split(of(*clips), fraction, np.random.default_rng(seed))
    except InvalidInputError:
        # Which groups may go depends on the others: two classes can share their only two.
        assert len(of_class) > 1
        return
    assert sorted([*train.clips, *held_out.clips], key=clips.index) == clips
    assert not {c.group for c in train.clips} & {c.group for c in held_out.clips}
    assert train.labels == held_out.labels == of(*clips).labels


def test_single_files_are_held_out_in_every_class() -> None:
    clips = of(*(clip(label, f"{i}.wav", f"{label}{i}") for label in "ab" for i in range(20)))
    train, held_out = split(clips, 0.25, np.random.default_rng(0))
    assert [sum(c.label == label for c in held_out.clips) for label in "ab"] == [5, 5]
    other = split(clips, 0.25, np.random.default_rng(1))[1]
    assert held_out != other
    assert split(clips, 0.25, np.random.default_rng(0)) == (train, held_out)


def test_what_cannot_be_split_is_named() -> None:
    torn = of(clip("a", "1", "x"), clip("a", "2", "x"))
    with pytest.raises(InvalidInputError, match="held out of a"):
        split(torn, 0.5, np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match=r"of group x, and held-out sound needs another"):
        folds(torn)
    whole = of(clip("a", "1", "x"), clip("a", "2", "y"))
    for fraction in (0, 1, -0.5, np.nan):
        with pytest.raises(InvalidParametersError, match="fraction"):
            split(whole, fraction, np.random.default_rng(0))
    with pytest.raises(InvalidParametersError, match="at least 2"):
        folds(whole, count=1)


@given(groups=GROUPS, count=st.integers(2, 6), seed=st.integers(0, 9))
@settings(max_examples=examples(100), deadline=None)
def test_folds_test_every_clip_once_and_tear_no_group(
    groups: list[tuple[str, int]], count: int, seed: int
) -> None:
    clips = [clip(label, f"{i}.wav", f"group {group}") for i, (label, group) in enumerate(groups)]
    distinct = {c.group for c in clips}
    if len(distinct) == 1:
        return
    parts = folds(of(*clips), count, seed)
    assert len(parts) == (len(distinct) if len(distinct) <= 10 else count)
    tested = [c for _, test in parts for c in test.clips]
    assert sorted(tested, key=clips.index) == clips
    for train, test in parts:
        assert not {c.group for c in train.clips} & {c.group for c in test.clips}
        assert len(train.clips) + len(test.clips) == len(clips)


def test_a_data_sets_own_folds_are_used() -> None:
    clips = of(*(clip("a", f"{i}.wav", f"{i}", fold=1 + i % 4) for i in range(24)))
    parts = folds(clips)
    assert [{c.fold for c in test.clips} for _, test in parts] == [{1}, {2}, {3}, {4}]


def test_one_fold_cannot_be_held_out_from_itself() -> None:
    """However many recordings it has: what holds clips out is called by their folds."""
    clips = of(*(clip("ab"[i % 2], f"{i}.wav", f"{i}", fold=3) for i in range(24)))
    with pytest.raises(InvalidInputError, match=r"of fold 3, and held-out sound needs another"):
        folds(clips)


def test_the_group_that_holds_a_whole_class_is_named() -> None:
    """As a folder whose files are named like those of ESC, in one fold."""
    clips = of(*(clip("ab"[i % 2], f"{i}.wav", "fold 1") for i in range(12)))
    with pytest.raises(InvalidInputError, match=r"are of fold 1, and held-out .* two folds"):
        split(clips, 0.25, np.random.default_rng(0))
