"""Arguments that several commands share, and what their values mean."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from paretone.audio.recording import writable
from paretone.commands.session import Session
from paretone.commands.technique_args import needs_file, typed_techniques
from paretone.commands.terminal import Terminal
from paretone.errors import AudioError, CheckpointError, SettingError, TextError
from paretone.front_end.speakable import LARGEST_TEXT
from paretone.models import catalogue
from paretone.models.base import LANGUAGE, SpeechModel, Voice
from paretone.models.files.releases import RELEASES
from paretone.models.voices import shipped_names
from paretone.reading import read_text
from paretone.session.events import EngineStatus, Event, PreparationReport
from paretone.setting.knobs import Choice, Knob, Number, Switch, checked
from paretone.setting.profile import Profile
from paretone.setting.setting import LARGEST_SEED, Setting
from paretone.techniques import foreseen, techniques
from paretone.wording import listed

DEVICES = ("auto", "cpu", "cuda", "mps")
DEFAULT_MODEL = catalogue.MODELS[0].id
DEFAULT_LANGUAGE_MODEL = next(one.id for one in catalogue.MODELS if one.family == LANGUAGE)
VOICES = (
    f"shipped voice ({', '.join(shipped_names())}) or a recording; for MegaTTS3, a voice of its folder or a "
    "recording with its latents (.npy) in the same folder"
)

SHARES = 1000
"""Parts of a training's budget that a progress bar counts in."""


# --- Declared ---------------------------------------------------------------------------------------------------------
def add_model(parser: argparse.ArgumentParser, default: str = "") -> None:
    """Which model, and where. Without ``default``, the command looks for it elsewhere before it takes the first."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model", metavar="ID", default=default or None, help=f"catalogue model (default: {default or DEFAULT_MODEL})"
    )
    group.add_argument("--folder", default="", help="folder of the checkpoint, or its file, if not the usual one")
    group.add_argument("--variant", default="", help="architecture, if neither folder nor sidecar names it")
    group.add_argument(
        "--vocoder",
        metavar="FOLDER",
        default="",
        help="folder of the vocoder of F5-TTS (vocos-mel-24khz) or LLaSA (xcodec2), if not the usual one",
    )
    group.add_argument("--device", choices=DEVICES, default="auto", help="device (default: %(default)s)")


def add_sampler(parser: argparse.ArgumentParser) -> None:
    """The options of all models, and the seed."""
    knobs: dict[str, Knob] = {}
    whose: dict[str, dict[str, list[str]]] = {}
    for model in catalogue.MODELS:
        for knob in model.options:
            knobs.setdefault(knob.name, knob)
            kinds = whose.setdefault(knob.name, {}).setdefault(knob.meaning, [])
            kinds.extend({model.kind or model.title} - set(kinds))
    meanings = {
        name: " ".join(f"{', '.join(kinds)}: {meaning}" for meaning, kinds in found.items())
        for name, found in whose.items()
    }
    add_knobs(parser.add_argument_group("sampler"), knobs.values(), meanings)
    parser.add_argument("--seed", type=seed, help="seed of the noise (default: the profile's, else 0)")


def add_techniques(group: argparse._ArgumentGroup) -> None:
    """Which techniques to use."""
    names = ", ".join(one.name for one in techniques())
    group.add_argument(
        "--technique",
        action="append",
        default=[],
        metavar="NAME[:KNOB=VALUE;…]",
        help=f"technique to use, with knobs that differ from their defaults; repeat for more ({names}; "
        "'paretone models MODEL' lists those of a model, with knobs). 'weights=NAME' chooses among several drafts, "
        "students or other weights: file name, or beginning of its SHA-256",
    )


def add_knobs(group: argparse._ArgumentGroup, knobs: Iterable[Knob], meanings: Mapping[str, str] = {}) -> None:
    """One option for every knob; ``meanings`` by name, if they are not the knobs' own. Ranges are checked with the
    setting, where the model's own apply."""
    for knob in knobs:
        meaning = _escaped(meanings.get(knob.name, knob.meaning))
        kinds: dict[str, Any] = {"dest": knob.name, "default": argparse.SUPPRESS, "help": meaning}
        match knob:
            case Switch():
                kinds["action"] = argparse.BooleanOptionalAction
            case Choice():
                kinds["choices"] = knob.values
            case Number():
                kinds |= {"type": int if knob.whole else float, "metavar": knob.symbol or "N"}
        group.add_argument(f"--{knob.name.replace('_', '-')}", **kinds)


def add_text(parser: argparse.ArgumentParser, required: bool = True, sentences: bool = False) -> None:
    """Add text and voice; with ``sentences``, each line of a file is one text."""
    group = parser.add_argument_group("speech")
    text = group.add_mutually_exclusive_group(required=required)
    text.add_argument("--text", help="text to speak" + ("" if required else " (default: a sample sentence)"))
    content = "one text per line" if sentences else "the text"
    text.add_argument("--text-file", metavar="FILE", help=f"file with {content}, UTF-8; - for standard input")
    group.add_argument("--voice", help=f"{VOICES} (default: the profile's, else the model's first)")
    group.add_argument("--transcript", default="", help="transcript of the recording; MegaTTS3 needs none")


def sound_file() -> str:
    """The meaning of an option that names the sound file to write."""
    kinds = [f"{ending} (32-bit float)" if ending == ".wav" else ending for ending in writable()]
    return (
        f"sound file to write: {listed(kinds, 'or')}, mono; - for WAV on standard output, with messages on standard "
        "error"
    )


def add_utterances(parser: argparse.ArgumentParser, texts: str, voices: str) -> None:
    """Add texts and voices, each repeatable; ``texts`` and ``voices`` describe the defaults."""
    group = parser.add_argument_group("speech")
    text = group.add_mutually_exclusive_group()
    text.add_argument("--text", action="append", help=f"text to speak; repeat for more (default: {texts})")
    text.add_argument("--text-file", metavar="FILE", help="file with one text per line, UTF-8; - for standard input")
    group.add_argument(
        "--voice",
        action="append",
        help=f"{VOICES}; repeat for more (default: {voices})",
    )
    group.add_argument("--transcript", action="append", help="transcript of the recording; one per recording, in order")


def add_run(parser: argparse.ArgumentParser, result: str = "result", place: str = "where the app looks") -> None:
    """Add the folders of a training's work and of its ``result``."""
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="folder for checkpoint, log and speech")
    parser.add_argument("--export", type=Path, metavar="DIR", help=f"folder for the {result} (default: {place})")


def add_budget(parser: argparse.ArgumentParser, threads: int | None = None) -> argparse._ArgumentGroup:
    """Add budget and computation of a training; returns the group for further options. ``threads``: default; ``None``:
    all cores but one."""
    group = parser.add_argument_group("training")
    budget = group.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=above_zero, help="budget in CPU minutes (on a GPU: minutes)")
    budget.add_argument("--steps", type=positive, help="budget in optimiser steps; resumes bit for bit on a CPU")
    group.add_argument(
        "--resume", action="store_true", help="resume from the checkpoint in --work; the budget may change"
    )
    group.add_argument("--half", action="store_true", help="bfloat16 where faster: CPUs with AMX, GPUs")
    group.add_argument(
        "--rate-scale",
        type=above_zero,
        default=1.0,
        metavar="FACTOR",
        help="factor on all learning rates; below 1 to resume a run whose loss was not finite (default: 1)",
    )
    group.add_argument(
        "--threads",
        type=positive,
        default=threads,
        help=f"CPU threads (default: {threads or 'all cores but one'})",
    )
    return group


# As argparse wants types. Of what raises a ValueError it would say the function's name.
def at_least(minimum: int) -> Callable[[str], int]:
    """A whole number from ``minimum``."""

    def checked_count(text: str) -> int:
        return _whole(text, lambda value: value >= minimum, f"from {minimum}")

    return checked_count


positive, count = at_least(1), at_least(0)


def above_zero(text: str) -> float:
    """A number above zero."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return value


def finite(text: str) -> float:
    """A number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}")
    return value


def seed(text: str) -> int:
    """A whole number that seeds draws of chance."""
    return _whole(text, lambda value: 0 <= value <= LARGEST_SEED, "between 0 and 2**63 - 1")


def _whole(text: str, fits: Callable[[int], bool], range_: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = None
    if value is None or not fits(value):
        raise argparse.ArgumentTypeError(f"must be a whole number {range_}, not {text!r}")
    return value


def _escaped(text: str) -> str:
    """argparse formats help texts with %."""
    return text.replace("%", "%%")


# --- Given ------------------------------------------------------------------------------------------------------------
def load(options: argparse.Namespace, session: Session, model: str, variant: str) -> SpeechModel:
    """The model called ``model``, loaded as the arguments say."""
    catalogue.entry(model)
    return session.load(model, options.folder, variant, options.device, getattr(options, "vocoder", ""))


def setting(options: argparse.Namespace, model: str) -> Setting:
    """The setting that the arguments describe, with the techniques that need no file. Raises :class:`SettingError` for
    what cannot be used together, before a model is loaded."""
    entry = catalogue.entry(model)
    values = checked(entry.options, entry.options_with(**sampler_options(options, model)), entry.title)
    described = Setting(model, values, seed=options.seed or 0)
    for one in typed_techniques(getattr(options, "technique", ())):
        if not needs_file(one):
            described = described.with_technique(one)
    foreseen(described)
    return described


def sampler_options(options: argparse.Namespace, model: str) -> Mapping[str, object]:
    """The sampler options that the arguments set. Raises :class:`SettingError` for one that only other models have."""
    own = catalogue.entry(model)
    known = {knob.name for knob in own.options}
    others = {knob.name for one in catalogue.MODELS for knob in one.options} - known
    strange = next((name for name in sorted(others) if hasattr(options, name)), None)
    if strange is not None:
        has = ", ".join(f"--{knob.name.replace('_', '-')}" for knob in own.options)
        error = SettingError(f"--{strange.replace('_', '-')} is not for {own.title}, which has {has}.")
        error.command = f"paretone models {model}"
        raise error
    return given(options, own.options)


def given(options: argparse.Namespace, knobs: Iterable[Knob]) -> Mapping[str, object]:
    """The values of those of ``knobs`` that the arguments set."""
    return {knob.name: getattr(options, knob.name) for knob in knobs if hasattr(options, knob.name)}


def text(options: argparse.Namespace) -> str:
    """The text to speak."""
    if options.text is not None:
        return options.text
    return catalogue.sentences()[0] if options.text_file is None else _read(options.text_file)


def texts(options: argparse.Namespace) -> tuple[str, ...]:
    """The texts to speak, one per line of a file."""
    return (text(options),) if options.text_file is None else typed_lines(options.text_file)


def several_texts(options: argparse.Namespace) -> tuple[str, ...]:
    """The texts of :func:`add_utterances`; none if none is given."""
    return tuple(options.text or ()) if options.text_file is None else typed_lines(options.text_file)


def typed_lines(file: str) -> tuple[str, ...]:
    """The texts in a file, one on each line; ``-`` for standard input. Raises :class:`TextError`."""
    lines = tuple(line.strip() for line in _read(file).splitlines() if line.strip())
    if not lines:
        raise TextError(f"The file {file} has no text; write one sentence on each line.")
    return lines


def _read(file: str) -> str:
    try:
        if file != "-":
            return read_text(file, "utf-8-sig", LARGEST_TEXT)
        typed = sys.stdin.read(LARGEST_TEXT + 1)
        if len(typed) > LARGEST_TEXT:
            raise TextError("The text on standard input does not end; give at most 16 MiB of it.")
        return typed
    except OSError as error:
        raise TextError(f"The text {file} could not be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise TextError(f"The text {file} is not UTF-8 (byte {error.start + 1}); save it as UTF-8.") from error


def voice(options: argparse.Namespace, model: str, profile: Profile | None = None) -> Voice:
    """The voice that the arguments name, else the profile's, else the model's first."""
    if options.voice is None:
        if options.transcript:
            raise AudioError("--transcript needs a recording; give it with --voice.")
        if profile:
            return profile.voice(options.folder)
        if not options.folder:
            _require_files(catalogue.entry(model))
        return catalogue.voice("", model, options.folder)
    return _voice(options.voice, iter([options.transcript]), model, options.folder)


def _require_files(chosen: catalogue.CatalogueEntry) -> None:
    """Before anything is said of its voices, which come with the model."""
    if not chosen.available:
        where = f"{chosen.title} is not in {chosen.folder}; "
        if chosen.id not in RELEASES:
            raise CheckpointError(f"{where}put its files there, or give --folder.")
        raise CheckpointError(f"{where}download it with 'paretone download {chosen.id}', or give --folder.")


def several_voices(options: argparse.Namespace, model: str) -> tuple[Voice, ...]:
    """The voices of :func:`add_utterances`; none if none is given."""
    transcripts = iter(options.transcript or ())
    voices = tuple(_voice(name, transcripts, model, options.folder) for name in options.voice or ())
    if next(transcripts, None) is not None:
        raise AudioError("There are more --transcript options than recordings.")
    return voices


def _voice(name: str, transcripts: Iterator[str], model: str, folder: str) -> Voice:
    """A voice of the model, or a recording with the next of the ``transcripts``."""
    known = {one.id for one in catalogue.voices(model, folder)}
    named = name in known or not (Path(name).exists() or Path(name).suffix)
    return catalogue.voice_or_recording(name, "" if named else next(transcripts, "") or "", model, folder)


def training_request(options: argparse.Namespace) -> dict[str, Any]:
    """Values of :func:`add_run`, :func:`add_budget`, ``--vocoder`` and ``--device``, as every
    :class:`paretone.training.requests.TrainingRequest` takes it."""
    catalogue.entry(options.model or DEFAULT_MODEL).require_vocoder(options.vocoder)
    return {
        "vocoder": options.vocoder,
        "work": str(options.work),
        "export": str(options.export or ""),
        "minutes": options.minutes,
        "steps": options.steps,
        "resume": options.resume,
        "half_precision": options.half,
        "rate_scale": options.rate_scale,
        "device": options.device,
        "threads": options.threads,
    }


def path_text(path: Path | None) -> str:
    """``path`` as requests have it."""
    return str(path or "")


def showing_training(terminal: Terminal) -> Callable[[Event], None]:
    """Follower that shows a training in the terminal: its preparation, then the spent share of the budget."""

    def hear(event: Event) -> None:
        if isinstance(event, PreparationReport):
            terminal.progress(round(SHARES * event.report.share), SHARES)
            return
        terminal.hear(event)
        if isinstance(event, EngineStatus) and event.text == "Training":
            terminal.begin()

    return hear
