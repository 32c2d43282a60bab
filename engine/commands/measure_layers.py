"""``paretone measure-layers``: how much each layer of a speech language model matters, and which would stay."""

from __future__ import annotations

import argparse

from engine.bench.report import table
from engine.commands import arguments
from engine.commands.result import Result
from engine.commands.session import Session
from engine.commands.terminal import Terminal
from engine.commands.train_language import DEFAULT_MODEL
from engine.errors import SettingError
from engine.models import catalogue
from engine.models.base import LANGUAGE, StepReport, Utterance
from engine.setting.setting import Setting
from engine.techniques.spade.record import COSINE, DIVERGENCE, FILE, MEASURES, ImportanceRecord, read_record

NAME = "measure-layers"
SUMMARY = "Measure how much each layer of a speech language model matters."


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    arguments.add_model(parser, DEFAULT_MODEL)
    parser.add_argument(
        "--measure",
        choices=MEASURES,
        action="append",
        help="what to measure; again for another one (default: divergence and cosine, which need no audio; "
        "word_error speaks everything once per layer)",
    )
    parser.add_argument(
        "--sentences",
        type=arguments.positive,
        default=8,
        help="of the Harvard sentences, in every voice of the model (default: %(default)s)",
    )
    parser.add_argument("--depth", type=arguments.positive, default=6, help="layers to keep (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sampler (default: %(default)s)")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Measure, keep the record where the application looks, and show it."""
    terminal = session.terminal
    model = arguments.load(options, session, options.model, options.variant)
    if model.info.family != LANGUAGE:
        raise SettingError(f"{model.info.title} is no language model: its layers are not measured like this.")
    from engine.models.files.language_weights import own_place, places_of
    from engine.techniques.spade.measuring import measure_layers

    sentences = catalogue.harvard_sentences()[: options.sentences]
    utterances = [Utterance(sentence, voice) for sentence in sentences for voice in catalogue.voices()]
    setting = Setting(model.info.id, catalogue.entry(model.info.id).options_with(), seed=options.seed)
    folder = own_place(model.info.id)
    earlier = read_record(places_of(model.info), model.info.fingerprint)
    measures = tuple(options.measure or (DIVERGENCE, COSINE))
    record = measure_layers(model, utterances, setting, measures, _Follower(terminal), earlier)
    record.write(folder / FILE)
    kept = record.retained(min(options.depth, record.layers))
    data = {"path": str(folder / FILE), "retained": list(kept), "order": list(record.order)}
    data["measures"] = {one.measure: list(one.values) for one in record.measures}
    rows = [
        {"layer": layer, "kept": "yes" if layer in kept else "", **_figures(record, layer)}
        for layer in range(record.layers)
    ]
    listed = ", ".join(map(str, kept))
    lines = [*table(rows), "", f"The {len(kept)} that matter most: {listed}.", f"Wrote {folder / FILE}."]
    return Result(data, "\n".join(lines))


def _figures(record: ImportanceRecord, layer: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for one in record.measures:
        found[one.measure] = one.values[layer]
        if one.low:
            found[f"{one.measure}, 95 %"] = f"{one.low[layer]:.3g} to {one.high[layer]:.3g}"
    return found


class _Follower:
    """Shows in the terminal how much is measured; steps of single utterances are not shown."""

    def __init__(self, terminal: Terminal) -> None:
        self.check, self.status, self.progress = terminal.check, terminal.status, terminal.progress

    def step(self, report: StepReport) -> None:
        self.check()
