"""Options of phases, from which commands, forms and simulations make parameters."""

import enum
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeVar

import msgspec
from cyclopts import Parameter

from earshot_protocol.encoder_file import EncoderFile
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.phases import discovery_budget, labelling_budget, learning_budget
from earshot_protocol.phases.discovery import DiscoveryParameters, rows_of
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.learning import PhaseParameters
from earshot_protocol.phases.parameters import Parameters, hierarchy_of
from earshot_protocol.privacy.local_mechanisms import SelectionMethod
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.wire import Matrix
from earshot_server.phases.labelling import usual_threshold

# Without `from __future__ import annotations`: the command line evaluates the types in other
# modules, whose classes inherit from these, and where their names are not defined.

NO_OPTION = Parameter(parse=False)
"""Marker of a field that is no option of the command line."""

P = TypeVar("P", bound=Parameters)


class Discovery(enum.StrEnum):
    """Way of finding environments."""

    SECURE_SUM = "secure-sum"
    """Secure sums over the cells of public start centroids; protects phones."""
    LOCAL = "local"
    """Centroids that phones cluster and publish on their own; protects recordings (the thesis)."""


class _Crowd:
    """Options that every phase has, for type checkers."""

    phones: int
    delta: float


@dataclass(frozen=True, kw_only=True)
class CellOptions(_Crowd):
    """Options of the route by secure sums: cells, and the sums over them.

    Attributes:
        sums: Sums over cells before that of labels (T), 0 to 3.
        label_share: Share of ε (in ρ of zero-concentrated privacy) that the sum of labels gets:
            above 0, below 1.
        kinds: Kinds of sound by which the rows of labels are split, so that a label of several
            kinds gets several prototypes; 1 for no split.
        cells: Start centroids of a discovery by secure sums; by default 20, or 40 if crowd and ε
            allow.
        most_cells: Most cells that the start centroids may grow to (k); by default 40, or --cells
            if that is more.
    """

    sums: int = discovery_budget.SUMS
    label_share: float = discovery_budget.LABEL_SHARE
    kinds: int = 1
    cells: int | None = None
    most_cells: int | None = None

    def cell_parameters(
        self,
        epsilon: float,
        start: Callable[[int], CentroidSet],
        unit: Unit = Unit.PHONE,
        noise: float | None = None,
        /,
        **known: Any,
    ) -> DiscoveryParameters:
        """Return the parameters of a phase by secure sums.

        Args:
            epsilon: Budget ε of the whole phase.
            start: Function that returns this many start centroids.
            unit: Unit in which the phase costs ε.
            noise: Noise multiplier of all sums; by default the smallest that keeps to ε.
            known: Fields of the parameters that are not options.

        Raises:
            EarshotError: An option is wrong; the message names it and the accepted values.
        """
        counts = discovery_budget.cell_counts(
            self.phones, epsilon, self.delta, self.cells, self.most_cells
        )
        known |= {"start": start(counts.start), "most_cells": counts.most}
        known |= dict.fromkeys(("cells_noise", "labels_noise"), 1.0 if noise is None else noise)
        parameters = made(DiscoveryParameters, self, **known)
        if noise is not None:
            return parameters
        return discovery_budget.affordable(parameters, epsilon, self.label_share, unit)


@dataclass(frozen=True, kw_only=True)
class CentroidOptions:
    """Options of the local route: centroids, and the votes on them.

    Attributes:
        local_centroids: With --discovery local: centroids that a phone computes (k).
        top_local_centroids: With --discovery local: centroids that a phone publishes (k*).
        top_global_centroids: With --discovery local: global centroids that the first vote keeps
            (g*); by default as many as there are labels, but at least ten.
        selection_method: With --discovery local: method by which a phone chooses the centroids that
            it publishes.
        clustering_runs: With --discovery local: average number of a phone's clusterings, of which
            it keeps the best.
        centroid_votes: With --discovery local: ones in a ballot of the first vote.
        label_votes: With --discovery local: ones in a ballot of the second vote; by default one per
            kept centroid.
    """

    local_centroids: int = learning_budget.LOCAL_CENTROIDS
    top_local_centroids: int = learning_budget.TOP_LOCAL_CENTROIDS
    top_global_centroids: int | None = None
    selection_method: SelectionMethod = SelectionMethod.NOISY_MAX
    clustering_runs: int = 1
    centroid_votes: int = learning_budget.CENTROID_VOTES
    label_votes: int | None = None

    def kept_centroids(self, labels: int) -> int:
        """Return the number of global centroids that the first vote keeps, g*.

        A label without a centroid of its own names nothing; where labels are few, real sound has
        several centroids of each.

        Args:
            labels: Number of labels.
        """
        if self.top_global_centroids is not None:
            return self.top_global_centroids
        return max(learning_budget.TOP_GLOBAL_CENTROIDS, labels)

    def centroid_parameters(
        self, epsilon: float | None, unit: Unit = Unit.RECORDING, /, **known: Any
    ) -> PhaseParameters:
        """Return the parameters of a phase on the local route.

        Args:
            epsilon: Budget ε of the whole phase; None to use the budget of each step in `known`.
            unit: Unit in which the phase costs ε.
            known: Fields of the parameters that are not options.

        Raises:
            InvalidParametersError: The value of ε or δ is out of range.
        """
        parameters = made(PhaseParameters, self, **known, top_global_centroids=1, label_votes=1)
        kept = self.kept_centroids(len(parameters.labels))
        votes = kept if self.label_votes is None else self.label_votes
        parameters = msgspec.structs.replace(
            parameters, top_global_centroids=kept, label_votes=votes
        )
        if epsilon is None:
            return parameters
        return learning_budget.affordable(parameters, epsilon, unit)


@dataclass(frozen=True, kw_only=True)
class VoteOptions(_Crowd):
    """Options of votes for the labels of samples.

    Attributes:
        check_share: Share of ε (in ρ of zero-concentrated privacy) of the sum that counts how many
            agree on a sample's label: above 0, below 1.
        threshold: Phones that must agree on a sample's answer (T), noise included; by default, more
            than noise alone produces.
        largest_weight: Largest weight of a phone's vote for a sample's label, if its own budget
            covers it (W).
    """

    check_share: float = labelling_budget.CHECK_SHARE
    threshold: float | None = None
    largest_weight: int = 1

    def vote_parameters(
        self, epsilon: float, samples: Matrix, summation: SummationName, **known: Any
    ) -> LabellingParameters:
        """Return the parameters of a labelling phase.

        Args:
            epsilon: Budget ε of the whole phase, for a phone of weight 1.
            samples: Samples that phones label.
            summation: Summation of their votes.
            known: Fields of the parameters that are not options.

        Raises:
            InvalidParametersError: A value is out of range.
        """
        noise = labelling_budget.noises(
            epsilon,
            self.delta,
            samples=samples.rows,
            check_share=self.check_share,
            summation=summation,
        )
        known |= {"samples": samples, "summation": summation}
        known |= {"votes_noise": noise.votes, "check_noise": noise.check}
        if self.threshold is not None:
            return made(LabellingParameters, self, **known)
        parameters = made(LabellingParameters, self, **known, threshold=1.0)
        return msgspec.structs.replace(parameters, threshold=usual_threshold(parameters))


@dataclass(frozen=True, kw_only=True)
class PhaseOptions(CellOptions):
    """Options of a phase that finds environments, whether it is proposed or started.

    Attributes:
        phones: Number of phones.
        epsilon: Budget ε of the whole phase, per phone; by default 2. With --discovery local: per
            recording, by default the cost of the steps' default budgets.
        delta: Value of δ for the phase.
        discovery: Way of finding environments: secure-sum, the default, protects phones; local, the
            thesis's, protects recordings, and no phone takes part by default.
        recordings: With --discovery local: recordings of a phone, on average; a public number.
        labels: Classes of environments.
        dropout: Largest fraction of phones that may drop out (ρ).
        corrupted: Fraction of phones that an adversary may control (γ).
        finer: Give each choice of a poll its own prototype, in addition to its label's.
        choices: Choices of each label that polls offer; by default the labels themselves.
        summation: Summation of phones' inputs: bell, by the phones' masks; two-operators, by this
            server and its helper, to which phones prove that their inputs are valid;
            two-operators-unproved, likewise without proofs.
    """

    phones: int
    epsilon: float | None = None
    delta: float = discovery_budget.DELTA
    discovery: Discovery | None = None
    recordings: int = learning_budget.RECORDINGS
    labels: Annotated[tuple[str, ...], NO_OPTION] = ()
    dropout: float = 0.2
    corrupted: float = 0.05
    finer: bool = False
    choices: Annotated[tuple[tuple[str, ...], ...], NO_OPTION] = ()
    summation: SummationName = SummationName.BELL

    @property
    def phone_epsilon(self) -> float:
        """Budget ε of a phase by secure sums, per phone."""
        return discovery_budget.EPSILON if self.epsilon is None else self.epsilon

    def discovery_parameters(
        self, encoder: str, start: Callable[[int], CentroidSet], unit: Unit = Unit.PHONE
    ) -> DiscoveryParameters:
        """Return the parameters of a phase that finds environments by secure sums.

        Args:
            encoder: Name of the encoder whose embeddings phones hold.
            start: Function that returns this many of its start centroids.
            unit: Unit in which the phase costs ε.

        Raises:
            EarshotError: An option is wrong; the message names it and the accepted values.
        """
        known = {"encoder": encoder, "rows": self._rows()}
        return self.cell_parameters(self.phone_epsilon, start, unit, **known)

    def _rows(self) -> int:
        """Return the number of rows of the sum of labels, before they are split by kinds.

        Raises:
            InvalidParametersError: `finer` is true, but the labels have no choices.
        """
        labels = len(self.labels)
        if not self.finer:
            return labels
        rows = len(rows_of(hierarchy_of(self.labels, self.choices)))
        if rows == labels:
            raise InvalidParametersError(
                "finer: the labels have no choices besides themselves; give some (--hierarchy)"
            )
        return rows


def of_encoder(encoder: EncoderFile, dimensions: int | None = None) -> Callable[[int], CentroidSet]:
    """Return a function that returns start centroids of an encoder.

    Args:
        encoder: Encoder with start centroids.
        dimensions: Number of dimensions in which sound is clustered; by default the recommended
            one.
    """
    chosen = discovery_budget.DIMENSIONS if dimensions is None else dimensions
    return lambda count: CentroidSet.of(encoder.start_centroids(chosen, count))


def made(parameters: type[P], options: object, **known: Any) -> P:
    """Return parameters of a kind, each field from `known` or from the option of its name."""
    values = {**vars(options), **known}
    return parameters(
        **{name: values[name] for name in parameters.__struct_fields__ if name in values}
    )


def names(options: type[Any]) -> frozenset[str]:
    """Return the names of a class's options."""
    return frozenset(each.name for each in fields(options))


def given(options: Any, usual: Any) -> frozenset[str]:
    """Return the names of the options whose values are not the usual ones."""
    return frozenset(
        name for name in names(type(options)) if getattr(options, name) != getattr(usual, name)
    )


def refuse_others(
    given: Collection[str], kind: str, own: Mapping[str, Collection[str]], *used: str
) -> None:
    """Check that no option of another kind of phase is given.

    Args:
        given: Names of the options that are given.
        kind: Chosen kind, as users write it.
        own: Names of the options that only some kinds have, by kind.
        used: Chosen keys of `own`; by default `kind`.

    Raises:
        InvalidInputError: An option belongs to other kinds; the message names it and them.
    """
    every = frozenset[str]().union(*own.values())
    others = every.intersection(given).difference(*(own[each] for each in used or (kind,)))
    if others:
        wanted = [other for other, theirs in own.items() if others.intersection(theirs)]
        raise InvalidInputError(
            f"{', '.join(sorted(map(spelled, others)))}: not for {kind}, but for "
            f"{' or '.join(wanted)}; leave it out, or choose that"
        )


def spelled(name: str) -> str:
    """Return the option of a field, as users type it."""
    return "--from" if name == "since" else f"--{name.replace('_', '-')}"
