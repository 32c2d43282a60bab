"""The rule of a passage that accepts drafted tokens in groups."""

from __future__ import annotations

from functools import lru_cache

import torch

from paretone.errors import SettingError
from paretone.sampling.group_verification import TokenGroups, by_group
from paretone.sampling.verification import Rule
from paretone.techniques.token_groups.groups import Groups

MOST_KEPT = 4
"""Groups whose matrices are kept."""


def rule(codes: int, rows: int, device: torch.device, groups: Groups, within: bool) -> Rule:
    """See :attr:`paretone.setting.plan.LanguagePlan.acceptance`. Ids that end speech are groups by themselves. Raises
    :class:`SettingError` for groups of another number of tokens."""
    if groups.codes != codes:
        raise SettingError(
            f"The token groups are those of {groups.codes} tokens, but the model has {codes}; find them again."
        )
    return by_group(matrices(groups, rows, str(device)), within=within)


@lru_cache(MOST_KEPT)
def matrices(groups: Groups, rows: int, device: str) -> TokenGroups:
    """``groups`` among ``rows`` ids, for ``device``."""
    return TokenGroups(groups.members, rows, device)
