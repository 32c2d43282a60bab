"""Token groups from files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from paretone.errors import ProfileError
from paretone.models.base import SpeechModel
from paretone.reading import first_line, read_bytes
from paretone.setting import profile
from paretone.setting.knobs import checked
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import compatibility_of, token_groups
from paretone.techniques.token_groups.artefact import fixed_knobs
from paretone.techniques.token_groups.groups import Groups


def with_groups(
    setting: Setting, model: SpeechModel, path: str, knobs: Mapping[str, object]
) -> tuple[Setting, tuple[Groups, ...]]:
    """``setting`` with drafts accepted in the groups of the file ``path``, and these. ``knobs`` are those that the user
    gave. Raises :class:`ProfileError` when they cannot be used here."""
    groups = read(path)
    wanted = compatibility_of(model.info, setting)
    if reason := groups.mismatch(wanted):
        raise ProfileError(f"The token groups {path} cannot be used here: {reason}.")
    technique = token_groups.TECHNIQUE
    values = fixed_knobs(groups, checked(technique.knobs, knobs, technique.title))
    return setting.with_technique(UsedTechnique(technique.name, values, groups.fingerprint)), (groups,)


def read(path: str | Path) -> Groups:
    """The groups in a file. Raises :class:`ProfileError`."""
    try:
        data = profile.decoded(read_bytes(path))
    except OSError as error:
        raise ProfileError(f"The token groups {path} could not be read: {error.strerror or error}.") from error
    except ProfileError as error:
        raise ProfileError(f"{path}: {error}") from None
    except ValueError as error:
        raise ProfileError(f"{path} does not hold token groups: it is not JSON ({first_line(error)}).") from error
    return Groups.from_json(data, str(path))
