"""By which places a statistics phase counts: of one phase, of the newest, or of none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest
from support import dashboard_records as made
from support.command import dry_start
from support.dashboard_server import words
from support.parameters import statistics_parameters

from earshot_protocol.api import StartPhase
from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.places import UNNAMED, AgreedPlaces
from earshot_protocol.wire import Ending, Matrix
from earshot_server.api.views import PhaseExport, PhaseView
from earshot_server.commands.phase.places import of_phase, published
from earshot_server.dashboard.prospects import lines
from earshot_server.phases.forecast import forecast
from earshot_server.phases.places import newest

ENCODER = "contrast-3"
HIERARCHY = LabelHierarchy({"transport": ("bus", "train"), "park": ()})


def prototypes(
    names: tuple[str, ...], radius: float | None = None, p_value: float = 0.0
) -> Discovered:
    """Each name has a prototype in a direction of its own, where it has a cell, too."""
    places = Matrix.of(np.eye(len(names), 8))
    return Discovered(
        phase=bytes(16),
        geometry=Geometry.SPHERICAL,
        centroids=places,
        labels=tuple(range(len(names))),
        choices=("",) * len(names),
        label_names=names,
        name_p_values=(p_value,) * len(names),
        cells=places,
        moved=(True,) * len(names),
        cell_lengths=(9.0,) * len(names),
        cell_prototypes=tuple(range(len(names))),
        lengths=(9.0,) * len(names),
        radius=radius,
        refused=0.0,
        encoder=ENCODER,
        privacy=(),
    )


def found(names: tuple[str, ...], clear: tuple[bool, ...], encoder: str = ENCODER) -> Result:
    """A learning phase's environments, in directions of their own."""
    count = len(names)
    labels = tuple(dict.fromkeys(names))
    return Result(
        phase=bytes(16),
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(np.eye(count, 8)),
        labels=tuple(labels.index(name) for name in names),
        label_names=labels,
        centroid_votes=(9,) * count,
        label_votes=((9,) * len(labels),) * count,
        centroid_p_values=(0.0,) * count,
        name_p_values=tuple(0.0 if each else 1.0 for each in clear),
        encoder=encoder,
        privacy=(),
    )


def labelled(name: str, encoder: str = ENCODER) -> Labelled:
    """One sample, in the last of eight directions, with this answer."""
    return Labelled(
        phase=bytes(16),
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(np.eye(8)[[7]]),
        labels=(0,),
        label_names=(name,),
        label_votes=((99,),),
        agreement=(99,),
        threshold=1.0,
        name_p_values=(0.0,),
        encoder=encoder,
        privacy=(),
    )


@dataclass
class Operator:
    """Of a server with phases that ended so, the first of them first."""

    endings: tuple[Ending | None, ...]

    def phases(self) -> tuple[PhaseView, ...]:
        view = PhaseView.of(made.published_discovery(61, made.NOW))
        views = [
            msgspec.structs.replace(
                view,
                phase=f"{number:032x}",
                finished=float(number),
                status="failed" if ending is None else "published",
            )
            for number, ending in enumerate(self.endings)
        ]
        return tuple(views[1:] + views[:1])  # by when they began, which is another order

    def export(self, phase: str) -> PhaseExport:
        number = int(phase, 16)
        assert self.endings[number] is not None, "nobody needs to ask for it"
        return PhaseExport(phase=self.phases()[0], ending=self.endings[number])


def of_newest(*endings: Ending | None) -> AgreedPlaces | None:
    operator: Any = Operator(endings)
    return newest(published(operator), HIERARCHY)


def test_names_count_as_the_classes_that_they_stand_for_in_the_new_phase() -> None:
    result = found(("train", "park", "office", "park"), (True, True, True, False))
    agreed = of_phase("61", result, HIERARCHY)
    assert agreed.labels == (0, 1, UNNAMED, UNNAMED), "office is not asked for; noise is no name"
    assert (agreed.encoder, agreed.geometry) == (ENCODER, Geometry.SPHERICAL)
    assert np.array_equal(agreed.centroids.array(), np.eye(4, 8))
    agreed.check(2)
    assert agreed.named(HIERARCHY.classes).nearest(np.eye(4, 8, dtype=np.float32)) == [
        *("transport", "park", None, None)
    ]


def test_contacts_beyond_the_radius_of_all_prototypes_count_for_no_label() -> None:
    agreed = of_phase("61", prototypes(("train", "park"), radius=0.3), HIERARCHY)
    assert (agreed.labels, agreed.radius) == ((0, 1), 0.3)
    near, far = np.array([[0.8, 0.1, 0.5], [0.5, 0.0, 0.9]], dtype=np.float32)
    points = np.zeros((2, 8), dtype=np.float32)
    points[:, :3] = near, far
    assert agreed.named(HIERARCHY.classes).nearest(points) == ["transport", None]
    asked = StartPhase(parameters=statistics_parameters(labels=HIERARCHY.classes, places=agreed))
    said = lines(asked, forecast(asked))
    assert any(
        "of which 2 have a name, where that lies within 0.3 (1 − cosine);" in line for line in said
    )
    record = msgspec.structs.replace(
        made.published_statistics(30, made.NOW), parameters=asked.parameters
    )
    shown = words(f"/phases/{record.phase.hex()}", record)
    assert "in embeddings of contrast-3, each within 0.3 (1 − cosine)" in shown
    # What was labelled since counts within it, too.
    joined = of_newest(prototypes(("train", "park"), radius=0.3), labelled("bus"))
    assert joined is not None
    assert (joined.labels, joined.radius) == ((0, 0, 1), 0.3)


@pytest.mark.parametrize(
    ("ending", "match"),
    [
        (None, "--places-of 61: this phase has published no environments"),
        (prototypes(("office",)), "none .* one of the labels transport, park"),
        (prototypes(("park",), p_value=1.0), "none .* one of the labels transport, park"),
        (found(("office", "bus"), (True, False)), "none .* one of the labels transport, park"),
    ],
)
def test_a_phase_that_names_nothing_here_is_refused_by_name(
    ending: Ending | None, match: str
) -> None:
    with pytest.raises(InvalidInputError, match=match):
        of_phase("61", ending, HIERARCHY)


def test_the_newest_result_counts_with_what_was_labelled_since() -> None:
    old, new = found(("park",), (True,)), found(("bus", "park"), (True, True))
    before, since, later = labelled("bus"), labelled("park"), labelled("train")
    alone = of_newest(old, before, new)
    assert alone is not None
    assert alone.labels == (0, 1)
    joined = of_newest(old, before, new, since, None, later)
    assert joined is not None
    assert joined.labels == (0, 0, 1), "the newest samples stand first"
    assert np.array_equal(joined.centroids.array()[0], np.eye(8)[7])
    assert of_newest(new, labelled("park", "another-1")) == alone
    only = of_newest(since)
    assert only is not None
    assert only.labels == (1,)


def test_without_a_name_that_the_phase_knows_labels_alone_count() -> None:
    assert of_newest() is None
    assert of_newest(None, made.published_statistics(30, made.NOW).ending) is None
    assert of_newest(found(("office",), (True,))) is None


def test_how_contacts_without_a_label_count_is_said_before_a_phase_begins() -> None:
    for options in ((), ("--places-of", "none")):
        assert "contacts without a label of their own count as unknown" in dry_start(
            "--statistics", *options
        )
    refused = dry_start("--statistics", "--places-of", "61", status=2)
    assert "earshot: --places-of 61: a server that knows the phase" in refused
    parameters = statistics_parameters(
        labels=HIERARCHY.classes, places=of_phase("61", found(("bus",), (True,)), HIERARCHY)
    )
    asked = StartPhase(parameters=parameters)
    said = lines(asked, forecast(asked))
    assert any(
        "by the nearest of 1 places, of which 1 have a name" in line
        and f"without the encoder {ENCODER} refuse" in line
        for line in said
    )
