"""Commands whose figures are compared between two commits, each as small as it can be.

Words that begin with `@` are files of `material`. A command that was spelled otherwise at the base
has its other words in `before`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Run:
    """One command.

    Attributes:
        words: what stands behind `earshot`; `--out out` is the folder whose files are compared.
        small: constants of the product that are replaced first: a Python expression for each,
            by its dotted name, or a function of what it was; a constant that has moved has both
            names, the new one first, with a bar between them.
        before: the words at the base, where they differ.
        after: name of a run whose `out` is the folder `@after` here.
    """

    words: str
    small: Mapping[str, str] = field(default_factory=dict)
    before: str | None = None
    after: str | None = None


_S, _T = "earshot_simulations.", "earshot_studies."


_LABEL = "--epsilon 30 --delta 1e-3 --out out"
_SUMS = f"{_LABEL} --tally federated --dropout 0.1 --at-once 20"
_CHECK = "--threshold 60 --check-sigma 12"
_PHASES = "--recordings 10 --jobs 1 --out out --seeds 2"
_SIMULATE = "--phones 40 --recordings 20 --jobs 1 --dropout 0.1 --policy anything --out out"
_SOUND = "--data soundscapes"

_MIXTURES = {
    f"{_T}kit.mixtures.embedding.Size.__init__.__defaults__": "(12, 40, 1, 150, 120, 60)",
    "earshot_studies.dziedzic.queries.LABELS": "(1, 4, 20)",
    "earshot_studies.dziedzic.queries.SIGMAS": "(7, 20)",
    "earshot_studies.dziedzic.queries._SET_LABELS": "()",
    "earshot_studies.dziedzic.queries._TABLE_15": "{1: 111, 2: 99, 4: 78}",
    "earshot_studies.dziedzic.capc.ASKED": "40",
}
_TAGGERS = {
    f"{_T}muschiol.taggers.study.TaggerStudySize.__init__.__defaults__": "(500, 40, 50, 60)",
}
_FEW_STEPS = {
    f"{_T}muschiol.taggers.school.Teaching.__init__.__defaults__": (
        "lambda own: (own[0], 3, *own[2:])"
    ),
}
_GENERATORS = {
    **{
        f"{_T}pate_aae.recipes.{name}|{_S}generation.recipes.{name}": (
            "lambda own: dataclasses.replace(own, steps=20, batch=8)"
        )
        for name in ("OPEN", "NOISY", "JUDGED", "VOTED", "START", "VOTED_STARTED")
    },
    f"{_T}pate_aae.frechet.SAMPLES_PER_DIMENSION|{_S}generation.frechet.SAMPLES_PER_DIMENSION": (
        "1"
    ),
}


def _simulations() -> dict[str, Run]:
    routes = {"secure-sum": "", "local": " --discovery local", "both": " --discovery both"}
    runs = {
        f"simulate {route} {seed}": Run(f"simulate {_SIMULATE} --seed {seed}{words}")
        for route, words in routes.items()
        for seed in range(3)
        if route != "both" or not seed
    }
    for route, words in routes.items():
        runs[f"simulate sound {route}"] = Run(f"simulate {_SIMULATE} {_SOUND}{words}")
    attacks = {"poisoning": 0.1, "ballot-stuffing": 0.1, "wrong-shares": 0.02}
    attackers = " ".join(f"--adversary.{name} {part}" for name, part in attacks.items())
    runs |= {
        "simulate adversary": Run(
            f"simulate {_SIMULATE} --discovery local --corrupted 0.2 {attackers}"
        ),
        "simulate uneven": Run(
            f"simulate {_SIMULATE} --heterogeneity.concentration 0.3 "
            "--heterogeneity.quantity-skew 1"
        ),
        "simulate ideal": Run(f"simulate {_SIMULATE} --summation ideal --json"),
        "simulate no noise": Run(f"simulate {_SIMULATE} --discovery local --budget none"),
        "simulate repeat": Run(
            "simulate --repeat @after/result.json --jobs 1 --out out", after="simulate local 1"
        ),
        "simulate labelling": Run(
            "simulate labelling --phones 60 --samples 20 --jobs 1 --out out --epsilon 8 "
            "--policy anything"
        ),
        "sweep": Run("sweep @sweep.toml --out out --jobs 1"),
        "compare": Run("compare @after @after", after="simulate local 1"),
        "probe": Run("probe --data @esc10 --encoder contrast-1 --raw --out out"),
        "train": Run(
            "train --data @free_sounds --data @esc10 --steps 3 --batch 8 --width 0.25 --out out "
            "--synthesized 0.2",
            {"earshot_models.origins._SYNTHESIZED": "25"},
        ),
        "budget": Run("budget --phones 500 --epsilon 2"),
        "budget local": Run("budget --phones 500 --discovery local --json"),
    }
    return runs


_RULES = {
    "lnmax": ("@counts.npy", "--sigma 8"),
    "gnmax": ("@counts.npy", "--sigma 8"),
    "confident": ("@counts.npy", f"--sigma 8 {_CHECK}"),
    "interactive": ("@counts.npy", f"--sigma 8 {_CHECK} --scores @scores.npy --confidence 0.6"),
    "binary": ("@labels.npy", "--sigma 12"),
    "binary checked": ("@labels.npy", f"--sigma 12 {_CHECK}"),
    "tau": ("@labels.npy", "--sigma 9 --tau 1.2"),
    "tau norm 1": ("@labels.npy", "--sigma 9 --tau 1.2 --norm 1"),
    "powerset": ("@labels.npy", "--sigma 8"),
    "gnthreshold": ("@outputs.npy", "--sigma 12 --winners 2"),
    "gnthreshold cut": ("@outputs.npy", f"--sigma 12 --cut 20 {_CHECK}"),
    "gnthreshold-adaptive": ("@outputs.npy", "--sigma 12"),
    "grid-threshold": ("@outputs.npy", "--sigma 12 --grid 10,20,30 --scale 4"),
}
_SUMMED = {
    "gnmax": ("@classes.npy --classes 4", "--sigma 8"),
    "confident": ("@classes.npy --classes 4", f"--sigma 8 {_CHECK}"),
    "interactive": (
        "@classes.npy --classes 4",
        f"--sigma 30 {_CHECK} --scores @fewer.npy --confidence 0.6 --epsilon 3",
    ),
    "binary": ("@labels.npy", "--sigma 12"),
    "tau": ("@labels.npy", "--sigma 9 --tau 1.2"),
    "powerset": ("@labels.npy", "--sigma 8 --winners 2"),
    "gnthreshold": ("@outputs.npy", "--sigma 12 --winners 2 --threshold 30"),
    "gnthreshold-adaptive": ("@outputs.npy", "--sigma 12"),
    "grid-threshold": ("@outputs.npy", "--sigma 12 --grid 10,20,30"),
}
_WHOLE = "--delta 1e-5 --teachers 250 --classes 10"


def _votes() -> dict[str, Run]:
    runs = {}
    for name, (votes, options) in _RULES.items():
        runs[f"label {name}"] = _label(votes, name.split()[0], f"{options} {_LABEL}")
    for name, (votes, options) in _SUMMED.items():
        runs[f"label {name} summed"] = _label(votes, name, f"{_SUMS} {options}")
        summed = f"{_plain(options)} {_WHOLE} --queries 40 --tally federated"
        runs[f"budget {name} summed"] = _budget(name, summed)
    for name, (_, options) in _RULES.items():
        runs[f"budget {name}"] = _budget(
            name.split()[0], f"{_plain(options)} {_WHOLE} --queries 40"
        )
    checked = f"--sigma 8 {_CHECK}"
    runs |= {
        "label weighed": _label(
            "@classes.npy --classes 4", "confident", f"{checked} --weights @weights.npy {_LABEL}"
        ),
        "label cost": _label(
            "@counts.npy", "confident", f"{checked} --votes-cost dependent {_LABEL}"
        ),
        "label json": _label(
            "@counts.npy", "confident", f"{checked} --unit left-out --json {_LABEL}"
        ),
        "budget epsilon": _budget(
            "confident", f"{checked} {_WHOLE} --epsilon 2 --answered 0.7 --json"
        ),
        "budget groups": _budget("confident", f"{checked} {_WHOLE} --groups 1:125,2:125"),
        "student": Run("pate student @answers.npy --samples @samples.npy --classes 2 --out out"),
    }
    return runs


def _label(votes: str, rule: str, options: str) -> Run:
    """Return a labelling."""
    return Run(f"pate label {rule} {votes} {options}")


def _budget(rule: str, options: str) -> Run:
    """Return a budget of votes."""
    return Run(f"pate budget {rule} {options}")


def _plain(options: str) -> str:
    """Leave out what `pate budget` does not take."""
    words, kept = options.split(), []
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option not in ("--scores", "--cut", "--epsilon"):
            kept += [option, value]
    return " ".join(kept)


def _studies() -> dict[str, Run]:
    few = {
        "liebenow-9.3a": {},
        "liebenow-9.3b": {"earshot_studies.liebenow.accuracy.FEW_RECORDINGS": "(5, 10)"},
        "liebenow-9.4": {"earshot_studies.liebenow.accuracy.FEW_LABELLED": "(0.0, 1.0)"},
        "liebenow-9.5a": {"earshot_studies.liebenow.figure_9_5.FEW": "(20, 30)"},
        "liebenow-9.5b": {"earshot_studies.liebenow.figure_9_5.FEW": "(20, 30)"},
        "liebenow-9.6": {
            "earshot_studies.liebenow.accuracy._BLOBS": "{False: (1.0,)}",
            "earshot_studies.liebenow.accuracy._PHONE": "{False: (8.0,)}",
        },
        "liebenow-10.1": {"earshot_studies.liebenow.section_10_1.FEW_CROWDS": "((100, 8.0),)"},
        "growing-crowd": {
            "earshot_studies.liebenow.crowds.FEW": "(60, 80)",
            "earshot_studies.liebenow.crowds._LARGE": "70",
            "earshot_studies.liebenow.crowds.FEWER_SEEDS": "1",
        },
        "phone-unit": {
            "earshot_studies.liebenow.crowds.FEW_PHONES": "(60, 80)",
            "earshot_studies.liebenow.crowds.EPSILONS": "(1.0, 8.0)",
            "earshot_studies.liebenow.crowds.ALSO_LOCAL": "{80: 8.0}",
        },
        "names": {"earshot_studies.liebenow.names.FEW_CROWDS": "((60, 8.0), (80, 4.0))"},
    }
    fixed = ("liebenow-9.5a", "liebenow-9.5b", "growing-crowd", "phone-unit", "names")
    runs = {}
    for name, small in few.items():
        phones = "" if name in fixed else " --phones 24"
        phases = _PHASES.replace("--recordings 10 ", "") if name == "liebenow-9.3b" else _PHASES
        if name.startswith("liebenow-9.5"):
            phases = phases.replace("--jobs 1 ", "")
        runs[name] = Run(f"reproduce {name} {phases}{phones}", small)
    runs |= {
        "liebenow-9.1": Run(
            "reproduce liebenow-9.1 --data @halves --other @streets --steps 2 --out out",
            {
                "earshot_models.origins._SYNTHESIZED": "25",
                "earshot_studies.liebenow.encoders._variants": (
                    "lambda own: lambda *given: [*own(*given)[:2], own(*given)[-1]]"
                ),
            },
        ),
        "liebenow-9.2": Run("reproduce liebenow-9.2 --data @esc10 --encoder contrast-1 --out out"),
        "papernot-table-1": Run("reproduce papernot-table-1 --data @published --seeds 2 --out out"),
        "multi-winner-queries": Run(
            "reproduce multi-winner-queries --data @ --encoder contrast-1 --seeds 1 --out out",
            _MIXTURES,
        ),
        "multi-winner-student": Run(
            "reproduce multi-winner-student --data @ --encoder contrast-1 --seeds 1 --out out",
            {
                **_MIXTURES,
                "earshot_studies.dziedzic.student.TABLES": "lambda own: tuple("
                "dataclasses.replace(each, labels=min(each.labels, 8)) for each in own)",
            },
        ),
        "capc": Run("reproduce capc --data @ --encoder contrast-1 --seeds 1 --out out", _MIXTURES),
        "audioset-phones": Run(
            "reproduce audioset-phones --data @ --phones 60 --samples 30 --epsilon 20 --seeds 2 "
            "--real 1 --out out",
            _TAGGERS,
        ),
        "audioset-privacy": Run(
            "reproduce audioset-privacy --data @ --teachers linear --seeds 1 --queries 30 "
            "--processes 1 --out out",
            _TAGGERS,
        ),
        "audioset-ensemble": Run(
            "reproduce audioset-ensemble --data @ --teachers linear --seeds 1 --processes 1 "
            "--out out",
            _TAGGERS,
        ),
        "audioset-student": Run(
            "reproduce audioset-student --data @ --teachers linear --seeds 1 --processes 1 "
            "--out out",
            _TAGGERS,
        ),
        "audioset-student networks": Run(
            "reproduce audioset-student --data @ --seeds 1 --processes 1 --out out",
            {
                **_TAGGERS,
                **_FEW_STEPS,
            },
        ),
        "audioset-ensemble networks": Run(
            "reproduce audioset-ensemble --data @ --seeds 1 --processes 1 --out out",
            {
                **_TAGGERS,
                **_FEW_STEPS,
            },
        ),
        "pate-aae": Run(
            "reproduce pate-aae --data @ --seeds 1 --teachers 10 --queries 20 --epsilon 5 "
            "--delta 1e-3 --processes 1 --out out",
            _GENERATORS,
        ),
        "personalized-labels": Run(
            "reproduce personalized-labels --data @census --teachers 16 --processes 1 --full "
            "--out out",
            {"earshot_studies.muehl.cells.HIGHER": "(2.0,)"},
        ),
        "personalized-accuracy": Run(
            "reproduce personalized-accuracy --data @census --teachers 16 --processes 1 --full "
            "--out out",
            {"earshot_studies.muehl.cells.HIGHER": "(2.0,)"},
        ),
    }
    return runs


RUNS: Mapping[str, Run] = {
    **_simulations(),
    **_votes(),
    "audit": Run("audit --json --out out"),
    **_studies(),
}
