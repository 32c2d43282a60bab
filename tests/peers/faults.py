"""How often the checks of takes find damage, and how often they mark clean speech.

Clean takes of the bundled models, made once and kept in a folder, and the shipped recordings are damaged in every way
at three strengths. Thresholds were set while looking at takes 0 to 21 of each model and at takes of another,
hibari-tts; the figures are of the takes after them, which say other sentences, unless ``--first 0`` asks for all.
"""

import argparse
import json
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from paretone.audio.recording import read_recording
from paretone.bench import bundled
from paretone.bench.report import Report
from paretone.by_name import by_name
from paretone.checks import words
from paretone.checks.beforehand import PROMPT_FAULTS
from paretone.checks.faults import FAULTS, MARKED, Fault
from paretone.checks.speech import Speech, prompt_of, seams_of
from paretone.commands.arguments import positive, typed_lines
from paretone.commands.terminal import Terminal, cancelling
from paretone.errors import Cancelled, PlainError
from paretone.files import write, write_wav
from paretone.measure.estimates import wilson_interval
from paretone.measure.machine import describe
from paretone.measure.takes import make_take
from paretone.models import catalogue, load_model
from paretone.models.base import Voice
from paretone.models.voices import shipped_voices, voices_in
from paretone.paths import data_folder, resource
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from tests.peers.damage import DAMAGES, PROMPT_DAMAGES, STRENGTHS, Damage

NAME = "faults"
MODELS = ("f5-mini", "lm-mini", "megatts3-mini", "omni-mini")
TEACHER = "hibari-tts"
"""Speaks for the thresholds; needs the extra ``voice``."""
TEXTS = ("harvard", "unseen", "everyday")
SEEN = 22
"""Takes of each model that thresholds were set with."""
DEFINITION = "Share of damages of middle strength that are found, over all faults."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", action="append", choices=(*MODELS, TEACHER), help="model that speaks; repeat (default: ours)"
    )
    parser.add_argument("--takes", type=positive, default=75, help="last take of each model (default: %(default)s)")
    parser.add_argument("--first", type=int, default=SEEN, help="first take of each model (default: %(default)s)")
    parser.add_argument("--speech", metavar="FOLDER", help="where takes are kept (default: in the data folder)")
    parser.add_argument("--held-out", metavar="FOLDER", type=Path, help="other voices, and sentences.txt")
    parser.add_argument("--fault", action="append", metavar="NAME", help="only this fault; repeat for more")
    parser.add_argument("--damaged", type=positive, default=60, help="takes that are damaged (default: %(default)s)")
    parser.add_argument("--words", action="store_true", help="words missing, repeated and added, which take longer")
    parser.add_argument("--prompts", action="store_true", help="faults of prompts, for which short takes stand")


@dataclass(frozen=True)
class Clean:
    """A clean take or a shipped recording."""

    model: str
    speech: Speech
    number: int


def run(arguments: argparse.Namespace) -> Report:
    """Check clean and damaged speech."""
    folder = Path(arguments.speech) if arguments.speech else data_folder() / "checks"
    faults, damages = (PROMPT_FAULTS, PROMPT_DAMAGES) if arguments.prompts else (FAULTS, DAMAGES)
    models = tuple(arguments.model or MODELS)
    takes = [*shipped(), *clean_takes(folder, models, range(arguments.first, arguments.takes), arguments.held_out)]
    if arguments.prompts:
        takes = [one for one in takes if not one.speech.seams]
    reason = words.unavailable(takes[0].speech)
    if arguments.words and reason:
        raise PlainError(reason)
    wanted = [by_name(one, {each.name: each for each in faults}, "fault", "faults") for one in arguments.fault or ()]
    usual = [one for one in faults if one.hears == arguments.words]
    chosen = {one.name: one for one in wanted or usual}
    planned = [one for one in damages if one.fault in chosen]
    damaged = _spread(takes, arguments.damaged)
    false: dict[str, list[Clean]] = {name: [] for name in chosen}
    spent, heard, rows = {"signal": 0.0, "words": 0.0}, list[Clean](), list[dict[str, object]]()
    hits = count = 0
    with cancelling() as cancelled:
        terminal = Terminal(cancelled)
        done = iter(range(1, len(takes) + len(planned) * len(STRENGTHS) * len(damaged) + 1))

        def step() -> None:
            terminal.progress(next(done), len(takes) + len(planned) * len(STRENGTHS) * len(damaged))

        try:
            terminal.status(f"{len(takes)} clean takes …")
            for take in takes:
                for one in chosen.values():
                    false[one.name] += [take] if found(take.speech, one, spent) else []
                heard.append(take)
                step()
            terminal.status("Damaged takes …")
            for damage in planned:
                row: dict[str, object] = {"fault": damage.fault, "damage": f"{damage.strengths} {damage.title}"}
                for strength, title in enumerate(STRENGTHS):
                    right, of = detection(chosen[damage.fault], damage, strength, damaged, step)
                    row[f"{title} found"], row[f"{title} of"] = right, of
                    if strength == 1:
                        hits, count = hits + right, count + of
                row["false marks"], row["clean"] = len(false[damage.fault]), len(takes)
                rows.append(row)
                terminal.clear()
                bundled.say(f"{damage.fault}: {[row[f'{one} found'] for one in STRENGTHS]}")
        except Cancelled:
            reason = (
                f"Cancelled after {len(heard)} of {len(takes)} clean takes and {len(rows)} of {len(planned)} damages."
            )
    marked = {id(one) for some in false.values() for one in some}
    for model in dict.fromkeys(one.model for one in heard):
        own = [id(one) in marked for one in heard if one.model == model]
        rows.append({"fault": "any", "damage": f"none: {model}", "false marks": sum(own), "clean": len(own)})
    rows.append({"fault": "any", "damage": "none: all", "false marks": len(marked), "clean": len(heard)})
    seconds = sum(one.speech.seconds for one in heard) or 1.0
    rows += [{"fault": one, "CPU ms per second": round(1000 * cpu / seconds, 2)} for one, cpu in spent.items() if cpu]
    share, interval = hits / max(1, count), wilson_interval(hits, max(1, count))
    return Report(NAME, share, interval, DEFINITION, tuple(rows), describe().to_json(), reason)


def found(speech: Speech, fault: Fault, spent: dict[str, float] | None = None) -> bool:
    """Whether ``fault`` is marked in ``speech``; adds the processor's seconds to ``spent``."""
    began = time.process_time()
    marked = any(place[2] >= MARKED for place in fault.find(speech))
    if spent is not None:
        spent["words" if fault.hears else "signal"] += time.process_time() - began
    return marked


def detection(
    fault: Fault, damage: Damage, strength: int, takes: Sequence[Clean], step: Callable[[], None] = lambda: None
) -> tuple[int, int]:
    """Found damages of a fault at a strength, and how many there were; calls ``step`` after each take."""
    hits = of = 0
    for one in takes:
        draw = np.random.default_rng(zlib.crc32(f"{damage.fault} {strength} {one.model} {one.number}".encode()))
        damaged = damage.do(one.speech, damage.strengths[strength], draw)
        if damaged is not None:
            of += 1
            hits += found(damaged, fault)
        step()
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


def clean_takes(folder: Path, models: Sequence[str], numbers: range, held_out: Path | None = None) -> Iterator[Clean]:
    """Clean takes from ``folder``, made first where they are missing. Raises :class:`PlainError`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [held_out / "sentences.txt"] if held_out else [resource("sentences", f"{name}.txt") for name in TEXTS]
    texts = [line for file in files for line in typed_lines(str(file))]
    voices = voices_in(held_out) if held_out else shipped_voices()
    for model in models:
        speak, own = lru_cache(maxsize=1)(partial(_speaker, model)), (*MODELS, TEACHER).index(model)
        for number in numbers:
            path = folder / f"{model}-{number:03d}.wav"
            about = path.with_suffix(".json")
            if not about.exists():
                first = number * 7 + own * 3
                # Every fifth take has several passages.
                text = " ".join(texts[(first + at) % len(texts)] for at in range(4 if number % 5 == 4 else 1))
                voice = voices[(number + own) % len(voices)]
                samples, rate, seams = speak()(text, voice, number)
                write_wav(path, samples, rate)
                write(about, json.dumps({"text": text, "voice": voice.id, "seams": seams}).encode())
                bundled.say(f"{path.name}: {len(samples) / rate:.1f} s")
            yield Clean(model, _read(path, about, voices), number)


Spoken = tuple[np.ndarray, int, tuple[float, ...]]
"""Samples, rate, and seams in seconds."""


def _speaker(model: str) -> Callable[[str, Voice, int], Spoken]:
    """Speaks a text in a voice with a seed."""
    if model == TEACHER:
        from paretone.models.minis.natural_decoder import SAMPLE_RATE
        from paretone.training.natural_teacher import original_speech

        return lambda text, voice, seed: (original_speech(text, voice), SAMPLE_RATE, ())
    loaded = load_model(model, device="cpu")

    def speak(text: str, voice: Voice, seed: int) -> Spoken:
        setting = Setting(model, catalogue.entry(model).options_with(), seed=seed)
        spoken = synthesise(loaded, text, voice, setting)
        take = make_take(spoken, text, voice, setting, "", "cpu", "", listen=False)
        return take.samples, take.sample_rate, seams_of(take)

    return speak


def _read(path: Path, about: Path, voices: Sequence[Voice]) -> Speech:
    try:
        data = json.loads(about.read_text(encoding="utf-8"))
        voice = next(one for one in voices if one.id == data["voice"])
        prompt = prompt_of(voice.audio, voice.transcript)
        seams = tuple(map(float, data["seams"]))
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise PlainError(f"{about} does not describe a take ({error}); delete it to have it made again.") from error
    recording = read_recording(path)
    return Speech(recording.samples, recording.sample_rate, str(data["text"]), seams, prompt)
