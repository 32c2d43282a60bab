"""Takes that are made for later: asked for one after the other, or while nothing else is done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from paretone.errors import SettingError
from paretone.session.commands import Cancel, Command, LoadModel, MakeTake
from paretone.session.events import JobCancelled, JobFailed, JobFinished, TakeMade
from paretone.setting.take import Take
from paretone_app.state.jobs import IdleWork, Jobs, Kind, Piece
from paretone_app.state.synthesis import Wanted, wanted_take
from tests.app.presenters import Presenter


@pytest.fixture
def sent() -> list[Command]:
    return []


@pytest.fixture
def jobs(sent: list[Command], monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Jobs:
    monkeypatch.setattr("paretone_app.state.jobs.IDLE_MILLISECONDS", 10)
    return Jobs(sent.append)


@pytest.fixture
def presenter(tmp_path: Path, qtbot: QtBot) -> Iterator[Presenter]:
    made = Presenter(tmp_path)
    made.state.jobs.handle(JobFinished(1))
    yield made
    made.state.jobs.cancel_all()
    made.state.making.ahead(())


def wanted(presenter: Presenter, count: int = 3) -> list[Wanted]:
    chosen = presenter.state.selection
    return [
        wanted_take(chosen, "A text.", chosen.voices[0].id, replace(chosen.baseline_setting, seed=seed))
        for seed in range(count)
    ]


def finish(presenter: Presenter, command: MakeTake) -> Take:
    """The engine has made the take of ``command``."""
    made = presenter.take(command.setting, f"take {command.job}")
    for event in (TakeMade(command.job, made), JobFinished(command.job)):
        presenter.state.follow(event)
        presenter.state.jobs.handle(event)
    return made


def test_what_is_asked_for_is_made_one_after_the_other_as_jobs(presenter: Presenter, qtbot: QtBot) -> None:
    making, sent, made = presenter.state.making, presenter.sent, []
    making.take_made.connect(made.append)
    asked, begun = wanted(presenter), len(sent)
    making.ask([*asked, asked[0]])
    making.ask(asked[:1])
    for index in range(3):
        qtbot.waitUntil(lambda index=index: len(sent) == begun + index + 1)
        command = sent[-1]
        assert isinstance(command, MakeTake) and command.setting == asked[index].setting
        assert presenter.state.jobs.running[-1].kind is Kind.MAKE, "the user sees that it runs"
        assert making.waiting == tuple(asked[index:])
        finish(presenter, command)
    qtbot.wait(20)
    assert len(sent) == begun + 3 and [one.setting.seed for one in made] == [0, 1, 2] and not making.waiting
    assert presenter.state.comparison.take_a is None, "what nobody listens to is not compared"


def test_cancelling_one_gives_all_of_them_up(presenter: Presenter, qtbot: QtBot) -> None:
    making, sent = presenter.state.making, presenter.sent
    making.ask(wanted(presenter))
    presenter.state.jobs.cancel_all()
    assert len(making.waiting) == 1, "the one under way ends by itself, or was just finished"
    presenter.state.jobs.handle(JobFinished(making._running[0]))
    qtbot.wait(30)
    assert not making.waiting
    making.ask(wanted(presenter))
    presenter.state.jobs.handle(JobCancelled(sent[-1].job))
    count = len(sent)
    qtbot.wait(30)
    assert len(sent) == count and not making.waiting and not making.problems


def test_one_that_fails_is_said_and_the_others_are_made(presenter: Presenter, qtbot: QtBot) -> None:
    making, sent, asked = presenter.state.making, presenter.sent, wanted(presenter, 2)
    making.ask(asked)
    first = sent[-1].job
    presenter.state.jobs.handle(JobFailed(first, "The text is empty."))
    assert making.problems == {asked[0]: "The text is empty."}
    qtbot.waitUntil(lambda: sent[-1].job != first)
    assert sent[-1].setting == asked[1].setting
    making.ask(asked[:1])
    assert not making.problems, "it is tried again"


def test_ahead_of_time_only_while_nothing_else_is_done(
    presenter: Presenter, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    presenter.state.making._idle._idle.setInterval(10)
    making, sent, asked, made = presenter.state.making, presenter.sent, wanted(presenter), []
    making.take_made.connect(made.append)
    making.ahead(asked)
    begun = len(sent)
    qtbot.waitUntil(lambda: len(sent) == begun + 1)
    first = sent[-1]
    assert first.setting == asked[0].setting and not presenter.state.jobs.busy, "it is no job"
    making.ahead([asked[2], asked[0]])
    assert len(sent) == begun + 1, "what is under way is still wanted"
    finish(presenter, first)
    qtbot.waitUntil(lambda: len(sent) == begun + 2)
    assert sent[-1].setting == asked[2].setting and len(made) == 1
    making.ahead(())
    assert isinstance(sent[-1], Cancel), "what nobody wants any more ends"
    presenter.state.follow(JobCancelled(sent[-1].target))
    qtbot.wait(40)
    assert isinstance(sent[-1], Cancel)
    presenter.state.follow(JobFailed(first.job, "An event of another job changes nothing."))
    assert not making.problems


def test_what_fails_ahead_of_time_is_not_tried_again_and_again(presenter: Presenter, qtbot: QtBot) -> None:
    presenter.state.making._idle._idle.setInterval(10)
    making, sent, asked = presenter.state.making, presenter.sent, wanted(presenter, 1)
    making.ahead(asked)
    begun = len(sent)
    qtbot.waitUntil(lambda: len(sent) == begun + 1)
    presenter.state.follow(JobFailed(sent[-1].job, "It is too long."))
    assert making.problems == {asked[0]: "It is too long."}
    making.ahead(asked)
    qtbot.wait(40)
    assert len(sent) == begun + 1
    presenter.state.selection.model_changed.emit()
    assert not making.problems, "with another model it may be otherwise"


def test_why_a_take_cannot_be_made_is_said(presenter: Presenter) -> None:
    chosen = presenter.state.selection
    with pytest.raises(SettingError, match=r"It is of LM mini\. Load that model first"):
        wanted_take(chosen, "A text.", "anna", replace(chosen.baseline_setting, model="lm-mini"))
    with pytest.raises(SettingError, match=r"It is of gone\. That model is not there any more"):
        wanted_take(chosen, "A text.", "anna", replace(chosen.baseline_setting, model="gone"))
    with pytest.raises(SettingError, match="has no voice “nobody”"):
        wanted_take(chosen, "A text.", "f5-mini/nobody", chosen.baseline_setting)
    given = chosen, "A text.", "anna", chosen.baseline_setting, ()
    assert wanted_take(*given, chosen.loaded.fingerprint).text == "A text."
    with pytest.raises(SettingError, match="other weights"):
        wanted_take(*given, "a" * 64)


def test_pieces_that_make_way_come_again(jobs: Jobs, sent: list[Command], qtbot: QtBot) -> None:
    work = IdleWork(jobs)
    work.add(Piece("one", lambda number: LoadModel(number, "one")))
    qtbot.waitUntil(lambda: len(sent) == 1)
    job = jobs.start(Kind.LOAD, lambda number: LoadModel(number, "a job"))
    assert isinstance(sent[-1], Cancel) and sent[-1].target == sent[0].job
    work.follow(JobCancelled(sent[0].job))
    work.replace([Piece("two", lambda number: LoadModel(number, "two"))])
    jobs.handle(JobFinished(job.number))
    qtbot.waitUntil(lambda: isinstance(sent[-1], LoadModel) and sent[-1].model == "two")
    work.clear()
