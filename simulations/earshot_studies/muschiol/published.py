"""The best student of `audioset-student`, as a file that names a folder of sound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from earshot_models.tagging import publishing
from earshot_models.tagging.examples import Examples
from earshot_models.tagging.tagger_file import Cost
from earshot_models.tagging.training import Tagger
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.accounting.votes.muschiol import DELTA
from earshot_studies.kit.mixtures.mixing import LEVEL
from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol.settings import MOST
from earshot_studies.muschiol.student_note import best_value
from earshot_studies.muschiol.students import (
    CHECK_NOISE,
    NOISE,
    SOUND,
    TEACHERS,
    Lesson,
    ensemble_of,
    promised,
    taught,
)
from earshot_studies.muschiol.work import Work


def publish(work: Work, table: Sequence[Row], path: Path) -> None:
    """Train the best student of rules that hold again, of the first seed, and write it.

    Which is the best, and its thresholds, are chosen on validation mixtures; what is known of its
    names is from tests.

    Args:
        work: of networks.
        table: means over seeds.
        path: ends in `.keras`.

    Raises:
        InvalidParametersError: students are linear, which no such file holds.
    """
    best, _ = best_value(table)
    # A card is published: its ε must not depend on how many queries there were until enough passed.
    setting = str(best["th_e"]), str(best["th_c"])
    lesson = Lesson(SOUND, setting, int(best["samples"]))
    given, student, mixed = taught(work.study, work.teaching, lesson, work.reported[0])
    ensemble = ensemble_of(work.study, work.teaching, work.reported[0])
    if not isinstance(student, Tagger):
        raise InvalidParametersError("teachers: only networks can be published, not linear ones")
    mechanism = (
        f"votes of {TEACHERS} teachers against a threshold ({' + '.join(filter(None, setting))}), "
        f"their {MOST} largest outputs each, noise of variance {NOISE:g} per teacher"
        + (f", check {CHECK_NOISE:g}" if setting[1] else "")
        + f", of {len(ensemble.cut):,} queries the first {lesson.samples:,} that are answered, "
        "whichever those are; holds of noise that is secret, which a simulation's is not"
    )
    cost = Cost(
        epsilon=float(promised(lesson, ensemble)["replaced"]),
        delta=DELTA,
        unit=Unit.REPLACED_PHONE,
        mechanism=mechanism,
    )
    validation, test = (
        Examples.of(part.power(), part.truth) for part in (mixed.validation, mixed.test)
    )
    publishing.publish(
        student,
        work.study.mel,
        LEVEL,
        validation,
        test,
        cost,
        stated_by="earshot reproduce audioset-student",
        trained=f"on {len(given.numbers):,} answers about mixtures of public sound",
        path=path,
    )
