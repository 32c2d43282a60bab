"""webMUSHRA (github.com/audiolabs/webMUSHRA): results in its format, with the columns of its ``service/write.php`` and
our titles of conditions, its names of hidden reference and anchors; and whole tests for remote panels."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from paretone import __version__, files
from paretone.export.delivery import deliver
from paretone.listening import trials
from paretone.listening.results import vote_for_second_condition
from paretone.listening.trials import (
    ABX,
    CCR,
    METHODS,
    MOS,
    MUSHRA,
    PREFERENCE,
    RANKING,
    STAIRCASE,
    RecordError,
    TrialRecord,
    complete_sessions,
)
from paretone.wording import comma_separated
from paretone_app.listening import stimuli as calibration
from paretone_app.listening.stimuli import LONGEST_SECONDS, SILENT_LUFS, PreparedItem

RATE = 48000
REFERENCE = "reference"
_NOISE = "noise.wav"
_PRACTICE = "This page is practice and is not scored."
_RATING = ("stimulus", "score", "time", "comment")
_CHOICE = ("reference", "non_reference", "answer", "time", "comment")
MUSHRA_COLUMNS = ("session_test_id", "session_uuid", "trial_id", *(f"rating_{one}" for one in _RATING))
PAIR_COLUMNS = ("session_test_id", "trial_id", *(f"choice_{one}" for one in _CHOICE))
_QUESTIONS = {
    ABX: "One of A and B is the reference. Which one?",
    PREFERENCE: "Which one do you prefer?",
    MUSHRA: "How good is each, compared with the reference? One of them is the reference itself: rate it 100. "
    "The reference is the unaccelerated output of the same model, not human speech.",
}


# --- Results ---------------------------------------------------------------------------------------------------------
def tables(found: Sequence[TrialRecord]) -> Mapping[str, bytes]:
    """The complete sessions of ``found`` as webMUSHRA's files: ``mushra.csv`` for ratings, ``paired_comparison.csv``
    for pairs; and opinions as ``mos.csv``, in the columns of ratings.

    Answers of ABX and staircases are ``correct`` and ``incorrect``; ``choice_reference`` is the identity of X, or
    the reference. webMUSHRA has no graded pairs: for the preference methods the answer is the vote for
    ``choice_non_reference`` over ``choice_reference``."""
    names: dict[tuple[str, object], str] = {}  # webMUSHRA's trial names: one per sentence and method.
    for method in METHODS:
        for number, item in enumerate(dict.fromkeys(one.item for one in found if one.method == method), start=1):
            names[method, item] = f"{method}_{number}"
    done = [one for session in complete_sessions(found) for one in session]
    rated = [row for one in done if one.method == MUSHRA for row in _rating_rows(one, names)]
    paired = [_pair_row(one, names) for one in done if one.method not in (MUSHRA, *MOS)]
    opinions = [row for one in done if one.method in MOS for row in _rating_rows(one, names)]
    made = (
        ("mushra.csv", MUSHRA_COLUMNS, rated),
        ("paired_comparison.csv", PAIR_COLUMNS, paired),
        ("mos.csv", MUSHRA_COLUMNS, opinions),
    )
    return {name: comma_separated([columns, *rows]).encode("utf-8") for name, columns, rows in made if rows}


def _rating_rows(trial: TrialRecord, names: Mapping[tuple[str, object], str]) -> list[tuple]:
    """A row for each rating of a page, or for an opinion."""
    first, time = (f"paretone-{trial.method}", trial.session), trial.around.milliseconds
    name = names[trial.method, trial.item]
    if trial.method in MOS:
        return [(*first, name, trial.conditions[trial.order[-1]].title, trial.answer["vote"], time, "")]
    stimuli = [REFERENCE, *(_condition_name(one.key, one.title) for one in trial.conditions[1:])]
    return [(*first, name, *rated, time, "") for rated in zip(stimuli, trial.answer["ratings"], strict=True)]


def _pair_row(trial: TrialRecord, names: Mapping[tuple[str, object], str]) -> tuple:
    if trial.method == ABX:
        x = trial.order[2]
        reference, other = trial.conditions[x], trial.conditions[1 - x]
        answer: object = "correct" if trial.answer["said"] == x else "incorrect"
    elif trial.method == STAIRCASE:
        reference, other = trial.conditions[0], trial.conditions[max(trial.order)]
        answer = "correct" if trial.order[1 + trial.answer["said"]] else "incorrect"
    elif trial.method == RANKING:
        reference, other = (trial.conditions[one] for one in trial.order)
        answer = trial.answer["vote"]
    else:
        reference, other = trial.conditions
        answer = vote_for_second_condition(trial)
    name, time, comment = names[trial.method, trial.item], trial.around.milliseconds, "repeat" if trial.repeat else ""
    return f"paretone-{trial.method}", name, reference.title, other.title, answer, time, comment


def _condition_name(key: str, title: str) -> str:
    return key if key in trials.CUTOFFS else title


def write_tables(found: Sequence[TrialRecord], folder: Path) -> tuple[Path, ...]:
    """Write :func:`tables` into ``folder``: all files or none. Raises :class:`PlainError` on failure."""
    made = tables(found)
    if not made:
        raise RecordError("No listening test has been completed yet; there is nothing to export.")
    return deliver(folder, made, lambda done, total: None)


_NOT_EXPORTED = {
    CCR: "webMUSHRA has no graded comparison of pairs; choose Preference to export one.",
    STAIRCASE: "webMUSHRA has no staircase; choose ABX or MUSHRA to export a test of some of its settings.",
    RANKING: "webMUSHRA has no ranking; choose Preference or MUSHRA to export a test of some of its settings.",
    **dict.fromkeys(
        MOS, "Paretone does not export MOS tests; choose Preference or MUSHRA to export one for webMUSHRA."
    ),
}


def why_not_exported(method: str) -> str:
    """Why webMUSHRA cannot run a test of this method, as a sentence, or ``""``."""
    return _NOT_EXPORTED.get(method, "")


# --- Tests -----------------------------------------------------------------------------------------------------------
def bundle(
    name: str, method: str, prepared: Sequence[PreparedItem], trials: int, practice: int = 0
) -> dict[str, bytes]:
    """The files of a test for webMUSHRA: ``<name>.yaml``, the sounds, and ``<name>.json`` describing the sounds.
    They belong into webMUSHRA's folder ``configs/<name>``. Sounds are 32-bit float WAV files at 48 kHz, equally loud
    and equally long, as webMUSHRA requires. ABX has ``trials`` pages; other methods have one page per sentence.
    First come a volume page with noise at the level of the test, and ``practice`` copies of the first pages;
    webMUSHRA records these as ``practice_1`` and so on."""
    if any(one.rate != RATE for one in prepared):
        raise ValueError(f"a bundle is made of sounds at {RATE} Hz")
    sounds = {_NOISE: files.wav(_noise(prepared), RATE)}
    described: list[dict] = []
    pages: list = ["random"]
    for number, item in enumerate(prepared, start=1):
        length = max(len(one.samples) for one in item.stimuli)
        if method == MUSHRA and length / RATE > LONGEST_SECONDS:
            raise RecordError(f"“{item.record.text[:40]}…” is longer than {LONGEST_SECONDS:g} s, which MUSHRA allows.")
        paths = {}
        for place, one in enumerate(item.stimuli):
            file = f"{number:02d}-{place}.wav"
            heard = np.zeros(length, np.float32)
            heard[: len(one.samples)] = one.amplified
            sounds[file] = files.wav(heard, RATE)
            paths[_condition_name(one.record.key, one.record.title)] = f"configs/{name}/{file}"
            described.append(
                {
                    "file": file,
                    "text": item.record.text,
                    "voice": item.record.voice,
                    "seed": item.record.seed,
                    "condition": one.record.title,
                    "setting": one.record.key,
                    "take": one.record.take,
                    "gain_db": one.record.gain,
                    "lufs_before_gain": one.record.lufs,
                }
            )
        times = len(range(number - 1, trials, len(prepared))) if method == ABX else 1
        pages += [_page(method, f"{number}" if time == 0 else f"{number}_{time + 1}", paths) for time in range(times)]
    config = {
        "testname": f"Listening test {name}",
        "testId": name,
        "bufferSize": 2048,
        "stopOnErrors": True,
        "showButtonPreviousPage": False,
        "remoteService": "service/write.php",
        "pages": [
            {
                "type": "volume",
                "id": "volume",
                "name": "Volume",
                "content": "Set a comfortable volume and do not change it. All sounds are as loud as this noise.",
                "stimulus": f"configs/{name}/{_NOISE}",
                "defaultVolume": 0.5,
            },
            *(
                {**page, "id": f"practice_{number}", "name": "Practice", "content": f"{page['content']} {_PRACTICE}"}
                for number, page in enumerate(pages[1 : practice + 1], start=1)
            ),
            pages,
            {
                "type": "finish",
                "name": "Thank you",
                "content": "Thank you for listening.",
                "showResults": False,
                "writeResults": True,
            },
        ],
    }
    import yaml  # Only for this.

    about = {
        "schema": 1,
        "made_by": f"Paretone {__version__}",
        "method": method,
        "rate": RATE,
        "lufs": [round(one.target, 4) for one in prepared],
        "sounds": described,
    }
    return {
        f"{name}.yaml": yaml.safe_dump(config, sort_keys=False, allow_unicode=True).encode(),
        f"{name}.json": (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode(),
        **sounds,
    }


def _noise(prepared: Sequence[PreparedItem]) -> np.ndarray:
    samples = calibration.noise(RATE)
    target = next((one.target for one in prepared if np.isfinite(one.target)), SILENT_LUFS)
    return samples * np.float32(calibration.gain(samples, RATE, target))


def _page(method: str, name: str, paths: Mapping[str, str]) -> dict:
    if problem := why_not_exported(method):
        raise RecordError(problem)
    (first, reference), *others = paths.items()
    page = {"id": f"{method}_{name}", "name": "Listening test", "content": _QUESTIONS[method]}
    if method == MUSHRA:
        extra = {
            "showWaveform": False,
            "enableLooping": True,
            "strict": True,
            "reference": reference,
            "createAnchor35": False,
            "createAnchor70": False,
            "randomize": True,
            "showConditionNames": False,
            "stimuli": dict(others),
        }
        return {"type": "mushra", **page, **extra}
    if method == ABX:
        extra = {"showWaveform": False, "enableLooping": True, "reference": reference, "stimuli": dict(others)}
        return {"type": "paired_comparison", **page, **extra}
    extra = {"considerOrder": True, "mustPlayback": "ended", "stimuli": {first: reference, **dict(others)}}
    return {"type": "preference_test", **page, **extra}


def write_bundle(
    name: str, method: str, prepared: Sequence[PreparedItem], trials: int, folder: Path, practice: int = 0
) -> tuple[Path, ...]:
    """Write :func:`bundle` into ``folder / name``: all files or none. Raises :class:`PlainError`."""
    return deliver(folder / name, bundle(name, method, prepared, trials, practice), lambda done, total: None)
