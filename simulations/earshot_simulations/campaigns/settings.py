"""Settings of a simulated campaign: who takes part, what they hear, and how that changes."""

import enum
import os
from dataclasses import dataclass
from pathlib import Path

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.campaigns.campaign import Campaign
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.phases.settings import BLOBS, LARGEST_SEED, SOUNDSCAPES
from earshot_simulations.populations.interface import LEAST_PHONES, MOST_PHONES

# Without `from __future__ import annotations`: the command line evaluates the types elsewhere.

MOST_POOLED = 100_000
LARGEST_DRIFT = 10.0


class CampaignSummation(enum.StrEnum):
    """Summations of a simulated campaign."""

    REAL = "real"
    """That of the campaign's file, with its cryptography."""
    IDEAL = "ideal"
    """Plain addition in place of the sum by one server: the same result, and nothing protected."""


@dataclass(frozen=True, kw_only=True)
class CampaignSettings:
    """Settings of a simulated campaign, named like the command's options.

    Attributes:
        phones: Phones that are enrolled; by default those that the campaign expects.
        data: Sound that phones hear: blobs, soundscapes, a folder CLASS/NAME, or FILE.npz with
            arrays vectors, labels and phone. Its classes must be labels of the campaign.
        pool: Recordings of each place on average, from which all contacts are drawn.
        encoder: Encoder of the sound: a shipped one by name, or a file.
        labelled: Fraction of the contacts that their users label.
        contacts: CSV file with the columns week, place and factor, by which contacts of that week
            and place are multiplied; without a place, those of every place.
        wave: Height of a year's two waves of contacts, relative to the weeks between; 0 for none.
        season: Part by which places gain and lose contacts over a year, each in its own season: 0
            to 1.
        overdispersion: Variance of phones' activity, whose mean is 1; 0 where all phones are
            alike.
        concentration: Concentration of phones' own mixes of places around the common one.
        turnover: Fraction of the phones that leave in a week; as many new ones enrol.
        drift: Distance by which sounds of a place move in a year, towards another place, over their
            length; 0 for none.
        dropout: Fraction of the phones that vanish in each phase and are back in the next one.
        summation: Summation of the phones' counts: real, as in the campaign's file, or ideal.
        jobs: Number of processes.
        seed: Seed of everything except keys.
    """

    phones: int | None = None
    data: str = SOUNDSCAPES
    pool: int = 200
    encoder: str | None = None
    labelled: float = 0.3
    contacts: Path | None = None
    wave: float = 1.0
    season: float = 0.3
    overdispersion: float = 0.5
    concentration: float = 5.0
    turnover: float = 0.005
    drift: float = 0.0
    dropout: float = 0.1
    summation: CampaignSummation = CampaignSummation.IDEAL
    jobs: int = os.cpu_count() or 1
    seed: int = 1

    def check(self, campaign: Campaign) -> None:
        """Refuse settings that cannot be simulated with a campaign.

        Raises:
            InvalidParametersError: A setting is wrong; the message names it and what is accepted.
        """
        if self.phones is not None:
            checks.whole("phones", self.phones, LEAST_PHONES, MOST_PHONES)
        checks.whole("pool", self.pool, 1, MOST_POOLED)
        checks.whole("seed", self.seed, 0, LARGEST_SEED)
        checks.share("labelled", self.labelled)
        checks.between("wave", self.wave, 0, 100)
        checks.share("season", self.season)
        checks.between("overdispersion", self.overdispersion, 0, 100)
        checks.between("concentration", self.concentration, 0.01, 1e6)
        checks.share("turnover", self.turnover)
        checks.between("drift", self.drift, 0, LARGEST_DRIFT)
        checks.fraction("dropout", self.dropout)
        check_processes("jobs", self.jobs)
        if self.dropout > campaign.sum.dropout:
            raise InvalidParametersError(
                f"dropout={self.dropout:g}: the campaign's phases withstand at most "
                f"{campaign.sum.dropout:g} (sum.dropout)"
            )
        if self.encoder is not None and self.data == BLOBS:
            raise InvalidParametersError(
                f"encoder={self.encoder}: blobs are points already; an encoder is for sound"
            )
        ideal = self.summation is CampaignSummation.IDEAL
        if ideal and campaign.sum.summation is not SummationName.BELL:
            raise InvalidParametersError(
                f"summation={self.summation}: stands in for the sum by one server, and the "
                f"campaign has sum.summation={campaign.sum.summation}; choose summation="
                f"{CampaignSummation.REAL}"
            )
