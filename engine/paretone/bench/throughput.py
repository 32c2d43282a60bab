"""Several sentences at once: audio seconds a second over the batch, against the wait for first audio.

A batch of n speaks n Harvard sentences together (:mod:`paretone.models.families.together`); a batch of one is ordinary
synthesis. Rounds are interleaved, each with further sentences and seeds. ``--processes`` also runs ordinary synthesis
in processes side by side, which share the threads among them: what a machine does without batches.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from statistics import median
from typing import Any

from paretone.bench import bundled
from paretone.bench.report import Report
from paretone.commands.arguments import at_least, positive
from paretone.errors import SettingError
from paretone.measure.timing import interval, ratios, running_order, stopwatch
from paretone.models.base import Synthesis
from paretone.models.catalogue import entry, harvard_sentences
from paretone.models.families.together import Turn, speak_together
from paretone.observer import Observer
from paretone.setting.setting import Setting
from paretone.speaking import make_ready, scripted

NAME = "throughput"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    bundled.add_family_arguments(parser, "lm-mini", rounds=5)
    parser.add_argument(
        "--batch", type=positive, nargs="+", default=[1, 2, 4, 8, 16], help="sentences at once (default: %(default)s)"
    )
    parser.add_argument("--steps", type=positive, help="steps of flow and masked models (default: the model's)")
    parser.add_argument(
        "--processes", type=at_least(0), default=0, help="also run so many processes side by side (default: none)"
    )


def run(arguments: argparse.Namespace) -> Report:
    sizes = tuple(dict.fromkeys((1, *arguments.batch)))
    if len(sizes) < 2:
        raise SettingError("There is nothing to compare with one sentence at a time; give --batch 8, for instance.")
    if arguments.processes > arguments.threads:
        raise SettingError(
            f"{arguments.processes} processes cannot share {arguments.threads} threads; give as many --threads."
        )
    spoken = _Rounds(arguments)
    # Of every round: seconds by the clock of the device and on the wall, per second of audio; seconds until first
    # audio, median over its sentences and of the one that waits longest.
    found: dict[int, list[tuple[float, float, float, float]]] = {size: [] for size in sizes}
    for number in range(-1, arguments.rounds):  # The first is for warm-up.
        for size in running_order(sizes, max(number, 0)):
            audio, seconds, wall, first = spoken.measured(size, number)
            if number >= 0:
                found[size].append((seconds / audio, wall / audio, median(first), max(first)))
        bundled.say(f"round {number + 1} of {arguments.rounds}")
    clocks = {size: [seconds for seconds, *_ in rounds] for size, rounds in found.items()}
    gains = {size: interval(ratios(clocks[1], clocks[size])) for size in sizes if size != 1}
    rows: list[dict[str, object]] = []
    for size, rounds in found.items():
        seconds, wall, typical, last = map(median, zip(*rounds, strict=True))
        row: dict[str, object] = {"at once": size, "audio s/s": 1 / wall, "audio s per clock s": 1 / seconds}
        row |= {"first audio (s)": typical, "the last's (s)": last}
        rows.append(row | (gains[size].columns("gain") if size != 1 else {}))
    if arguments.processes:
        rows.append(side_by_side(arguments))
    headline = 8 if 8 in gains else max(gains)
    clock = "processor time" if spoken.device == "cpu" else "time on the device"
    definition = (
        f"Seconds of audio that {spoken.model.info.title} speaks per second of {clock} with {headline} sentences at "
        f"once, over one after another, on {arguments.threads} thread{'s' * (arguments.threads != 1)} per side."
    )
    return Report.of(NAME, gains[headline], definition, rows)


class _FirstPiece(Observer):
    def __init__(self) -> None:
        self.began, self.at = time.perf_counter(), 0.0

    def heard(self, piece: object) -> None:
        self.at = self.at or time.perf_counter() - self.began


class _Rounds:
    """A loaded model, and the sentences of each round."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.model, self._voice = bundled.loaded(arguments), bundled.speaker(arguments)
        self.device = self.model.info.device_type or "cpu"
        options = entry(arguments.model).options_with(**({"steps": arguments.steps} if arguments.steps else {}))
        self._setting, self._sentences = Setting(arguments.model, options, seed=arguments.seed), harvard_sentences()
        make_ready(self.model, self._setting, self._voice)

    def measured(self, size: int, number: int) -> tuple[float, float, float, list[float]]:
        """Speak ``size`` sentences at once, of which the first is the same for every size: seconds of audio, by the
        device's clock, and on the wall, and of each until its first audio. Raises the first error."""
        setting = replace(self._setting, seed=self._setting.seed + max(number, 0))
        texts = [self._sentences[(number + place) % len(self._sentences)] for place in range(size)]
        scripts = [scripted(self.model, text, self._voice, setting) for text in texts]
        pieces, ended = [_FirstPiece() for _ in scripts], list[Synthesis | BaseException]()
        with stopwatch(self.device) as watch:
            if size == 1:
                ended.append(self.model.speak(scripts[0], pieces[0], pieces[0].heard))
            else:
                given = iter(
                    [Turn(one, ended.append, piece, piece.heard) for one, piece in zip(scripts, pieces, strict=True)]
                )
                speak_together(self.model, lambda: next(given, None), size)
        audio = 0.0
        for one in ended:
            if isinstance(one, BaseException):
                raise one
            audio += one.measurements.audio_seconds
        return audio, watch.seconds, watch.wall_seconds, [one.at for one in pieces]


def side_by_side(arguments: argparse.Namespace) -> dict[str, object]:
    """Row of ordinary synthesis in processes that share the threads."""
    count = arguments.processes
    share = argparse.Namespace(**{**vars(arguments), "threads": max(1, arguments.threads // count)})
    context = multiprocessing.get_context("spawn")
    bundled.say(f"{count} processes side by side …")
    with context.Manager() as manager, ProcessPoolExecutor(count, context) as pool:
        meeting = manager.Barrier(count)
        found = [one.result() for one in [pool.submit(_alone, share, number, meeting) for number in range(count)]]
    return {
        "at once": f"{count} processes",
        "audio s/s": sum(audio for audio, *_ in found) / max(wall for _, _, wall, _ in found),
        "audio s per clock s": median(audio / seconds for audio, seconds, _, _ in found),
        "first audio (s)": median(first for *_, first in found),
    }


def _alone(arguments: argparse.Namespace, place: int, meeting: Any) -> tuple[float, float, float, float]:
    """In a process, once all are at the ``meeting``: seconds of audio, by the clock and on the wall, and until first
    audio, over all rounds."""
    spoken = _Rounds(arguments)
    spoken.measured(1, 0)
    meeting.wait()
    runs = [spoken.measured(1, number + place) for number in range(arguments.rounds)]
    audio, seconds, wall = (sum(values) for values in zip(*(one[:3] for one in runs), strict=True))
    return audio, seconds, wall, median(one[3][0] for one in runs)
