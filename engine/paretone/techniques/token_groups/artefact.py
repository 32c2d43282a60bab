"""Token groups in profiles: fields that must agree, and knobs that the groups decide. Torch-free."""

from __future__ import annotations

from paretone.errors import ProfileError
from paretone.reading import shown
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques.token_groups.groups import Groups

DECIDED = ("cosine", "smallest", "largest", "space")
"""Knobs that say how groups are found."""


def check(groups: Groups, entry: UsedTechnique, compatibility: Compatibility) -> None:
    """Raise :class:`ProfileError` if the groups, the knobs of ``entry`` and what the profile runs on disagree."""
    for name in DECIDED:
        own = getattr(groups, name)
        if (said := entry.knobs.get(name, own)) != own:
            raise ProfileError(f"groups.{name} is {shown(own)}, but setting.techniques says {shown(said)}.")
    if reason := groups.mismatch(compatibility):
        raise ProfileError(f"groups cannot be used in this profile: {reason}.")


def fixed_knobs(groups: Groups, knobs: Values) -> Values:
    """``knobs`` as the groups were found, not as set for the next ones."""
    return knobs.replace(**{name: getattr(groups, name) for name in DECIDED})
