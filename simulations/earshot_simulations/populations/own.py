"""A population of the caller's own, whose every answer is checked before a phone holds it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Set
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import EarshotError, InvalidInputError, InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.phases.parameters import LARGEST_LABELS
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.wire import LARGEST_DIMENSIONS
from earshot_simulations.own_code import OwnCodeError, own_array, own_code
from earshot_simulations.populations.blobs import lifted
from earshot_simulations.populations.interface import (
    LEAST_PHONES,
    MOST_PHONES,
    Population,
    Recordings,
    SimulatedPopulation,
)
from earshot_simulations.populations.population import UNLABELLED

_PLACES = 0x91ACE
"""Seed of the public start centroids of points that are lifted to the sphere."""
_OFF = 1e-3
"""Most that the length of a point on the sphere may differ from 1, as float16 would make it."""
_LOOKED_AT = 50
"""Phones whose recordings are looked at before a phase begins."""
_ASKED_AGAIN = 3
"""Phones that are asked a second time at once; the others that were looked at, by the phase."""
_LONGEST_NAME = 64


class OwnPopulation(SimulatedPopulation):
    """A `Population` as the engine asks it.

    Where a phase sorts directions, points of the plane, or of any space of coordinates from -1 to
    1, are lifted to the sphere: p becomes the direction of (p, 1), so that directions are close if
    their points are.
    """

    def __init__(self, own: Population, spherical: bool, called: str = "") -> None:
        """Check everything but the recordings, which `prepare` looks at.

        Args:
            own: The population.
            spherical: Whether the phase needs directions.
            called: Name of the population in messages; by default that of its class.

        Raises:
            InvalidParametersError: An attribute is missing or cannot be used; the message says
                which, and what would be accepted.
            OwnCodeError: A property raised an exception.
        """
        self._own = own
        self._is = called or f"population {type(own).__name__}"
        missing = [name for name in _NEEDED if self._attribute(name) is None]
        if missing:
            raise InvalidParametersError(
                f"{self._is}: has no {' and no '.join(missing)}; a population has "
                f"{', '.join(_NEEDED)} (earshot_simulations.Population)"
            )
        self.phones = checks.whole(
            f"{self._is}: phones", self._attribute("phones"), LEAST_PHONES, MOST_PHONES
        )
        self.labels = _labels(self._is, self._attribute("labels"))
        self.own_geometry = _geometry(self._is, self._attribute("geometry", Geometry.SPHERICAL))
        self.is_lifted = spherical and self.own_geometry is Geometry.EUCLIDEAN
        self.geometry = Geometry.SPHERICAL if self.is_lifted else self.own_geometry
        most = LARGEST_DIMENSIONS - self.is_lifted
        self.points = checks.whole(
            f"{self._is}: dimensions", self._attribute("dimensions"), 1, most
        )
        self.dimensions = self.points + self.is_lifted
        usual = type(own).__name__
        self.encoder = short_text(self._is, "encoder", self._attribute("encoder", usual))
        self.name = short_text(self._is, "name", self._attribute("name", usual))
        self.has_start = callable(self._attribute("start"))
        self._held_out: Recordings | None = None
        self._seen: dict[int, bytes] = {}

    @override
    def prepare(self) -> None:
        """Look at some recordings, and at the held-out ones.

        Raises:
            OwnCodeError: They cannot be used, there are too few, or they differ from call to call.
        """
        if self._seen:
            return
        self._call("prepare")
        again = self._asked("held_out()", self._own.held_out)
        self._check_same("held_out()", _digest(self.held_out()), _digest(again))
        count = min(self.phones, _LOOKED_AT)
        phones = np.unique(np.linspace(0, self.phones - 1, count).astype(int)).tolist()
        found = {phone: self.recordings(phone) for phone in phones}
        if not any(len(each.points) for each in found.values()):
            raise OwnCodeError(
                f"{self._is}: none of {len(phones)} phones has a recording; recordings(phone) may "
                "be empty for some phones, but not for all"
            )
        self._seen = {phone: _digest(each) for phone, each in found.items()}
        for phone in phones[:_ASKED_AGAIN]:
            self.recordings(phone)

    @override
    def recordings(self, phone: int) -> Recordings:
        if not 0 <= phone < self.phones:
            raise InvalidInputError(f"phone must be 0 to {self.phones - 1}, not {phone}")
        call = f"recordings({phone})"
        found = self._asked(call, self._own.recordings, phone)
        if phone in self._seen:
            self._check_same(call, self._seen[phone], _digest(found))
        return found

    @override
    def start(self, cells: int) -> CentroidSet:
        where = f"{self._is}: start({cells})"
        if self.has_start:
            own: Any = self._own
            with own_code(where):
                given = own.start(cells)
            points = given.centroids() if isinstance(given, CentroidSet) else given
            points = checked_points(where, points, self.points)
            if len(points) != cells:
                raise OwnCodeError(f"{where} has {len(points)} rows: give one for each cell")
        elif self.is_lifted:
            points = random_places(cells, self.points)
        else:
            return super().start(cells)
        try:
            return CentroidSet.of(lifted(points) if self.is_lifted else points)
        except InvalidInputError as error:
            raise OwnCodeError(f"{where}: {error}") from None

    @override
    def held_out(self) -> Recordings:
        if self._held_out is None:
            found = self._asked("held_out()", self._own.held_out, truth=True)
            if not len(found.points):
                raise OwnCodeError(
                    f"{self._is}: held_out() has no recording; the result of a phase is judged by "
                    "recordings that no phone has heard, so give at least one"
                )
            self._held_out = found
        return self._held_out

    @override
    def close(self) -> None:
        self._call("close")

    def __getstate__(self) -> dict[str, Any]:
        # Phones ask for nothing that no phone has heard.
        return {**self.__dict__, "_held_out": None}

    def _attribute(self, name: str, default: object = None) -> Any:
        """Return an attribute of the population; what a property raises is named."""
        with own_code(f"{self._is}: {name}"):
            return getattr(self._own, name, default)

    def _call(self, name: str) -> None:
        """Call a method of the population if it has it."""
        method = getattr(self._own, name, None)
        if callable(method):
            with own_code(f"{self._is}: {name}()"):
                method()

    def _asked(self, call: str, method: Any, *arguments: int, truth: bool = False) -> Recordings:
        """Return what a method returns, checked and where the phase needs it."""
        where = f"{self._is}: {call}"
        with own_code(where):
            given = method(*arguments)
        found = checked(where, given, self.points, self.own_geometry, len(self.labels), truth)
        return found._replace(points=lifted(found.points)) if self.is_lifted else found

    def _check_same(self, call: str, first: bytes, second: bytes) -> None:
        if first != second:
            raise OwnCodeError(
                f"{self._is}: {call} is not the same at every call; a phone is asked several "
                "times, and in other processes, so draw from a generator that is made anew from "
                "the phone's number"
            )


_NEEDED = ("labels", "phones", "dimensions", "recordings", "held_out")


def _digest(recordings: Recordings) -> bytes:
    found = hashlib.blake2b(repr(recordings).encode())
    for column in recordings:
        if column is not None:
            found.update(column.tobytes())
    return found.digest()


def checked(
    where: str,
    given: Any,
    dimensions: int,
    geometry: Geometry,
    labels: int,
    truth: bool = False,
) -> Recordings:
    """Return recordings of the caller's own in the types of `Recordings`.

    Floats of any size become float32, whole numbers int16, and dates datetime64[D]. Nothing else
    is converted.

    Args:
        where: Object and call that returned them, for messages.
        given: Recordings.
        dimensions: Length of a point.
        geometry: Geometry of the points.
        labels: Number of labels.
        truth: Whether every scene must be known.

    Raises:
        OwnCodeError: They cannot be used; the message says why, and what would be accepted.
    """
    if not isinstance(given, tuple | list) or not 3 <= len(given) <= len(Recordings._fields):
        raise OwnCodeError(
            f"{where} returned {_told(given)}: return Recordings(points, labels, scenes), or with "
            "days"
        )
    points = checked_points(f"{where}.points", given[0], dimensions, geometry)
    least = 0 if truth else UNLABELLED
    own = _indices(f"{where}.labels", given[1], len(points), UNLABELLED, labels)
    scenes = _indices(f"{where}.scenes", given[2], len(points), least, labels)
    days = given[3] if len(given) > 3 else None
    held = None if days is None else _days(f"{where}.days", days, len(points))
    return Recordings(points, own, scenes, held)


def checked_points(
    where: str, given: Any, dimensions: int, geometry: Geometry | None = None
) -> NDArray[np.float32]:
    """Return points of the caller's own, float32 (points, dimensions).

    Args:
        where: Place of the points, for messages.
        given: Points.
        dimensions: Length of a point.
        geometry: Geometry that the points must fit; None for any points.

    Raises:
        OwnCodeError: They cannot be used, as for `checked`.
    """
    points = own_array(where, given)
    if points.ndim != 2 or points.shape[1] != dimensions:
        raise OwnCodeError(
            f"{where} has shape {points.shape}: must be (recordings, {dimensions}), for none at "
            f"all (0, {dimensions})"
        )
    if points.dtype.kind != "f":
        raise OwnCodeError(f"{where} is of type {points.dtype}: must be floats, such as float32")
    with np.errstate(over="ignore"):  # what overflows is not finite
        points = np.ascontiguousarray(points, dtype=np.float32)
    wrong = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(wrong):
        raise OwnCodeError(
            f"{where}: row {wrong[0]} is not finite (NaN or ∞); leave such recordings out"
        )
    if geometry is Geometry.SPHERICAL:
        lengths = np.linalg.norm(points.astype(np.float64), axis=1)
        wrong = np.flatnonzero(np.abs(lengths - 1) > _OFF)
        if len(wrong):
            raise OwnCodeError(
                f"{where}: row {wrong[0]} has length {lengths[wrong[0]]:.3g}, and on the sphere "
                "every point has length 1: divide each by its length, or say "
                "geometry = 'euclidean', with coordinates from -1 to 1"
            )
    if geometry is Geometry.EUCLIDEAN:
        wrong = np.flatnonzero((np.abs(points) > 1).any(axis=1))
        if len(wrong):
            raise OwnCodeError(
                f"{where}: row {wrong[0]} has a coordinate of "
                f"{np.abs(points[wrong[0]]).max():.3g}, beyond ±1, which a phone would cut off: "
                "scale by a public bound"
            )
    return points


def _indices(where: str, given: Any, count: int, least: int, labels: int) -> NDArray[np.int16]:
    indices = own_array(where, given)
    if indices.shape != (count,):
        raise OwnCodeError(
            f"{where} has shape {indices.shape}: must be ({count},), one for each point"
        )
    if indices.dtype.kind not in "iu" and count:
        raise OwnCodeError(
            f"{where} is of type {indices.dtype}: must be whole numbers, indices into labels"
        )
    wrong = np.flatnonzero((indices < least) | (indices >= labels))
    if len(wrong):
        unknown = f", or {UNLABELLED} for none" if least == UNLABELLED else ", all of them known"
        raise OwnCodeError(
            f"{where}: entry {wrong[0]} is {indices[wrong[0]]}: must be 0 to {labels - 1}, an "
            f"index into the {labels} labels{unknown}"
        )
    return indices.astype(np.int16)


def _days(where: str, given: Any, count: int) -> NDArray[np.datetime64]:
    days = own_array(where, given)
    if days.shape != (count,):
        raise OwnCodeError(
            f"{where} has shape {days.shape}: must be ({count},), one for each point"
        )
    if days.dtype.kind == "O" and all(type(day) is date or day is None for day in days.tolist()):
        days = days.astype("datetime64[D]")
    if days.dtype != np.dtype("datetime64[D]"):
        raise OwnCodeError(
            f"{where} is of type {days.dtype}: must be dates, such as np.array(['2027-01-04'], "
            "'datetime64[D]'), with NaT for an unknown day"
        )
    return days


def _labels(whose: str, given: Any) -> tuple[str, ...]:
    """Return label names that a phase can have.

    Raises:
        InvalidParametersError: They are not names, fewer than two, too many, or repeat.
    """
    listed = isinstance(given, Collection) and not isinstance(given, str | Set)
    names = tuple(given) if listed else ()
    if not listed or not all(isinstance(name, str) for name in names):
        raise InvalidParametersError(
            f"{whose}: labels={_told(given)}: must be names, such as ('street', 'park')"
        )
    checks.whole(f"{whose}: the number of labels", len(names), 2, LARGEST_LABELS)
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InvalidParametersError(f"{whose}: labels: '{repeated}' occurs twice")
    try:
        LabelHierarchy.flat(names)
    except EarshotError as error:
        raise InvalidParametersError(f"{whose}: labels: {error}") from None
    return tuple(map(str, names))


def _geometry(whose: str, given: Any) -> Geometry:
    try:
        return Geometry(given)
    except ValueError:
        raise InvalidParametersError(
            f"{whose}: geometry={given!r}: must be {' or '.join(map(repr, map(str, Geometry)))}"
        ) from None


def short_text(whose: str, name: str, given: Any) -> str:
    """Return a text of one line that a message can carry as a name.

    Raises:
        InvalidParametersError: It is another thing, empty, or too long.
    """
    if not isinstance(given, str) or not given or not given.isprintable():
        raise InvalidParametersError(f"{whose}: {name}={_told(given)}: must be a short text")
    if len(given) > _LONGEST_NAME:
        raise InvalidParametersError(
            f"{whose}: {name}='{given[:_LONGEST_NAME]}…': must have at most {_LONGEST_NAME} "
            "characters"
        )
    return str(given)


def _told(value: Any) -> str:
    """Return what a value is, without pages of numbers."""
    plain = isinstance(value, str | int | float | type(None))
    return repr(value)[:_LONGEST_NAME] if plain else f"a {type(value).__name__}"


def random_places(count: int, dimensions: int) -> NDArray[np.float64]:
    """Return places drawn uniformly from [-1, 1]^d by a public seed, (count, dimensions)."""
    return np.random.default_rng([_PLACES, dimensions]).uniform(-1, 1, (count, dimensions))
