"""Wall-time budget of a bench, which limits rounds, sentences or tokens."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from paretone.bench import LEAST_ROUNDS
from paretone.commands.arguments import above_zero
from paretone.measure.intelligibility import Judge
from paretone.measure.verdicts import VoiceVerdict, Way, verdicts
from paretone.models.base import SpeechModel, Voice
from paretone.models.loading import Vocoder

MINUTES = 4.5
"""Ends a bench's default run within five minutes; work in progress is finished."""


class Budget:
    """Wall-time budget, starting now."""

    def __init__(self, minutes: float, most: int) -> None:
        """``most``: maximum number of rounds."""
        self._end, self._most = time.monotonic() + 60 * minutes, most

    def part(self, share: float) -> Budget:
        """Budget of a ``share`` of the remaining time, starting now."""
        return Budget(share * self.left / 60, self._most)

    @property
    def left(self) -> float:
        return self._end - time.monotonic()

    def rounds(self, seconds: float, share: float = 1.0) -> int:
        """Number of rounds of ``seconds`` each in a ``share`` of the remaining time, at least :data:`LEAST_ROUNDS`."""
        return max(LEAST_ROUNDS, min(self._most, int(share * self.left / max(seconds, 1e-9))))


class Turns:
    """Decides before every sentence whether there is time for it."""

    def __init__(self, budget: Budget, least: int, share: float = 1.0) -> None:
        """``least``: minimum number of sentences; ``share``: usable share of the remaining time."""
        self._budget, self._least = budget, least
        self._until = (1 - share) * budget.left
        self._done, self._longest, self._since = 0, 0.0, budget.left

    def another(self) -> bool:
        """Whether another sentence as long as the longest so far fits."""
        left = self._budget.left
        if self._done:
            self._longest = max(self._longest, self._since - left)
        self._since = left
        fits = self._done < self._least or left - self._longest >= self._until
        self._done += fits
        return fits


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minutes",
        type=above_zero,
        default=MINUTES,
        help="time for the bench: fewer rounds and sentences if all would take longer, which the report then says "
        "(default: %(default)s)",
    )


def heard(sentences: int, of: int, voices: str, takes: int = 1, most: int = 1) -> str:
    """Sentence on the number of sentences judged per way, for a report; up to ``most`` takes for some ways."""
    each = f", {takes}{f' to {most}' if most > takes else ''} takes of each" if takes > 1 else ""
    said = f"The judges heard {sentences} sentence{'s' * (sentences != 1)} {voices}{each}"
    if sentences == of:
        return f"{said}."
    return (
        f"{said}, as many of {of} as fit into the time: too few for figures to quote, for which --minutes gives more."
    )


def heard_in_turns(
    sentences: Sequence[str],
    voices: Sequence[Voice],
    vocoder: Vocoder | None,
    model: SpeechModel,
    ways: Sequence[Way],
    turns: Turns,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, list[VoiceVerdict]]:
    """:func:`paretone.measure.verdicts.verdicts` by title and voice, sentence by sentence while ``turns`` allow. The
    judge knows the words of all sentences, however many are heard."""
    judge = Judge(sentences)
    found: dict[str, dict[str, VoiceVerdict]] = {}
    for at, sentence in enumerate(sentences):
        if not turns.another():
            break
        say(f"sentence {at + 1} of {len(sentences)}: {len(ways)} ways in {len(voices)} voices …")
        for one in verdicts([sentence], voices, vocoder, model, ways, judge=judge):
            of_voice = found.setdefault(one.speech, {})
            of_voice[one.voice] = _joined(of_voice[one.voice], one) if one.voice in of_voice else one
    return {title: list(of_voice.values()) for title, of_voice in found.items()}


def _joined(first: VoiceVerdict, more: VoiceVerdict) -> VoiceVerdict:
    """Verdicts of one way and voice, extended by another sentence."""
    return replace(
        first,
        errors=first.errors + more.errors,
        syntheses=first.syntheses + more.syntheses,
        mels=first.mels + more.mels,
        figures=first.figures + more.figures,
    )
