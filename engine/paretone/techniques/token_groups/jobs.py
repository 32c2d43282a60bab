"""Finding and hearing token groups as jobs: see :class:`paretone.techniques.base.Job`."""

from __future__ import annotations

import time

from paretone.techniques.base import JobTask
from paretone.techniques.token_groups.finding import find_groups
from paretone.techniques.token_groups.hearing import hear_group
from paretone.techniques.token_groups.requests import GroupHeard, GroupsFound


def find(task: JobTask) -> GroupsFound:
    """Do a :class:`paretone.techniques.token_groups.requests.FindGroups`."""
    started = time.perf_counter()
    groups = find_groups(task.loaded, task.request.setting, task.observer)
    return GroupsFound(groups, time.perf_counter() - started)


def hear(task: JobTask) -> GroupHeard:
    """Do a :class:`paretone.techniques.token_groups.requests.HearGroup`."""
    asked = task.request
    return hear_group(task.loaded, asked.setting, asked.voice, asked.members, asked.held_seconds, task.observer.check)
