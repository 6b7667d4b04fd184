"""`earshot helper`."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.two_operators.messages import read_identity
from earshot_server.commands.options import AsJson
from earshot_server.dashboard.wording import since, whole
from earshot_server.helper.folder import HelperFolder
from earshot_server.helper.helper import DAY, HelperPolicy
from earshot_server.helper.leaders import Leaders
from earshot_server.helper.serving import HelperServing
from earshot_server.helper.sqlite_book import KEPT_AFTER, KeptByHelper

app = App(
    name="helper",
    help="Run the second operator of sums by two operators, for another organization's server.",
)

_DEFAULT = HelperServing()
Data = Annotated[Path, Parameter(help="Folder of the helper.")]
LeaderKey = Annotated[str, Parameter(help="Key of the leader: 64 hexadecimal digits.")]


@app.command
def init(*, data: Data = _DEFAULT.data) -> None:
    """Create a helper, and print its public key, which leaders and phones pin."""
    folder = HelperFolder.make(data)
    with closing(folder.database):
        folder.book.begin(time.time())
        print(folder.identity.public_key().public_bytes_raw().hex())


@app.command
def allow(
    leader: LeaderKey,
    /,
    *,
    data: Data = _DEFAULT.data,
    least_reports: Annotated[int, Parameter(validator=Number(gte=2))] = HelperPolicy.least_reports,
    least_noise: Annotated[float, Parameter(validator=Number(gte=0))] = HelperPolicy.least_noise,
    largest_window_days: Annotated[float, Parameter(validator=Number(gt=0))] = (
        HelperPolicy.largest_window / DAY
    ),
    largest_crowd: Annotated[int, Parameter(validator=Number(gte=2))] = HelperPolicy.largest_crowd,
    offers_a_day: Annotated[int, Parameter(validator=Number(gte=0))] = HelperPolicy.offers_a_day,
) -> None:
    """Allow a leader, or replace its terms.

    Args:
        least_reports: Least number of reports in a total.
        least_noise: Least standard deviation of the noise, relative to an input's largest entry.
        largest_window_days: Most days in which phones may report to one sum.
        largest_crowd: Most phones that may be invited to one sum.
        offers_a_day: Most sums that the leader may offer in a day.
    """
    identity = read_identity(leader)
    with closing(HelperFolder.open(data).database) as database:
        Leaders(database).allow(
            HelperPolicy(
                frozenset({identity}),
                least_reports=least_reports,
                least_noise=least_noise,
                largest_window=largest_window_days * DAY,
                largest_crowd=largest_crowd,
                offers_a_day=offers_a_day,
            )
        )
    print(f"leader {identity.hex()} is served")


@app.command
def forbid(leader: LeaderKey, /, *, data: Data = _DEFAULT.data) -> None:
    """Stop serving a leader; its open sums get no total unless it is allowed again in time."""
    identity = read_identity(leader)
    with closing(HelperFolder.open(data).database) as database:
        if not Leaders(database).forbid(identity):
            raise InvalidInputError(
                f"leader {identity.hex()} is not served: `earshot helper show` lists those that are"
            )
    print(f"leader {identity.hex()} is no longer served")


class LeaderTerms(msgspec.Struct, frozen=True):
    """Terms by which a leader is served."""

    leader: str
    least_reports: int
    least_noise: float
    largest_window_days: float
    largest_crowd: int
    offers_a_day: int


class HelperState(msgspec.Struct, frozen=True):
    """State of a helper, as `show` prints it."""

    helper: str
    leaders: list[LeaderTerms]
    sums: dict[str, int]
    kept: dict[str, KeptByHelper]
    refused: dict[str, int]


_UNTIL = {
    "keys": "each until its answer, or until the time for it is over",
    "totals": f"each until {KEPT_AFTER / DAY:g} day after that time, for a leader that lost it",
    "sums": "for good, only number, digests and times, so that none is opened twice",
}
"""How long each kind of record is kept."""


@app.command
def show(*, data: Data = _DEFAULT.data, as_json: AsJson = False) -> None:
    """Show the helper's key, its leaders, and its sums and stored data by state."""
    folder, now = HelperFolder.open(data), time.time()
    with closing(folder.database):
        counts = folder.book.counts(now)
        state = HelperState(
            helper=folder.identity.public_key().public_bytes_raw().hex(),
            leaders=[
                LeaderTerms(
                    leader.hex(),
                    policy.least_reports,
                    policy.least_noise,
                    policy.largest_window / DAY,
                    policy.largest_crowd,
                    policy.offers_a_day,
                )
                for policy in folder.leaders.policies()
                for leader in policy.leaders
            ],
            sums={"offered": sum(counts)} | counts._asdict(),
            kept=folder.book.kept(now),
            refused=folder.leaders.refusals(),
        )
    if as_json:
        print(msgspec.json.encode(state).decode())
        return
    print(f"helper: {state.helper}")
    for each in state.leaders:
        print(
            f"leader: {each.leader}, with at least {each.least_reports} reports and noise of "
            f"{each.least_noise:g} times an entry, windows of at most {each.largest_window_days:g} "
            f"days, crowds of at most {whole(each.largest_crowd)} phones, {each.offers_a_day} "
            "offers a day"
        )
    if not state.leaders:
        print("leaders: none; `earshot helper allow` adds one")
    for what, counted in (("sums", state.sums), ("refused", state.refused)):
        named = ", ".join(f"{count} {name}" for name, count in counted.items())
        print(f"{what}: {named or 'none'}")
    for what, kept in state.kept.items():
        oldest = "" if kept.since is None else f", {since(kept.since, now)}"
        print(f"kept {what}: {whole(kept.count)}{oldest}; {_UNTIL[what]}")


@app.command
def serve(*, settings: Annotated[HelperServing, Parameter(name="*")] = _DEFAULT) -> None:
    """Serve leaders, until SIGTERM."""
    from earshot_server.helper import serving

    settings = replace(settings, log_level=settings.log_level.upper())
    settings.check()

    def ready(address: str, identity: str) -> None:
        print(f"Helper serves at {address}")
        print(f"Its key: {identity}", flush=True)

    serving.serve(settings, ready)
