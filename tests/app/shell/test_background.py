"""Work in a thread of its own: what it returns or raises comes back here, and nothing comes back after its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait

import pytest
from pytestqt.qtbot import QtBot

from paretone_app.shell.bridge import Background
from tests.engine.recorder import PATIENCE_SECONDS


@pytest.fixture
def background(qapp) -> Iterator[Background]:
    made = Background("tested")
    yield made
    made.shut_down()


def test_what_is_returned_or_raised_comes_back_on_this_thread_in_order(background: Background, qtbot: QtBot) -> None:
    came: list[tuple[object, int]] = []

    def refuse() -> None:
        raise MemoryError("no room")

    for work in (threading.get_ident, refuse, lambda: 7):
        background.run(work, lambda found: came.append((found, threading.get_ident())))
    qtbot.waitUntil(lambda: len(came) == 3)
    (worker, here), (error, _), (seven, _) = came
    assert worker != threading.get_ident() == here
    assert isinstance(error, MemoryError) and seven == 7


def test_what_is_done_at_once_comes_back_in_its_turn(
    background: Background, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not within the call that asks for it, which may have more to say before."""
    submit, came = background._worker.submit, []

    def finished(work: Callable[[], object]) -> Future:
        future = submit(work)
        wait([future])
        return future

    monkeypatch.setattr(background._worker, "submit", finished)
    for number in (1, 2):
        background.run(lambda number=number: number, came.append)
    assert came == []
    qtbot.waitUntil(lambda: came == [1, 2])


def test_after_a_shut_down_in_the_middle_of_work_nothing_comes_back(background: Background, qtbot: QtBot) -> None:
    begun, go_on, came = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        go_on.wait(PATIENCE_SECONDS)

    background.run(work, came.append)
    background.run(lambda: came.append("what waited"), came.append)
    assert begun.wait(PATIENCE_SECONDS)
    background.shut_down(wait=False)
    go_on.set()
    background.shut_down()
    background.run(lambda: came.append("what came too late"), came.append)
    qtbot.wait(20)
    assert came == []
    assert not [one for one in threading.enumerate() if one.name.startswith("tested")]


def test_work_whose_owner_is_gone_ends_quietly(qtbot: QtBot) -> None:
    begun, go_on, came = threading.Event(), threading.Event(), []
    made = Background("tested")

    def work() -> None:
        begun.set()
        go_on.wait(PATIENCE_SECONDS)

    made.run(work, came.append)
    assert begun.wait(PATIENCE_SECONDS)
    worker = made._worker
    del made
    go_on.set()
    worker.shutdown(wait=True)
    qtbot.wait(20)
    assert came == []
