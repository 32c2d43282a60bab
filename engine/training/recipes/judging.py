"""``python -m engine.training.recipes.judging``: is a trained model good enough to ship?

Word error rates of the test sentences in every voice of flite: as flite says them, through the vocoder alone, and as
the model speaks them; and how far the vocoder's output is from the speech it was given. The rows before the model's
are the judge's floor: models cannot be told apart below them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from engine.errors import PlainError
from engine.measure.intelligibility import WordErrors
from engine.measure.verdicts import Way, judged_means, verdicts
from engine.models import load_model
from engine.models.catalogue import entry, harvard_sentences
from engine.models.networks.vocos import Vocos
from engine.models.shipped_voices import ARCTIC, voices_of
from engine.paths import resource
from engine.setting.setting import Setting
from engine.training.corpora import VOICES, speak
from engine.training.recipes.vocos_mini import copy_synthesis_distances

MODEL = "f5-mini"


def vocoder_distances(folder: Path, sentences: Sequence[str], voices: Sequence[str] = VOICES) -> dict[str, float]:
    """:func:`engine.training.recipes.vocos_mini.copy_synthesis_distances` of the vocoder in ``folder`` on the test
    sentences."""
    clips = tuple(speak(sentence, voice) for voice in voices for sentence in sentences)
    return copy_synthesis_distances(Vocos.load(folder), clips, torch.device("cpu"))


def judge(folder: Path, sentences: Sequence[str], steps: Sequence[int], say: Callable[[str], None]) -> None:
    """Say what the judge makes of ``f5-mini`` and ``vocos-mini`` in ``folder``; ``steps`` may be empty (vocoder only).

    Raises :class:`PlainError` when flite or pocketsphinx is missing.
    """
    figures = vocoder_distances(folder / "vocos-mini", sentences)
    say("vocoder: " + ", ".join(f"{name} {value:.4f}" for name, value in figures.items()))
    vocoder = Vocos.load(folder / "vocos-mini")
    ways = [Way(f"{MODEL}, {one} steps", Setting(MODEL, entry(MODEL).options_with(steps=one))) for one in steps]
    loaded = load_model(MODEL, folder=str(folder / MODEL), device="cpu") if ways else None
    voices = voices_of(ARCTIC)
    for one in verdicts(sentences, voices, vocoder, loaded, ways):
        say(
            _row(one.voice, one.speech, one.errors)
            + "".join(f"  {name} {value:.3f}" for name, value in judged_means([one]).items())
        )


def _row(voice: str, speech: str, errors: WordErrors) -> str:
    low, high = errors.interval()
    return f"{voice}  {speech:<24} WER {errors.rate:.4f}  (95 %: {low:.3f} to {high:.3f})"


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    """Print the table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m engine.training.recipes.judging", description=__doc__)
    parser.add_argument(
        "--models",
        type=Path,
        default=resource("models"),
        help="folder that holds the model and vocos-mini (default: bundled)",
    )
    parser.add_argument("--steps", type=int, nargs="*", default=[7], help="numbers of steps to try (default: 7)")
    parser.add_argument("--sentences", type=int, default=30, help="how many of the test sentences (default: 30)")
    options = parser.parse_args(arguments)
    try:
        judge(options.models, harvard_sentences()[: options.sentences], options.steps, say)
    except PlainError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
