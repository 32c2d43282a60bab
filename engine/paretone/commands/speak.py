"""``paretone speak``: one text, under a profile or a setting, as a WAV file."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from paretone import files
from paretone.audio.recording import write_sound
from paretone.checks.faults import Checked, checked, sentences, strict
from paretone.checks.speech import speech_of
from paretone.commands import arguments, lines
from paretone.commands.command import Result
from paretone.commands.output import apart, writable, writable_sound
from paretone.commands.subtitles import sentence_times, write_srt
from paretone.commands.technique_args import files_given, from_files, with_weights
from paretone.commands.terminal import JOB, Session, ending
from paretone.errors import PlainError, SettingError, failure
from paretone.front_end import MOST_CHARACTERS
from paretone.measure.loudness import signal_metrics
from paretone.measure.metrics import figure_of, metric
from paretone.measure.processor_time import load_line
from paretone.measure.timing import spread
from paretone.models.base import MASKED, SpeechModel, Synthesis, Voice
from paretone.session.commands import DecodePartial, Synthesise, TimeAgain
from paretone.session.events import TakeReady, TimedAgain
from paretone.setting.profile import Evidence, Profile
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements, Take, repeated
from paretone.techniques import compatibility_of, find, options_in_force
from paretone.techniques.published import comparisons
from paretone.wording import counted, percent

if TYPE_CHECKING:
    from paretone.models.families.masked import MaskedSpeech

TIMES = ("real_time_factor", "backbone_time_factor", "cpu_time_factor", "first_audio_seconds", "seconds", "cpu_seconds")
"""Figures with intervals over the repeats."""
NAME = "speak"
SUMMARY = "Synthesise a text with a profile or a setting."


def declare(parser: argparse.ArgumentParser) -> None:
    declare_setting(parser)
    arguments.add_text(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help=arguments.sound_file())
    lines.declare(parser)
    parser.add_argument(
        "--repeat",
        type=arguments.at_least(2),
        metavar="N",
        help="time the same setting again N times; the take's times are then the medians, with 95 %% intervals",
    )
    parser.add_argument(
        "--codebooks",
        type=arguments.positive,
        metavar="K",
        help="masked models: write what the first K codebooks alone sound like, passage after passage",
    )
    arguments.add_strict(parser)
    parser.add_argument("--keep-profile", metavar="FILE", help="profile to write: setting and measurements")


def declare_setting(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of :func:`prepared`, but those of the voice."""
    arguments.add_model(parser)
    group = parser.add_argument_group("acceleration")
    group.add_argument("--profile", metavar="FILE", help="profile to run: model, options and table")
    arguments.add_techniques(group)
    for technique, file in from_files():
        group.add_argument(f"--{file.option}", metavar="FILE", help=file.meaning)
        arguments.add_knobs(group, [knob for knob in technique.knobs if knob.name in file.knobs])
    arguments.add_sampler(parser)


def prepared(options: argparse.Namespace, session: Session, text: str = "") -> tuple[Synthesise, SpeechModel]:
    """What speaks ``text`` as the arguments want it, and the loaded model."""
    profile = Profile.load(options.profile) if options.profile else None
    if profile is not None and (options.technique or options.as_published or files_given(options)):
        raise SettingError("A profile has its own techniques and table: give either --profile or --technique.")
    model_id = arguments.model(options, profile)
    variant = options.variant or (profile.named_variant if profile else "")
    voice = arguments.voice(options, model_id, profile)
    if profile is None:
        setting = arguments.setting(options, model_id)
    else:
        seed = profile.setting.seed if options.seed is None else options.seed
        changed = profile.setting.options.replace(**arguments.sampler_options(options, model_id))
        setting = replace(profile.setting, seed=seed, options=changed)
    model = arguments.load(options, session, model_id, variant)
    if profile is not None:
        artefacts = profile.artefacts
        profile.check(model.info, compatibility_of(model.info, setting) if artefacts else None)
    else:
        setting, artefacts = arguments.with_files(with_weights(setting, model.info), model, options)
    return Synthesise(JOB, text, voice, setting, artefacts), model


def run(options: argparse.Namespace, session: Session) -> Result:
    """Synthesise one text and write it as a WAV file."""
    several = lines.wanted(options) if options.by_line or options.manifest else ()
    if not several and options.text is None and options.text_file is None:
        raise SettingError("There is nothing to speak; give --text, --text-file or --manifest.")
    text = "" if several else arguments.text(options)
    out = Path(options.out) if several else writable_sound(options.out)
    subtitles = None if options.srt is None else writable(options.srt)
    kept = None if options.keep_profile is None else writable(options.keep_profile)
    read = {"--text-file": options.text_file, "--voice": options.voice, "--profile": options.profile}
    apart({"--out": out}, {**read, **{f"--{option}": path for option, path in files_given(options)}})
    apart({"--out": out, "--keep-profile": kept, "--srt": subtitles})
    spoken, model = prepared(options, session, text)
    setting, artefacts, voice = spoken.setting, spoken.artefacts, spoken.voice
    if several or len(text) > MOST_CHARACTERS:
        job = lines.Job(options, session, spoken, model.info.fingerprint, subtitles)
        return lines.speak(several, job) if several else lines.speak_long(text, out, job)
    if options.codebooks:
        if model.info.family != MASKED:
            raise SettingError(f"--codebooks is for masked models, and {model.info.title} is none; leave it out.")
        cast("MaskedSpeech", model).require_codebooks(options.codebooks)
    if not files.flows(out):
        # About 14 characters a second, and four bytes a sample where it is not compressed.
        needed = len(text) / 14 * model.info.sample_rate * (4 if out.suffix == ".wav" else 1)
        files.require_room(PlainError, out.absolute().parent, needed, "this speech")
    made, stopped = session.finished(spoken, TakeReady)
    if stopped is not None and not made:
        raise stopped
    take = made[-1].take
    samples, remarks = take.samples, ()
    if options.codebooks:
        samples = first_codebooks(take, options.codebooks, voice, session)
        remarks = (f"The file holds the first {options.codebooks} codebooks alone; figures are of the whole take.",)
    try:
        remarks = (*remarks, *write_sound(out, samples, take.sample_rate))
    except PlainError as error:  # Such as a disk that others have filled meanwhile.
        kept_elsewhere = Path(tempfile.mkdtemp(prefix="paretone-")) / out.name
        write_sound(kept_elsewhere, samples, take.sample_rate)
        raise PlainError(f"{error} The speech is in {kept_elsewhere}.") from error
    problem, code = ending(stopped, f"{take.unfinished.partition(' ')[2]}; wrote them to {out}.", Synthesise.activity)
    if stopped is not None:
        kept = None
    elif options.repeat:
        given = spoken.text, spoken.voice, spoken.setting, spoken.artefacts
        timed, stopped = session.finished(TimeAgain(JOB, *given, take=take.id, times=options.repeat), TimedAgain)
        take = repeated(take, timed[-1].runs) if timed else take
        few = {0: "the first run, without repeats", 1: "this repeat"}.get(
            len(take.repeats), "these repeats, as medians"
        )
        done = f"after {len(take.repeats)} of {options.repeat} repeats: the times are of {few}."
        problem, code = ending(stopped, done, TimeAgain.activity)
    if kept is not None:
        Profile.of(setting, model.info, artefacts, Evidence.of(take)).save(kept)
    faults = Checked()
    if stopped is None:
        session.terminal.status("Checking for faults")
        heard = speech_of(take, text, voice)
        faults = checked(heard)
        if subtitles is not None:
            write_srt(subtitles, sentence_times(heard))
        problem, code = strict([faults.summary] if faults.findings else [], options.strict)
    found, compared, tail = figures(take), comparisons(setting), figure_of(metric("first_audio_p90"), take)
    notes = [*take.notes, *_on_top(options, setting), *remarks]
    data = {
        "out": str(out),
        "text": text,
        "voice": voice.id,
        **found,
        "repeats": [{name: getattr(one, name) for name in (*TIMES, "other_share", "busy")} for one in take.repeats],
        "intervals": {name: asdict(one) for name in TIMES if (one := spread(take, name)) is not None},
        "first_audio_p90": None if tail is None else tail.value,
        "faults": [one.to_json() for one in faults.findings],
        "unchecked": list(faults.unavailable),
        "unfinished": take.unfinished,
        "notes": notes,
        "published": [one.to_json() for one in compared],
        "setting": setting.to_json(),
        "checkpoint": model.info.fingerprint,
        "machine": take.machine,
        "profile": None if kept is None else str(kept),
        "srt": None if subtitles is None else str(subtitles),
        **({**failure(problem, stopped), "exit_code": code} if stopped is not None else {}),
    }
    measured = take.measurements
    processor = "" if measured.cpu_time_factor is None else f", {_figure(take, 'cpu_time_factor')} in CPU time"
    backbone = (
        "" if measured.backbone_time_factor is None else f"backbone RTF {_figure(take, 'backbone_time_factor')}, "
    )
    late = "" if tail is None else f", P90 {tail.value:.2f} s of {tail.n} runs"
    said = [
        f"Wrote {measured.audio_seconds:.2f} s of speech to {out}.",
        f"RTF {_figure(take, 'real_time_factor')}{processor}, {measured.seconds:.2f} s of synthesis, "
        f"TTFA {_figure(take, 'first_audio_seconds', '{:.2f}')} s{late}, {backbone}ops ratio "
        f"{measured.ops_ratio:.3f}, on {model.info.device}.",
        *([f"Medians of {len(take.repeats)} repeats, with 95 % intervals."] if len(take.repeats) > 1 else []),
        load_line(measured),
        heard_line(found),
        *_decoding(measured),
        *([f"{counted(len(faults.findings), 'fault', 'faults')} found:"] if faults.findings else []),
        *sentences(faults),
        *faults.unavailable,
        *(note for note in notes if note not in session.terminal.cautioned),
        *(one.sentence for one in compared),
        *([] if kept is None else [f"Wrote the profile to {kept}."]),
        *([] if subtitles is None or stopped is not None else [f"Wrote the subtitles to {subtitles}."]),
    ]
    return Result(data, "\n".join(said), problem, code)


def first_codebooks(take: Take, codebooks: int, voice: Voice, session: Session) -> np.ndarray:
    """Samples of the take's passages, decoded from their first codebooks. Raises :class:`SettingError` for too many."""
    trace = take.trace.demasking
    parts = [
        session.carry_out(DecodePartial(JOB, one, one.steps - 1, voice, take.setting, codebooks)).samples
        for one in (() if trace is None else trace.passages)
    ]
    return np.concatenate(parts)


def _figure(take: Take, name: str, form: str = "{:.3f}") -> str:
    interval, value = spread(take, name), form.format(getattr(take.measurements, name))
    return value if interval is None else f"{value} ({form.format(interval.low)} to {form.format(interval.high)})"


def _on_top(options: argparse.Namespace, setting: Setting) -> list[str]:
    """Remark on guidance requested with weights that already contain theirs."""
    asked = getattr(options, "guidance", 0.0)
    if not asked or options_in_force(setting).get("guidance"):
        return []
    used = [find(one.technique) for one in setting.techniques]
    titles = [one.title for one in used if one is not None and one.weights]
    return [f"--guidance {asked:g} is ignored: {title} weights already contain their guidance." for title in titles[:1]]


def _decoding(measured: Measurements) -> list[str]:
    if not measured.tokens:
        return []
    return [
        f"{counted(measured.tokens, 'speech token', 'speech tokens')}, {measured.tokens_per_pass:.2f} per pass of the "
        f"model; the longest wait between two pieces of audio was {measured.largest_gap_seconds:.2f} s."
    ]


# --- Figures ----------------------------------------------------------------------------------------------------------
MEASURED = (
    *("real_time_factor", "seconds", "audio_seconds", "first_audio_seconds", "largest_gap_seconds", "pause_seconds"),
    *("text_seconds", "backbone_seconds", "backbone_time_factor", "decoder_seconds", "flow_seconds", "vocoder_seconds"),
    *("cpu_seconds", "cpu_time_factor", "other_share", "busy"),
    *("evaluations", "tokens", "target_passes", "ops_ratio", "streaming_difference"),
)
OF_ITS_OWN = ("loudness", "true_peak", "clipping", "silence")
"""Figures of :class:`paretone.setting.take.Metrics` that need no baseline."""


def figures(spoken: Synthesis | Take) -> dict[str, float | None]:
    """Measurements as a row; seconds are wall seconds, operations a share of the baseline's. ``None``: not measured."""
    heard = asdict(spoken.metrics if isinstance(spoken, Take) else signal_metrics(spoken.samples, spoken.sample_rate))
    measured = {name: getattr(spoken.measurements, name) for name in MEASURED}
    own = {name: heard[name] for name in OF_ITS_OWN}
    return {"sample_rate": spoken.sample_rate, "samples": len(spoken.samples), **measured, **own}


def heard_line(row: Mapping[str, float | None]) -> str:
    """Sentence on a take's loudness and clipping; ``row`` has the figures of :data:`OF_ITS_OWN`."""
    if row["loudness"] is None:
        return "It is silent."
    clipped = f"{percent(row['clipping'], 2)} of it clips" if row["clipping"] else "nothing clips"
    return (
        f"Loudness {row['loudness']:.1f} LUFS, true peak {row['true_peak']:.1f} dBTP; {clipped}; "
        f"{percent(row['silence'] or 0.0)} is silence."
    )
