"""Arguments shared by several commands, and the meaning of their values."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from paretone.audio.recording import writable_kinds
from paretone.by_name import nearest
from paretone.commands import output
from paretone.commands.technique_args import from_files, typed_technique, typed_techniques, with_file
from paretone.commands.terminal import Session
from paretone.errors import AudioError, SettingError, TextError
from paretone.front_end.speakable import LARGEST_TEXT, has_letters, require_words
from paretone.models import catalogue
from paretone.models.base import LANGUAGE, SpeechModel, Utterance, Voice
from paretone.models.voices import shipped_names
from paretone.reading import legible, read_text
from paretone.setting.knobs import Choice, Knob, Number, Switch, checked
from paretone.setting.profile import Profile
from paretone.setting.setting import LARGEST_SEED, Artefact, Published, Setting, UsedTechnique
from paretone.techniques import foreseen, resolve, techniques
from paretone.techniques.base import ArtefactFile, Technique, to_type
from paretone.techniques.published import chosen, options_of
from paretone.wording import listed

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


DEVICES = ("auto", "cpu", "cuda", "mps")
DEFAULT_MODEL = catalogue.models()[0].id
DEFAULT_LANGUAGE_MODEL = next(one.id for one in catalogue.models() if one.family == LANGUAGE)
VOICES = (
    f"shipped voice ({', '.join(shipped_names())}) or a recording; for MegaTTS3, a voice of its folder or a "
    "recording with its latents (.npy) in the same folder"
)


# --- Declaring arguments ----------------------------------------------------------------------------------------------
def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options of all commands to a subcommand. Those before its name must not be reset by defaults after it."""
    for flag, meaning in (("--json", "print one JSON object"), ("--quiet", "show no progress")):
        parser.add_argument(flag, action="store_true", default=argparse.SUPPRESS, help=meaning)


def add_model(parser: argparse.ArgumentParser, usual: str = DEFAULT_MODEL) -> None:
    """Add the model's arguments; :func:`model` determines the model."""
    separate = (one for one in catalogue.models() if one.has_separate_vocoder)
    vocoders = dict.fromkeys(f"{one.kind or one.title} ({one.vocoder})" for one in separate)
    parser.set_defaults(usual_model=usual)
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model", metavar="ID", help=f"catalogue model (default: the release in --folder, otherwise {usual})"
    )
    group.add_argument("--folder", default="", help="folder of the checkpoint, or its file, if not the usual one")
    group.add_argument("--variant", default="", help="architecture, if neither folder nor sidecar names it")
    group.add_argument(
        "--vocoder",
        metavar="FOLDER",
        default="",
        help=f"folder of the vocoder of {listed(vocoders, 'or')}, if not the usual one",
    )
    group.add_argument("--device", choices=DEVICES, default="auto", help="device (default: %(default)s)")


def add_sampler(parser: argparse.ArgumentParser) -> None:
    """Add the options of all models, and the seed."""
    knobs: dict[str, Knob] = {}
    whose: dict[str, dict[str, list[str]]] = {}
    for model in catalogue.models():
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
    add_published(group)


def add_published(group: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    group.add_argument(
        "--as",
        dest="as_published",
        default="",
        metavar="SETTING",
        help="set the techniques and the sampler as published: 'published' for the main setting of a paper, or another "
        "by name, such as T2 ('paretone models MODEL' lists them), which alone also chooses its technique; options and "
        "knobs that are given stay",
    )


def add_knobs(group: argparse._ArgumentGroup, knobs: Iterable[Knob], meanings: Mapping[str, str] = {}) -> None:
    """Add an option per knob; ``meanings`` by name override their own. The setting checks ranges, by the model's."""
    for knob in knobs:
        meaning = meanings.get(knob.name, knob.meaning).replace("%", "%%")  # argparse formats it.
        kinds: dict[str, Any] = {"dest": knob.name, "default": argparse.SUPPRESS, "help": meaning}
        match knob:
            case Switch():
                kinds["action"] = argparse.BooleanOptionalAction
            case Choice():
                kinds["choices"] = knob.values
            case Number():
                kinds |= {"type": int if knob.whole else float, "metavar": knob.symbol or "N"}
        group.add_argument(f"--{knob.name.replace('_', '-')}", **kinds)


def add_strict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strict", action="store_true", help="exit with 12 if a check finds a fault, such as a click or a missing word"
    )


def add_text(parser: argparse.ArgumentParser, sentences: bool = False) -> None:
    """Add text and voice; with ``sentences``, each line of a file is one text."""
    group = parser.add_argument_group("speech")
    text = group.add_mutually_exclusive_group()
    text.add_argument("--text", help="text to speak (default: a sample sentence)")
    content = "one text per line" if sentences else "the text"
    text.add_argument("--text-file", metavar="FILE", help=f"file with {content}, UTF-8; - for standard input")
    add_voice(group)


def add_voice(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--voice", help=f"{VOICES} (default: the profile's, else the model's first)")
    group.add_argument("--transcript", default="", help="transcript of the recording; MegaTTS3 needs none")


def sound_file() -> str:
    """Help text of an option for an output sound file."""
    kinds = [f"{ending} (32-bit float)" if ending == ".wav" else ending for ending in writable_kinds()]
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
    group.add_argument("--voice", action="append", help=f"{VOICES}; repeat for more (default: {voices})")
    group.add_argument("--transcript", action="append", help="transcript of the recording; one per recording, in order")


# Types for argparse, which would print the function's name on a ValueError.
def _number(kind: Callable[[str], Any], fits: Callable[[Any], bool], wanted: str) -> Callable[[str], Any]:
    """Type: a number of ``kind`` that ``fits``, in words ``wanted``."""

    def checked_number(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not fits(value):
            raise argparse.ArgumentTypeError(f"must be {wanted}, not {text!r}")
        return value

    return checked_number


def at_least(minimum: int) -> Callable[[str], int]:
    """Type: a whole number from ``minimum``."""
    return _number(int, lambda value: value >= minimum, f"a whole number from {minimum}")


positive, count = at_least(1), at_least(0)
port = _number(int, lambda value: 0 <= value < 1 << 16, "a port, from 0 to 65535")
above_zero = _number(float, lambda value: 0 < value < math.inf, "a number above 0")
finite = _number(float, math.isfinite, "a number")
seed = _number(int, lambda value: 0 <= value <= LARGEST_SEED, "a whole number between 0 and 2**63 - 1")


# --- Reading arguments ------------------------------------------------------------------------------------------------
def model(options: argparse.Namespace, profile: Profile | None = None) -> str:
    """The id of the arguments' model, otherwise the profile's, otherwise that of the release in ``--folder``, otherwise
    the usual one."""
    if options.model:
        return str(options.model)
    if profile is not None:
        return profile.setting.model
    return catalogue.id_of(options.folder) or str(options.usual_model)


def load(options: argparse.Namespace, session: Session, model: str, variant: str) -> SpeechModel:
    catalogue.entry(model)
    return session.load(model, options.folder, variant, options.device, getattr(options, "vocoder", ""))


def published(options: argparse.Namespace, model: str, *more: str) -> dict[str, Published]:
    """Published settings that the arguments name, by technique: of the typed ones, those with a file, and ``more``.
    Raises :class:`SettingError`."""
    filed = (one.name for one, file in from_files() if getattr(options, file.option, None))
    typed = getattr(options, "technique", ())
    return published_settings(getattr(options, "as_published", ""), model, typed, *more, *filed)


def published_settings(name: str, model: str, typed: Iterable[str], *more: str) -> dict[str, Published]:
    """Settings ``name`` (``""``: none) of ``typed`` techniques and ``more``. Raises :class:`SettingError`."""
    return chosen(model, name, [*(text.partition(":")[0].strip() for text in typed), *more]) if name else {}


def setting(options: argparse.Namespace, model: str, *more: str) -> Setting:
    """Setting of the arguments, with the techniques that need no file, for a command that uses the techniques ``more``.
    Raises :class:`SettingError` for incompatible parts, before a model is loaded."""
    entry, found = catalogue.entry(model), published(options, model, *more)
    given = {**options_of(found), **sampler_options(options, model)}
    values = checked(entry.options, entry.options_with(**given), entry.title)
    described = Setting(model, values, seed=options.seed or 0)
    need_files = {one.name for one, _ in from_files()}
    for one in typed_techniques(getattr(options, "technique", ()) or found, found):
        if one.technique not in need_files:
            described = described.with_technique(one)
    foreseen(described)
    return described


def refuse_from_files(options: argparse.Namespace, own: str) -> None:
    """Refuse typed techniques that come from files, for a command that takes none and makes the one of ``own``, whose
    knobs are its options. Raises :class:`SettingError`."""
    for technique, file in from_files():
        for text in options.technique:
            name, _, knobs = text.partition(":")
            if name.strip() != technique.name or (name.strip() == own and not knobs):
                continue
            if technique.name == own:
                raise SettingError(f"{text}: knobs of {technique.title} are options of this command; see --help.")
            raise SettingError(f"{technique.title} needs its {file.noun}, which this command does not take.")


def with_files(
    setting: Setting, model: SpeechModel, options: argparse.Namespace
) -> tuple[Setting, tuple[Artefact, ...]]:
    """``setting`` with the techniques and artefacts given as files. Raises :class:`SettingError` for a technique that
    lacks its file."""
    named = published(options, setting.model)
    asked = [one.technique for one in map(typed_technique, options.technique or named)]
    artefacts: tuple[Artefact, ...] = ()
    for technique, file in from_files():
        path, flag = getattr(options, file.option), f"--{file.option}"
        if path:
            # Its other knobs may share names with sampler options.
            knobs = dict(given(options, [knob for knob in technique.knobs if knob.name in file.knobs]))
            if technique.name in named:
                knobs = {**named[technique.name].knobs, **knobs}
            setting, found = with_file(setting, model, file.option, path, knobs)
            artefacts = (*artefacts, *found)
        elif technique.name in asked:
            raise without_file(technique, file, model, flag, options.as_published if technique.name in named else "")
        elif alone := next((name for name in file.knobs if hasattr(options, name)), ""):
            raise SettingError(f"--{alone.replace('_', '-')} belongs to a {file.noun}: give {flag} too.")
    return setting, artefacts


def without_file(
    technique: Technique, file: ArtefactFile, model: SpeechModel, given_as: str, as_published: str = ""
) -> SettingError:
    """Error for a missing file, ``given_as`` an option. Raises another one if the model cannot use the technique."""
    resolve(model.info, Setting(model.info.id).with_technique(UsedTechnique(technique.name)), prepared=False)
    error = SettingError(f"{technique.title} needs its {file.noun}: give {given_as}, or a profile instead.")
    spelt = f" --as {as_published}" if as_published else ""
    error.command = to_type(f"{file.made_by}{spelt}", model.info) if file.made_by else ""
    return error


def sampler_options(options: argparse.Namespace, model: str) -> Mapping[str, object]:
    """Sampler options set by the arguments. Raises :class:`SettingError` for an option of other models."""
    own = catalogue.entry(model)
    known = {knob.name for knob in own.options}
    others = {knob.name for one in catalogue.models() for knob in one.options} - known
    strange = next((name for name in sorted(others) if hasattr(options, name)), None)
    if strange is not None:
        has = ", ".join(f"--{knob.name.replace('_', '-')}" for knob in own.options)
        error = SettingError(f"--{strange.replace('_', '-')} is not for {own.title}, which has {has}.")
        error.command = f"paretone models {model}"
        raise error
    return given(options, own.options)


def given(options: argparse.Namespace, knobs: Iterable[Knob]) -> dict[str, Any]:
    """Values of ``knobs`` set by the arguments."""
    return {knob.name: getattr(options, knob.name) for knob in knobs if hasattr(options, knob.name)}


def text(options: argparse.Namespace) -> str:
    """The given text, or a sample sentence. Raises :class:`TextError` before anything is loaded."""
    if options.text is None and options.text_file is None:
        return catalogue.sentences()[0]
    given: str = _read(options.text_file) if options.text is None else options.text
    require_words(given)
    return given


def texts(options: argparse.Namespace) -> tuple[str, ...]:
    """Texts to speak, one per line of a file."""
    return (text(options),) if options.text_file is None else typed_lines(options.text_file)


def several_texts(options: argparse.Namespace) -> tuple[str, ...]:
    """Texts of :func:`add_utterances`, if given."""
    return tuple(options.text or ()) if options.text_file is None else typed_lines(options.text_file)


def several_utterances(options: argparse.Namespace, model: str, sentences: int) -> list[Utterance]:
    """Combinations with every text and voice of :func:`add_utterances`; without texts, that number of ``sentences``."""
    texts = several_texts(options) or catalogue.sentences()[:sentences]
    voices = several_voices(options, model) or (catalogue.voice("", model, options.folder),)
    turns = range(max(len(texts), len(voices)))
    return [Utterance(texts[turn % len(texts)], voices[turn % len(voices)]) for turn in turns]


def typed_lines(file: str) -> tuple[str, ...]:
    """Texts in a file (``-``: standard input), one per line with letters or digits. Raises :class:`TextError`."""
    lines = tuple(line.strip() for line in _read(file).splitlines() if has_letters(line))
    if not lines:
        raise TextError(f"The file {file} has no text; write one sentence on each line.")
    return lines


def _read(file: str) -> str:
    with legible(TextError, "text", file):
        if file != "-":
            return read_text(file, "utf-8-sig", LARGEST_TEXT)
        typed = sys.stdin.read(LARGEST_TEXT + 1)
        if len(typed) > LARGEST_TEXT:
            raise TextError("The text on standard input does not end; give at most 16 MiB of it.")
        return typed


def voice(options: argparse.Namespace, model: str, profile: Profile | None = None) -> Voice:
    """The arguments' voice, otherwise the profile's, otherwise the model's first."""
    if options.voice is None:
        if options.transcript:
            raise AudioError("--transcript needs a recording; give it with --voice.")
        if profile:
            return profile.voice(options.folder)
        catalogue.entry(model).folder_at(options.folder or "")  # Its voices may lie there.
        return catalogue.voice("", model, options.folder)
    return _voice(options.voice, iter([options.transcript]), model, options.folder)


def several_voices(options: argparse.Namespace, model: str) -> tuple[Voice, ...]:
    """Voices of :func:`add_utterances`, if given."""
    transcripts = iter(options.transcript or ())
    voices = tuple(_voice(name, transcripts, model, options.folder) for name in options.voice or ())
    if next(transcripts, None) is not None:
        raise AudioError("There are more --transcript options than recordings.")
    return voices


def _voice(name: str, transcripts: Iterator[str], model: str, folder: str) -> Voice:
    """A voice of the model, or a recording with the next transcript."""
    known = {one.id for one in catalogue.voices(model, folder)}
    named = name in known or not (Path(name).exists() or Path(name).suffix)
    return catalogue.voice_or_recording(name, "" if named else next(transcripts, "") or "", model, folder)


class ArgumentsError(SettingError):
    """Unknown or unusable arguments; ``usage``: how to call the command."""

    usage = ""


MAY_BE_EMPTY = frozenset({"--transcript"})
"""Options whose empty value is meaningful."""
SAID_LATER = frozenset({"--text", "--text-file", "--voice", "--out", "--keep-profile", "--technique"})
"""Options whose commands report empty values themselves."""


class Parser(argparse.ArgumentParser):
    """Raises :class:`ArgumentsError` where argparse would print and exit. Subcommands get the same kind of parser."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Also refuse an empty value, such as from a script's unset variable: it would count as an omitted option."""
        near = nearest(str(value), map(str, action.choices or ()))
        if near and value not in (action.choices or ()):
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; did you mean {near!r}?")
        super()._check_value(action, value)
        options = set(action.option_strings)
        if value == "" and options and options.isdisjoint(MAY_BE_EMPTY | SAID_LATER):
            raise argparse.ArgumentError(action, "its value is empty; give one, or leave the option out")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Like argparse, but suggest a similar option of this command for an unknown one, while they are known."""
        found, rest = super().parse_known_args(args, namespace)
        for one in rest:
            near = one.startswith("--") and nearest(one.partition("=")[0], self._option_string_actions)
            if near:
                self.error(f"unrecognized option: {one}; did you mean {near}?")
        return found, rest

    def error(self, message: str) -> NoReturn:
        error = ArgumentsError(f"{self.prog}: error: {message}")
        error.usage = self.format_usage()
        raise error

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print help like other output; argparse would lose it silently on errors."""
        if file is sys.stdout:
            output.show(message.removesuffix("\n"))
        else:
            super()._print_message(message, file)
