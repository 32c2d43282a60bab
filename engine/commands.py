"""What each command of the command line does. Torch-free at import: commands load what they need."""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from engine import files
from engine.bench.report import table as table_lines
from engine.errors import AudioError, PlainError, ProfileError, SettingError, TextError
from engine.knobs import Knob, Number, Switch, checked
from engine.measure.machine import describe
from engine.models import catalogue, load_model
from engine.models.base import Observer, SpeechModel, Synthesis, Voice
from engine.profile import Evidence, Profile
from engine.setting import Engaged, Setting
from engine.take import Take
from engine.techniques import TECHNIQUES, ditreducio
from engine.techniques.ditreducio.table import StrategyTable
from engine.terminal import Terminal

DITREDUCIO = ditreducio.TECHNIQUE.name
WARM_UP = "Warm-up."
"""Spoken once before anything is measured: the first run on a device also pays for its preparation."""


@dataclass(frozen=True)
class Result:
    """What a command has to say: JSON values for machines, text for people."""

    data: Mapping[str, object]
    text: str = ""


# --- models -----------------------------------------------------------------------------------------------------------
def models(options: argparse.Namespace, terminal: Terminal) -> Result:
    """List models, voices and techniques."""
    found = [
        {
            "id": one.id,
            "title": one.title,
            "family": one.family,
            "licence": one.licence,
            "available": one.available,
            "folder": str(one.folder),
            "summary": one.summary,
        }
        for one in catalogue.MODELS
    ]
    voices = [{"id": one.id, "title": one.title, "transcript": one.transcript} for one in catalogue.voices()]
    techniques = [
        {"name": one.name, "title": one.title, "summary": one.summary, "paper": one.paper.reference}
        for one in TECHNIQUES
    ]
    rows = [
        {
            "model": one["id"],
            "licence": one["licence"],
            "available": "yes" if one["available"] else f"no; put its files into {one['folder']}",
            "what it is": one["summary"],
        }
        for one in found
    ]
    blocks = [
        table_lines(rows),
        table_lines([{"voice": one["id"], "what it is": one["title"]} for one in voices]),
        table_lines([{"technique": one["name"], "what it does": one["summary"]} for one in techniques]),
    ]
    text = "\n\n".join("\n".join(block) for block in blocks)
    return Result({"models": found, "voices": voices, "techniques": techniques}, text)


# --- speak ------------------------------------------------------------------------------------------------------------
def speak(options: argparse.Namespace, terminal: Terminal) -> Result:
    """Synthesise one text and write it as a WAV file."""
    text, out = _text(options), _writable(options.out)
    profile = Profile.load(options.profile) if options.profile else None
    if profile is not None and (options.technique or options.table):
        raise SettingError("A profile has its own techniques and table: give either --profile or --technique.")
    model_id = options.model or (profile.setting.model if profile else catalogue.MODELS[0].id)
    variant = options.variant or (profile.named_variant if profile else "")
    voice = _voice(options, profile)
    model = _load(options, terminal, model_id, variant)
    if profile is not None:
        base = replace(profile.setting, seed=profile.setting.seed if options.seed is None else options.seed)
        setting = replace(base, options=base.options.replace(**_given(options, catalogue.entry(model_id).options)))
        profile.check(model.info, model.belonging(setting) if profile.table else None)
        artefacts = profile.artefacts
    else:
        setting = _setting(options, model_id)
        setting, artefacts = _engaged(setting, model, options)
    terminal.status("Synthesising")
    synthesis = _spoken(model, text, voice, setting, artefacts, terminal)
    _write_wav(out, synthesis)
    data = {
        "out": str(out),
        "text": text,
        "voice": voice.id,
        **_figures(synthesis),
        "notes": list(synthesis.notes),
        "setting": setting.to_json(),
        "checkpoint": model.info.fingerprint,
        "machine": describe().line,
    }
    measured = synthesis.measurements
    lines = [
        f"Wrote {measured.audio_seconds:.2f} s of speech to {out}.",
        f"RTF {measured.real_time_factor:.3f} ({measured.seconds:.2f} s), first audio after "
        f"{measured.first_audio_seconds:.2f} s, {measured.ops_ratio:.0%} of the operations, on {model.info.device}.",
        *synthesis.notes,
    ]
    return Result(data, "\n".join(lines))


# --- calibrate --------------------------------------------------------------------------------------------------------
def calibrate(options: argparse.Namespace, terminal: Terminal) -> Result:
    """Calibrate DiTReducio, measure what it gives, write what was asked for."""
    if not (options.profile or options.table or options.official):
        raise SettingError("Say what to write: --profile, --table or --official.")
    places = {
        kind: _writable(getattr(options, kind)) for kind in ("profile", "table", "official") if _has(options, kind)
    }
    model_id = options.model or catalogue.MODELS[0].id
    voice, text = _voice(options), _text(options)
    knobs = checked(ditreducio.TECHNIQUE.knobs, _given(options, ditreducio.TECHNIQUE.knobs), ditreducio.TECHNIQUE.title)
    setting = _setting(options, model_id).with_technique(Engaged(DITREDUCIO, knobs))
    model = _load(options, terminal, model_id, options.variant)
    record = model.calibrate(text, voice, setting, terminal)
    operations = model.operations(text, voice, setting)
    setting = setting.with_technique(Engaged(DITREDUCIO, knobs, record.table.fingerprint))
    evidence = None
    if not options.no_evidence:
        evidence = _evidence(model, text, voice, setting, record.table, terminal)
    if "profile" in places:
        Profile.of(setting, model.info, record.table, evidence).save(places["profile"])
    if "table" in places:
        _write_json(places["table"], record.table.to_json())
    if "official" in places:
        _write_json(places["official"], record.table.to_official())
    written = {kind: str(path) for kind, path in places.items()}
    data = {
        **written,
        "threshold": record.threshold,
        "metric": knobs["metric"],
        "skipped_share": record.table.skipped_share,
        "ops_ratio": record.table.ops_ratio(operations),
        "trials": len(record.trials),
        "accepted": sum(trial.accepted for trial in record.trials),
        "layers": record.table.layers,
        "steps": record.table.steps,
        "evidence": None if evidence is None else dict(evidence.metrics),
        "setting": setting.to_json(),
        "machine": describe().line,
    }
    lines = [
        f"{data['accepted']} of {data['trials']} skips accepted at threshold {record.threshold:g}: "
        f"{record.table.skipped_share:.0%} of the cells skip, {data['ops_ratio']:.0%} of the operations remain.",
    ]
    if evidence is not None:
        lines.append(_shown_metrics(evidence.metrics))
    lines += [f"Wrote the {_KINDS[kind]} to {path}." for kind, path in written.items()]
    return Result(data, "\n".join(lines))


_KINDS = {"profile": "profile", "table": "strategy table", "official": "official strategy table"}


def _evidence(
    model: SpeechModel, text: str, voice: Voice, setting: Setting, table: StrategyTable, terminal: Terminal
) -> Evidence:
    """What the table gives beside the baseline: one synthesis each, from the same noise."""
    from engine.measure.fidelity import log_mel_distance

    terminal.status("Measuring the baseline")
    _spoken(model, WARM_UP, voice, setting.baseline, (), terminal)
    baseline = _spoken(model, text, voice, setting.baseline, (), terminal)
    terminal.status("Measuring the accelerated synthesis")
    accelerated = _spoken(model, text, voice, setting, (table,), terminal)
    reference = _take(baseline, text, voice, setting.baseline)
    take = _take(accelerated, text, voice, setting)
    distance = log_mel_distance(baseline.trace.mel, accelerated.trace.mel)
    return Evidence.of(replace(take, fidelity_to=reference.id, log_mel_distance=distance), reference)


def _take(synthesis: Synthesis, text: str, voice: Voice, setting: Setting) -> Take:
    return Take(
        uuid.uuid4().hex,
        datetime.now(UTC).isoformat(timespec="milliseconds"),
        text,
        voice.id,
        setting,
        synthesis.sample_rate,
        synthesis.samples,
        synthesis.measurements,
        synthesis.trace,
        notes=synthesis.notes,
        machine=describe().line,
    )


def _shown_metrics(metrics: Mapping[str, float]) -> str:
    shown = f"RTF {metrics['real_time_factor']:.3f}"
    if "speed_up" in metrics:
        shown += f", {metrics['speed_up']:.2f} times as fast as the baseline (one run each; see paretone compare)"
    if "log_mel_distance" in metrics:
        shown += f", log-mel distance {metrics['log_mel_distance']:.3f}"
    return f"{shown}."


# --- compare ----------------------------------------------------------------------------------------------------------
@dataclass
class _Side:
    """One side of a comparison."""

    title: str
    setting: Setting
    variant: str = ""
    table_file: str = ""
    profile: Profile | None = None
    model: SpeechModel | None = None
    artefacts: tuple[StrategyTable, ...] = ()
    runs: list[Synthesis] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        """Medians over the measured runs."""
        every = [_figures(run) for run in self.runs]
        return {name: median(one[name] for one in every) for name in every[0]}


def compare(options: argparse.Namespace, terminal: Terminal) -> Result:
    """Synthesise under two settings in turn; speed from paired rounds, fidelity from the spectrograms."""
    from engine.device import choose
    from engine.measure.timing import paired_ratio

    folder = None if options.out is None else _folder(options.out)
    text = _text(options)
    sides = _sides(options)
    voice = _voice(options, next((side.profile for side in sides if side.profile), None))
    loaded: dict[tuple[str, str], SpeechModel] = {}
    for side in sides:
        key = side.setting.model, side.variant
        if key not in loaded:
            loaded[key] = _load(options, terminal, *key)
        _prepare(side, loaded[key])
    total = 2 + options.rounds * 3
    progress = _Rounds(terminal, total)

    def run(side: _Side) -> Callable[[], None]:
        def once() -> None:
            side.runs.append(_spoken(side.model, text, voice, side.setting, side.artefacts, progress))
            progress.next()

        return once

    terminal.status("Synthesising in turn")
    terminal.begin()
    names = ("A", "B")
    timing = paired_ratio(
        {name: run(side) for name, side in zip(names, sides, strict=True)},
        options.rounds,
        device=choose(options.device).type,
    )
    for side in sides:
        del side.runs[0]  # The warm-up.
    distance, why = _distance(*(side.runs[-1] for side in sides))
    rows = [{"side": name, "setting": side.title, **side.figures()} for name, side in zip(names, sides, strict=True)]
    written = []
    if folder is not None:
        for name, side in zip(names, sides, strict=True):
            written.append(folder / f"{name.lower()}.wav")
            _write_wav(written[-1], side.runs[-1])
    speed_up = timing.speed_up["B"]
    data = {
        **{
            name.lower(): {**row, "setting": side.setting.to_json()}
            for name, row, side in zip(names, rows, sides, strict=True)
        },
        "speed_up": asdict(speed_up),
        "same": asdict(timing.same),
        "clock": timing.clock,
        "rounds": options.rounds,
        "log_mel_distance": distance,
        "differences": [asdict(one) for one in sides[0].setting.differences(sides[1].setting)],
        "files": [str(path) for path in written],
        "machine": describe().line,
    }
    shown = [
        {
            "": row["side"],
            "setting": row["setting"],
            "RTF": row["real_time_factor"],
            "TTFA s": row["first_audio_seconds"],
            "ops ratio": row["ops_ratio"],
            "seconds": row["seconds"],
            "audio s": row["audio_seconds"],
        }
        for row in rows
    ]
    lines = [
        *table_lines(shown),
        "",
        f"B is {speed_up.median:.2f} times as fast as A (95 % interval {speed_up.low:.2f} to {speed_up.high:.2f}; "
        f"A against itself {timing.same.low:.2f} to {timing.same.high:.2f}; {timing.clock}, {options.rounds} rounds).",
    ]
    if not speed_up.excludes_one:
        lines.append("The interval includes 1: no difference in speed can be claimed.")
    lines.append(f"Log-mel distance of B to A: {distance:.4f}" if distance is not None else why)
    lines += [f"Wrote {path}" for path in written]
    return Result(data, "\n".join(lines))


class _Rounds:
    """Passes a run's steps on as progress of all runs together."""

    def __init__(self, terminal: Terminal, total: int) -> None:
        self._terminal, self._total, self._done = terminal, total, 0

    def check(self) -> None:
        self._terminal.check()

    def status(self, text: str) -> None:
        self._terminal.check()

    def step(self, report: object) -> None:
        self._terminal.check()

    def next(self) -> None:
        """Another run is done."""
        self._done += 1
        self._terminal.progress(self._done, self._total)


def _sides(options: argparse.Namespace) -> tuple[_Side, _Side]:
    texts = options.a, options.b
    if texts == ("baseline", "baseline"):
        raise SettingError("Both sides are 'baseline'; give a profile or options for one of them.")
    first, second = (None if text == "baseline" else _side(text, options) for text in texts)
    return first or _baseline(second), second or _baseline(first)


def _baseline(other: _Side) -> _Side:
    return replace(other, title="baseline", setting=other.setting.baseline, profile=None, table_file="", runs=[])


def _side(text: str, options: argparse.Namespace) -> _Side:
    """A side from a profile's path, or from options such as ``steps=16,guidance=1.5``."""
    if Path(text).is_file() or (text.endswith(".json") and "=" not in text):
        profile = Profile.load(text)
        return _Side(Path(text).name, profile.setting, options.variant or profile.named_variant, profile=profile)
    given = {}
    for part in filter(None, text.split(",")):
        name, found, value = part.partition("=")
        if not found:
            raise SettingError(
                f"{part!r} is no side of a comparison; give a profile (FILE.json), 'baseline', or options such as "
                "steps=16."
            )
        given[name.strip()] = value.strip()
    model = given.pop("model", options.model or catalogue.MODELS[0].id)
    seed, table_file = int(_number(given.pop("seed", "0"), "seed")), given.pop("table", "")
    entry = catalogue.entry(model)
    known = {knob.name: knob for knob in entry.options}
    values = {name: _read_value(known[name], value) if name in known else value for name, value in given.items()}
    setting = Setting(model, checked(entry.options, entry.options_with(**values), entry.title), seed=seed)
    return _Side(text, setting, options.variant, table_file)


def _prepare(side: _Side, model: SpeechModel) -> None:
    """Give a side its model and tables, checked against each other."""
    side.model = model
    if side.profile is not None:
        side.profile.check(model.info, model.belonging(side.setting) if side.profile.table else None)
        side.artefacts = side.profile.artefacts
    elif side.table_file:
        side.setting, side.artefacts = _with_table(side.setting, model, side.table_file, {})


def _distance(first: Synthesis, second: Synthesis) -> tuple[float | None, str]:
    """The log-mel distance, or why there is none."""
    from engine.measure.fidelity import log_mel_distance

    if first.trace.mel is None or second.trace.mel is None:
        return None, "These models have no spectrogram whose distance could be measured."
    try:
        return log_mel_distance(first.trace.mel, second.trace.mel), ""
    except SettingError as error:
        return None, str(error)


# --- Tables -----------------------------------------------------------------------------------------------------------
def export_table(options: argparse.Namespace, terminal: Terminal) -> Result:
    """Write a profile's strategy table in the official code's form."""
    profile, out = Profile.load(options.profile), _writable(options.out)
    if profile.table is None:
        raise ProfileError(f"{options.profile} has no strategy table; export one that engages DiTReducio.")
    _write_json(out, profile.table.to_official())
    data = {"out": str(out), "layers": profile.table.layers, "steps": profile.table.steps}
    return Result(data, f"Wrote the table of {profile.table.layers} layers and {profile.table.steps} steps to {out}.")


def import_table(options: argparse.Namespace, terminal: Terminal) -> Result:
    """Make a profile of an official strategy table."""
    out = _writable(options.out)
    model_id = options.model or catalogue.MODELS[0].id
    model = _load(options, terminal, model_id, options.variant)
    knobs = _given(options, ditreducio.TECHNIQUE.knobs)
    setting, (table,) = _with_table(_setting(options, model_id), model, options.table, knobs)
    profile = Profile.of(setting, model.info, table)
    profile.check(model.info, model.belonging(setting))
    profile.save(out)
    data = {"out": str(out), "layers": table.layers, "steps": table.steps, "skipped_share": table.skipped_share}
    size = f"{table.layers} layers and {table.steps} steps, {table.skipped_share:.0%} skipped"
    return Result(data, f"Wrote a profile of {size}, to {out}.")


def _with_table(
    setting: Setting, model: SpeechModel, path: str, knobs: Mapping[str, object]
) -> tuple[Setting, tuple[StrategyTable, ...]]:
    """``setting`` with DiTReducio engaged under the table in ``path``, Paretone's form or the official one."""
    belonging = model.belonging(setting)
    data = _read_json(path)
    values = checked(ditreducio.TECHNIQUE.knobs, knobs, ditreducio.TECHNIQUE.title)
    if isinstance(data, dict) and "actions" in data:
        table = StrategyTable.from_json(data, path)
        if "branch_skip" in knobs and knobs["branch_skip"] != table.branch_skip:
            raise ProfileError(f"{path} was calibrated with branch skipping of {table.branch_skip!r}; leave that out.")
        values = values.replace(branch_skip=table.branch_skip)
    else:
        table = StrategyTable.from_official(data, belonging, str(values["branch_skip"]), path)
    mismatch = table.belonging.mismatch(belonging)
    if mismatch:
        raise ProfileError(f"The strategy table {path} cannot be used here: {mismatch}.")
    if table.layers != model.info.layers:
        raise ProfileError(
            f"The strategy table {path} has {table.layers} layers, but {model.info.title} has {model.info.layers}."
        )
    return setting.with_technique(Engaged(DITREDUCIO, values, table.fingerprint)), (table,)


def _engaged(
    setting: Setting, model: SpeechModel, options: argparse.Namespace
) -> tuple[Setting, tuple[StrategyTable, ...]]:
    """``setting`` with the technique that the arguments ask for."""
    if options.table:
        return _with_table(setting, model, options.table, _given(options, ditreducio.TECHNIQUE.knobs))
    if options.technique == DITREDUCIO:
        raise SettingError("DiTReducio needs its strategy table: give --table, or --profile instead.")
    if hasattr(options, "branch_skip"):
        raise SettingError("--branch-skip says how an official --table was calibrated; give that too.")
    return setting, ()


# --- Common -----------------------------------------------------------------------------------------------------------
def _load(options: argparse.Namespace, terminal: Terminal, model: str, variant: str) -> SpeechModel:
    catalogue.entry(model)
    terminal.status(f"Loading {model}")
    return load_model(
        model,
        folder=options.folder,
        variant=variant,
        device=options.device,
        status=terminal.status,
        check=terminal.check,
    )


def _setting(options: argparse.Namespace, model: str) -> Setting:
    """The setting that the arguments describe, without techniques."""
    entry = catalogue.entry(model)
    values = checked(entry.options, entry.options_with(**_given(options, entry.options)), entry.title)
    return Setting(model, values, seed=options.seed or 0)


def _given(options: argparse.Namespace, knobs: tuple[Knob, ...]) -> dict[str, object]:
    """The values of those of ``knobs`` that the arguments set."""
    return {knob.name: getattr(options, knob.name) for knob in knobs if hasattr(options, knob.name)}


def _spoken(
    model: SpeechModel,
    text: str,
    voice: Voice,
    setting: Setting,
    artefacts: tuple[StrategyTable, ...],
    observer: Observer,
) -> Synthesis:
    """The whole synthesis."""
    if isinstance(observer, Terminal):
        observer.begin()
    pieces = model.synthesise(text, voice, setting, artefacts, observer)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value


def _figures(synthesis: Synthesis) -> dict[str, float]:
    measured = synthesis.measurements
    return {
        "sample_rate": synthesis.sample_rate,
        "samples": len(synthesis.samples),
        "real_time_factor": measured.real_time_factor,
        "seconds": measured.seconds,
        "audio_seconds": measured.audio_seconds,
        "first_audio_seconds": measured.first_audio_seconds,
        "text_seconds": measured.text_seconds,
        "backbone_seconds": measured.backbone_seconds,
        "decoder_seconds": measured.decoder_seconds,
        "evaluations": measured.evaluations,
        "ops_ratio": measured.ops_ratio,
    }


def _text(options: argparse.Namespace) -> str:
    if options.text is not None:
        return options.text
    if options.text_file is None:
        return catalogue.sentences()[0]
    try:
        if options.text_file == "-":
            return sys.stdin.read()
        return Path(options.text_file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TextError(f"The text {options.text_file} could not be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise TextError(f"The text {options.text_file} is not UTF-8 ({error}); save it as UTF-8.") from error


def _voice(options: argparse.Namespace, profile: Profile | None = None) -> Voice:
    """The voice that the arguments name, else the profile's, else the first one shipped."""
    shipped = {one.id: one for one in catalogue.voices()}
    if options.voice is None:
        if options.transcript:
            raise AudioError("--transcript belongs to a recording; give that with --voice.")
        return shipped.get(profile.evidence.voice if profile else "") or next(iter(shipped.values()))
    if options.voice in shipped:
        return shipped[options.voice]
    recording = Path(options.voice)
    if not recording.exists() and not recording.suffix:
        return catalogue.voice(options.voice)
    if not recording.is_file():
        raise AudioError(f"There is no recording {recording}; check the path.")
    return Voice(recording.stem, recording.stem, str(recording), options.transcript)


def _writable(name: str) -> Path:
    """``name`` as a path that can be written, known before the work and not after it."""
    path = Path(name)
    if path.is_dir():
        raise PlainError(f"{path} is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise PlainError(f"There is no folder {path.parent}; create it or choose another.")
    return path


def _folder(name: str) -> Path:
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlainError(f"The folder {path} could not be made: {files.reason(error)}.") from error
    return path


def _write_wav(path: Path, synthesis: Synthesis) -> None:
    _write(path, files.wav(synthesis.samples, synthesis.sample_rate))


def _write_json(path: Path, data: object) -> None:
    _write(path, (json.dumps(data) + "\n").encode())


def _write(path: Path, content: bytes) -> None:
    try:
        files.write_atomically(path, content)
    except OSError as error:
        raise PlainError(f"{path} could not be written: {files.reason(error)}.") from error


def _read_json(path: str) -> object:
    try:
        return json.loads(Path(path).read_bytes())
    except OSError as error:
        raise ProfileError(f"The strategy table {path} could not be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"{path} is no strategy table: it is no JSON ({error}).") from error


def _read_value(knob: Knob, text: str) -> bool | int | float | str:
    """A knob's value from the text that someone typed."""
    match knob:
        case Number():
            return _number(text, knob.title)
        case Switch():
            if text not in ("on", "off", "true", "false"):
                raise SettingError(f"{knob.title} must be on or off, not {text!r}.")
            return text in ("on", "true")
        case _:
            return text


def _number(text: str, title: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"{title} must be a number, not {text!r}.") from None


def _has(options: argparse.Namespace, name: str) -> bool:
    return getattr(options, name) is not None
