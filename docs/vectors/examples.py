"""One example of every message and body, and of what is refused, for the test vectors."""

from __future__ import annotations

from datetime import date

import msgspec
import numpy as np

from earshot_protocol.api import AskTask, Enrol, Enrolled, Problem, Refuse
from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed, Wait
from earshot_protocol.phases.discovery import (
    Discovered,
    DiscoveryParameters,
    SumCells,
    SumLabels,
)
from earshot_protocol.phases.labelling import (
    CheckLabels,
    Labelled,
    LabellingParameters,
    LabelSamples,
)
from earshot_protocol.phases.learning import (
    Budget,
    Cluster,
    GlobalCentroids,
    LocalCentroids,
    PhaseParameters,
    Result,
    TopCentroids,
)
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.statistics import CountContacts, Statistics, StatisticsParameters
from earshot_protocol.prio3.shapes import Counts
from earshot_protocol.privacy.accounting import Release
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.privacy.sum_noise import WholeGaussian, WholeLaplace
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.secure_sum.messages import (
    AdvertisedKeys,
    AdvertiseKeys,
    MaskedInput,
    MaskInput,
    SharedKeys,
    ShareKeys,
    Unmask,
    Unmasked,
)
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.two_operators.messages import (
    VERSION,
    X25519_AES128,
    AddUp,
    HelperTotal,
    MakeOffer,
    Offer,
    OfferMade,
    PhoneReport,
    SendReport,
    SignedOffer,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.transport import ListPart
from earshot_protocol.wire import Answer, Matrix, Task, encode

LABELS = ("street", "öffentlicher Verkehr", "nature")
LEARNING = PhaseParameters(
    phones=500,
    recordings=200,
    dimensions=2,
    geometry=Geometry.EUCLIDEAN,
    encoder="contrast-3",
    labels=LABELS,
    local_centroids=6,
    top_local_centroids=2,
    top_global_centroids=10,
    centroid_votes=3,
    label_votes=3,
    dropout=0.1,
    corrupted=0.05,
    budget=Budget(clustering=1.0, selection=0.25, centroid_vote=0.5, label_vote=0.5),
)
SPHERICAL = msgspec.structs.replace(
    LEARNING, geometry=Geometry.SPHERICAL, dimensions=8, delta=1e-7, step_seconds=3600.0
)
CHOICES = (("siren", "crossing"), ("Straßenbahn",), ())
CHOSEN = msgspec.structs.replace(
    LEARNING, hierarchy=LabelHierarchy(dict(zip(LABELS, CHOICES, strict=True))).digest
)
STATISTICS = StatisticsParameters(
    phones=500,
    labels=LABELS,
    dropout=0.1,
    corrupted=0.05,
    contacts=20,
    noise=5.5,
    since=date(2026, 1, 1),
    until=date(2026, 1, 8),
    places=AgreedPlaces(
        encoder="contrast-3",
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(np.array([[1.0, 0.0], [0.6, 0.8]])),
        labels=(1, -1),
        radius=0.25,
    ),
)
CONFUSION = msgspec.structs.replace(STATISTICS, contacts=5, confusion=True)
"""Parameters of a sum of contacts with a confusion matrix behind them."""
DISCOVERY = DiscoveryParameters(
    phones=500,
    labels=LABELS,
    encoder="contrast-3",
    start=CentroidSet.of(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.6, 0.8]])),
    most_cells=6,
    sums=2,
    cells_noise=6.5,
    labels_noise=5.0,
    rows=3,
    dropout=0.1,
    corrupted=0.05,
)
PUBLIC_CELLS = msgspec.structs.replace(
    DISCOVERY, sums=0, rows=6, delta=1e-7, hierarchy=CHOSEN.hierarchy, noise_crowd=200
)
"""Parameters without a sum of cells: the first task is that of the labels, whose choices have rows
of their own."""
SPLIT = msgspec.structs.replace(
    DISCOVERY, sums=1, rows=6, kinds=3, hierarchy=CHOSEN.hierarchy, labels_noise=7.5
)
"""Parameters whose rows, those of choices too, are split by kinds of sound."""

LABELLING = LabellingParameters(
    phones=500,
    labels=LABELS,
    encoder="contrast-3",
    samples=Matrix.of(np.array([[0.8, 0.6], [0.0, 1.0], [-0.6, -0.8]])),
    votes_noise=40.0,
    check_noise=30.5,
    threshold=250.0,
    dropout=0.1,
    corrupted=0.05,
)
WEIGHED = msgspec.structs.replace(
    LABELLING, largest_weight=3, delta=1e-7, hierarchy=CHOSEN.hierarchy
)

BY_TWO = SummationName.TWO_OPERATORS_UNPROVED
OPERATED_LEARNING = msgspec.structs.replace(LEARNING, summation=BY_TWO)
OPERATED_STATISTICS = msgspec.structs.replace(STATISTICS, summation=BY_TWO)
OPERATED_DISCOVERY = msgspec.structs.replace(DISCOVERY, summation=BY_TWO)
OPERATED_LABELLING = msgspec.structs.replace(WEIGHED, summation=BY_TWO)
PROVED_LEARNING, PROVED_STATISTICS, PROVED_DISCOVERY, PROVED_LABELLING = (
    msgspec.structs.replace(each, summation=SummationName.TWO_OPERATORS)
    for each in (LEARNING, STATISTICS, DISCOVERY, WEIGHED)
)
"""Parameters of phases whose sums are by two operators."""

_PHASE = bytes(range(16))
_SUM = bytes(range(16, 32))
_CENTROIDS = Matrix.of(np.array([[0.5, -0.25], [1.0, 0.0]]))
_MOVED = Matrix.of(np.array([[0.8, 0.6], [0.0, 1.0], [-0.6, -0.8], [0.6, 0.8]]))
_PUBLISHED = Result(
    phase=_PHASE,
    geometry=Geometry.EUCLIDEAN,
    centroids=_CENTROIDS,
    labels=(2, -1),
    label_names=LABELS,
    centroid_votes=(311, 40),
    label_votes=((-3, 12, 250), (0, -1, -70_000)),
    centroid_p_values=(0.0, 0.0005),
    name_p_values=(1e-9, 1.0),
    encoder="contrast-3",
    privacy=(
        Release("centroid vote", Unit.RECORDING, 0.5, 2.4e-12, "ballot sum"),
        Release("centroid vote", Unit.PHONE, 0.75, 2.8e-12, "ballot sum"),
    ),
)


def _bytes(first: int, count: int) -> bytes:
    return bytes((first + i) % 256 for i in range(count))


def _advertise(parameters: SumParameters) -> AdvertiseKeys:
    return AdvertiseKeys(sum_id=_SUM, index=300, parameters=parameters)


_SUM_PARAMETERS = choose(500, (2,), 64, 0.1, 0.05)


def _offered(
    noise: WholeGaussian | WholeLaplace, shape: tuple[int, ...], proof: Counts | None = None
) -> Offer:
    return Offer(
        version=VERSION,
        suite=X25519_AES128,
        sum_id=_SUM,
        leader=_bytes(20, 32),
        helper=_bytes(21, 32),
        key=_bytes(22, 32),
        task=_bytes(23, 32),
        parameters=TwoOperatorParameters(
            phones=500,
            shape=shape,
            bound=20 if proof is None else 1,
            noise=noise,
            least=450,
            window=86_400.0,
            proof=proof,
        ),
        opens=1_800_000_000.25,
        closes=1_800_086_400.25,
        answer_until=1_800_691_200.25,
    )


def _send_report(offer: Offer) -> SendReport:
    signed = SignedOffer(offer=offer, helper=_bytes(24, 64), leader=_bytes(25, 64))
    return SendReport(sum_id=_SUM, index=300, offer=signed)


_OFFERED = _offered(WholeLaplace.of(4.0), (3,))
_PROVED = _offered(WholeLaplace.of(4.0), (3,), Counts(1, 2, 3))

TASKS: tuple[Task, ...] = (
    Cluster(phase=_PHASE, index=300, parameters=LEARNING),
    Cluster(phase=_PHASE, index=0, parameters=SPHERICAL),
    Cluster(phase=_PHASE, index=0, parameters=CHOSEN, choices=CHOICES),
    GlobalCentroids(phase=_PHASE, centroids=_CENTROIDS, opening=_advertise(_SUM_PARAMETERS)),
    TopCentroids(phase=_PHASE, centroids=_CENTROIDS, opening=_advertise(_SUM_PARAMETERS)),
    CountContacts(phase=_PHASE, parameters=STATISTICS, opening=_advertise(_SUM_PARAMETERS)),
    CountContacts(phase=_PHASE, parameters=CONFUSION, opening=_advertise(_SUM_PARAMETERS)),
    ShareKeys(
        sum_id=_SUM,
        neighbours=(0, 128, 65_536),
        public_keys=_bytes(1, 96),
    ),
    MaskInput(sum_id=_SUM, senders=(0, 128), ciphertexts=(_bytes(3, 93), _bytes(4, 93))),
    Unmask(sum_id=_SUM, survivors=(0,), dropped=(128,)),
    Wait(seconds=8640.0),
    _PUBLISHED,
    Statistics(
        phase=_PHASE,
        label_names=LABELS,
        labelled=(204.5, -3.0, 12.25),
        named=(1000.0, 0.0, 75.75),
        unknown=530.5,
        labelled_p_values=(0.0, 1.0, 0.25),
        named_p_values=(0.0, 1.0, 0.125),
        unknown_p_value=1e-9,
        deviation=116.5,
        contacts=20,
        phones=481,
        since=STATISTICS.since,
        until=STATISTICS.until,
        privacy=(),
    ),
    Statistics(
        phase=_PHASE,
        label_names=LABELS,
        labelled=(204.5, -3.0, 12.25),
        named=(1000.0, 0.0, 75.75),
        unknown=530.5,
        confusion=(61.5, 2.25, -0.5, 0.0, 40.0, 1.75, -3.0, 4.5, 22.0),
        labelled_p_values=(0.0, 1.0, 0.25),
        named_p_values=(0.0, 1.0, 0.125),
        unknown_p_value=1e-9,
        deviation=116.5,
        contacts=5,
        phones=481,
        since=STATISTICS.since,
        until=STATISTICS.until,
        privacy=(),
    ),
    Failed(phase=_PHASE, reason="stopped by an operator"),
    SumCells(
        phase=_PHASE,
        repetition=1,
        parameters=DISCOVERY,
        opening=_advertise(_SUM_PARAMETERS),
    ),
    SumCells(
        phase=_PHASE,
        repetition=2,
        centroids=_MOVED,
        opening=_advertise(_SUM_PARAMETERS),
    ),
    SumLabels(phase=_PHASE, opening=_advertise(_SUM_PARAMETERS)),
    SumLabels(
        phase=_PHASE,
        parameters=PUBLIC_CELLS,
        choices=CHOICES,
        opening=_advertise(_SUM_PARAMETERS),
    ),
    SumLabels(
        phase=_PHASE,
        centroids=_MOVED,
        kinds=(0, 2, 1, 0),
        opening=_advertise(_SUM_PARAMETERS),
    ),
    Discovered(
        phase=_PHASE,
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(
            np.array(
                [
                    *([0.8, 0.6], [0.96, -0.28], [0.0, 1.0], [-0.6, 0.8]),
                    *([1.0, 0.0], [0.6, -0.8], [-1.0, 0.0]),
                ]
            )
        ),
        labels=(0, 0, 1, 2, 0, 0, 1),
        choices=("", "", "", "", "siren", "crossing", "Straßenbahn"),
        label_names=LABELS,
        name_p_values=(0.0, 0.03125, 1.0, 1e-9, 0.0005, 0.75, 1.0),
        lengths=(120.5, 21.0, 0.75, 40.0, 31.25, 2.0, 0.0),
        cells=_MOVED,
        moved=(True, False, True, False),
        cell_lengths=(88.25, 0.5, 61.5, 0.0),
        cell_prototypes=(0, -1, 1, 0),
        radius=0.375,
        refused=0.625,
        encoder="contrast-3",
        privacy=(
            Release("labels", Unit.RECORDING, 0.75, 1e-6, "sum of vectors"),
            Release("labels", Unit.PHONE, 0.5, 1e-6, "sum of vectors"),
        ),
    ),
    Discovered(
        phase=_PHASE,
        geometry=Geometry.SPHERICAL,
        centroids=_CENTROIDS,
        labels=(2, 0),
        choices=("", ""),
        label_names=LABELS,
        name_p_values=(0.0, 1.0),
        lengths=(88.0, 0.25),
        cells=_MOVED,
        moved=(True, False, True, False),
        cell_lengths=(61.5, 0.0, 40.0, 0.0),
        cell_prototypes=(1, 1, 0, 1),
        refused=0.0,
        encoder="contrast-3",
        privacy=(
            Release("labels", Unit.RECORDING, 0.75, 1e-6, "sum of vectors"),
            Release("labels", Unit.PHONE, 0.5, 1e-6, "sum of vectors"),
        ),
    ),
    LabelSamples(phase=_PHASE, parameters=LABELLING, opening=_advertise(_SUM_PARAMETERS)),
    LabelSamples(
        phase=_PHASE,
        parameters=WEIGHED,
        choices=CHOICES,
        opening=_advertise(_SUM_PARAMETERS),
    ),
    CheckLabels(phase=_PHASE, proposed=(2, 0, 1), opening=_advertise(_SUM_PARAMETERS)),
    Labelled(
        phase=_PHASE,
        geometry=Geometry.SPHERICAL,
        centroids=LABELLING.samples,
        labels=(2, 0, -1),
        label_names=LABELS,
        label_votes=((-3, 12, 401), (290, 77, 61), (120, 131, -70_000)),
        agreement=(388, 251, 96),
        threshold=250.0,
        name_p_values=(0.0, 0.0005, 1.0),
        encoder="contrast-3",
        privacy=(
            Release("votes", Unit.RECORDING, 0.75, 1e-6, "sum of votes"),
            Release("votes", Unit.PHONE, 0.5, 1e-6, "sum of votes"),
        ),
    ),
    CountContacts(phase=_PHASE, parameters=OPERATED_STATISTICS, opening=_send_report(_OFFERED)),
    SumLabels(
        phase=_PHASE,
        opening=_send_report(_offered(WholeGaussian(419_430_400), (3, 3))),
    ),
)
HELPER_TASKS: tuple[Task, ...] = (
    MakeOffer(
        sum_id=_SUM,
        leader=_OFFERED.leader,
        task=_OFFERED.task,
        parameters=_OFFERED.parameters,
        patience=604_800.0,
        commitment=_bytes(39, 32),
        signature=_bytes(26, 64),
    ),
    AddUp(sum_id=_SUM, offer=_bytes(27, 32), reports=_bytes(28, 192), signature=_bytes(29, 64)),
    AddUp(sum_id=_SUM, offer=_bytes(27, 32), reports=b"", signature=_bytes(29, 64)),
)
HELPER_ANSWERS: tuple[Answer, ...] = (
    OfferMade(sum_id=_SUM, offer=_OFFERED, signature=_bytes(24, 64)),
    OfferMade(sum_id=_SUM, offer=_PROVED, signature=_bytes(24, 64), verify_key=_bytes(38, 32)),
    HelperTotal(
        sum_id=_SUM,
        offer=_bytes(27, 32),
        reports=_bytes(30, 32),
        refused=_bytes(31, 16),
        total=_bytes(32, 5),
        signature=_bytes(33, 64),
    ),
    HelperTotal(
        sum_id=_SUM,
        offer=_bytes(27, 32),
        reports=_bytes(30, 32),
        refused=b"",
        total=_bytes(32, 48),
        verifiers=_bytes(39, 128),
        signature=_bytes(33, 64),
    ),
)
LIST_PARTS = (ListPart(sum_id=_SUM, number=1, entries=_bytes(34, 96)),)

ANSWERS: tuple[Answer, ...] = (
    LocalCentroids(phase=_PHASE, sender=300, centroids=_CENTROIDS),
    AdvertisedKeys(sum_id=_SUM, sender=300, public_key=_bytes(5, 32)),
    SharedKeys(
        sum_id=_SUM,
        sender=300,
        ciphertexts=(_bytes(7, 93), _bytes(8, 93), _bytes(9, 93)),
        masks=_bytes(6, 48),
        commitment=_bytes(10, 32),
    ),
    MaskedInput(sum_id=_SUM, sender=300, vector=_bytes(11, 4)),
    Unmasked(sum_id=_SUM, sender=300, shares=_bytes(12, 33) + bytes(33), traces=_bytes(14, 8)),
    PhoneReport(
        sum_id=_SUM,
        sender=300,
        report_id=_bytes(35, 16),
        sealed=_bytes(36, 80),
        share=_bytes(37, 5),
    ),
    PhoneReport(
        sum_id=_SUM,
        sender=300,
        report_id=_bytes(35, 16),
        sealed=_bytes(36, 112),
        share=_bytes(37, 304),
        public=_bytes(40, 64),
    ),
)

BODIES: tuple[msgspec.Struct, ...] = (
    Enrol(public_key=_bytes(13, 32), attestation="an invitation code"),
    Enrolled(phone="7"),
    AskTask(),
    AskTask(known=(_PHASE,)),
    *(Refuse(phase=_PHASE, rule=rule) for rule in Rule),
    Problem(
        type="urn:earshot:problem:stale-signature",
        title="The signature is too old, or too new",
        status=401,
        detail="signed at 1, and it is 1800000000 here: at most 300 seconds apart",
        now=1_800_000_000.5,
    ),
)


def _map(**fields: object) -> bytes:
    return msgspec.msgpack.encode(fields)


MALFORMED_TASKS: tuple[tuple[str, bytes], ...] = (
    ("no type", _map(seconds=1.0)),
    ("a type that there is not", _map(type="sleep", seconds=1.0)),
    ("an answer is no task", encode(ANSWERS[3])),
    ("a field that there is not", _map(type="wait", seconds=1.0, why="because")),
    ("a field is missing", _map(type="wait")),
    ("out of range", _map(type="wait", seconds=-1.0)),
    ("something follows", encode(TASKS[8]) + b"\0"),
    ("the end is missing", encode(TASKS[5])[:-1]),
    ("not a map", msgspec.msgpack.encode(["wait", 1.0])),
)
MALFORMED_ANSWERS: tuple[tuple[str, bytes], ...] = (
    ("a task is no answer", encode(TASKS[8])),
    (
        "an identifier of 15 bytes",
        _map(type="masked-input", sum_id=_SUM[1:], sender=300, vector=b""),
    ),
    ("text in the place of bytes", _map(type="masked-input", sum_id=_SUM, sender=0, vector="a")),
    ("too large a sender", _map(type="masked-input", sum_id=_SUM, sender=2**32, vector=b"")),
    (
        "a ciphertext of 92 bytes",
        _map(
            type="shared-keys",
            sum_id=_SUM,
            sender=0,
            ciphertexts=[bytes(92)],
            commitment=bytes(32),
        ),
    ),
)
