"""Takes that are made for later: asked for one after the other, or while nothing else is done."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from paretone.errors import SettingError
from paretone.models.base import Voice
from paretone.session import commands, events
from paretone.session.commands import Command
from paretone.setting.setting import Setting
from paretone.setting.take import DecodingCycle, DecodingTrace, Take, Trace
from paretone_app.state.jobs import IdleWork, Job, Jobs, Kind, Outcome, Piece
from paretone_app.state.synthesis import Coming, Wanted, wanted_take
from tests.app.presenters import Presenter
from tests.app.sharing import cancel_all


@pytest.fixture
def sent() -> list[Command]:
    return []


@pytest.fixture
def jobs(sent: list[Command], monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Jobs:
    monkeypatch.setattr("paretone_app.state.jobs.IDLE_MILLISECONDS", 10)
    return Jobs(sent.append)


@pytest.fixture
def presenter(presenter: Presenter) -> Iterator[Presenter]:
    yield presenter
    cancel_all(presenter.state.jobs)
    presenter.state.making.ahead(())


def wanted(presenter: Presenter, count: int = 3) -> list[Wanted]:
    chosen = presenter.state.selection
    settings = (replace(chosen.baseline_setting, seed=seed) for seed in range(count))
    return [wanted_take(chosen, "A text.", chosen.voices[0].id, one) for one in settings]


def finish(presenter: Presenter, command: commands.MakeTake) -> Take:
    made = presenter.take(command.setting, f"take {command.job}")
    for event in (events.TakeMade(command.job, made), events.JobFinished(command.job)):
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
        assert isinstance(command, commands.MakeTake) and command.setting == asked[index].setting
        assert presenter.state.jobs.running[-1].kind is Kind.MAKE, "the user sees that it runs"
        assert making.waiting == tuple(asked[index:])
        finish(presenter, command)
    assert len(sent) == begun + 3 and [one.setting.seed for one in made] == [0, 1, 2] and not making.waiting
    assert presenter.state.comparison.take_a is None, "what nobody listens to is not compared"


def test_each_is_cancelled_alone(presenter: Presenter) -> None:
    making, jobs, asked = presenter.state.making, presenter.state.jobs, wanted(presenter)
    making.ask(asked)
    jobs.cancel(jobs.waiting[0])
    assert making.waiting == (asked[0], asked[2])
    jobs.handle(events.JobCancelled(jobs.running[0].number))
    assert making.waiting == (asked[2],) and presenter.sent[-1].setting == asked[2].setting and not making.problems


def test_one_that_fails_is_said_and_the_others_are_made(presenter: Presenter, qtbot: QtBot) -> None:
    making, sent, asked = presenter.state.making, presenter.sent, wanted(presenter, 2)
    making.ask(asked)
    first = sent[-1].job
    presenter.state.jobs.handle(events.JobFailed(first, "The text is empty."))
    assert making.problems == {asked[0]: "The text is empty."}
    qtbot.waitUntil(lambda: sent[-1].job != first)
    assert sent[-1].setting == asked[1].setting
    making.ask(asked[:1])
    assert not making.problems, "it is tried again"


def test_ahead_of_time_only_while_nothing_else_is_done(presenter: Presenter, qtbot: QtBot) -> None:
    presenter.state.making.idle.timer.setInterval(10)
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
    assert isinstance(sent[-1], commands.Cancel), "what nobody wants any more ends"
    presenter.state.follow(events.JobCancelled(sent[-1].target))
    qtbot.wait(40)
    assert isinstance(sent[-1], commands.Cancel)
    presenter.state.follow(events.JobFailed(first.job, "An event of another job changes nothing."))
    assert not making.problems


def test_why_a_take_cannot_be_made_is_said(presenter: Presenter) -> None:
    chosen = presenter.state.selection
    for voice, changes, checkpoint, why in (
        ("anna", {"model": "lm-mini"}, "", r"It is of LM mini\. Load that model first"),
        ("anna", {"model": "gone"}, "", r"It is of gone\. That model is not there any more"),
        ("f5-mini/nobody", {}, "", "has no voice “nobody”"),
        ("anna", {}, "a" * 64, "other weights"),
    ):
        with pytest.raises(SettingError, match=why):
            wanted_take(chosen, "A text.", voice, replace(chosen.baseline_setting, **changes), (), checkpoint)
    given = chosen, "A text.", "anna", chosen.baseline_setting, ()
    assert wanted_take(*given, chosen.loaded.fingerprint).text == "A text."


def test_pieces_that_make_way_come_again(jobs: Jobs, sent: list[Command], qtbot: QtBot) -> None:
    work = IdleWork(jobs)
    work.add(Piece("one", lambda number: commands.LoadModel(number, "one")))
    qtbot.waitUntil(lambda: len(sent) == 1)
    job = jobs.start(Kind.LOAD, lambda number: commands.LoadModel(number, "a job"))
    assert isinstance(sent[-1], commands.Cancel) and sent[-1].target == sent[0].job
    work.follow(events.JobCancelled(sent[0].job))
    work.replace([Piece("two", lambda number: commands.LoadModel(number, "two"))])
    jobs.handle(events.JobFinished(job.number))
    qtbot.waitUntil(lambda: isinstance(sent[-1], commands.LoadModel) and sent[-1].model == "two")
    work.clear()


def trace(start: float, *tokens: int) -> Trace:
    cycles = tuple(DecodingCycle((token,)) for token in tokens)
    return Trace(decoding=DecodingTrace(25.0, 64, (cycles,), (start,), (False,)))


def piece(job: int, passage: int, seen: Trace | None) -> events.AudioReady:
    return events.AudioReady(job, np.zeros(10, np.float32), 24000, passage, seen)


def started(kind: Kind) -> tuple[Coming, Jobs, int]:
    jobs = Jobs(lambda command: None)
    coming = Coming(jobs)
    return coming, jobs, jobs.start(kind, speak("lm-mini")).number


def test_passages_grow_until_the_take_is_finished_or_cancelled() -> None:
    coming, _, job = started(Kind.ACCELERATED)
    for event in (piece(job, 0, trace(0.0, 1)), piece(job, 0, trace(0.0, 1, 2)), piece(job, 1, trace(0.5, 3))):
        coming.follow(event)
    decoding = coming.trace.decoding
    assert coming.side == "B" and decoding is not None
    assert (decoding.tokens, decoding.starts, decoding.seconds_of) == ((1, 2, 3), (0.0, 0.5), (0.0, 0.04, 0.5))
    coming, jobs, job = started(Kind.BASELINE)
    coming.follow(piece(job, 0, trace(0.0, 1)))
    take = Take("one", "2026-11-23", "A text.", "anna", Setting("lm-mini"), 24000, np.zeros(10, np.float32))
    coming.follow(events.TakeReady(job, take))
    assert (coming.side, coming.trace) == ("", Trace())
    coming.follow(piece(job, 0, trace(0.0, 1)))
    jobs.handle(events.JobCancelled(job))
    assert coming.side == ""
    coming, _, job = started(Kind.PARTIAL)
    coming.follow(piece(job, 0, trace(0.0, 1)))
    assert coming.side == "", "sound of another job is no take"


@pytest.fixture
def ended(jobs: Jobs) -> list[tuple[Job, Outcome, str]]:
    """The jobs that ended so far, each with its outcome and the reason."""
    found: list[tuple[Job, Outcome, str]] = []
    jobs.ended.connect(lambda *one: found.append(one))
    return found


@pytest.fixture
def rests(jobs: Jobs) -> list[bool]:
    """A True for each time that the engine's rest was told."""
    found: list[bool] = []
    jobs.paused.connect(lambda: found.append(True))
    return found


def verify(number: int) -> Command:
    return commands.VerifyStudy(number, "f")


def test_each_job_ends_once_with_its_outcome(jobs: Jobs, sent: list[Command], ended: list) -> None:
    first, second, third, last = (jobs.start(Kind.VERIFY, verify) for _ in range(4))
    assert [one.job for one in sent] == [first.number] == [1] and first.at_once and not second.at_once
    assert jobs.running == (first,) and jobs.waiting == (second, third, last) and jobs.find(third.number) is None
    jobs.move(last, 0)
    jobs.cancel(third)
    jobs.cancel(first)
    assert sent[1:] == [commands.Cancel(0, first.number)]
    assert jobs.running == (first,), "it ends when the engine says so"
    jobs.handle(events.JobFailed(second.number, "An event of a job that has not begun changes nothing."))
    jobs.handle(events.JobCancelled(first.number))
    jobs.handle(events.JobCancelled(first.number))
    assert sent[-1] == last.command, "in the order of the queue"
    jobs.handle(events.JobFailed(last.number, "It is broken; mend it."))
    jobs.handle(events.JobFinished(second.number))
    assert not jobs.busy
    assert ended == [
        (third, Outcome.CANCELLED, ""),
        (first, Outcome.CANCELLED, ""),
        (last, Outcome.FAILED, "It is broken; mend it."),
        (second, Outcome.FINISHED, ""),
    ]
    for paused in (True, False):  # A study that was paused has not finished.
        job = jobs.start(Kind.STUDY, lambda number: commands.LoadModel(number, "f5-mini"))
        jobs.handle(events.StudyEnded(job.number, "folder", paused, 3))
        jobs.handle(events.JobFinished(job.number))
    assert [outcome for _, outcome, _ in ended[4:]] == [Outcome.PAUSED, Outcome.FINISHED]


def speak(model: str) -> Callable[[int], Command]:
    voice = Voice("anna", "Anna", "anna.wav", "A prompt.")
    return lambda number: commands.Synthesise(number, "A text.", voice, Setting(model))


def test_models_are_loaded_once_and_nothing_passes_what_it_needs(jobs: Jobs, sent: list[Command]) -> None:
    jobs.loader = lambda model: commands.LoadModel(0, model)
    jobs.start(Kind.LOAD, lambda number: commands.LoadModel(number, "f5-mini"))
    for model in ("f5-mini", "lm-mini", "f5-mini", "lm-mini", "omni-mini"):
        jobs.start(Kind.BASELINE, speak(model))
    assert [one.group.model for one in jobs.waiting] == ["f5-mini"] * 2 + ["lm-mini"] * 2 + ["omni-mini"]
    while jobs.running:
        (job,) = jobs.running
        if isinstance(job.command, commands.LoadModel):
            jobs.loaded = job.group
        jobs.handle(events.JobFinished(job.number))
    made = [one.model if isinstance(one, commands.LoadModel) else type(one).__name__ for one in sent]
    assert made == ["f5-mini", *["Synthesise"] * 2, "lm-mini", *["Synthesise"] * 2, "omni-mini", "Synthesise"]
    study = jobs.start(Kind.STUDY, lambda number: commands.RunStudy(number, "study.toml", ""))
    jobs.start(Kind.BASELINE, speak("f5-mini"))
    verified = jobs.start(Kind.VERIFY, verify)
    late = jobs.start(Kind.BASELINE, speak("omni-mini"))
    assert jobs.running == (study,) and jobs.waiting[1:] == (verified, late), "a take may need what was trained before"


def test_what_needs_a_model_that_cannot_be_loaded_fails_with_its_reason(jobs: Jobs, ended: list) -> None:
    jobs.loader = lambda model: commands.LoadModel(0, model)
    for model in ("lm-mini", "lm-mini", "f5-mini"):
        jobs.start(Kind.BASELINE, speak(model))
    jobs.handle(events.JobFailed(jobs.running[0].number, "It is gone."))
    assert [one.kind for one, *_ in ended] == [Kind.LOAD, Kind.BASELINE, Kind.BASELINE]
    assert {(outcome, why) for _, outcome, why in ended} == {(Outcome.FAILED, "It is gone.")}
    assert jobs.running[0].group == commands.LoadModel(0, "f5-mini")


def test_what_needs_the_result_of_another_job_stays_after_it_and_says_why_not(jobs: Jobs, ended: list) -> None:
    first, needed = jobs.start(Kind.VERIFY, verify), jobs.start(Kind.CALIBRATE, verify)
    take, other = jobs.start(Kind.ACCELERATED, verify, after=needed.number), jobs.start(Kind.VERIFY, verify)
    jobs.move(take, 0)
    assert jobs.waiting == (needed, take, other)
    jobs.move(needed, 2)
    assert jobs.waiting == (needed, take, other)
    jobs.cancel(needed)
    assert jobs.waiting == (other,) and ended[-1][:2] == (take, Outcome.FAILED)
    assert "Calibrating: cancelled" in ended[-1][2] and first in jobs.running


def test_a_paused_queue_begins_nothing(jobs: Jobs, sent: list[Command], rests: list[bool], qtbot: QtBot) -> None:
    jobs.stop(True)
    waiting = jobs.start(Kind.VERIFY, verify)
    jobs.handle(events.EngineHeld(0))
    assert sent == [commands.Hold(0)] and jobs.waiting == (waiting,) and not rests
    jobs.hold()
    qtbot.waitUntil(lambda: rests == [True])  # A listening test is told at once.
    jobs.stop(False)
    assert sent == [commands.Hold(0), waiting.command] and jobs.held, "the engine stays held for the test"
    jobs.release()
    assert sent[2:] == [commands.Release(0)]


def test_the_engine_is_held_once_and_says_when_it_rests(jobs: Jobs, sent: list[Command], rests: list[bool]) -> None:
    jobs.handle(events.EngineHeld(0))
    assert rests == [], "nobody asked for it"
    jobs.hold()
    jobs.hold()
    assert jobs.held and sent == [commands.Hold(0)]
    jobs.handle(events.EngineHeld(0))
    assert rests == [True]
    started = jobs.start(Kind.LOAD, lambda job: commands.LoadModel(job, "f5-mini"))
    assert sent[1:] == [started.command], "it waits in the engine"
    jobs.release()
    jobs.release()
    assert sent[2:] == [commands.Release(0)] and not jobs.held
