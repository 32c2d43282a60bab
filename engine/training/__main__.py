"""``python -m engine.training``: make the bundled models from nothing but ``flite`` speech."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from engine.device import choose
from engine.errors import PlainError
from engine.models.catalogue import harvard_sentences
from engine.models.lm_mini.checkpoint import TOKENIZER
from engine.paths import resource
from engine.training.corpora import Corpus, prepare_corpus
from engine.training.export import PROMPT
from engine.training.f5_mini import F5Mini, F5Options
from engine.training.lm_mini import LmMini, LmMiniOptions
from engine.training.manifest import write_clips
from engine.training.mega_mini import MegaMini, MegaOptions
from engine.training.mel_codec import MelCodecOptions, MelCodecRecipe
from engine.training.session import LOG, Budget, Recipe, Session
from engine.training.speech_tokenizer import SpeechTokenizerOptions, SpeechTokenizerRecipe
from engine.training.vocos_mini import VocosMini, VocosOptions

RECIPES = ("f5-mini", "vocos-mini", "mel-codec", "megatts3-mini", "speech-tokenizer", "lm-mini")
CORPUS = "corpus"


def main(arguments: list[str] | None = None) -> int:
    """Run one recipe; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return _write_corpus(options) if options.recipe == CORPUS else _train(options)
    except PlainError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.training", description=__doc__)
    names = parser.add_subparsers(dest="recipe", metavar="RECIPE", required=True)
    for name in RECIPES:
        _declare_recipe(names.add_parser(name))
    corpus = names.add_parser(CORPUS, help="write the corpus as a manifest for `paretone train`")
    corpus.add_argument("--manifest", type=Path, required=True, help="CSV file to write; the recordings go beside it")
    corpus.add_argument("--corpus", type=Path, required=True, help="folder of the corpus; what is missing is spoken")
    _declare_sentences(corpus)
    return parser


def _declare_sentences(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sentences", type=int, default=3_400, help="sentences a voice to train on (default: 3400)")


def _declare_recipe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--work", type=Path, required=True, help="folder for the checkpoint, the log and the result")
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float, help="budget in processor minutes (on a GPU: minutes)")
    budget.add_argument("--steps", type=int, help="budget in optimiser steps; resumes bit-exactly")
    parser.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint in --work; the budget may change"
    )
    parser.add_argument("--device", default="cpu", help="auto, cpu, cuda or mps (default: cpu)")
    parser.add_argument("--threads", type=int, default=1, help="threads of the processor (default: 1)")
    parser.add_argument("--half", action="store_true", help="bfloat16 where it pays: processors with AMX, GPUs")
    _declare_sentences(parser)
    parser.add_argument("--corpus", type=Path, help="folder of the corpus (default: corpus/ beside --work)")
    parser.add_argument("--initial", type=Path, help="vocos-mini: official folder whose weights to start from")
    parser.add_argument(
        "--codec",
        type=Path,
        help="exported mel-codec (megatts3-mini) or speech-tokenizer (lm-mini) to speak through (default: bundled)",
    )
    parser.add_argument("--export", type=Path, help="where to write the model when done (default: export/ in --work)")


def _write_corpus(options: argparse.Namespace) -> int:
    corpus = _corpus(options.corpus, options.sentences)
    options.manifest.parent.mkdir(parents=True, exist_ok=True)
    write_clips(options.manifest, corpus.training, corpus.held_out)
    _say(f"Wrote {len(corpus.training)} clips to train and {len(corpus.held_out)} to validate on: {options.manifest}")
    return 0


def _corpus(folder: Path, sentences: int) -> Corpus:
    return prepare_corpus(
        folder,
        sentences,
        excluded=[PROMPT, *harvard_sentences()],
        progress=lambda done, total: print(f"corpus: {done} of {total} clips", flush=True),
    )


def _train(options: argparse.Namespace) -> int:
    torch.set_num_threads(options.threads)
    device = choose(options.device)
    corpus = _corpus(options.corpus or options.work.parent / CORPUS, options.sentences)
    recipe = _recipe(options, corpus, device)
    session = Session(recipe, options.work, Budget(options.minutes, options.steps), report=_say)
    session.begin(options.resume)
    if not session.run():
        _say(f"Stopped at step {session.number}; go on with the same command and --resume.")
        return 0
    target = options.export or options.work / "export"
    recipe.export(target)
    (target / LOG).write_bytes((options.work / LOG).read_bytes())
    _say(f"Done: {session.number} steps, {session.seconds:.0f} s. The model is in {target}.")
    return 0


def _recipe(options: argparse.Namespace, corpus: Corpus, device: torch.device) -> Recipe:
    if options.recipe == "vocos-mini":
        return VocosMini(corpus, device, VocosOptions(half_precision=options.half), options.initial)
    if options.initial:
        raise PlainError(
            "--initial is for vocos-mini; the other models start from random weights or from their checkpoints."
        )
    if options.recipe == "mel-codec":
        return MelCodecRecipe(corpus, device, MelCodecOptions(half_precision=options.half))
    if options.recipe == "megatts3-mini":
        codec = options.codec or resource("models", "megatts3-mini", "wavvae")
        return MegaMini(corpus, codec, options.work, device, MegaOptions(half_precision=options.half))
    if options.recipe == "speech-tokenizer":
        return SpeechTokenizerRecipe(corpus, device, SpeechTokenizerOptions(half_precision=options.half))
    if options.recipe == "lm-mini":
        tokenizer = options.codec or resource("models", "lm-mini", TOKENIZER)
        return LmMini(corpus, tokenizer, options.work, device, LmMiniOptions(half_precision=options.half))
    return F5Mini(corpus, device, F5Options(half_precision=options.half))


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
