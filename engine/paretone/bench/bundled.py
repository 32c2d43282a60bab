"""Common parts of benches of the bundled flow model: options, model, sentence, voice, rounds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from paretone.bench.budget import Budget
from paretone.commands.arguments import at_least, positive, seed
from paretone.errors import SettingError
from paretone.measure.timing import PairedTimes, paired_ratio, stopwatch
from paretone.measure.verdicts import Way
from paretone.models import load_model
from paretone.models.base import SpeechModel, Voice
from paretone.models.catalogue import entry, judged_sentences, voice, voices
from paretone.models.families.flow import FlowSpeech
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted

SENTENCE = "The juice of lemons makes fine punch."


def add_arguments(parser: argparse.ArgumentParser, steps: int, rounds: int | None) -> None:
    """Add the common options; ``rounds``: ``None`` for a bench without timing."""
    parser.add_argument("--model", default="f5-mini", help="model of the catalogue (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: %(default)s)")
    parser.add_argument("--steps", type=positive, default=steps, help="steps of the grid (default: %(default)s)")
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds, help="interleaved rounds (default: %(default)s)")
    parser.add_argument("--text", default=SENTENCE, help="sentence to speak (default: %(default)s)")
    parser.add_argument("--voice", default="", help="shipped voice (default: the model's first)")
    parser.add_argument("--seed", type=seed, default=0, help="seed of the noise (default: %(default)s)")


def add_family_arguments(parser: argparse.ArgumentParser, model: str, rounds: int) -> None:
    """Add the options of benches of another family; ``model``: default."""
    parser.add_argument("--model", default=model, help="model of the catalogue (default: %(default)s)")
    parser.add_argument("--folder", default="", help="folder of the checkpoint, if not the usual one")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: %(default)s)")
    parser.add_argument("--threads", type=positive, default=1, help="threads of the processor (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=rounds, help="interleaved rounds (default: %(default)s)")
    parser.add_argument("--voice", default="", help="shipped voice that is timed (default: the model's first)")
    parser.add_argument("--seed", type=seed, default=0, help="seed of the first round (default: %(default)s)")


def add_listening_arguments(
    parser: argparse.ArgumentParser, sentences: int, least: int = 0, spoken: str = "in each voice"
) -> None:
    """Add the numbers of :func:`heard_sentences` and :func:`heard_voices`; ``spoken``: how voices share sentences."""
    none = "" if least else "; 0: none"
    parser.add_argument(
        "--sentences",
        type=at_least(least),
        default=sentences,
        help="how many sentences the judge hears "
        f"{spoken}, the 30 Harvard sentences first{none} (default: %(default)s)",
    )
    # Judging more voices would multiply the time and say little more about a technique.
    heard = "how many of the shipped voices the judge hears (default: %(default)s)"
    parser.add_argument("--voices", type=positive, default=2, help=heard)


def heard_sentences(arguments: argparse.Namespace, prepared_on: Collection[str] = ()) -> list[str]:
    """Sentences for the judge in each voice, without those used for calibration or search."""
    known = {one.strip() for one in prepared_on}
    return [one for one in judged_sentences() if one not in known][: arguments.sentences]


def heard_voices(arguments: argparse.Namespace) -> list[Voice]:
    return list(voices(arguments.model)[: arguments.voices])


def loaded(arguments: argparse.Namespace) -> SpeechModel:
    """The options' model, on their number of threads if they have one. Raises :class:`paretone.errors.PlainError`."""
    import torch

    say(f"Loading {arguments.model} …")
    model = load_model(arguments.model, folder=getattr(arguments, "folder", ""), device=arguments.device)
    if "threads" in arguments:
        torch.set_num_threads(arguments.threads)
    return model


def loaded_as(kind: type, what: str, arguments: argparse.Namespace) -> Any:
    """:func:`loaded`, of one family; ``what``: the family in words. Raises :class:`paretone.errors.PlainError`."""
    model = loaded(arguments)
    if not isinstance(model, kind):
        raise SettingError(f"{model.info.title} is not {what}; choose one of these with --model.")
    return model


loaded_flow: Callable[[argparse.Namespace], FlowSpeech] = partial(loaded_as, FlowSpeech, "a flow model")


def setting(arguments: argparse.Namespace) -> Setting:
    return Setting(arguments.model, entry(arguments.model).options_with(steps=arguments.steps), seed=arguments.seed)


def used(name: str, **knobs: object) -> UsedTechnique:
    """The technique ``name`` with these knobs; others have their defaults."""
    return UsedTechnique(name, Values(knobs))


def speaker(arguments: argparse.Namespace) -> Voice:
    return voice(arguments.voice, arguments.model)


def timed(
    variants: Mapping[str, Callable[[], object]],
    device: str,
    arguments: argparse.Namespace,
    what: str = "",
    warm_up: int = 1,
    budget: Budget | None = None,
    share: float = 1.0,
) -> PairedTimes:
    """Compare ``variants`` with the first of them in interleaved rounds: the options' number, or as many as fit into a
    ``share`` of the ``budget``. ``what``: name in the progress."""
    rounds = arguments.rounds
    if budget is not None:
        # Each once, to warm up and for the number of rounds that fit.
        kept = budget.left * (1 - share)
        seconds = []
        for run in variants.values():
            with stopwatch(device) as watch:
                run()
            seconds.append(watch.wall_seconds)
        rounds, warm_up = budget.rounds(sum(seconds) + seconds[0], 1 - kept / max(budget.left, 1e-9)), 0
    say(f"{what}{': ' if what else ''}{rounds} rounds of each …")
    return paired_ratio(
        variants, rounds, warm_up=warm_up, device=device, on_round=lambda done: say(f"round {done} of {rounds}")
    )


def timed_sampling(
    model: FlowSpeech,
    ways: Iterable[Way],
    arguments: argparse.Namespace,
    what: str = "",
    budget: Budget | None = None,
    share: float = 1.0,
) -> PairedTimes:
    """:func:`timed` of backbone and sampler on the options' sentence."""
    voice = speaker(arguments)
    variants = {
        one.title: model.sampling(scripted(model, arguments.text, voice, one.setting, one.artefacts)) for one in ways
    }
    return timed(variants, model.info.device_type or "cpu", arguments, what, budget=budget, share=share)


def say(line: str) -> None:
    """Print a progress line, separate from the report."""
    print(line, file=sys.stderr, flush=True)
