"""How often the checks of takes find damage, and how often they mark clean speech.

Clean takes of the bundled models, made once and kept in a folder, and the shipped recordings are damaged in every way
at three strengths. Thresholds were set while looking at takes 0 to 21 of each model; the figures are of the takes after
them, which say other sentences, unless ``--first 0`` asks for all.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from paretone.audio.recording import read_recording
from paretone.bench import bundled
from paretone.bench.damage import DAMAGES, STRENGTHS
from paretone.bench.report import Report
from paretone.checks import words
from paretone.checks.faults import FAULTS, MARKED, fault
from paretone.checks.speech import Speech, prompt_of, seams_of
from paretone.commands.arguments import positive, typed_lines
from paretone.errors import PlainError
from paretone.files import write, write_wav
from paretone.measure.estimates import wilson_interval
from paretone.measure.machine import describe
from paretone.measure.takes import make_take
from paretone.models import load_model
from paretone.models.catalogue import entry
from paretone.models.voices import shipped_voices
from paretone.paths import data_folder, resource
from paretone.setting.setting import Setting
from paretone.speaking import synthesise

NAME = "faults"
MODELS = ("f5-mini", "lm-mini", "megatts3-mini", "omni-mini")
TEXTS = ("harvard", "unseen", "everyday")
SEEN = 22
"""Takes of each model that thresholds were set with."""
DEFINITION = "Share of damages of middle strength that are found, over all faults."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", action="append", choices=MODELS, help="model that speaks; repeat (default: all)")
    parser.add_argument("--takes", type=positive, default=75, help="last take of each model (default: %(default)s)")
    parser.add_argument("--first", type=int, default=SEEN, help="first take of each model (default: %(default)s)")
    parser.add_argument("--speech", metavar="FOLDER", help="where takes are kept (default: in the data folder)")
    parser.add_argument("--fault", action="append", metavar="NAME", help="only this fault; repeat for more")
    parser.add_argument("--damaged", type=positive, default=60, help="takes that are damaged (default: %(default)s)")


@dataclass(frozen=True)
class Clean:
    """A clean take or a shipped recording."""

    model: str
    speech: Speech
    number: int


def run(arguments: argparse.Namespace) -> Report:
    """Check clean and damaged speech."""
    folder = Path(arguments.speech) if arguments.speech else data_folder() / "checks"
    chosen = [fault(one) for one in arguments.fault] if arguments.fault else list(FAULTS)
    models = tuple(arguments.model or MODELS)
    takes = [*shipped(), *clean_takes(folder, models, range(arguments.first, arguments.takes))]
    reason = words.unavailable(takes[0].speech)
    names = [one.name for one in chosen if not (one.hears and reason)]
    bundled.say(f"{len(takes)} clean takes …")
    false = {name: [one for one in takes if found(one.speech, name)] for name in names}
    bundled.say("Damaged takes …")
    rows: list[dict[str, object]] = []
    hits = count = 0
    for damage in (one for one in DAMAGES if one.fault in names):
        row: dict[str, object] = {"fault": damage.fault, "damage": damage.title}
        for strength, title in enumerate(STRENGTHS):
            found_here, of = detection(damage.fault, strength, _spread(takes, arguments.damaged))
            row[f"{title} found"], row[f"{title} of"] = found_here, of
            if strength == 1:
                hits, count = hits + found_here, count + of
        row["false marks"], row["clean"] = len(false[damage.fault]), len(takes)
        rows.append(row)
        bundled.say(f"{damage.fault}: {[row[f'{one} found'] for one in STRENGTHS]}")
    marked = {id(one) for some in false.values() for one in some}
    for model in ("shipped", *models):
        own = [one for one in takes if one.model == model]
        if own:
            rows.append(
                {"fault": "any", "damage": f"none: {model}", "false marks": sum(id(one) in marked for one in own)}
                | {"clean": len(own)}
            )
    rows.append({"fault": "any", "damage": "none: all", "false marks": len(marked), "clean": len(takes)})
    share, interval = hits / max(1, count), wilson_interval(hits, max(1, count))
    return Report(NAME, share, interval, DEFINITION, tuple(rows), describe().to_json(), reason)


def found(speech: Speech, name: str) -> bool:
    return any(place[2] >= MARKED for place in fault(name).find(speech))


def detection(name: str, strength: int, takes: Sequence[Clean]) -> tuple[int, int]:
    """Found damages of a fault at a strength, and how many there were."""
    (damage,) = (one for one in DAMAGES if one.fault == name)
    hits = of = 0
    for one in takes:
        draw = np.random.default_rng(zlib.crc32(f"{name} {strength} {one.model} {one.number}".encode()))
        damaged = damage.do(one.speech, strength, draw)
        if damaged is not None:
            of += 1
            hits += found(damaged, name)
    return hits, of


def _spread(takes: Sequence[Clean], most: int) -> list[Clean]:
    """``most`` of the takes, evenly from all models."""
    places = np.linspace(0, len(takes) - 1, min(most, len(takes))).round().astype(int)
    return [takes[place] for place in places]


def shipped() -> list[Clean]:
    """The bundled voices' recordings, each its own prompt."""
    clean = []
    for number, voice in enumerate(shipped_voices()):
        prompt = prompt_of(voice.audio, voice.transcript)
        assert prompt is not None
        clean.append(Clean("shipped", replace(prompt, prompt=prompt), number))
    return clean


def sentences() -> list[str]:
    return [line for name in TEXTS for line in typed_lines(str(resource("sentences", f"{name}.txt")))]


def clean_takes(folder: Path, models: Sequence[str], numbers: range) -> Iterator[Clean]:
    """Clean takes from ``folder``, made first where they are missing. Raises :class:`PlainError`."""
    folder.mkdir(parents=True, exist_ok=True)
    voices, texts = shipped_voices(), sentences()
    for model in models:
        loaded = None
        for number in numbers:
            own = MODELS.index(model)
            path = folder / f"{model}-{number:03d}.wav"
            about = path.with_suffix(".json")
            if not about.exists():
                loaded = loaded or load_model(model, device="cpu")
                first = number * 7 + own * 3
                # Every fifth take has several passages.
                text = " ".join(texts[(first + at) % len(texts)] for at in range(4 if number % 5 == 4 else 1))
                voice = voices[(number + own) % len(voices)]
                setting = Setting(model, entry(model).options_with(), seed=number)
                spoken = synthesise(loaded, text, voice, setting)
                take = make_take(spoken, text, voice, setting, "", "cpu", "", listen=False)
                write_wav(path, take.samples, take.sample_rate)
                data = {"text": text, "voice": voice.id, "seams": seams_of(take)}
                write(about, json.dumps(data).encode())
                bundled.say(f"{path.name}: {take.seconds:.1f} s")
            yield Clean(model, _read(path, about), number)


def _read(path: Path, about: Path) -> Speech:
    try:
        data = json.loads(about.read_text(encoding="utf-8"))
        voice = next(one for one in shipped_voices() if one.id == data["voice"])
        prompt = prompt_of(voice.audio, voice.transcript)
        seams = tuple(map(float, data["seams"]))
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise PlainError(f"{about} does not describe a take ({error}); delete it to have it made again.") from error
    recording = read_recording(path)
    return Speech(recording.samples, recording.sample_rate, str(data["text"]), seams, prompt)
