"""``paretone measure-layers``: each layer's importance; ``paretone train spade``: a student with fewer layers."""

from __future__ import annotations

import argparse

from paretone.bench.report import table
from paretone.commands import arguments, train
from paretone.commands.command import Command, Result
from paretone.commands.terminal import JOB, Session
from paretone.errors import SettingError
from paretone.models import catalogue
from paretone.models.base import LANGUAGE, Utterance
from paretone.models.files.layer_importance import COSINE, DIVERGENCE, MEASURES, WORD_ERROR, ImportanceRecord
from paretone.session.commands import Prepare
from paretone.setting.knobs import whole_numbers
from paretone.setting.setting import Setting
from paretone.techniques import spade
from paretone.techniques.spade import (
    FORM,
    IMPORTANCE,
    JUDGES,
    MEASURED_SENTENCES,
    WORDS,
    ImportanceRequest,
    StudentRequest,
    fitting_depth,
)
from paretone.wording import Share, counted

OPTIONS = train.form_knobs(FORM, "alpha", "skew", "attention_scale", "attention_interval", "original_layers")


def _declare_measuring(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser, arguments.DEFAULT_LANGUAGE_MODEL)
    parser.add_argument(
        "--measure",
        choices=MEASURES,
        action="append",
        help="what to measure; repeat for more (default: divergence and cosine, which need no audio; "
        "word_error speaks everything once per layer)",
    )
    parser.add_argument(
        "--judge",
        choices=JUDGES,
        default=WORDS,
        help="who hears the word errors: pocketsphinx, or Whisper as in the paper (default: %(default)s)",
    )
    parser.add_argument(
        "--sentences",
        type=arguments.positive,
        default=MEASURED_SENTENCES,
        help="number of Harvard sentences, in every voice of the model (default: %(default)s)",
    )
    parser.add_argument("--depth", type=arguments.positive, help="layers to keep (default: half of the model's)")
    parser.add_argument("--seed", type=arguments.seed, default=0, help="seed of the sampler (default: %(default)s)")


def _run_measuring(options: argparse.Namespace, session: Session) -> Result:
    model = arguments.load(options, session, arguments.model(options), options.variant)
    if model.info.family != LANGUAGE:
        raise SettingError(f"{model.info.title} is not a language model: its layers are not measured like this.")
    sentences = catalogue.harvard_sentences()[: options.sentences]
    voices = catalogue.voices(model.info.id, options.folder)
    utterances = [Utterance(sentence, voice) for sentence in sentences for voice in voices]
    setting = Setting(model.info.id, catalogue.entry(model.info.id).options_with(), seed=options.seed)
    measures = tuple(options.measure or (DIVERGENCE, COSINE))
    request = ImportanceRequest(setting, tuple(utterances), measures, options.judge)
    measured = session.carry_out(Prepare(JOB, spade.NAME, request)).result
    record = measured.record
    kept = record.retained(min(options.depth or fitting_depth(record.layers), record.layers))
    data = {"path": measured.path, "retained": list(kept), "order": list(record.order)}
    data["measures"] = {one.measure: list(one.values) for one in record.measures}
    rows = [
        {"layer": layer, "kept": "yes" if layer in kept else "", **_figures(record, layer)}
        for layer in range(record.layers)
    ]
    listed = ", ".join(map(str, kept))
    lines = [*table(rows), "", f"The {len(kept)} that matter most: {listed}.", f"Wrote {measured.path}."]
    return Result(data, "\n".join(lines))


_HEADS = {WORD_ERROR: "word error rate", DIVERGENCE: "divergence (nats)", COSINE: "1 − cosine"}


def _figures(record: ImportanceRecord, layer: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for one in record.measures:
        figure = Share if one.measure == WORD_ERROR else float
        found[_HEADS[one.measure]] = figure(one.values[layer])
        if one.low:
            found[f"{_HEADS[one.measure]}, 95 %"] = [figure(one.low[layer]), figure(one.high[layer])]
    return found


def _declare_training(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("student")
    kept = group.add_mutually_exclusive_group()
    kept.add_argument("--depth", type=arguments.positive, help="layers to keep, by importance (default: half of them)")
    kept.add_argument("--layers", type=_layers, default=(), metavar="0,1,5", help="which layers to keep, from 0")
    group.add_argument(
        "--stages",
        type=arguments.above_zero,
        nargs="*",
        default=(),
        metavar="MINUTES",
        help="also keep the student after this many minutes of the budget",
    )
    group.add_argument(
        "--importance",
        choices=tuple(IMPORTANCE),
        default="",
        help="measure that selects the layers, measured first if it was not yet: word errors (by pocketsphinx, or by "
        "whisper as in the paper), divergence, or cosine, its ablation (default: as measured so far, else divergence)",
    )
    group.add_argument(
        "--measured-sentences",
        type=arguments.positive,
        default=MEASURED_SENTENCES,
        metavar="N",
        help="sentences of that measurement, in every voice (default: %(default)s)",
    )
    arguments.add_knobs(group, OPTIONS)
    group.add_argument(
        "--published-latents",
        action="store_false",
        dest="relative_latents",
        help="errors of layer outputs as published, not relative to the teacher's size",
    )
    train.add_companion(parser)


def _run_training(options: argparse.Namespace, session: Session) -> Result:
    request = StudentRequest(
        **train.companion_request(options),
        depth=options.depth,
        retained=options.layers,
        stages=tuple(options.stages),
        measured_sentences=options.measured_sentences,
        importance=options.importance,
        relative_latents=options.relative_latents,
        **arguments.given(options, OPTIONS),
    )
    trained = train.trained(spade.NAME, request, session)
    text = f"Wrote {trained.checkpoint}, {counted(trained.steps, 'step', 'steps')}.\n{trained.summary}"
    return train.result(options, trained, text)


def _layers(text: str) -> tuple[int, ...]:
    try:
        layers = whole_numbers(text)
    except ValueError:
        layers = ()
    if not layers:
        raise argparse.ArgumentTypeError(f"must be a list of layers such as 0,1,5, not {text!r}")
    return layers


MEASURE_LAYERS = Command(
    "measure-layers",
    "Measure how much each layer of a speech language model matters.",
    _declare_measuring,
    _run_measuring,
)
TRAIN = Command(
    "train spade",
    "Train a student with fewer layers, which learns from the whole speech language model (SPADE).",
    _declare_training,
    _run_training,
)
