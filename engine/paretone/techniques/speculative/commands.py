"""``paretone train draft``: train a draft for a language model; ``paretone export-model``: write a student or a draft
as a checkpoint for other software."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path

from paretone.commands import arguments, train
from paretone.commands.command import Command, Result
from paretone.commands.output import place_for_folder
from paretone.commands.terminal import JOB, Session
from paretone.session.commands import ExportWeights
from paretone.setting.knobs import Knob, Values
from paretone.techniques import speculative
from paretone.techniques.speculative import DraftRequest, OfLayers
from paretone.wording import counted


def _declare_training(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("draft")
    group.add_argument(
        "--features",
        action="store_true",
        help="one layer that reads the model's hidden states (EAGLE-3) in place of some of its layers; the next four "
        "options then have no effect",
    )
    group.add_argument(
        "--lower", type=arguments.positive, default=2, help="lowest layers, which learn (default: %(default)s)"
    )
    group.add_argument(
        "--upper",
        type=arguments.count,
        help="topmost layers, which stay as they are (default: a quarter of the model's; of a dozen or fewer none)",
    )
    group.add_argument(
        "--spoken-share",
        type=arguments.finite,
        default=0.2,
        metavar="SHARE",
        help="weight of the cross-entropy in the loss, against the divergence from the target; 1 is the published loss "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--overlap-share",
        type=arguments.finite,
        default=0.5,
        metavar="SHARE",
        help="weight of the rejected probability in the rest of the loss, against the divergence "
        "(default: %(default)s)",
    )
    group.add_argument("--initial", type=Path, metavar="FILE", help="draft of the same layers to start from")
    train.add_companion(parser)


def _run_training(options: argparse.Namespace, session: Session) -> Result:
    request = DraftRequest(
        **train.companion_request(options),
        features=options.features,
        **{one.name: getattr(options, one.name) for one in fields(OfLayers)},
        initial=train.path_text(options.initial),
    )
    trained = train.trained(speculative.NAME, request, session)
    text = f"Wrote {trained.checkpoint}, {counted(trained.steps, 'step', 'steps')}.\n{trained.summary}"
    return train.result(options, trained, text)


def _declare_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", choices=("student", "draft"), help="what to write; a draft comes with the settings to use it with"
    )
    arguments.add_model(parser, arguments.DEFAULT_LANGUAGE_MODEL)
    parser.add_argument("--file", metavar="FILE", default="", help="which one (default: the first shipped)")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="output folder; existing files are not replaced")
    arguments.add_knobs(parser.add_argument_group("settings of a draft"), _settings())


def _run_export(options: argparse.Namespace, session: Session) -> Result:
    settings = Values(arguments.given(options, _settings()))
    out = place_for_folder(options.out)
    model = arguments.model(options)
    command = ExportWeights(JOB, model, options.kind, options.file, str(out), settings, options.folder)
    done = session.carry_out(command)
    data = {"out": options.out, "weights": done.source, "files": list(done.files)}
    return Result(data, f"Wrote {', '.join(done.files)}, of the {options.kind} {Path(done.source).stem}.")


def _settings() -> list[Knob]:
    return [knob for knob in speculative.TECHNIQUE.knobs if knob.name != "draft"]


TRAIN = Command(
    "train draft",
    "Train a draft that proposes tokens to a speech language model, for speculative decoding (SSD).",
    _declare_training,
    _run_training,
)
EXPORT = Command(
    "export-model",
    "Write a student or a draft of a speech language model as a checkpoint that others load.",
    _declare_export,
    _run_export,
)
