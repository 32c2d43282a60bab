"""``paretone transfer``, ``export-table``, ``import-table``: strategy tables in files, Paretone's or official ones."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from paretone.bench.report import table as table_lines
from paretone.commands import arguments
from paretone.commands.command import Command, Result
from paretone.commands.output import apart, writable, write_json
from paretone.commands.terminal import JOB, Session
from paretone.errors import ProfileError
from paretone.models import catalogue
from paretone.models.base import SpeechModel, Utterance, Voice, flow_model
from paretone.models.voices import shown_name
from paretone.session.commands import Prepare
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import checked
from paretone.setting.profile import Profile, read_artefact
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted
from paretone.techniques import compatibility_of, ditreducio
from paretone.techniques.ditreducio.record import SentenceTransfer, TransferRequest
from paretone.techniques.ditreducio.table import StrategyTable, fixed_knobs
from paretone.wording import percent

TITLE = "strategy table"


def _declare_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="profile to read")
    parser.add_argument("--out", required=True, metavar="FILE", help="official table to write")


def _run_export(options: argparse.Namespace, session: Session) -> Result:
    profile, out = Profile.load(options.profile), writable(options.out)
    apart({"--out": out}, {"PROFILE": options.profile})
    table = profile.artefact("table")
    if table is None:
        raise ProfileError(f"{options.profile} has no strategy table; export one that uses DiTReducio.")
    write_json(out, table.to_official())
    data = {"out": str(out), "layers": table.layers, "steps": table.steps}
    return Result(data, f"Wrote the table of {table.layers} layers and {table.steps} steps to {out}.")


def _declare_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE", help="official table to read ({steps}_{threshold}.json)")
    arguments.add_model(parser)
    arguments.add_sampler(parser)
    arguments.add_knobs(parser.add_argument_group("DiTReducio, as it was calibrated"), ditreducio.TECHNIQUE.knobs)
    parser.add_argument("--out", required=True, metavar="FILE", help="profile to write")


def _run_import(options: argparse.Namespace, session: Session) -> Result:
    out = writable(options.out)
    apart({"--out": out}, {"TABLE": options.table})
    model_id = arguments.model(options)
    model = arguments.load(options, session, model_id, options.variant)
    knobs = arguments.given(options, ditreducio.TECHNIQUE.knobs)
    setting, (table,) = with_table(arguments.setting(options, model_id), model, options.table, knobs)
    profile = Profile.of(setting, model.info, (table,))
    profile.check(model.info, _belonging(model, setting))
    profile.save(out)
    data = {"out": str(out), "layers": table.layers, "steps": table.steps, "skipped_share": table.skipped_share}
    size = f"{table.layers} layers and {table.steps} steps, {percent(table.skipped_share)} skipped"
    return Result(data, f"Wrote a profile of {size}, to {out}.")


def _belonging(model: SpeechModel, setting: Setting) -> Compatibility:
    return compatibility_of(flow_model(model, "A strategy table").info, setting, of_flow=True)


def with_table(
    setting: Setting, model: SpeechModel, path: str, knobs: Mapping[str, object]
) -> tuple[Setting, tuple[StrategyTable, ...]]:
    """``setting`` with DiTReducio under the table in ``path``, and that table. ``knobs`` are those given by the user.
    Raises :class:`ProfileError` if the table cannot be used here."""
    compatibility = _belonging(model, setting)
    data = read_artefact(path, TITLE)
    values = checked(ditreducio.TECHNIQUE.knobs, knobs, ditreducio.TECHNIQUE.title)
    if isinstance(data, dict) and "actions" in data:
        table = StrategyTable.from_json(data, path)
        for name, words in (("branch_skip", "branch skipping"), ("temporal", "skipped outputs")):
            if name in knobs and knobs[name] != (own := getattr(table, name)):
                raise ProfileError(f"{path} was calibrated with {words} {own!r}; omit that option.")
    else:
        table = StrategyTable.from_official(data, compatibility, str(values["branch_skip"]), path)
    values = fixed_knobs(table, values)
    mismatch = table.compatibility.mismatch(compatibility)
    if mismatch:
        raise ProfileError(f"The strategy table {path} cannot be used here: {mismatch}.")
    if table.layers != model.info.of_flow.layers:
        raise ProfileError(
            f"The strategy table {path} has {table.layers} layers, but {model.info.of_flow.title} has "
            f"{model.info.of_flow.layers}."
        )
    return setting.with_technique(UsedTechnique(ditreducio.TECHNIQUE.name, values, table.fingerprint)), (table,)


SENTENCES = 4


def _declare_transfer(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Every text is spoken in every voice, twice from the same noise: in full and with the table. Every skip of the "
        "table is measured as in a calibration."
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--table", metavar="FILE", help="strategy table, Paretone's or the official form")
    source.add_argument("--profile", metavar="FILE", help="profile with a table; also gives model and options")
    own = parser.add_argument_group("what the table was calibrated on, to compare with")
    own.add_argument(
        "--own-text", action="append", help="a sentence; repeat for more (default: that of the profile's evidence)"
    )
    own.add_argument(
        "--own-voice", action="append", help="its voice; repeat for the other sentences (default: the evidence's)"
    )
    arguments.add_model(parser)
    arguments.add_sampler(parser)
    arguments.add_knobs(
        parser.add_argument_group("DiTReducio, if the profile does not give it"),
        [knob for knob in ditreducio.TECHNIQUE.knobs if knob.name != "marked"],
    )
    arguments.add_utterances(parser, f"{SENTENCES} of the Harvard sentences", "the shipped ones")


def _run_transfer(options: argparse.Namespace, session: Session) -> Result:
    texts = arguments.several_texts(options) or catalogue.harvard_sentences()[:SENTENCES]
    profile = Profile.load(options.profile) if options.profile else None
    plain = _plain(options) if profile is None else profile.setting
    voices = arguments.several_voices(options, plain.model) or catalogue.voices(plain.model, options.folder)
    unseen = [Utterance(text, voice) for voice, text in product(voices, texts)]
    calibrated = _own(options, plain.model, profile)
    if profile is None:
        model = arguments.load(options, session, plain.model, options.variant)
        knobs = arguments.given(options, ditreducio.TECHNIQUE.knobs)
        setting, (table,) = with_table(plain, model, options.table, knobs)
    else:
        model = arguments.load(options, session, plain.model, options.variant or profile.named_variant)
        if profile.artefact("table") is None:
            raise ProfileError(f"{options.profile} has no strategy table; choose a profile that uses DiTReducio.")
        profile.check(model.info, _belonging(model, profile.setting))
        setting, table = profile.setting, profile.artefact("table")
    request = TransferRequest(table, tuple(calibrated), tuple(unseen), setting)
    report = session.carry_out(Prepare(JOB, ditreducio.TECHNIQUE.name, request)).result
    model = flow_model(model, "Measuring a strategy table")
    script = scripted(model, unseen[0].text, unseen[0].voice, setting, prepared=False)
    ops_ratio = table.ops_ratio(model.operations(script))
    whose = ditreducio.ops_ratio_of(model.info)
    data = {**report.to_json(), "ops_ratio": ops_ratio, "ops_ratio_of": whose}
    data |= {"setting": setting.to_json(), "machine": session.machine}
    rows = [_row("own", one) for one in report.calibrated] + [_row("unseen", one) for one in report.unseen]
    lines = [
        *table_lines(rows),
        "",
        f"The table ({table.origin}) skips {percent(table.skipped_share)} of the cells, ops ratio of the {whose} "
        f"{ops_ratio:.3f}; "
        f"errors are compared with threshold {report.threshold:g} ({ditreducio.UNITS[report.metric]}).",
        report.verdict,
    ]
    return Result(data, "\n".join(lines))


def _own(options: argparse.Namespace, model: str, profile: Profile | None) -> list[Utterance]:
    """Utterances of the table's calibration, if known; voices take turns."""
    if not options.own_text:
        evidence = profile.evidence if profile else None
        if profile is None or not evidence or not evidence.text:
            return []
        return [Utterance(evidence.text, profile.voice(options.folder))]
    place = model, options.folder
    voices: list[Voice] = [catalogue.voice(name, *place) for name in options.own_voice or ()]
    voices = voices or [profile.voice(options.folder) if profile else catalogue.voice("", *place)]
    return [Utterance(text, voices[turn % len(voices)]) for turn, text in enumerate(options.own_text)]


def _plain(options: argparse.Namespace) -> Setting:
    """The setting of the arguments, with the options of the table's file if it has any."""
    data = read_artefact(options.table, TITLE)
    if not isinstance(data, dict) or "actions" not in data:
        return arguments.setting(options, arguments.model(options))
    compatibility = StrategyTable.from_json(data, options.table).compatibility
    model = options.model or compatibility.model
    setting, given = arguments.setting(options, model), arguments.given(options, catalogue.entry(model).options)
    return replace(setting, options=setting.options.replace(**{**compatibility.sampling, **given}))


def _row(kind: str, one: SentenceTransfer) -> dict[str, object]:
    return {
        "sentence": kind,
        "voice": shown_name(one.sentence.voice),
        "frames": one.sentence.frames,
        "velocity error (mean)": one.velocity_error,
        "velocity error (last step)": one.velocity_errors[-1],
        "log-mel distance (nat. log)": one.distance,
        "skips beyond bound (%)": 100 * one.exceeding,
        "text": one.sentence.text if len(one.sentence.text) <= 48 else f"{one.sentence.text[:47]}…",
    }


EXPORT = Command("export-table", "Write a profile's strategy table in the official form.", _declare_export, _run_export)
IMPORT = Command(
    "import-table",
    "Make a profile from an official strategy table and the options that it was calibrated with.",
    _declare_import,
    _run_import,
)
TRANSFER = Command(
    "transfer",
    "Measure how well a strategy table serves sentences and voices that it was not calibrated on.",
    _declare_transfer,
    _run_transfer,
)
