"""``paretone train average-velocity``: fine-tune a model so that few evaluations replace many guided steps."""

from __future__ import annotations

import argparse
from pathlib import Path

from paretone.commands import arguments, train
from paretone.commands.command import Result
from paretone.commands.terminal import Session
from paretone.setting.knobs import Values
from paretone.techniques import average_velocity
from paretone.techniques.average_velocity import FORM, GUIDANCE, SINGLE_SHARE, AverageVelocityRequest
from paretone.wording import counted

NAME = "train average-velocity"
SUMMARY = "Fine-tune a model so that one to four evaluations replace many guided steps."
OPTIONS = train.form_knobs(FORM, "method", "teacher_steps")


def declare(parser: argparse.ArgumentParser) -> None:
    train.add_speech(parser)
    group = parser.add_argument_group("average velocity")
    arguments.add_knobs(group, OPTIONS)
    for name in GUIDANCE:
        group.add_argument(
            f"--{name}",
            type=arguments.finite,
            metavar="STRENGTH",
            help="guidance to include (default: the model's usual one)",
        )
    group.add_argument(
        "--uses",
        type=arguments.positive,
        default=1,
        metavar="N",
        help="training steps that learn from each target, which takes longer to work out than to learn from; above "
        "1, a resumed run ends in other bits (default: %(default)s)",
    )
    group.add_argument(
        "--single-share",
        type=arguments.finite,
        default=SINGLE_SHARE,
        metavar="SHARE",
        help="share of the training that is for one evaluation, 0 to 1 (default: %(default)s)",
    )
    group.add_argument(
        "--temperature",
        type=arguments.finite,
        default=1.0,
        metavar="SCALE",
        help="scale of the initial noise that takes with these weights start from, unless a setting says otherwise; "
        "written down with them (default: %(default)s)",
    )
    group.add_argument(
        "--initial",
        type=Path,
        metavar="FILE",
        help="such weights of the same checkpoint to start from (default: the model's own)",
    )
    train.add_training(
        parser,
        "4e-4 below 20 million parameters, else 1e-5",
        "0.006 below 20 million parameters, else AdamW for everything",
    )


def run(options: argparse.Namespace, session: Session) -> Result:
    given = {name: getattr(options, name) for name in GUIDANCE if getattr(options, name) is not None}
    request = AverageVelocityRequest(
        guidance=Values(given),
        uses=options.uses,
        single_share=options.single_share,
        temperature=options.temperature,
        initial=train.path_text(options.initial),
        **arguments.given(options, OPTIONS),
        **train.fine_tuning_request(options),
    )
    trained = train.trained(average_velocity.NAME, request, session)
    text = (
        f"Wrote {trained.checkpoint}: {counted(trained.steps, 'step', 'steps')} by {request.method}.\n{trained.summary}"
    )
    return train.result(options, trained, text)
