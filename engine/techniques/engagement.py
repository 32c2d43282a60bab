"""What a setting comes to on a loaded model: every technique's say, resolved once before anything runs. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import ProfileError, SettingError
from engine.knobs import Values, checked
from engine.models.base import ModelInfo
from engine.setting import Setting
from engine.techniques import conflict, ditreducio, reshaped
from engine.techniques.ditreducio.table import Belonging, StrategyTable


@dataclass(frozen=True)
class Engagement:
    """What one synthesis is carried out with."""

    options: Values
    """The sampler options in force."""
    reference: Values
    """Those of the same setting without techniques: what savings are counted against."""
    belonging: Belonging
    """What a strategy table must belong to here."""
    table: StrategyTable | None = None


def engage(info: ModelInfo, setting: Setting, artefacts: Sequence[StrategyTable] = ()) -> Engagement:
    """Resolve ``setting`` on the loaded model that ``info`` describes; ``artefacts`` hold what it names by fingerprint.

    Raises :class:`SettingError` and :class:`ProfileError` that say why it cannot be used.
    """
    reference = checked(info.knobs, setting.options, info.title)
    reason = conflict(setting)
    if reason:
        raise SettingError(reason)
    options = checked(info.knobs, reshaped(setting, reference), info.title)
    belonging = Belonging.of(info.id, info.fingerprint, info.variant, info.knobs, options)
    return Engagement(options, reference, belonging, _table(info, setting, artefacts, belonging))


def _table(
    info: ModelInfo, setting: Setting, artefacts: Sequence[StrategyTable], belonging: Belonging
) -> StrategyTable | None:
    """The strategy table that the setting names, checked against what is loaded."""
    entry = setting.engaged(ditreducio.TECHNIQUE.name)
    if entry is None:
        return None
    table = next((one for one in artefacts if one.fingerprint == entry.artefact), None)
    if table is None:
        raise SettingError(f"{ditreducio.TECHNIQUE.title} has no strategy table yet; calibrate first, or import one.")
    mismatch = table.belonging.mismatch(belonging)
    if mismatch:
        raise ProfileError(f"The strategy table cannot be used here: {mismatch}. Calibrate again.")
    if table.layers != info.layers:
        raise ProfileError(f"The strategy table has {table.layers} layers, but {info.title} has {info.layers}.")
    return table
