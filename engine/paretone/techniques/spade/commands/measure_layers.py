"""``paretone measure-layers``: how much each layer of a speech language model matters, and which would stay."""

from __future__ import annotations

import argparse

from paretone.bench.report import table
from paretone.commands import arguments
from paretone.commands.result import Result
from paretone.commands.session import JOB, Session
from paretone.errors import SettingError
from paretone.models import catalogue
from paretone.models.base import LANGUAGE, Utterance
from paretone.models.files.layer_importance import COSINE, DIVERGENCE, MEASURES, ImportanceRecord
from paretone.session.commands import Prepare
from paretone.setting.setting import Setting
from paretone.techniques import spade
from paretone.techniques.spade import fitting_depth
from paretone.techniques.spade.requests import MEASURED_SENTENCES, ImportanceRequest

NAME = "measure-layers"
SUMMARY = "Measure how much each layer of a speech language model matters."


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    arguments.add_model(parser, arguments.DEFAULT_LANGUAGE_MODEL)
    parser.add_argument(
        "--measure",
        choices=MEASURES,
        action="append",
        help="what to measure; repeat for more (default: divergence and cosine, which need no audio; "
        "word_error speaks everything once per layer)",
    )
    parser.add_argument(
        "--sentences",
        type=arguments.positive,
        default=MEASURED_SENTENCES,
        help="number of Harvard sentences, in every voice of the model (default: %(default)s)",
    )
    parser.add_argument("--depth", type=arguments.positive, help="layers to keep (default: half of the model's)")
    parser.add_argument("--seed", type=arguments.seed, default=0, help="seed of the sampler (default: %(default)s)")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Measure, keep the record where the application looks, and show it."""
    model = arguments.load(options, session, options.model, options.variant)
    if model.info.family != LANGUAGE:
        raise SettingError(f"{model.info.title} is not a language model: its layers are not measured like this.")
    sentences = catalogue.harvard_sentences()[: options.sentences]
    utterances = [Utterance(sentence, voice) for sentence in sentences for voice in catalogue.voices(model.info.id)]
    setting = Setting(model.info.id, catalogue.entry(model.info.id).options_with(), seed=options.seed)
    request = ImportanceRequest(setting, tuple(utterances), tuple(options.measure or (DIVERGENCE, COSINE)))
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


def _figures(record: ImportanceRecord, layer: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for one in record.measures:
        found[one.measure] = one.values[layer]
        if one.low:
            found[f"{one.measure}, 95 %"] = f"{one.low[layer]:.3g} to {one.high[layer]:.3g}"
    return found
