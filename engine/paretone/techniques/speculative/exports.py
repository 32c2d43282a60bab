"""Exports of speculative decoding: see :mod:`paretone.export.targets`. Torch-free."""

from __future__ import annotations

from paretone.export.accounts import ADAPTIVE_DRAFT, DRAFT, Carried, Line, knob_lines
from paretone.export.targets import Target, lacking
from paretone.setting.setting import UsedTechnique
from paretone.techniques import knobs_of

KIND = "draft"
SETTINGS_FILE = "speculative.json"


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """The draft and how many tokens it proposes; other programs check tokens exactly."""
    if DRAFT not in target.takes:
        return lacking(target, entry)
    knobs = knobs_of(entry)
    adapts = bool(knobs["adaptive"]) and ADAPTIVE_DRAFT in target.takes
    honours = [
        *knob_lines(entry, "written next to the model", ("draft",)),
        *knob_lines(entry, "that many tokens are proposed at a time", ("draft_length",)),
    ]
    drops: list[Line] = []

    def put(name: str, honoured: bool, how: str) -> None:
        (honours if honoured else drops).extend(knob_lines(entry, how, (name,)))

    exact = f"{target.program} checks tokens exactly, which is β = 0"
    put("tolerance", not knobs["tolerance"], exact)
    put("tolerated", False, exact)
    put("verification", False, f"{target.program} checks token by token")
    if knobs["adaptive"]:
        rule = "two more after full acceptance, one less after any other: not by measured times"
        put("adaptive", adapts, rule if adapts else f"{target.program} proposes a fixed number")
    else:
        put("adaptive", True, "a fixed number")
    return Carried(tuple(honours), tuple(drops), {"draft": {"length": int(knobs["draft_length"]), "adaptive": adapts}})
