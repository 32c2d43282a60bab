"""The search as a job: see :class:`paretone.techniques.base.Job`."""

from __future__ import annotations

from functools import partial

from paretone.techniques.base import JobTask
from paretone.techniques.searched_grid.requests import Searched
from paretone.techniques.searched_grid.searching import search_grid


def search(task: JobTask) -> Searched:
    """Do a :class:`paretone.techniques.searched_grid.requests.SearchRequest`."""
    request, observer = task.request, task.observer
    tell = partial(observer.report, "trial")
    found = search_grid(task.loaded, request.utterances, request.setting, observer, tell, request.resume)
    observer.check()
    return found
