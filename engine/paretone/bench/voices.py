"""How a bundled model sounds: words, naturalness, pitch range, diversity and likeness, against its decoder's own copy.

Harvard sentences and everyday ones, alternately, in the voices in turn. The floor of every figure is what the decoder
makes of the speaker's own latents: no model of these latents can sound better. Differences of naturalness are those of
pairs, of one sentence in one voice. Take more than one seed: diversity is the spread over them, and one take of a
sentence says little about another. Pitch and formant scale by voice, next to those of the copy, show how closely a
model follows its prompts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import cast

import numpy as np

from paretone.bench import bundled
from paretone.bench.report import Report
from paretone.commands.arguments import at_least, positive, typed_lines
from paretone.commands.compare import Side, prepare, typed_side
from paretone.errors import SettingError
from paretone.files import write_wav
from paretone.measure.estimates import Estimate
from paretone.measure.evaluation.judges import judge_named
from paretone.measure.evaluation.speakers import VoiceJudge
from paretone.measure.metrics import estimate
from paretone.measure.pitch import diversity, log_pitch, mean_pitch, pitch_range
from paretone.measure.timing import Interval
from paretone.models.base import SpeechModel, Voice
from paretone.models.catalogue import harvard_sentences, unseen_sentences, voice, voices
from paretone.models.minis.natural_decoder import SAMPLE_RATE
from paretone.models.minis.speaking import VoiceReader
from paretone.speaking import synthesise
from paretone.training.natural_teacher import decoder_copy

NAME = "voices"
FLOOR = "the decoder's copy"
DEFAULT = "default"
DEFINITION = (
    "Predicted naturalness (DistillMOS, 1 to 5) of the model at its default settings, less that of the decoder's own "
    "copy of the same sentences in the same voices."
)


@dataclass(frozen=True)
class Heard:
    edits: float
    words: float
    naturalness: float
    own: float
    """Similarity to its own voice's recording."""
    alike: Mapping[str, float]
    """Similarity to the other voices' recordings, by voice id."""
    spread: float
    """Pitch range; NaN if too little is voiced."""
    curve: np.ndarray = field(repr=False)
    formants: float = 1.0
    """Formant scale; 1: the teacher's own voice."""
    real_time_factor: float = float("nan")

    @property
    def others(self) -> float:
        """Mean similarity to the other voices; NaN without any."""
        return float(np.mean(list(self.alike.values()))) if self.alike else float("nan")

    @property
    def pitch(self) -> float:
        """Mean pitch in hertz; NaN without voice."""
        return mean_pitch(self.curve)


Takes = Mapping[tuple[int, int], Heard]
"""Judged takes of one way of speaking, by sentence and seed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="f5-mini", help="bundled model (default: %(default)s)")
    parser.add_argument("--folder", default="", help="folder of the checkpoint, if not the usual one")
    parser.add_argument("--device", default="cpu", help="auto, cpu, cuda or mps (default: %(default)s)")
    parser.add_argument("--threads", type=positive, default=1, help="threads of the processor (default: %(default)s)")
    parser.add_argument("--sentences", type=at_least(2), help="how many of the sentences (default: all)")
    parser.add_argument("--text-file", metavar="FILE", help="other sentences, one per line (default: the 60 that ship)")
    parser.add_argument("--voice", action="append", help="voice that speaks; repeat for more (default: all, in turn)")
    parser.add_argument("--seeds", type=positive, default=2, help="takes of each sentence (default: %(default)s)")
    parser.add_argument(
        "--way",
        action="append",
        default=[],
        metavar="OPTIONS",
        help="another way of speaking, as in paretone compare: steps=4,technique=NAME; can be repeated",
    )
    parser.add_argument("--keep", metavar="FOLDER", help="folder for the recordings")


def run(arguments: argparse.Namespace) -> Report:
    texts = sentences() if arguments.text_file is None else typed_lines(arguments.text_file)
    texts = texts[: arguments.sentences]
    if len(texts) < 2:
        raise SettingError("There must be two sentences or more, of which there are differences.")
    sides = [replace(typed_side("", arguments.model), title=DEFAULT)]
    sides += [typed_side(text, arguments.model) for text in arguments.way]
    panel = Panel(texts, speakers(arguments), Path(arguments.keep) if arguments.keep else None)
    model = bundled.loaded(arguments)
    floor = {(at, 0): panel.hear(at, FLOOR, decoder_copy(text, panel.voice(at))) for at, text in enumerate(texts)}
    rows, headline = [row(FLOOR, floor, floor, panel.speakers)], None
    for side in sides:
        bundled.say(f"{side.title}: {len(texts)} sentences, {arguments.seeds} takes of each …")
        takes = dict(_spoken(side, model, panel, arguments.seeds))
        rows.append(row(side.title, takes, floor, panel.speakers))
        headline = headline or estimate("naturalness", _differences(takes, floor).tolist())
    assert headline is not None  # The default is always included.
    return Report.of(NAME, Interval(*headline.ends), DEFINITION, rows)


def sentences() -> tuple[str, ...]:
    return tuple(chain.from_iterable(zip(harvard_sentences(), unseen_sentences(), strict=True)))


def speakers(arguments: argparse.Namespace) -> tuple[Voice, ...]:
    """Raises :class:`SettingError` for an unknown voice."""
    if arguments.voice is None:
        return voices(arguments.model, arguments.folder)
    return tuple(voice(one, arguments.model, arguments.folder) for one in arguments.voice)


class Panel:
    """The judges, with texts and speakers. Raises :class:`PlainError` if a judge is not installed."""

    def __init__(self, texts: Sequence[str], speakers: Sequence[Voice], keep: Path | None = None) -> None:
        self.texts, self.speakers, self._keep = texts, speakers, keep
        self._words = judge_named("words").ready(texts)
        self._naturalness = judge_named("naturalness").ready(texts)
        self._likeness = cast(VoiceJudge, judge_named("voice").ready(texts))
        self._reader = VoiceReader()

    def voice(self, at: int) -> Voice:
        return self.speakers[at % len(self.speakers)]

    def hear(self, at: int, way: str, samples: np.ndarray, rate: int = SAMPLE_RATE, seed: int = 0) -> Heard:
        """Judge mono ``samples`` (n,): sentence ``at``, spoken in one ``way``."""
        text, own = self.texts[at], self.voice(at)
        if self._keep is not None:
            self._keep.mkdir(parents=True, exist_ok=True)
            write_wav(self._keep / f"{at:02d}-{own.id}-{way.replace('/', ' ')}-{seed}.wav", samples, rate)
        return self.judge(text, own, samples, rate)

    def judge(self, text: str, own: Voice, samples: np.ndarray, rate: int) -> Heard:
        """Judge mono ``samples`` (n,): one of the texts, in the voice ``own``."""
        words = self._words.hear(text, own, samples, rate).figures
        heard, judge = self._likeness.voice_of(samples, rate), self._likeness
        alike = {one.id: judge.similarity(judge.voice_in(one.audio), heard) for one in (own, *self.speakers)}
        curve = log_pitch(samples, rate)
        spread = pitch_range(curve)
        return Heard(
            words["edits"],
            words["words"],
            self._naturalness.hear(text, own, samples, rate).figures["naturalness"],
            alike.pop(own.id),
            alike,
            float("nan") if spread is None else spread,
            curve,
            self._reader.formant_scale(samples, rate),
        )


def _spoken(side: Side, model: SpeechModel, panel: Panel, seeds: int) -> Iterator[tuple[tuple[int, int], Heard]]:
    prepare(side, model)
    for at, text in enumerate(panel.texts):
        for seed in range(seeds):
            take = synthesise(model, text, panel.voice(at), replace(side.setting, seed=seed), side.artefacts)
            heard = panel.hear(at, side.title, take.samples, take.sample_rate, seed)
            yield (at, seed), replace(heard, real_time_factor=take.measurements.real_time_factor)
        bundled.say(f"sentence {at + 1} of {len(panel.texts)}")


def row(title: str, takes: Takes, floor: Takes, speakers: Sequence[Voice]) -> dict[str, object]:
    """Figures of the ``takes`` of one way of speaking, in the voices of ``speakers`` in turn; ``floor``: the copies."""
    errors = _words(takes)
    found: dict[str, object] = {
        "speech": title,
        "takes": len(takes),
        "word errors": errors.value,
        "low": errors.low,
        "high": errors.high,
        "naturalness": _mean(takes, "naturalness"),
    }
    if takes is not floor:
        apart = _differences(takes, floor)
        found["to the copy"] = estimate("naturalness", apart.tolist()).value
        found["standard error"] = float(apart.std(ddof=1) / len(apart) ** 0.5)
    found |= {"pitch range": _mean(takes, "spread"), "own voice": _mean(takes, "own")}
    found |= {"other voices": _mean(takes, "others")}
    if takes is not floor:
        curves = ([one.curve for (other, _), one in takes.items() if other == at] for at in {at for at, _ in takes})
        found["diversity"] = mean_of_known([one for one in map(diversity, curves) if one is not None])
        found["RTF"] = float(np.median([one.real_time_factor for one in takes.values()]))
    for number, speaker in enumerate(speakers):
        own = {key: one for key, one in takes.items() if key[0] % len(speakers) == number}
        found[speaker.id] = _mean(own, "naturalness")
        found[f"{speaker.id}, Hz"] = _mean(own, "pitch")
        found[f"{speaker.id}, formants"] = _mean(own, "formants")
    return found


def _words(takes: Takes) -> Estimate:
    by_sentence: dict[int, complex] = {}
    for (sentence, _), one in takes.items():
        by_sentence[sentence] = by_sentence.get(sentence, 0j) + complex(one.edits, one.words)
    return estimate("word_error_rate", list(by_sentence.values()))


def _mean(takes: Takes, name: str) -> float | None:
    """Mean over takes; ``None`` if no take has the figure, such as similarity to other voices with a single one."""
    return mean_of_known([getattr(one, name) for one in takes.values()])


def mean_of_known(values: Sequence[float]) -> float | None:
    """Mean of the finite values; ``None`` without any."""
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else None


def _differences(takes: Takes, floor: Takes) -> np.ndarray:
    """(sentences,): mean naturalness of each sentence's takes minus that of its copy."""
    found = []
    for (sentence, _), copy in floor.items():
        own = [one.naturalness for (at, _), one in takes.items() if at == sentence]
        found.append(float(np.mean(own)) - copy.naturalness)
    return np.array(found)
