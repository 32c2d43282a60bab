"""Records of listening trials: one line of JSON each, in one file per session. Free of Qt and of torch.

The schema is documented in ``resources/docs/listening-tests.md``. Lines are written atomically; damaged lines, from a
crash or another program, are skipped and counted, never repaired.
"""

from __future__ import annotations

import itertools
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from paretone import __version__, files
from paretone.errors import PlainError
from paretone.fields import fault_of_fields
from paretone.models.voices import without_folder
from paretone.paths import data_folder
from paretone.reading import first_line, parsed_json, read_bytes, readable

# --- Anchors of MUSHRA ------------------------------------------------------------------------------------------------
# The low-passed reference. BS.1534-3 requires a low anchor cut at 3.5 kHz, flat within 0.1 dB below that, 25 dB down at
# 4 kHz and 50 dB down at 4.5 kHz, and a mid anchor cut at 7 kHz. Both filters here meet that mask, the mid one shifted
# up by 3.5 kHz, and have no delay.
LOW, MID = "anchor35", "anchor70"
"""Names as in webMUSHRA."""
CUTOFFS = {LOW: 3500.0, MID: 7000.0}
"""Hertz."""
LIMITS = {LOW: "3.5 kHz", MID: "7 kHz"}
TITLES = {key: f"Anchor {limit}" for key, limit in LIMITS.items()}
TRANSITION = 500.0
"""Hertz from the end of the pass band to where :data:`ATTENUATION` is reached."""
ATTENUATION = 60.0
"""dB; more than the mask requires at its inner edge."""


def low_passed(samples: np.ndarray, rate: int, cutoff: float) -> np.ndarray:
    """Mono ``samples`` (n,) at ``rate`` hertz without frequencies above ``cutoff``: (n,) float32, without delay.
    Unchanged if the rate holds nothing above the cut-off."""
    if rate / 2 <= cutoff:
        return np.asarray(samples, np.float32)
    taps = _taps(rate, cutoff)
    size = 1 << (len(samples) + len(taps) - 1).bit_length()
    spectrum = np.fft.rfft(np.asarray(samples, np.float64), size) * np.fft.rfft(taps, size)
    start = len(taps) // 2
    return np.fft.irfft(spectrum, size)[start : start + len(samples)].astype(np.float32)


@lru_cache(maxsize=8)
def _taps(rate: int, cutoff: float) -> np.ndarray:
    """Kaiser-windowed sinc (Kaiser 1974) with an odd number of taps."""
    half = ceil((ATTENUATION - 7.95) / (14.36 * TRANSITION / rate) / 2)
    places = np.arange(-half, half + 1)
    middle = (cutoff + TRANSITION / 2) / rate
    taps = 2 * middle * np.sinc(2 * middle * places) * np.kaiser(2 * half + 1, 0.1102 * (ATTENUATION - 8.7))
    return taps / taps.sum()


SCHEMA = 1
ABX, CCR, PREFERENCE, MUSHRA, STAIRCASE = "abx", "ccr", "preference", "mushra", "staircase"
RANKING = "ranking"
NATURALNESS, SIMILARITY = MOS = "naturalness_mos", "similarity_mos"
METHODS = (ABX, CCR, PREFERENCE, MUSHRA, STAIRCASE, RANKING, *MOS)
VOICE = "voice"
"""Key of the voice's recording, against which similarity is rated."""
FOLDER = "listening"
ENDING = ".jsonl"
Record = TypeVar("Record", "ConditionRecord", "ItemRecord", "TrialConditions", "TrialRecord")


class RecordError(PlainError):
    """Trials that could not be written or read."""


@dataclass(frozen=True)
class ConditionRecord:
    key: str
    """Fingerprint of the setting without seed; MUSHRA's ``anchor35`` and ``anchor70``; ``voice``: its recording."""
    title: str
    accelerated: bool
    """Whether techniques were used."""
    take: str
    """Id of the take, or ``""`` for an anchor."""
    setting: Mapping[str, Any]
    """The setting with the seed 0 as of :meth:`paretone.setting.setting.Setting.to_json`; empty for an anchor."""
    fingerprint: str
    """Fingerprint of the take's setting, seed included."""
    gain: float
    """Playback gain in dB."""
    lufs: float
    """Integrated loudness before the gain."""


@dataclass(frozen=True)
class ItemRecord:
    text: str
    voice: str
    seed: int


@dataclass(frozen=True)
class TrialConditions:
    """Timing, device and playback of one trial."""

    milliseconds: int = 0
    """Milliseconds from showing the trial to its answer."""
    underruns: int = 0
    """Blocks that reached the device too late during the trial."""
    device: str = ""
    latency: float = 0.0
    """Reported seconds from the callback to the loudspeaker."""
    mode: str = "sync"
    """Effect of a switch on the position: ``sync`` kept it, ``restart`` began again."""


@dataclass(frozen=True)
class TrialRecord:
    session: str
    method: str
    listener: str
    """A random name, without any link to a person."""
    number: int
    """Counted from 1 in the order of the answers, void trials included."""
    planned: int
    """Number of valid trials fixed before the session."""
    item: ItemRecord
    conditions: tuple[ConditionRecord, ...]
    order: tuple[int, ...]
    """Sound of each button, as indices into ``conditions``: A, B, X of ABX; first, second; the labelled reference and
    then the sliders of MUSHRA; the labelled reference, A and B of a staircase; the rated sound of a MOS, for similarity
    after the voice's recording."""
    answer: Mapping[str, Any]
    switches: int
    around: TrialConditions
    void: bool = False
    """Whether the sound was interrupted, so that the trial does not count."""
    repeat: bool = False
    """Whether it repeats an earlier question in reverse order."""
    created: str = ""
    """UTC, ISO 8601."""
    version: str = __version__
    schema: int = SCHEMA


@dataclass(frozen=True)
class Records:
    trials: tuple[TrialRecord, ...] = ()
    """By session, in the order of the answers."""
    problems: tuple[str, ...] = field(default=())
    """A sentence per file with unreadable lines."""

    @property
    def listeners(self) -> tuple[str, ...]:
        """All listeners, the latest last."""
        latest = sorted(self.trials, key=lambda one: one.created)
        return tuple(dict.fromkeys(one.listener for one in reversed(latest)))[::-1]


def new_name() -> str:
    """Random name for a session or a listener: eight hexadecimal digits."""
    return secrets.token_hex(4)


def append(trial: TrialRecord, folder: Path | None = None) -> Path:
    """Append ``trial`` to its session's file; returns the file. Raises :class:`RecordError` without adding anything."""
    folder = data_folder() / FOLDER if folder is None else folder
    path = folder / f"{trial.method}-{trial.session}{ENDING}"
    if not trial.created:
        trial = replace(trial, created=datetime.now(UTC).isoformat(timespec="milliseconds"))
    line = json.dumps(asdict(trial), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    with files.explained(RecordError, f"The trial could not be written to {path}"):
        folder.mkdir(parents=True, exist_ok=True)
        files.append_line(path, line)
    return path


def read(folder: Path | None = None) -> Records:
    """All trials in ``folder``. Raises :class:`RecordError` if the folder cannot be read."""
    folder = data_folder() / FOLDER if folder is None else folder
    with readable(RecordError, f"The listening tests in {folder} could not be read"):
        paths = sorted(folder.glob(f"*{ENDING}"), key=lambda path: path.name)
    trials: list[TrialRecord] = []
    problems: list[str] = []
    for path in paths:
        try:
            content = read_bytes(path)
        except OSError as error:
            problems.append(f"{path} could not be read: {first_line(error)}.")
            continue
        found, damaged, newer = _trials(content)
        trials += found
        if newer:
            problems.append(f"{path} was written by a newer Paretone; update this one to count its trials: {newer}.")
        if damaged:
            problems.append(f"Damaged lines in {path}: {damaged}. They are skipped.")
    return Records(tuple(trials), tuple(problems))


def _trials(content: bytes) -> tuple[list[TrialRecord], int, int]:
    """Trials of a file, number of unreadable lines, and number of lines of a newer schema."""
    found, damaged, newer = [], 0, 0
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        try:
            data = parsed_json(line)
            if isinstance(data, dict) and isinstance(data.get("schema"), int) and data["schema"] > SCHEMA:
                newer += 1
                continue
            found.append(from_json(data))
        except (ValueError, TypeError, KeyError, IndexError):
            damaged += 1
    return found, damaged, newer


def from_json(data: Any) -> TrialRecord:
    """Trial in a line. Raises :class:`ValueError`, :class:`TypeError` or :class:`LookupError` for invalid ones."""
    values = {**data}
    item = _checked(ItemRecord, values["item"])
    values["item"] = replace(item, voice=without_folder(item.voice))
    values["around"] = _checked(TrialConditions, values["around"])
    values["conditions"] = tuple(_checked(ConditionRecord, one) for one in values["conditions"])
    values["order"] = tuple(values["order"])
    trial = _checked(TrialRecord, values)
    if trial.method not in METHODS or not all(
        isinstance(one, int) and 0 <= one < len(trial.conditions) for one in trial.order
    ):
        raise ValueError("no trial")
    _check_answer(trial)
    return trial


def _check_answer(trial: TrialRecord) -> None:
    """Raise :class:`ValueError` if the answer does not fit the trial's method."""
    answer, size = trial.answer, len(trial.conditions)
    if trial.method == ABX:
        sound = size == 2 and len(trial.order) == 3 and answer.get("said") in (0, 1)
    elif trial.method == MUSHRA:
        ratings = answer.get("ratings")
        sound = (
            isinstance(ratings, list)
            and len(ratings) == size
            and all(isinstance(one, int) and 0 <= one <= 100 for one in ratings)
        )
    elif trial.method == STAIRCASE:
        scale = answer.get("scale")
        sound = (
            answer.get("said") in (0, 1)
            and len(trial.order) == 3
            and trial.order[0] == min(trial.order[1:]) == 0 < max(trial.order)
            and isinstance(scale, list)
            and len(scale) == size - 1
            and all(isinstance(one, float | int) and math.isfinite(one) for one in scale)
            and all(one < two for one, two in itertools.pairwise(scale))
        )
    elif trial.method in MOS:
        vote, against = answer.get("vote"), [size - 1] * (trial.method == SIMILARITY)
        sound = isinstance(vote, int) and 1 <= vote <= 5 and list(trial.order[:-1]) == against != [trial.order[-1]]
    elif trial.method == RANKING:
        sound = size > 2 and len(set(trial.order)) == len(trial.order) == 2 and answer.get("vote") in (-1, 0, 1)
    else:
        vote = answer.get("vote")
        sound = size == 2 and sorted(trial.order) == [0, 1] and isinstance(vote, int) and -3 <= vote <= 3
    if not sound:
        raise ValueError("no answer")


def _checked(kind: type[Record], data: Any) -> Record:
    made = kind(**{one.name: data[one.name] for one in fields(kind)})
    if reason := fault_of_fields(made):
        raise ValueError(reason)
    return made


def complete_sessions(trials: Sequence[TrialRecord]) -> tuple[tuple[TrialRecord, ...], ...]:
    """Valid trials of complete sessions: stopping at a good score would let listeners pass too often."""
    sessions: dict[str, list[TrialRecord]] = {}
    for one in trials:
        if not one.void:
            sessions.setdefault(one.session, []).append(one)
    return tuple(tuple(own) for own in sessions.values() if len(own) == own[0].planned)
