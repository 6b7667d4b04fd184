"""Charts of steps and their cost, and of counts and votes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_simulations.engine.course import SimulatedStep
from earshot_simulations.reporting import drawing
from earshot_simulations.reporting.drawing import (
    CARD,
    MOST_ROWS,
    MUTED,
    PALETTE,
    Picture,
    in_two_lines,
    short,
)
from earshot_simulations.reporting.words import byte_size, counted, duration, whole
from earshot_simulations.reporting.words import votes as vote_count

Counts = npt.NDArray[np.integer[Any]] | npt.NDArray[np.floating[Any]]
_MOST_BROKEN = 16
"""Most columns of a table of votes whose names have room for two lines."""
_MOST_CELLS = 200
"""Most cells of a table of votes that are drawn with numbers; more become pixels."""


def bytes_per_step(steps: Sequence[SimulatedStep]) -> Picture | None:
    """Draw bytes up and down per phone that answered; None if no phone was ever asked."""
    asked = [step for step in steps if step.asked]
    series = {
        "up": [step.per_phone(step.bytes_up) for step in asked],
        "down": [step.per_phone(step.bytes_down) for step in asked],
    }
    return _per_step("Bytes per phone and step.", asked, series, byte_size) if asked else None


def seconds_per_step(steps: Sequence[SimulatedStep]) -> Picture | None:
    """Draw the wall-clock time of every step; None before the first."""
    series = {"": [step.seconds for step in steps]}
    return _per_step("Wall-clock time per step.", steps, series, duration) if steps else None


def dropouts(steps: Sequence[SimulatedStep]) -> Picture | None:
    """Draw the number of phones that vanished in each step; None if none did."""
    asked = [step for step in steps if step.asked]
    lost = [len(step.dropped) for step in asked]
    title = "Phones that vanished, by step."
    return _per_step(title, asked, {"": lost}, whole) if any(lost) else None


def candidates(votes: Counts, kept: Counts, noun: str) -> Picture | None:
    """Draw the votes of every candidate, the kept ones in colour; None if there are none.

    Args:
        votes: Votes of each candidate.
        kept: Indices of the kept candidates.
        noun: Noun for a candidate.
    """
    if not len(votes):
        return None
    order = np.argsort(-votes, kind="stable")[: 2 * MOST_ROWS]
    is_kept = np.isin(order, kept)

    def draw(axes: Axes) -> None:
        rank = np.arange(len(order))
        for members, colour, name in ((is_kept, PALETTE[0], "kept"), (~is_kept, MUTED, "not kept")):
            if members.any():
                axes.bar(rank[members], votes[order][members], color=colour, label=name)
        axes.set_xticks(rank if len(rank) <= 16 else [])
        axes.set_xticklabels(order if len(rank) <= 16 else [])
        axes.set_xlabel(noun)
        axes.set_ylabel("votes")
        axes.grid(axis="y", linewidth=0.6)
        axes.axhline(0, color=MUTED, linewidth=0.8)
        axes.legend(loc="upper right")

    alt = (
        f"Votes of {counted(len(votes), 'candidate')}, from {votes.max()} down to {votes.min()}; "
        f"{len(kept)} kept."
    )
    return drawing.picture(draw, 2.6, alt, _not_shown(len(votes) - len(order), "candidate"))


def histogram(names: Sequence[str], published: Counts, true: Counts) -> Picture | None:
    """Draw recordings per label, by published and by true names; None if uncounted."""
    if not true.any():
        return None
    order = np.sort(_largest(np.maximum(published, true)))
    shown = [names[label] for label in order]
    series = {"published": published[order], "true": true[order]}
    listed = "; ".join(
        f"{name}: {found} of {there}"
        for name, found, there in zip(shown, *series.values(), strict=True)
    )
    alt = f"Recordings per label, published of true. {listed}."
    remark = _not_shown(len(names) - len(order), "label")
    broken = list(map(in_two_lines, shown))
    return _bars(broken, series, whole, 0.4 * len(order) + 0.5, alt, remark)


def votes_by_label(
    votes: Counts, places: Sequence[int], names: Sequence[str], noun: str
) -> Picture | None:
    """Draw sums of votes: a row for each place, a column for each label; None if there are none.

    Args:
        votes: Votes, one row for each place.
        places: Number of each place, the name of its row.
        names: Names of the labels.
        noun: Noun for a place.
    """
    if not votes.size:
        return None
    columns = np.sort(_largest(np.maximum(votes, 0).sum(axis=0)))
    drawn = votes[:MOST_ROWS][:, columns]
    rows = len(drawn)
    strength = np.clip(drawn / max(1, drawn.max()), 0, 1)

    def draw(axes: Axes) -> None:
        from matplotlib.colors import to_rgb

        # Opacity instead of a colour scale: the same picture works on white and on black.
        solid = np.broadcast_to(to_rgb(PALETTE[0]), (*drawn.shape, 3))
        colours = np.dstack([solid, 0.75 * strength])
        edges = np.arange(len(columns) + 1), np.arange(rows + 1)
        if drawn.size > _MOST_CELLS:
            axes.pcolormesh(*edges, colours, rasterized=True)
        else:
            axes.pcolormesh(*edges, colours, edgecolor=CARD, linewidth=1)
            for (row, column), count in np.ndenumerate(drawn):
                x, y = column + 0.5, row + 0.5
                axes.text(x, y, vote_count(count.item()), ha="center", va="center", fontsize=7)
        axes.invert_yaxis()
        axes.set_xticks(np.arange(len(columns)) + 0.5)
        named = in_two_lines if len(columns) <= _MOST_BROKEN else short
        axes.set_xticklabels([named(names[label]) for label in columns], rotation=90)
        axes.set_yticks(np.arange(rows) + 0.5)
        axes.set_yticklabels(list(map(str, places[:rows])))
        # Beside few rows it would be cut off.
        axes.set_title(noun, loc="left", fontsize="medium")
        axes.tick_params(length=0)

    alt = (
        f"Label votes of {counted(len(votes), noun)} for "
        f"{counted(len(names), 'label')}; the largest entry is "
        f"{vote_count(votes.max().item())}."
    )
    return drawing.picture(
        draw,
        0.24 * rows + 1.9,
        alt,
        _not_shown(len(votes) - rows, noun),
        _not_shown(len(names) - len(columns), "label"),
    )


def _bars(
    names: Sequence[str],
    series: Mapping[str, Sequence[float] | Counts],
    text: Callable[[float], str],
    height: float,
    alt: str,
    remark: str = "",
) -> Picture:
    """Draw horizontal bars with their values, one group per name, one colour per series."""

    def draw(axes: Axes) -> None:
        rows, thick = np.arange(len(names)), 0.74 / len(series)
        for number, (name, values) in enumerate(series.items()):
            places = rows + (number - (len(series) - 1) / 2) * thick
            bars = axes.barh(places, values, thick * 0.86, color=PALETTE[number], label=name)
            axes.bar_label(bars, [text(value) for value in values], padding=3, fontsize=7.5)
        axes.set_yticks(rows)
        axes.set_yticklabels(names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(length=0)
        axes.set_xticks([])
        axes.set_xlim(0, 1.22 * max(1e-9, *(max(values) for values in series.values())))
        axes.spines[:].set_visible(False)
        if len(series) > 1:
            axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(series), borderpad=0)

    return drawing.picture(draw, height, alt, remark)


def _per_step(
    title: str,
    steps: Sequence[SimulatedStep],
    series: Mapping[str, Sequence[float]],
    text: Callable[[float], str],
) -> Picture:
    """Draw bars of one or two series, a group for each step."""
    listed = "; ".join(
        f"{step.step}: "
        + ", ".join(f"{text(amounts[row])} {name}".rstrip() for name, amounts in series.items())
        for row, step in enumerate(steps)
    )
    names = [short(step.step, 40).replace(": ", ":\n") for step in steps]
    height = (0.23 + 0.11 * len(series)) * len(steps) + 0.3 + 0.1 * len(series)
    return _bars(names, series, text, height, f"{title} {listed}.")


def _not_shown(count: int, noun: str) -> str:
    return f"{counted(count, noun)} with fewer not shown." if count else ""


def _largest(amounts: Counts) -> npt.NDArray[np.int64]:
    """Return indices of the largest amounts, largest first, as many as a picture has rows."""
    return np.argsort(-amounts, kind="stable")[:MOST_ROWS]
