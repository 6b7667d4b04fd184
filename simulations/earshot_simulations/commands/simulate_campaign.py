"""`earshot simulate campaign`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_server.campaigns.campaign_file import read_campaign
from earshot_simulations.campaigns.settings import CampaignSettings
from earshot_simulations.reporting.resuming import resumable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from earshot_simulations.campaigns.findings import Accuracy, CampaignRun

_DEFAULT = CampaignSettings()
_NAME = 34
File = Annotated[Path, Parameter(help="TOML file of the campaign; docs/campaigns.md explains it.")]


def campaign(
    file: File,
    /,
    *,
    settings: Annotated[CampaignSettings, Parameter(name="*")] = _DEFAULT,
    out: Path | None = None,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Live through a campaign: week after week, phones count contacts, beside the truth.

    It runs the plan that `earshot campaign plan` shows, with the phones' ledgers and policies.

    Args:
        out: Folder for the page, result.json and the series; an interrupted simulation continues.
        overwrite: Write even to a folder that holds other files.
        as_json: Print result.json, and nothing else.
    """
    planned = read_campaign(file)
    settings.check(planned)

    from earshot_simulations.campaigns.kept import STATE
    from earshot_simulations.campaigns.report import FILES, write
    from earshot_simulations.campaigns.simulation import simulate_campaign
    from earshot_simulations.populations.hearing import hearing_kept

    if out is not None:
        prepare_folder(out, FILES, overwrite, resumes=(*FILES, STATE))
    with hearing_kept(), shown() if out is None else resumable(out) as progress:
        run = simulate_campaign(planned, settings, out, progress)
    if out is not None:
        write(run, out)
    if as_json:
        print(json.dumps(run.plain(), indent=2, allow_nan=False))
        return
    for line in _lines(run):
        print(line)
    if out is not None:
        print(f"{'report':<{_NAME}} {out / 'report.html'}")


def _lines(run: CampaignRun) -> Iterator[str]:
    yield f"{'phones':<{_NAME}} {run.plan.campaign.expected.phones:,}"
    yield f"{'weeks counted':<{_NAME}} {run.accuracy.weeks} of {run.plan.campaign.weeks}"
    yield from _accuracy("", run.accuracy)
    yield from _accuracy("newest week: ", run.newest)
    for spent in run.spent:
        yield (
            f"{f'ε per {spent.unit}':<{_NAME}} {spent.least:.3f} to {spent.most:.3f}, median "
            f"{spent.median:.3f}; planned {spent.planned:.3f}"
        )
    yield f"{'time':<{_NAME}} {run.seconds:,.0f} s, {run.peak_memory_mb:,.0f} MB"
    for note in run.notes:
        yield f"{'note':<{_NAME}} {note}"


def _accuracy(prefix: str, found: Accuracy) -> Iterator[str]:
    for name, field in (
        ("error", "error"),
        ("coverage of the truth", "truth_coverage"),
        ("shares: error", "share_error"),
        ("shares: coverage", "share_coverage"),
        ("smoothed: error", "smoothed_error"),
        ("smoothed: coverage", "smoothed_coverage"),
        ("error by noise", "noise_error"),
        ("coverage of noise", "coverage"),
        ("corrected", "corrected"),
        ("kept by projection", "kept"),
        ("unknown", "unknown"),
        ("right names", "right_names"),
    ):
        value = getattr(found, field)
        shown_value = "–" if value is None else f"{100 * value:.1f} %"
        yield f"{prefix + name:<{_NAME}} {shown_value}"
