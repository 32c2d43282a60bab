"""Strategy tables from files, in Paretone's form or the official one."""

from __future__ import annotations

from collections.abc import Mapping

from paretone.errors import ProfileError
from paretone.models.base import SpeechModel, flow_model
from paretone.reading import first_line, read_bytes
from paretone.setting import profile
from paretone.setting.knobs import checked
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import compatibility_of, ditreducio
from paretone.techniques.ditreducio.table import StrategyTable


def with_table(
    setting: Setting, model: SpeechModel, path: str, knobs: Mapping[str, object]
) -> tuple[Setting, tuple[StrategyTable, ...]]:
    """``setting`` with DiTReducio used under the table in ``path``, and that table.

    ``knobs`` are those that the user gave. Raises :class:`ProfileError` when the table cannot be used here.
    """
    compatibility = compatibility_of(flow_model(model, "A strategy table").info, setting)
    data = read(path)
    values = checked(ditreducio.TECHNIQUE.knobs, knobs, ditreducio.TECHNIQUE.title)
    if isinstance(data, dict) and "actions" in data:
        table = StrategyTable.from_json(data, path)
        if "branch_skip" in knobs and knobs["branch_skip"] != table.branch_skip:
            raise ProfileError(f"{path} was calibrated with branch skipping {table.branch_skip!r}; omit that option.")
        if "temporal" in knobs and knobs["temporal"] != table.temporal:
            raise ProfileError(f"{path} was calibrated with skipped outputs {table.temporal!r}; omit that option.")
        values = values.replace(branch_skip=table.branch_skip, temporal=table.temporal)
    else:
        table = StrategyTable.from_official(data, compatibility, str(values["branch_skip"]), path)
        values = values.replace(temporal=table.temporal)
    mismatch = table.compatibility.mismatch(compatibility)
    if mismatch:
        raise ProfileError(f"The strategy table {path} cannot be used here: {mismatch}.")
    if table.layers != model.info.layers:
        raise ProfileError(
            f"The strategy table {path} has {table.layers} layers, but {model.info.title} has {model.info.layers}."
        )
    return setting.with_technique(UsedTechnique(ditreducio.TECHNIQUE.name, values, table.fingerprint)), (table,)


def read(path: str) -> object:
    """Content of a strategy table's file. Raises :class:`ProfileError`."""
    try:
        return profile.decoded(read_bytes(path))
    except OSError as error:
        raise ProfileError(f"The strategy table {path} could not be read: {error.strerror or error}.") from error
    except ProfileError as error:
        raise ProfileError(f"{path}: {error}") from None
    except ValueError as error:
        raise ProfileError(f"{path} is not a strategy table: it is not JSON ({first_line(error)}).") from error
