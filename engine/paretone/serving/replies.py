"""Replies of a measured server as recordings, and what the judges say of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paretone import files
from paretone.audio.recording import Recording
from paretone.measure.evaluation.judging import JUDGED_FIGURES, FileJudges, Judgement, Judgements
from paretone.measure.metrics import estimate
from paretone.measure.pitch import diversity
from paretone.observer import Check

if TYPE_CHECKING:
    from paretone.serving.load import Measured

TEXTS = "texts.txt"


def keep(folder: Path, found: Sequence[Measured]) -> dict[str, str]:
    """Write every reply, by its load and number, and the texts in the order of the files' names; returns the text of
    each file."""
    written: dict[str, str] = {}
    for measured in found:
        for number, one in enumerate(measured.answered, start=1):
            name = f"{str(measured.level).replace('/', ' a ').replace(' ', '-')}-{number:04}.wav"
            files.write_wav(folder / name, one.samples, one.sample_rate)
            written[name] = one.text
    files.write(folder / TEXTS, "".join(f"{written[name]}\n" for name in sorted(written)).encode())
    return written


def judged(
    texts: Sequence[str],
    recordings: Sequence[tuple[np.ndarray, int]],
    reference: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    check: Check = lambda: None,
) -> tuple[dict[str, tuple[float, float, float]], tuple[dict[str, float], ...]]:
    """Words, naturalness, variety and faults of the replies to one load, and similarity to the voice of ``reference``:
    values with the ends of their 95 % intervals, by metric, and the figures that takes have, of each reply.
    ``recordings``: mono samples (n,) and their rate, of each text. Raises :class:`paretone.errors.PlainError`."""
    judges = FileJudges(tuple(dict.fromkeys(texts)), reference)
    found: list[Judgement] = []
    for place, (text, sound) in enumerate(zip(texts, recordings, strict=True)):
        progress(place, len(texts))
        check()
        found.append(judges.judge_recording(Path(f"reply {place + 1}"), Recording(*sound), text, check))
    ends = {name: one.ends for name, one in Judgements(tuple(found)).means.items()}
    curves: dict[str, list[np.ndarray]] = defaultdict(list)
    for text, one in zip(texts, found, strict=True):
        curves[text].append(one.curve)
    varied = [value for each in curves.values() if (value := diversity([one for one in each if len(one)])) is not None]
    if len(varied) > 1:
        ends["diversity"] = estimate("diversity", varied).ends
    of_takes = []
    for one in found:
        known = {name: one.figures[name] for name in JUDGED_FIGURES if name in one.figures}
        of_takes.append({**known, "faults": float(len(one.faults.findings))})
    return ends, tuple(of_takes)
