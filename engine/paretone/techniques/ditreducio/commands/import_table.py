"""``paretone import-table``: a profile from an official strategy table and what that belongs to."""

from __future__ import annotations

import argparse

from paretone.commands import arguments
from paretone.commands.output import apart, writable
from paretone.commands.result import Result
from paretone.commands.session import Session
from paretone.models.base import flow_model
from paretone.setting.profile import Profile
from paretone.techniques import compatibility_of, ditreducio
from paretone.techniques.ditreducio.commands.table_file import with_table
from paretone.wording import percent

NAME = "import-table"
SUMMARY = "Make a profile from an official strategy table and the options that it was calibrated with."


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument("table", metavar="TABLE", help="official table to read ({steps}_{threshold}.json)")
    arguments.add_model(parser)
    arguments.add_sampler(parser)
    group = parser.add_argument_group("DiTReducio, as it was calibrated")
    arguments.add_knobs(group, ditreducio.TECHNIQUE.knobs)
    parser.add_argument("--out", required=True, metavar="FILE", help="profile to write")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Make the profile."""
    out = writable(options.out)
    apart({"--out": out}, {"TABLE": options.table})
    model_id = options.model or arguments.DEFAULT_MODEL
    model = arguments.load(options, session, model_id, options.variant)
    knobs = arguments.given(options, ditreducio.TECHNIQUE.knobs)
    setting, (table,) = with_table(arguments.setting(options, model_id), model, options.table, knobs)
    profile = Profile.of(setting, model.info, (table,))
    profile.check(model.info, compatibility_of(flow_model(model, "A strategy table").info, setting))
    profile.save(out)
    data = {"out": str(out), "layers": table.layers, "steps": table.steps, "skipped_share": table.skipped_share}
    size = f"{table.layers} layers and {table.steps} steps, {percent(table.skipped_share)} skipped"
    return Result(data, f"Wrote a profile of {size}, to {out}.")
