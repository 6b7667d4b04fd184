"""All rules, by name: a new one is a file of this package, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from earshot_models.votes.rules.binary import BinaryRule
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_models.votes.rules.gnmax import GNMaxRule
from earshot_models.votes.rules.gnthreshold import GNThresholdRule
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveRule
from earshot_models.votes.rules.grid_threshold import GridRule
from earshot_models.votes.rules.interactive import InteractiveRule
from earshot_models.votes.rules.lnmax import LNMaxRule
from earshot_models.votes.rules.powerset import PowersetRule
from earshot_models.votes.rules.rule import VotingRule
from earshot_models.votes.rules.tau import TauRule

RULES: Mapping[str, type[VotingRule]] = {
    rule.name: rule
    for rule in (
        LNMaxRule,
        GNMaxRule,
        ConfidentRule,
        InteractiveRule,
        BinaryRule,
        TauRule,
        PowersetRule,
        GNThresholdRule,
        AdaptiveRule,
        GridRule,
    )
}
