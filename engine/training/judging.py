"""``python -m engine.training.judging``: is a trained model good enough to ship?

Word error rates of the test sentences in every bundled voice: as flite says them, through the vocoder alone, and as the
model speaks them; and how far the vocoder's output is from the speech it was given. The first two rows are the judge's
floor: no model can be told from another below them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from engine.errors import PlainError
from engine.measure.intelligibility import Judge, WordErrors
from engine.models import load_model
from engine.models.base import StepReport, Voice
from engine.models.catalogue import entry
from engine.models.vocos import Vocos
from engine.paths import resource
from engine.setting import Setting
from engine.training.corpora import SAMPLE_RATE, VOICES, Clip, speak
from engine.training.vocos_mini import copy_synthesis_distances

Recordings = list[tuple[np.ndarray, int]]


@dataclass(frozen=True)
class Verdict:
    """What the judge heard of one way of speaking, in one voice."""

    speaker: str
    voice: str
    errors: WordErrors


class _Unheard:
    """An observer that lets everything pass."""

    def check(self) -> None: ...

    def step(self, report: StepReport) -> None: ...

    def status(self, text: str) -> None: ...


def judged(
    folder: Path, sentences: Sequence[str], steps: Sequence[int], voices: Sequence[str] = VOICES
) -> Iterator[Verdict]:
    """Verdicts on ``f5-mini`` and ``vocos-mini`` in ``folder``, as they come; ``steps`` may be empty (vocoder only).

    Raises :class:`PlainError` when flite or pocketsphinx is missing.
    """
    judge = Judge(sentences)
    vocoder = Vocos.load(folder / "vocos-mini")
    for voice in voices:
        clips = [speak(sentence, voice) for sentence in sentences]

        def verdict(speaker: str, recordings: Recordings, voice: str = voice) -> Verdict:
            return Verdict(speaker, voice, judge.word_errors(sentences, recordings))

        yield verdict("flite", [(clip.samples, SAMPLE_RATE) for clip in clips])
        yield verdict("vocoder only", [(_decoded(vocoder, clip), SAMPLE_RATE) for clip in clips])
        for count in steps:
            yield verdict(f"f5-mini, {count} steps", _spoken(folder / "f5-mini", sentences, voice, count))


def vocoder_distances(folder: Path, sentences: Sequence[str], voices: Sequence[str] = VOICES) -> dict[str, float]:
    """:func:`engine.training.vocos_mini.copy_synthesis_distances` of the vocoder in ``folder`` on the test
    sentences."""
    clips = tuple(speak(sentence, voice) for voice in voices for sentence in sentences)
    return copy_synthesis_distances(Vocos.load(folder), clips, torch.device("cpu"))


def _decoded(vocoder: Vocos, clip: Clip) -> np.ndarray:
    return vocoder.decode(torch.from_numpy(clip.mel.astype(np.float32)).T[None])[0].numpy()


def _spoken(folder: Path, sentences: Sequence[str], voice: str, steps: int) -> Recordings:
    """The sentences as the model speaks them with the voice that lies in its folder."""
    model = load_model("f5-mini", folder=str(folder), device="cpu")
    setting = Setting("f5-mini", entry("f5-mini").options_with(steps=steps))
    prompt = _voice(folder / "voices" / f"{voice}.json")
    recordings = []
    for sentence in sentences:
        speech = model.synthesise(sentence, prompt, setting, (), _Unheard())
        recordings.append((_finished(speech), SAMPLE_RATE))
    return recordings


def _finished(speech: Iterator) -> np.ndarray:
    while True:
        try:
            next(speech)
        except StopIteration as end:
            return end.value.samples


def _voice(path: Path) -> Voice:
    content = json.loads(path.read_text(encoding="utf-8"))
    phones = tuple((phone, float(start), float(end)) for phone, start, end in content["phones"])
    return Voice(path.stem, path.stem, str(path.with_suffix(".wav")), content["text"], phones)


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    """Print the table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m engine.training.judging", description=__doc__)
    parser.add_argument(
        "--models",
        type=Path,
        default=resource("models"),
        help="folder that holds f5-mini and vocos-mini (default: bundled)",
    )
    parser.add_argument("--steps", type=int, nargs="*", default=[7], help="numbers of steps to try (default: 7)")
    parser.add_argument("--sentences", type=int, default=30, help="how many of the test sentences (default: 30)")
    options = parser.parse_args(arguments)
    sentences = resource("sentences", "harvard.txt").read_text(encoding="utf-8").splitlines()[: options.sentences]
    try:
        figures = vocoder_distances(options.models / "vocos-mini", sentences)
        say("vocoder: " + ", ".join(f"{name} {value:.4f}" for name, value in figures.items()))
        for one in judged(options.models, sentences, options.steps):
            low, high = one.errors.interval()
            say(f"{one.voice}  {one.speaker:<20} WER {one.errors.rate:.4f}  (95 %: {low:.3f} to {high:.3f})")
    except PlainError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
