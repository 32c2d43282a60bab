"""Placed grids from files."""

from __future__ import annotations

from collections.abc import Mapping

from paretone.errors import ProfileError
from paretone.files import reason
from paretone.models.base import SpeechModel
from paretone.reading import first_line, read_bytes
from paretone.setting import profile
from paretone.setting.knobs import checked
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques.searched_grid import NAME, TECHNIQUE
from paretone.techniques.searched_grid.grid import PlacedGrid


def with_grid(
    setting: Setting, model: SpeechModel, path: str, knobs: Mapping[str, object]
) -> tuple[Setting, tuple[PlacedGrid, ...]]:
    """``setting`` with the grid in ``path`` used, and that grid. Whether it fits is checked with the whole setting.

    ``knobs`` are those that the user gave. Raises :class:`ProfileError` for a file that is no placed grid, or has
    another number of evaluations than given.
    """
    grid = read(path)
    said = knobs.get("evaluations", grid.steps)
    if said != grid.steps:
        raise ProfileError(f"{path} has {grid.steps} evaluations, not {said}; omit that number.")
    values = checked(TECHNIQUE.knobs, {**knobs, "evaluations": grid.steps}, TECHNIQUE.title)
    return setting.with_technique(UsedTechnique(NAME, values, grid.fingerprint)), (grid,)


def read(path: str) -> PlacedGrid:
    """The placed grid in a file. Raises :class:`ProfileError`."""
    try:
        data = profile.decoded(read_bytes(path))
    except OSError as error:
        raise ProfileError(f"The placed grid {path} could not be read: {reason(error)}.") from error
    except ProfileError as error:
        raise ProfileError(f"{path}: {error}") from None
    except ValueError as error:
        raise ProfileError(f"{path} is not a placed grid: it is not JSON ({first_line(error)}).") from error
    return PlacedGrid.from_json(data, path)
