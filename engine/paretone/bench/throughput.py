"""Several sentences at once: audio seconds a second over the batch, against the wait for first audio.

A batch of n speaks n Harvard sentences together (:mod:`paretone.models.families.together`); a batch of one is ordinary
synthesis. Rounds are interleaved, each with further sentences and seeds. ``--processes`` also has the same sentences
spoken by processes side by side, each of which takes the next one when it is ready, and which share the threads: what a
machine does without batches.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

from paretone.bench import bundled
from paretone.bench.report import Report
from paretone.commands.arguments import at_least, positive
from paretone.errors import DeviceError, SettingError
from paretone.measure.timing import interval, ratios, running_order, stopwatch
from paretone.models.base import Synthesis
from paretone.models.catalogue import entry, harvard_sentences
from paretone.models.families.together import Turn, speak_together
from paretone.own_process import end_with_parent
from paretone.setting.setting import Setting
from paretone.speaking import make_ready, scripted
from paretone.wording import counted

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
    threads = counted(arguments.threads, "thread", "threads")
    if arguments.processes > arguments.threads:
        raise SettingError(f"{arguments.processes} processes cannot share {threads}; give as many --threads.")
    headline = 8 if 8 in sizes else max(sizes)
    if arguments.processes > headline:  # They begin together, and each only for a sentence.
        raise SettingError(
            f"{arguments.processes} processes cannot share {headline} sentences; give --batch {arguments.processes}."
        )
    with ExitStack() as stack:
        ways: dict[str | int, Callable[[int], _Measured]] = {}
        if arguments.processes:
            bundled.say(f"{arguments.processes} processes begin …")
            pool = stack.enter_context(_processes(arguments))
            in_processes = f"{headline}, {arguments.processes} processes"
            ways[in_processes] = partial(_measured_in, pool, headline)
        spoken = _Rounds(arguments)
        ways = {size: partial(spoken.measured, size) for size in sizes} | ways
        # Of every round: seconds by the clock of the device and on the wall, per second of audio; seconds until first
        # audio, median over its sentences and of the one that waits longest.
        found: dict[str | int, list[tuple[float, float, float, float]]] = {way: [] for way in ways}
        for number in range(-1, arguments.rounds):  # The first is for warm-up.
            for way in running_order(tuple(ways), max(number, 0)):
                audio, seconds, wall, first = ways[way](number)
                if number >= 0:
                    found[way].append((seconds / audio, wall / audio, median(first), max(first)))
            bundled.say(f"round {number + 1} of {arguments.rounds}")
    clocks, walls = ({way: [one[place] for one in rounds] for way, rounds in found.items()} for place in (0, 1))
    gains = {way: interval(ratios(clocks[1], clocks[way])) for way in ways if way != 1}
    rows: list[dict[str, object]] = []
    for way, rounds in found.items():
        seconds, wall, typical, last = map(median, zip(*rounds, strict=True))
        row: dict[str, object] = {"at once": way, "audio s/s": 1 / wall, "audio s per clock s": 1 / seconds}
        row |= {"first audio (s)": typical, "the last's (s)": last}
        row |= gains[way].columns("gain") if way != 1 else {}
        if arguments.processes and way != in_processes:
            ratio = interval(ratios(walls[in_processes], walls[way]))
            row |= {"over processes": ratio.median, "from": ratio.low, "to": ratio.high}
        rows.append(row)
    clock = "processor time" if spoken.device == "cpu" else "time on the device"
    definition = (
        f"Seconds of audio that {spoken.model.info.title} speaks per second of {clock} with {headline} sentences at "
        f"once, over one after another, on {threads} per side."
    )
    return Report.of(NAME, gains[headline], definition, rows)


class _FirstPiece:
    def __init__(self) -> None:
        self.began, self.at = time.perf_counter(), 0.0

    def heard(self, piece: object) -> None:
        self.at = self.at or time.perf_counter() - self.began


_Measured = tuple[float, float, float, Sequence[float]]
"""Seconds of audio, by the device's clock, on the wall, and of each sentence until its first audio."""


class _Rounds:
    """A loaded model, and the sentences of each round."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.model, self._voice = bundled.loaded(arguments), bundled.speaker(arguments)
        self.device = self.model.info.device_type or "cpu"
        options = entry(arguments.model).options_with(**({"steps": arguments.steps} if arguments.steps else {}))
        self._setting, self._sentences = Setting(arguments.model, options, seed=arguments.seed), harvard_sentences()
        make_ready(self.model, self._setting, self._voice)

    def measured(self, size: int, number: int, first: int = 0) -> _Measured:
        """Speak ``size`` sentences of a round at once, from the ``first`` on, which are the same for every size.
        Raises the first error."""
        setting = replace(self._setting, seed=self._setting.seed + max(number, 0))
        places = range(number + first, number + first + size)
        texts = [self._sentences[place % len(self._sentences)] for place in places]
        pieces, ended = [_FirstPiece() for _ in texts], list[Synthesis | BaseException]()
        scripts = (scripted(self.model, text, self._voice, setting) for text in texts)
        with stopwatch(self.device) as watch:
            if size == 1:
                ended.append(self.model.speak(next(scripts), play=pieces[0].heard))
            else:
                given = (Turn(next(scripts), ended.append, play=piece.heard) for piece in pieces)
                speak_together(self.model, lambda: next(given, None), size)
        audio = 0.0
        for one in ended:
            if isinstance(one, BaseException):
                raise one
            audio += one.measurements.audio_seconds
        return audio, watch.seconds, watch.wall_seconds, [one.at for one in pieces]


def _processes(arguments: argparse.Namespace) -> ProcessPoolExecutor:
    """Processes that share the threads, each with the model."""
    count, context = arguments.processes, multiprocessing.get_context("spawn")
    share = argparse.Namespace(**{**vars(arguments), "threads": max(1, arguments.threads // count)})
    return ProcessPoolExecutor(count, context, _begin, (share, context.Barrier(count)))


def _measured_in(pool: ProcessPoolExecutor, size: int, number: int) -> _Measured:
    """As :meth:`_Rounds.measured`, one sentence after another in each process."""
    began = time.perf_counter()
    try:
        found = list(pool.map(_spoken, [number] * size, range(size)))
    except BrokenProcessPool:
        raise DeviceError("One of the processes was killed; if memory is short, give fewer --processes.") from None
    audio, seconds = (sum(one[place] for one in found) for place in (0, 1))
    return audio, seconds, time.perf_counter() - began, [ended - began for *_, ended in found]


_rounds: _Rounds
"""Of this process, if it is one of several."""


def _begin(arguments: argparse.Namespace, meeting: Any) -> None:
    global _rounds
    end_with_parent()
    _rounds = _Rounds(arguments)
    _rounds.measured(1, 0)
    meeting.wait()


def _spoken(number: int, place: int) -> tuple[float, float, float]:
    """Seconds of audio and by the device's clock, and when its first audio came, by a clock of all processes."""
    began = time.perf_counter()
    audio, seconds, _, (first,) = _rounds.measured(1, number, place)
    return audio, seconds, began + first
