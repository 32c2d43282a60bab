"""The search as a job: see :class:`engine.techniques.base.Job`."""

from __future__ import annotations

from engine.techniques.base import JobTask
from engine.techniques.searched_grid.requests import Searched
from engine.techniques.searched_grid.searching import search_grid


def search(task: JobTask) -> Searched:
    """Do a :class:`engine.techniques.searched_grid.requests.SearchRequest`."""
    request, observer = task.request, task.observer
    found = search_grid(task.loaded, request.utterances, request.setting, observer, observer.report, request.resume)
    observer.check()
    return found
