"""``python -m engine.training.judging``: is a trained model good enough to ship?

Word error rates of the test sentences in every bundled voice: as flite says them, through the vocoder alone, and as the
model speaks them; and how far the vocoder's output is from the speech it was given. The first two rows are the judge's
floor: no model can be told from another below them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from engine.errors import PlainError
from engine.measure.verdicts import Way, verdicts
from engine.models import load_model
from engine.models.catalogue import entry, harvard_sentences, read_voice
from engine.models.vocos import Vocos
from engine.paths import resource
from engine.setting import Setting
from engine.training.corpora import VOICES, speak
from engine.training.vocos_mini import copy_synthesis_distances


def vocoder_distances(folder: Path, sentences: Sequence[str], voices: Sequence[str] = VOICES) -> dict[str, float]:
    """:func:`engine.training.vocos_mini.copy_synthesis_distances` of the vocoder in ``folder`` on the test
    sentences."""
    clips = tuple(speak(sentence, voice) for voice in voices for sentence in sentences)
    return copy_synthesis_distances(Vocos.load(folder), clips, torch.device("cpu"))


def judge(folder: Path, sentences: Sequence[str], steps: Sequence[int], say: Callable[[str], None]) -> None:
    """Say what the judge makes of ``f5-mini`` and ``vocos-mini`` in ``folder``; ``steps`` may be empty (vocoder only).

    Raises :class:`PlainError` when flite or pocketsphinx is missing.
    """
    figures = vocoder_distances(folder / "vocos-mini", sentences)
    say("vocoder: " + ", ".join(f"{name} {value:.4f}" for name, value in figures.items()))
    ways = [Way(f"f5-mini, {one} steps", Setting("f5-mini", entry("f5-mini").options_with(steps=one))) for one in steps]
    model = load_model("f5-mini", folder=str(folder / "f5-mini"), device="cpu") if ways else None
    recordings = (folder if ways else resource("models")) / "f5-mini" / "voices"
    voices = [read_voice(recordings, name) for name in VOICES]
    for one in verdicts(sentences, voices, Vocos.load(folder / "vocos-mini"), model, ways):
        low, high = one.errors.interval()
        say(f"{one.voice}  {one.speech:<20} WER {one.errors.rate:.4f}  (95 %: {low:.3f} to {high:.3f})")


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
    try:
        judge(options.models, harvard_sentences()[: options.sentences], options.steps, say)
    except PlainError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
