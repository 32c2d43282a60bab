"""DiTReducio's strategy table: the action of every layer at every step.

Torch-free: a front end draws, edits and prices tables without loading the engine's heavy parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from paretone.errors import ProfileError
from paretone.fields import exact
from paretone.reading import shown
from paretone.sampling.actions import SkipAction
from paretone.sampling.operations import OperationCounts
from paretone.sampling.schedules import time_grid
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Choice, Effect, Values
from paretone.setting.setting import UsedTechnique

TEMPORAL = Choice(
    "temporal",
    "Skipped output",
    "What a temporal skip takes a module's output to be: the last one again, or a first-order forecast from the last "
    "two, after TaylorSeer (arXiv 2503.06923) and Adams–Bashforth.",
    default="reuse",
    effect=Effect.AFTER_CALIBRATION,
    values=("reuse", "forecast"),
    titles=("Reuse (paper)", "Forecast (ours, after TaylorSeer)"),
)


BRANCH_SKIP_VARIANTS = ("both", "attention")
"""Modules saved by branch skipping: ``both`` (the paper, the official code of 2025, and that of 2026 for MegaTTS 3) or
``attention`` only (the official F5 code of 2026)."""


_BY_HAND = "edited by hand"
_IMPORTED = "imported from "
_FOLDER = re.compile(rf"^{_IMPORTED}.*[/\\]")
"""Folder of an imported table's file, which is removed from its origin: it belongs to a machine."""


@dataclass(frozen=True)
class StrategyTable:
    """One action per layer and step, ``actions[layer][step]``; step 0 always computes."""

    compatibility: Compatibility
    actions: tuple[tuple[SkipAction, ...], ...]
    branch_skip: str = "both"
    origin: str = ""
    """Description of the origin: calibrated at a threshold, edited by hand, or imported from a file."""
    temporal: str = "reuse"
    """Output of temporal skips; see :data:`TEMPORAL`."""
    edited: StrategyTable | None = field(default=None, repr=False, compare=False)
    """The table before editing by hand, in this session."""

    def __post_init__(self) -> None:
        steps = self.compatibility.steps
        for name, known in (("branch_skip", BRANCH_SKIP_VARIANTS), ("temporal", TEMPORAL.values)):
            if (said := getattr(self, name)) not in known:
                raise ProfileError(f"The strategy table's {name} must be one of {', '.join(known)}, not {shown(said)}.")
        if not self.actions:
            raise ProfileError("The strategy table has no layers.")
        for layer, row in enumerate(self.actions):
            if len(row) != steps:
                raise ProfileError(
                    f"The strategy table has {len(row)} steps in layer {layer + 1}, but its grid has {steps}."
                )
            if row[0] is not SkipAction.NONE:
                raise ProfileError(f"The strategy table skips layer {layer + 1} at step 1, where nothing is cached.")

    @classmethod
    def computing(
        cls, compatibility: Compatibility, layers: int, branch_skip: str = "both", temporal: str = "reuse"
    ) -> StrategyTable:
        """Table without skips."""
        actions = ((SkipAction.NONE,) * compatibility.steps,) * layers
        return cls(compatibility, actions, branch_skip, "nothing skipped", temporal)

    @property
    def layers(self) -> int:
        return len(self.actions)

    @property
    def steps(self) -> int:
        return self.compatibility.steps

    @property
    def times(self) -> tuple[float, ...]:
        sampling = self.compatibility.sampling
        shape = {name: sampling[name] for name in ("spacing", "sway") if name in sampling}
        return tuple(time_grid(self.steps, **shape).tolist())

    def at(self, step: int) -> tuple[SkipAction, ...]:
        return tuple(row[step] for row in self.actions)

    def changed(self, layer: int, step: int, action: SkipAction) -> StrategyTable:
        """Copy with one cell changed by hand; the original table if all cells are restored."""
        row = (*self.actions[layer][:step], SkipAction(action), *self.actions[layer][step + 1 :])
        rows = (*self.actions[:layer], row, *self.actions[layer + 1 :])
        edited = self.edited or self
        origin = self.origin if self.by_hand else f"{self.origin}, {_BY_HAND}".lstrip(", ")
        made = replace(self, actions=rows, origin=origin, edited=edited)
        return edited if edited.fingerprint == made.fingerprint else made

    @property
    def by_hand(self) -> bool:
        """Whether cells were changed by hand."""
        return self.origin.endswith(_BY_HAND)

    def count(self, action: SkipAction) -> int:
        return sum(row.count(action) for row in self.actions)

    @property
    def skipped_share(self) -> float:
        """Share of cells that do not compute everything, 0 to 1."""
        return 1 - self.count(SkipAction.NONE) / (self.layers * self.steps)

    def ops_ratio(self, operations: OperationCounts) -> float:
        """Backbone operations under this table over those without it, counted as in ``OperationCounts``."""
        branches = operations.branches
        both = operations.attention + operations.feed_forward
        one_branch = both if self.branch_skip == "both" else operations.attention + branches * operations.feed_forward
        total = self.steps * branches * operations.fixed
        total += self.count(SkipAction.NONE) * branches * both + self.count(SkipAction.BS) * one_branch
        return total / (self.steps * operations.evaluation)

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that are equal for tables that act equally on the same model."""
        return self.compatibility.fingerprint_of(self.to_json())

    def to_json(self) -> dict:
        """Plain JSON values. Additions to the paper are written only if used: other tables keep their fingerprints."""
        return {
            "belonging": self.compatibility.to_json(),
            "branch_skip": self.branch_skip,
            **({"temporal": self.temporal} if self.temporal != TEMPORAL.default else {}),
            "origin": self.origin,
            "actions": [[action.name for action in row] for row in self.actions],
        }

    @classmethod
    def from_json(cls, data: object, where: str = "strategy table") -> StrategyTable:
        """Read the result of :meth:`to_json`. Raises :class:`ProfileError`, which names the faulty field."""
        fields = {"belonging": object, "branch_skip": str, "temporal": str, "origin": str, "actions": object}
        found = exact(data, where, fields, ProfileError, optional=("temporal", "origin"))
        return cls(
            Compatibility.from_json(found["belonging"], f"{where}.belonging"),
            read_actions(found["actions"], f"{where}.actions"),
            found["branch_skip"],
            _FOLDER.sub(_IMPORTED, found.get("origin", "")),
            found.get("temporal", TEMPORAL.default),
        )

    def to_official(self) -> dict:
        """The official code's format: ``methods[layer][step]``, and the steps at which module outputs are cached.
        Raises :class:`ProfileError` for a table with forecasts, which the official code lacks."""
        if self.temporal != TEMPORAL.default:
            raise ProfileError(
                "The strategy table was calibrated with forecasts, which the official code does not know; calibrate "
                "with reuse for it."
            )
        needed = [[False] * self.steps for _ in self.actions]
        for layer, row in enumerate(self.actions):
            last = 0  # The last step that was not itself a temporal skip: a skip after it uses its output.
            for step, action in enumerate(row):
                if action is not SkipAction.NONE:
                    needed[layer][last] = True
                if action is not SkipAction.TS:
                    last = step
        return {"methods": [[action.name for action in row] for row in self.actions], "need_cached_output": needed}

    @classmethod
    def from_official(cls, data: object, compatibility: Compatibility, branch_skip: str, where: str) -> StrategyTable:
        """Read an official ``{steps}_{threshold}.json``, which lacks its compatibility; the caller gives it. Raises
        :class:`ProfileError` if it is no such file or has another number of steps."""
        if not isinstance(data, dict) or "methods" not in data:
            raise ProfileError(f"{where} is not an official strategy table: it has no field 'methods'.")
        actions = read_actions(data["methods"], f"{where}: methods")
        return cls(compatibility, actions, branch_skip, _FOLDER.sub(_IMPORTED, f"{_IMPORTED}{where}"))


def read_actions(data: object, where: str) -> tuple[tuple[SkipAction, ...], ...]:
    if not isinstance(data, list) or not all(isinstance(row, list) for row in data):
        raise ProfileError(f"{where} must be a list (layers) of lists (steps).")
    for layer, row in enumerate(data):
        for step, name in enumerate(row):
            if not isinstance(name, str) or name not in SkipAction.__members__:
                raise ProfileError(f"{where}[{layer}][{step}] must be NONE, TS or BS, not {shown(name)}.")
    return tuple(tuple(SkipAction[name] for name in row) for row in data)


def check_profile(table: StrategyTable, entry: UsedTechnique, compatibility: Compatibility) -> None:
    """Raise :class:`ProfileError` if table, knobs of ``entry`` and the profile's compatibility disagree."""
    for name, own in (("branch_skip", table.branch_skip), ("temporal", table.temporal)):
        said = entry.knobs.get(name, own)
        if said != own:
            raise ProfileError(f"table.{name} is {shown(own)}, but setting.techniques says {shown(said)}.")
    compatibility.require_said(table.compatibility, "table")


def fixed_knobs(table: StrategyTable, knobs: Values) -> Values:
    """``knobs`` with those fixed by the table's calibration."""
    return knobs.replace(branch_skip=table.branch_skip, temporal=table.temporal)
