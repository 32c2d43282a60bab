"""``paretone train``: weights for techniques, whose own commands these are, and natural speech to train on."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paretone.commands import arguments
from paretone.commands.command import Command, Result, technique_commands
from paretone.commands.terminal import JOB, Session
from paretone.models import catalogue
from paretone.session.commands import Prepare
from paretone.session.events import EngineStatus, Event
from paretone.setting.knobs import Knob
from paretone.training.forms import TrainingForm, knob_of
from paretone.training.requests import OWN_SENTENCES, Trained, TrainingRequest, usual_own_sentences
from paretone.wording import plain

NAME = "train"
SUMMARY = "Train weights for a technique, such as a draft or a student."
SHARES = 1000
"""Units of a progress bar per budget."""


# --- Common arguments and results -----------------------------------------------------------------------------------
def add_run(parser: argparse.ArgumentParser, result: str = "result", place: str = "where the app looks") -> None:
    """Add the folders of a training's work and of its ``result``."""
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="folder for checkpoint, log and speech")
    parser.add_argument("--export", type=Path, metavar="DIR", help=f"folder for the {result} (default: {place})")


def add_budget(parser: argparse.ArgumentParser, threads: int | None = None) -> argparse._ArgumentGroup:
    """Add budget and computation of a training; returns the group. Default ``threads``; ``None``: all cores but one."""
    group = parser.add_argument_group("training")
    budget = group.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=arguments.above_zero, help="budget in CPU minutes (on a GPU: minutes)")
    budget.add_argument("--steps", type=arguments.positive, help="budget in steps; resumes bit for bit on a CPU")
    budget.add_argument(
        "--epochs", type=arguments.above_zero, help="budget in epochs: clips drawn over clips to train on"
    )
    group.add_argument("--resume", action="store_true", help="resume the checkpoint in --work; the budget may change")
    group.add_argument("--half", action="store_true", help="bfloat16 where faster: CPUs with AMX, GPUs")
    group.add_argument(
        "--rate-scale",
        type=arguments.above_zero,
        default=1.0,
        metavar="FACTOR",
        help="factor on all learning rates; below 1 to resume a run whose loss was not finite (default: 1)",
    )
    group.add_argument(
        "--threads",
        type=arguments.positive,
        default=threads,
        help=f"CPU threads (default: {threads or 'all cores but one'})",
    )
    return group


def add_validation(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--validation",
        type=Path,
        metavar="LIST",
        help="evaluation set whose recordings validate the training: LibriSpeech-PC, Seed-TTS, CSV or audio|text "
        "(default: some of the speech is held out)",
    )
    group.add_argument("--validation-audio", type=Path, metavar="DIR", help="LibriSpeech's recordings, for its list")


def training_request(options: argparse.Namespace) -> dict[str, Any]:
    """Values of the model, :func:`add_run`, :func:`add_budget`, manifest, validation, ``--vocoder`` and ``--device``
    for a :class:`paretone.training.requests.TrainingRequest`."""
    model = arguments.model(options)
    catalogue.entry(model).require_vocoder(options.vocoder)
    paths = ("manifest", "validation", "validation_audio", "work", "export")
    same = ("vocoder", "minutes", "steps", "epochs", "resume", "rate_scale", "device", "threads")
    places = {name: path_text(getattr(options, name)) for name in paths}
    given = {name: getattr(options, name) for name in same}
    return {"model": model, **places, **given, "half_precision": options.half}


def form_knobs(form: TrainingForm, *names: str) -> list[Knob]:
    """Knobs of ``form`` that are options of its command as well, whose help then has their titles and defaults."""
    found = [knob_of(form.knobs, name) for name in names]
    return [replace(one, meaning=f"{one.title}: {one.meaning} (default: {plain(one.default)})") for one in found]


def path_text(path: Path | None) -> str:
    return str(path or "")


def add_companion(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of trainings of smaller companions of a language model."""
    arguments.add_model(parser, arguments.DEFAULT_LANGUAGE_MODEL)
    add_run(parser)
    group = parser.add_argument_group("training data")
    group.add_argument(
        "--sentences",
        type=arguments.count,
        default=600,
        help="sentences that the model generates per voice; 0: none (default: %(default)s)",
    )
    group.add_argument(
        "--corpus", type=Path, metavar="DIR", help="natural speech, for models that speak naturally: a voice-corpus"
    )
    group.add_argument(
        "--manifest",
        type=Path,
        metavar="FILE",
        help="recordings: CSV with audio,text,phones,voice,set, or lines of audio|text",
    )
    add_validation(group)
    group = add_budget(parser)
    group.add_argument(
        "--positions", type=arguments.positive, default=1_600, help="phones and tokens per step (default: %(default)s)"
    )
    _add_rates(
        group,
        "1e-3 below 20 million parameters; above, 1e-5 for students and 1e-4 for drafts",
        "0.01 below 20 million parameters if no --rate is given, else AdamW for everything",
    )
    group.add_argument("--seed", type=arguments.seed, default=1, help="seed of speech and order (default: %(default)s)")


def _add_rates(group: argparse._ArgumentGroup, usual: str, matrices: str) -> None:
    """Add the learning rates, with their defaults in words."""
    group.add_argument("--rate", type=arguments.above_zero, help=f"learning rate of AdamW (default: {usual})")
    group.add_argument(
        "--matrix-rate",
        type=arguments.above_zero,
        metavar="RATE",
        help=f"learning rate of Muon for the matrices of the layers (default: {matrices})",
    )


def companion_request(options: argparse.Namespace) -> dict[str, Any]:
    """Values of :func:`add_companion` for a :class:`paretone.training.requests.CompanionRequest`."""
    same = ("folder", "sentences", "positions", "rate", "matrix_rate", "seed")
    given = {name: getattr(options, name) for name in same}
    return {**given, "corpus": path_text(options.corpus), **training_request(options)}


def add_speech(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    group = parser.add_argument_group("speech to learn from")
    group.add_argument(
        "--manifest",
        type=Path,
        metavar="FILE",
        help="CSV with audio,text and optionally phones,voice,set, or lines of audio|text as F5-TTS has them (default, "
        "for bundled models only: synthesised speech)",
    )
    group.add_argument(
        "--sentences",
        type=arguments.count,
        metavar="N",
        help="sentences that the model says itself in each of its voices, in addition to a manifest (default: none "
        f"with a manifest and for bundled models, else {OWN_SENTENCES})",
    )
    group.add_argument(
        "--texts", metavar="FILE", help="file of these sentences, one per line; - for standard input (default: made up)"
    )
    group.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR",
        help="folder of paretone train voice-corpus, for bundled models (default: voice-corpus next to --work)",
    )
    add_validation(group)
    add_run(parser)


def add_training(parser: argparse.ArgumentParser, usual: str, matrices: str) -> None:
    """Add budget and learning rates; ``usual`` and ``matrices`` describe the default rates."""
    group = add_budget(parser)
    _add_rates(group, usual, matrices)
    group.add_argument(
        "--frames", type=arguments.positive, default=1_800, help="the model's frames per step (default: %(default)s)"
    )
    group.add_argument("--seed", type=arguments.seed, default=1, help="seed of order, times and noise (default: 1)")


def fine_tuning_request(options: argparse.Namespace) -> dict[str, Any]:
    """Values of :func:`add_speech` and :func:`add_training` for a
    :class:`paretone.training.requests.FineTuningRequest`. Raises :class:`paretone.errors.TextError`."""
    texts = arguments.typed_lines(options.texts) if options.texts else ()
    request = training_request(options)
    sentences = options.sentences or len(texts)
    if not texts and options.sentences is None and options.manifest is None:
        sentences = usual_own_sentences(catalogue.entry(request["model"]).bundled)
    given = {name: getattr(options, name) for name in ("matrix_rate", "frames", "seed", "folder", "variant")}
    speech = {"corpus": path_text(options.corpus), "sentences": sentences, "texts": texts}
    return {**speech, "learning_rate": options.rate, **given, **request}


def trained(technique: str, request: TrainingRequest, session: Session) -> Trained:
    """Carry out ``request``; the terminal shows the preparation, then the spent share of the budget."""
    terminal = session.terminal

    def hear(event: Event) -> None:
        terminal.hear(event)
        if isinstance(event, EngineStatus) and event.text == "Training":
            terminal.begin()

    found: Trained = session.carry_out(Prepare(JOB, technique, request), hear).result
    return found


def result(options: argparse.Namespace, trained: Trained, text: str, figures: Mapping[str, object] = {}) -> Result:
    """Result of a training; empty in all processes but the first. ``figures`` replace those of ``trained``."""
    if not trained.is_first:
        options.json = False
        return Result({})
    data = {"checkpoint": trained.checkpoint, **(figures or trained.figures), "steps": trained.steps}
    return Result({**data, "seconds": trained.seconds, "validation": dict(trained.validation)}, text)


CORPUS_SUMMARY = "Make natural speech to train on, in hundreds of voices, with hibari-tts."


def _declare_corpus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--work", type=Path, required=True, metavar="DIR", help="folder of the corpus; existing clips are reused"
    )
    parser.add_argument(
        "--voices", type=arguments.positive, default=320, help="voices to train on (default: %(default)s)"
    )
    parser.add_argument(
        "--sentences", type=arguments.positive, default=20, help="sentences of every voice (default: %(default)s)"
    )
    parser.add_argument("--seed", type=arguments.count, default=1, help="seed of texts and voices (default: 1)")


def _run_corpus(options: argparse.Namespace, session: Session) -> Result:
    from paretone.training.natural_corpus import CorpusOptions, make_corpus
    from paretone.training.natural_teacher import NaturalTeacher

    chosen = CorpusOptions(options.voices, options.sentences, seed=options.seed)
    session.terminal.status("Speaking")
    corpus = make_corpus(options.work, chosen, NaturalTeacher, session.terminal.progress)
    clips, hours = len(corpus.training), corpus.seconds / 3600
    data = {"folder": str(options.work), "clips": clips, "held_out": len(corpus.held_out), "hours": round(hours, 3)}
    return Result(data, f"{clips} clips, {hours:.2f} h of speech, are in {options.work}.")


CORPUS = Command("voice-corpus", CORPUS_SUMMARY, _declare_corpus, _run_corpus)


def recipes() -> tuple[Command, ...]:
    """Trainings of techniques, then the speech that they learn from."""
    found = [
        replace(one, name=one.name.removeprefix(f"{NAME} "))
        for one in technique_commands([f"{NAME} {CORPUS.name}"])
        if one.name.startswith(f"{NAME} ")
    ]
    return (*found, CORPUS)


def declare(parser: argparse.ArgumentParser) -> None:
    names = parser.add_subparsers(title="recipes", metavar="RECIPE", dest="recipe", required=True)
    for recipe in recipes():
        one = names.add_parser(recipe.name, help=recipe.summary, description=recipe.summary)
        arguments.add_output(one)
        one.set_defaults(train=recipe.run)
        recipe.declare(one)


def run(options: argparse.Namespace, session: Session) -> Result:
    return options.train(options, session)
