"""Finding and hearing token groups as jobs: see :class:`engine.techniques.base.Job`."""

from __future__ import annotations

import time

from engine.techniques.base import JobTask
from engine.techniques.token_groups.finding import find_groups
from engine.techniques.token_groups.hearing import hear_group
from engine.techniques.token_groups.requests import GroupHeard, GroupsFound


def find(task: JobTask) -> GroupsFound:
    """Do a :class:`engine.techniques.token_groups.requests.FindGroups`."""
    started = time.perf_counter()
    groups = find_groups(task.loaded, task.request.setting, task.observer)
    return GroupsFound(groups, time.perf_counter() - started)


def hear(task: JobTask) -> GroupHeard:
    """Do a :class:`engine.techniques.token_groups.requests.HearGroup`."""
    asked = task.request
    return hear_group(task.loaded, asked.setting, asked.voice, asked.members, asked.held_seconds, task.observer.check)
