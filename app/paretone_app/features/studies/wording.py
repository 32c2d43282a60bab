"""What is said of a study's size and progress, in sentences."""

from __future__ import annotations

from paretone.studies.study import Study, duration
from paretone_app.numbers import counted, grouped
from paretone_app.results.study import OpenStudy


def plan_words(study: Study, seconds: float | None) -> str:
    """Size of a study, in sentences."""
    searched = study.search.trials if study.search else 0
    parts = [
        counted(len(study.candidates) + searched, "setting", "settings"),
        counted(len({one.text for one in study.utterances}), "sentence", "sentences"),
        counted(len({one.voice.id for one in study.utterances}), "voice", "voices"),
        counted(len(study.seeds), "seed", "seeds"),
        counted(study.rounds, "round", "rounds"),
    ]
    product = " × ".join(parts)
    words = " ".join(filter(None, (f"{_takes(study.takes)}: {product}.", _further(study), _omitted(study))))
    if seconds is None:
        return f"{words} Make one take with this model to get a time estimate."
    return (
        f"{words} About {duration(seconds)}, judging by takes without techniques; calibrating and judging take "
        "longer, techniques less."
    )


def lost_words(summary: OpenStudy) -> str:
    """That the model's folder is gone, as a sentence, or ``""``."""
    return f"The model's folder {summary.lost_folder} is gone: choose where it is now." if summary.lost_folder else ""


def progress_words(summary: OpenStudy) -> str:
    """Progress of a study, in sentences."""
    about = "" if summary.seconds is None else f", about {duration(summary.seconds)}"
    if summary.study is None:
        return f"{_takes(summary.made)}. It cannot be run: {summary.file_problem}"
    unknown = "" if summary.seconds is not None else "; the time is known after the first takes"
    if not summary.made:
        plan = f"{counted(len(summary.rows), 'setting', 'settings')}, {_takes(summary.left)}{about}{unknown}."
        return f"{plan} {_omitted(summary.study)}".strip()
    if summary.left:
        failed = f" {len(summary.failures)} failed and will be tried again." if summary.failures else ""
        return f"{_takes(summary.made)} finished, {grouped(summary.left)} left{about}.{failed}"
    return f"Finished: {_takes(summary.made)}. {_omitted(summary.study)}".strip()


def _omitted(study: Study) -> str:
    count = len(study.ruled_out)
    if not count:
        return ""
    omitted = counted(count, "combination is omitted", "combinations are omitted, the first")
    return f"{omitted} because: {study.ruled_out[0][1]}"


def _further(study: Study) -> str:
    """What a study makes apart from takes, as a sentence, or ``""``; progress counts it as well."""
    prepared = sum(bool(one.unprepared) for one in study.candidates)
    parts = [
        counted(len(study.utterances), "recording", "recordings") + " of reference speech" if study.judges else "",
        counted(prepared, "calibration", "calibrations") if prepared else "",
    ]
    found = " and ".join(filter(None, parts))
    return f"In addition {found}." if found else ""


def _takes(count: int) -> str:
    return counted(count, "take", "takes")
