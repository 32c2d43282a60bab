"""``paretone speak``: one text, under a profile or a setting, as a WAV file."""

from __future__ import annotations

import argparse
from dataclasses import replace

from engine.commands import arguments
from engine.commands.figures import figures, heard_line
from engine.commands.output import apart, writable
from engine.commands.result import Result
from engine.commands.session import JOB, Session
from engine.commands.technique_args import files_given, from_files, typed_technique, with_file, with_weights
from engine.errors import SettingError
from engine.files import write_wav
from engine.models.base import SpeechModel
from engine.session.commands import Synthesise
from engine.setting.artefact import Artefact
from engine.setting.evidence import Evidence
from engine.setting.profile import Profile
from engine.setting.setting import Setting
from engine.setting.take import Measurements
from engine.techniques import find, options_in_force, resolve

NAME = "speak"
SUMMARY = "Synthesise a text with a profile or a setting."


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    arguments.add_model(parser)
    group = parser.add_argument_group("acceleration")
    group.add_argument("--profile", metavar="FILE", help="profile to run: model, options and table")
    arguments.add_techniques(group)
    for technique, file in from_files():
        group.add_argument(f"--{file.option}", metavar="FILE", help=file.meaning)
        arguments.add_knobs(group, [knob for knob in technique.knobs if knob.name in file.knobs])
    arguments.add_sampler(parser)
    arguments.add_text(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="WAV file to write (32-bit float, mono)")
    parser.add_argument("--keep-profile", metavar="FILE", help="profile to write: setting and measurements")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Synthesise one text and write it as a WAV file."""
    text, out = arguments.text(options), writable(options.out)
    kept = None if options.keep_profile is None else writable(options.keep_profile)
    read = {"--text-file": options.text_file, "--voice": options.voice, "--profile": options.profile}
    apart({"--out": out}, {**read, **{f"--{option}": path for option, path in files_given(options)}})
    apart({"--out": out, "--keep-profile": kept})
    profile = Profile.load(options.profile) if options.profile else None
    if profile is not None and (options.technique or files_given(options)):
        raise SettingError("A profile has its own techniques and table: give either --profile or --technique.")
    model_id = options.model or (profile.setting.model if profile else arguments.DEFAULT_MODEL)
    variant = options.variant or (profile.named_variant if profile else "")
    voice = arguments.voice(options, model_id, profile)
    setting = arguments.setting(options, model_id) if profile is None else _changed(profile.setting, options, model_id)
    model = arguments.load(options, session, model_id, variant)
    if profile is not None:
        artefacts = profile.artefacts
        profile.check(model.info, resolve(model.info, setting, prepared=False).compatibility if artefacts else None)
    else:
        setting, artefacts = _with_techniques(with_weights(setting, model.info), model, options)
    take = session.carry_out(Synthesise(JOB, text, voice, setting, artefacts)).take
    write_wav(out, take.samples, take.sample_rate)
    if kept is not None:
        Profile.of(setting, model.info, artefacts, Evidence.of(take)).save(kept)
    found = figures(take)
    data = {
        "out": str(out),
        "text": text,
        "voice": voice.id,
        **found,
        "notes": [*take.notes, *_on_top(options, setting)],
        "setting": setting.to_json(),
        "checkpoint": model.info.fingerprint,
        "machine": take.machine,
        "profile": None if kept is None else str(kept),
    }
    measured = take.measurements
    lines = [
        f"Wrote {measured.audio_seconds:.2f} s of speech to {out}.",
        f"RTF {measured.real_time_factor:.3f} ({measured.seconds:.2f} s of synthesis), "
        f"TTFA {measured.first_audio_seconds:.2f} s, ops ratio {measured.ops_ratio:.3f}, on {model.info.device}.",
        heard_line(found),
        *_decoding(measured),
        *(note for note in data["notes"] if note not in session.terminal.cautioned),
        *([] if kept is None else [f"Wrote the profile to {kept}."]),
    ]
    return Result(data, "\n".join(lines))


def _on_top(options: argparse.Namespace, setting: Setting) -> list[str]:
    """Remark on guidance requested with weights that already contain theirs."""
    asked = getattr(options, "guidance", 0.0)
    if not asked or options_in_force(setting).get("guidance"):
        return []
    used = [find(one.technique) for one in setting.techniques]
    titles = [one.title for one in used if one is not None and one.weights]
    return [f"--guidance {asked:g} is ignored: {title} weights already contain their guidance." for title in titles[:1]]


def _decoding(measured: Measurements) -> list[str]:
    """Remarks on the decoding of a model with tokens."""
    if not measured.tokens:
        return []
    return [
        f"{measured.tokens} speech tokens, {measured.tokens_per_pass:.2f} per pass of the model; the longest wait "
        f"between two pieces of audio was {measured.largest_gap_seconds:.2f} s."
    ]


def _changed(setting: Setting, options: argparse.Namespace, model: str) -> Setting:
    """A profile's setting with what the arguments change in it."""
    seed = setting.seed if options.seed is None else options.seed
    changes = arguments.sampler_options(options, model)
    return replace(setting, seed=seed, options=setting.options.replace(**changes))


def _with_techniques(
    setting: Setting, model: SpeechModel, options: argparse.Namespace
) -> tuple[Setting, tuple[Artefact, ...]]:
    """``setting`` with what the arguments give as files."""
    asked = [one.technique for one in map(typed_technique, options.technique)]
    artefacts: tuple[Artefact, ...] = ()
    for technique, file in from_files():
        path, flag = getattr(options, file.option), f"--{file.option}"
        if path:
            knobs = arguments.given(options, technique.knobs)
            setting, found = with_file(setting, model, file.option, path, knobs)
            artefacts = (*artefacts, *found)
        elif technique.name in asked:
            raise SettingError(f"{technique.title} needs its {file.noun}: give {flag}, or --profile instead.")
        elif given := next((name for name in file.knobs if hasattr(options, name)), ""):
            raise SettingError(f"--{given.replace('_', '-')} belongs to a {file.noun}: give {flag} too.")
    return setting, artefacts
