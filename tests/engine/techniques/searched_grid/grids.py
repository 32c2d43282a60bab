"""A small model, and grids that belong to it."""

from __future__ import annotations

from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import compatibility_of
from paretone.techniques.searched_grid import PlacedGrid, placed_for
from tests.engine.small_speech import load, setting

NAME = "searched_grid"
TIMES = (0.0, 0.1, 0.3, 1.0)


def model():
    return load("small", "", "", "cpu", lambda text: None, lambda: None)


def placed(speech, times: tuple[float, ...] = TIMES, **options: object) -> PlacedGrid:
    return PlacedGrid(placed_for(compatibility_of(speech.info, setting(4, **options)), len(times) - 1), times)


def using(grid: PlacedGrid | None, *others: UsedTechnique, steps: int = 4, **knobs: object) -> Setting:
    chosen = setting(steps)
    for one in others:
        chosen = chosen.with_technique(one)
    if grid is not None:
        knobs = {"evaluations": grid.steps, **knobs}
    return chosen.with_technique(UsedTechnique(NAME, Values(knobs), grid.fingerprint if grid else ""))
