"""Test vectors of labelling phases: ballots, sums, answers, and what they cost by weight."""

from __future__ import annotations

import json
from typing import Any

import examples
import msgspec
import numpy as np

from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.laws import SkellamNoise
from earshot_protocol.privacy.significance import answer_p_values
from earshot_protocol.voting import ballots
from earshot_protocol.voting.teacher_ballots import Agreement, OneHot, Weighted
from earshot_protocol.voting.vote_sums import VoteSum

_ANSWERS = [2, -1, 0]
_TOTALS = [[-3, 12, 401], [290, 77, 61], [131, 131, -20]]
_AGREEMENT = [388, 251, 96]


def labelling_vectors() -> dict[str, Any]:
    """Return what phones put in, what the server reads in the sums, and what every weight costs."""
    proposed = ballots.winning_labels(np.array(_TOTALS))
    agrees = (np.array(_ANSWERS) == proposed).astype(np.int64)
    votes, check = (
        SkellamNoise(noise**2 * 440 / 425)
        for noise in (examples.LABELLING.votes_noise, examples.LABELLING.check_noise)
    )
    return {
        "answers": _ANSWERS,
        "ballots": {
            weight: Weighted(OneHot(len(examples.LABELS)), weight).cast(np.array(_ANSWERS)).tolist()
            for weight in (0, 1, 3)
        },
        "proposed": proposed.tolist(),
        "agreement_ballots": {
            weight: Weighted(Agreement(), weight).cast(agrees).tolist() for weight in (0, 1, 3)
        },
        "totals": {"votes": _TOTALS, "check": _AGREEMENT, "inputs": 440, "threshold": 250},
        "labels": [
            int(label) if agreed >= examples.LABELLING.threshold else -1
            for label, agreed in zip(proposed, _AGREEMENT, strict=True)
        ],
        "p_values": answer_p_values(_TOTALS, _AGREEMENT, votes, check),
        "sums": [
            _sum(parameters, name)
            for parameters in (examples.LABELLING, examples.WEIGHED)
            for name in ("votes", "check")
        ],
        "costs": [
            {
                "parameters": json.loads(msgspec.json.encode(parameters)),
                "weight": weight,
                "expenses": [
                    {
                        "release": msgspec.to_builtins(each.release),
                        "event": msgspec.to_builtins(each.event),
                    }
                    for each in parameters.expenses(weight)
                ],
            }
            for parameters in (examples.LABELLING, examples.WEIGHED)
            for weight in parameters.weights
        ],
    }


def _sum(parameters: LabellingParameters, name: str) -> dict[str, Any]:
    part = parameters.plan().part(name)
    if not (isinstance(part, SecureSum) and isinstance(part.mechanism, VoteSum)):
        raise TypeError(name)
    shape = part.mechanism.shape
    return {
        "parameters": json.loads(msgspec.json.encode(parameters)),
        "part": name,
        "shape": shape,
        "variance": part.mechanism.variance,
        "honest_survivors": part.mechanism.honest_survivors,
        "sum": msgspec.to_builtins(parameters.sum_parameters(part, shape)),
    }
