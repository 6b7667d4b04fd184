"""Findings of the local route: published centroids, and those that votes keep and name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_protocol.overriding import override
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.discovery.interface import LEFT_OUT, OUTLIER
from earshot_server.phases.learning import LearningPhase
from earshot_simulations.phases.environments import (
    EnvironmentFindings,
    Floats,
    Integers,
    Pictured,
    no_integers,
    optional_length,
)
from earshot_simulations.reporting import charts, drawing, plane
from earshot_simulations.reporting.drawing import Picture
from earshot_simulations.reporting.plane import (
    MOST_VECTORS,
    Frame,
    background,
    framed,
    left_out,
    marks,
    room,
    sample,
    scatter,
    without_room,
)
from earshot_simulations.reporting.words import (
    NOTHING,
    UNNAMED,
    chance,
    counted,
    optional,
    percent,
    whole,
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CentroidFindings(EnvironmentFindings):
    """Centroids that phones published, and those that two votes kept and named.

    Attributes:
        local_centroids: Centroids that phones published, float32 (c, d).
        local_clusters: Global centroid that each local one belongs to, -1 for an outlier, or -2
            for one that was not clustered, int (c,).
        centroid_votes: Noisy votes for the global centroids, int (g,).
        centroid_p_values: P-values of the votes for each kept centroid, under noise alone.
        label_votes: Noisy votes for the labels of the kept centroids, (t, L).
    """

    phase: ClassVar[str] = "learning phase"
    template: ClassVar[str] = "phases/local.html"
    place: ClassVar[str] = "centroid"
    unit: ClassVar[Unit] = Unit.RECORDING
    unit_note: ClassVar[str] = " with as many recordings as the phase assumes"
    counts: ClassVar[str] = "centroids"
    adversary_votes: ClassVar[str] = "Votes to keep the adversary's place"
    other_places: ClassVar[str] = "kept centroids"
    most_rows: ClassVar[int] = 200
    """Largest number of kept centroids in a table."""

    local_centroids: Floats | None = None
    local_clusters: Integers = field(default_factory=no_integers)
    centroid_votes: Integers | None = None
    centroid_p_values: tuple[float, ...] = ()
    label_votes: Integers | None = None

    @staticmethod
    @override
    def known(state: object) -> dict[str, Any]:
        if not isinstance(state, LearningPhase):
            return {}
        found: dict[str, Any] = {"local_centroids": state.local_centroids()}
        if state.centroids is not None:
            found["local_clusters"] = np.asarray(state.clusters, dtype=np.int64)
            found["global_centroids"] = state.centroids.array()
        if state.centroid_votes:
            found["centroid_votes"] = np.asarray(state.centroid_votes)
            found["top"] = np.asarray(state.top)
            found["centroid_p_values"] = state.centroid_p_values
        if state.label_votes:
            found |= {
                "label_votes": np.asarray(state.label_votes),
                "labels": np.asarray(state.labels),
                "name_p_values": state.name_p_values,
            }
        return found

    @staticmethod
    @override
    def counts_of(figures: Mapping[str, Any]) -> dict[str, Any]:
        return {name: figures[name] for name in ("global_centroids", "top_global_centroids")}

    @property
    @override
    def published_by_phones(self) -> tuple[int | None, int | None]:
        return len(self.local_clusters), int((self.local_clusters != LEFT_OUT).sum())

    @override
    def kept(self, row: int) -> dict[str, object]:
        votes, p_values = self.centroid_votes, self.centroid_p_values
        cast = None if self.label_votes is None else self.label_votes[row]
        return {
            "votes": None if cast is None else dict(zip(self.label_names, cast, strict=True)),
            "centroid_votes": None if votes is None else votes[self.top[row]],
            "centroid_p_value": p_values[row] if p_values else None,
        }

    @override
    def count(self) -> str:
        kept = NOTHING if self.centroid_votes is None else whole(len(self.top))
        centroids = optional(optional_length(self.global_centroids), whole)
        return f"{centroids} found, {kept} kept, {optional(self.named, whole)} named"

    @override
    def steps(self, frame: Frame) -> tuple[Pictured, ...]:
        return (
            Pictured(
                "What the phones published",
                "The top centroids of all phones, with the noise that protects each recording.",
                self._drawn_publications(frame),
            ),
            Pictured(
                "What the server found",
                "Centroids of one colour belong to one global centroid, marked by a cross; "
                "grey ones are outliers.",
                self._drawn_clusters(frame),
            ),
            Pictured(
                "What the votes kept and named",
                "The kept global centroids with the label and the centroid votes each received. "
                "Counts of votes carry noise, so one may be negative.",
                self._drawn_votes(frame),
            ),
        )

    def rows(self) -> list[list[str]]:
        """Return the kept centroids with their votes, as text."""
        kept = enumerate(zip(self.top, self.names, strict=True))
        return [self._row(row, index, name) for row, (index, name) in kept]

    def drawn_label_votes(self) -> Picture | None:
        """Draw the votes for each label of each kept centroid; None before that vote."""
        if self.label_votes is None:
            return None
        return charts.votes_by_label(
            self.label_votes, self.top.tolist(), self.label_names, "global centroid"
        )

    def drawn_centroid_votes(self) -> Picture | None:
        """Draw the votes to keep each centroid; None before that vote."""
        if self.centroid_votes is None:
            return None
        return charts.candidates(self.centroid_votes, self.top, "global centroid")

    def _row(self, row: int, index: int, name: str | None) -> list[str]:
        to_keep = NOTHING if self.centroid_votes is None else whole(self.centroid_votes[index])
        if self.label_votes is None:
            return [NOTHING, str(index), to_keep, NOTHING, NOTHING, NOTHING]
        votes = self.label_votes[row]
        cast, most = votes.clip(0).sum(), votes.max()
        return [
            UNNAMED if name is None else name,
            str(index),
            to_keep,
            whole(most),
            percent(most / cast) if cast else NOTHING,
            chance(self.name_p_values[row]) if self.name_p_values else NOTHING,
        ]

    def _drawn_publications(self, frame: Frame) -> Picture | None:
        """Draw the local top centroids of all phones; None before there are any."""
        if self.local_centroids is None:
            return None
        placed = frame.place(self.local_centroids)
        drawn = placed[sample(len(placed))]

        def draw(axes: Axes) -> None:
            background(axes, self.points, frame)
            marks(axes, drawn, np.zeros(len(drawn), dtype=np.int64), 6.0, "published centroid")

        alt = f"{counted(len(placed), 'local centroid')} that phones published, noise included."
        return framed(draw, frame, alt, *left_out(frame, placed, len(drawn)))

    def _drawn_clusters(self, frame: Frame) -> Picture | None:
        """Draw local centroids by cluster, outliers in grey, global centroids as crosses."""
        if self.global_centroids is None:
            return None
        placed, clusters = np.empty((0, 2)), self.local_clusters
        if self.local_centroids is not None and len(clusters):
            placed = frame.place(self.local_centroids)
        chosen = sample(len(placed))
        centres = frame.place(self.global_centroids)
        colours = self.colours()

        def draw(axes: Axes) -> None:
            background(axes, self.points, frame)
            points, cluster = placed[chosen], clusters[chosen]
            outlier, pixels = cluster < 0, len(points) > MOST_VECTORS
            scatter(axes, points[outlier], "outlier", s=4, c=drawing.MUTED, rasterized=pixels)
            marks(axes, points[~outlier], colours[cluster[~outlier]], 6.0, "published centroid")
            scatter(axes, centres, "", s=70, c=drawing.CARD, marker="X", zorder=4)
            scatter(axes, centres, "global centroid", s=34, c=drawing.INK, marker="X", zorder=5)

        outliers, unlooked = (int((clusters == kind).sum()) for kind in (OUTLIER, LEFT_OUT))
        unseen = f", {whole(unlooked)} were not clustered" if unlooked else ""
        alt = (
            f"{counted(len(centres), 'global centroid')} from "
            f"{counted(len(placed), 'local centroid')}, "
            f"{counted(outliers, 'outlier')} among them{unseen}."
        )
        return framed(draw, frame, alt, *left_out(frame, placed, len(chosen)))

    def _drawn_votes(self, frame: Frame) -> Picture | None:
        """Draw the kept centroids with labels and votes, larger where more phones voted."""
        if self.global_centroids is None or self.centroid_votes is None:
            return None
        centres = frame.place(self.global_centroids[self.top])
        votes = self.centroid_votes[self.top]
        words = [
            f"{UNNAMED if name is None else drawing.short(name, 18)} {count}"
            for name, count in zip(self.names, votes, strict=True)
        ]
        colours = self.colours()[self.top]
        names = room(frame, centres, words, 0.05)

        def draw(axes: Axes) -> None:
            background(axes, self.points, frame)
            share = np.clip(votes / max(1, votes.max(initial=1)), 0.05, 1)
            marks(axes, centres, colours, 140 * share, "kept centroid with its noisy votes")
            plane.write(axes, names)

        listed = "; ".join(words[: drawing.MOST_ROWS]) or "none"
        alt = f"{counted(len(centres), 'kept centroid')} with label and votes: {listed}."
        remarks = *left_out(frame, centres, len(centres)), without_room(len(words) - len(names))
        return framed(draw, frame, alt, *remarks)

    def colours(self) -> Integers:
        """Return a colour for each global centroid: its nearest scene's, each scene used once.

        A scene then has the same colour in all pictures; further centroids get new colours.
        """
        from scipy.optimize import linear_sum_assignment
        from scipy.spatial.distance import cdist

        if self.global_centroids is None:
            return np.empty(0, dtype=np.int64)
        present = np.unique(self.scenes)
        colours = np.full(len(self.global_centroids), -1)
        if len(present):
            means = np.array([self.points[self.scenes == scene].mean(axis=0) for scene in present])
            centroids, scenes = linear_sum_assignment(cdist(self.global_centroids, means))
            colours[centroids] = present[scenes]
        others = colours < 0
        colours[others] = len(self.label_names) + np.arange(others.sum())
        return colours
