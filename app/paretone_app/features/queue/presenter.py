"""The queue presenter: shows, reorders, pauses and cancels jobs, and keeps them for the next session."""

import time
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from PySide6.QtCore import QTimer

from paretone import files
from paretone.errors import PlainError, told
from paretone.session.commands import Synthesise
from paretone.session.events import Progress
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.queue.panel import QueuePanel, Row
from paretone_app.numbers import counted, percent
from paretone_app.state.differences import model_title, setting_text
from paretone_app.state.editing import Edit
from paretone_app.state.jobs import Job, Kind, Outcome

GO_ON = "Go on"
_LONGEST = 40
"""Letters of a job's title in the menu."""


class QueuePresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._path = services.folder / "queue.bin"
        self._written: tuple[Job, ...] = ()
        self._restored = False
        self._progress: Progress | None = None
        self._began = 0.0
        self._withdrawn: set[int] = set()
        """Numbers of jobs that *Redo* cancels."""
        self._lasted: dict[tuple[str, str], float] = {}
        """Seconds of the last job by kind and model."""
        jobs, add = self._state.jobs, services.actions.add
        tip = "Let the chosen job begin earlier"
        earlier = add("Earlier", lambda: self._step(-1), tip, lambda: self._why_not_move(-1))
        tip = "Let the chosen job begin later"
        later = add("Later", lambda: self._step(1), tip, lambda: self._why_not_move(1))
        none = "Choose a job first."
        cancel = add("Cancel job", self._cancel, "Cancel the chosen job", lambda: "" if self._chosen else none)
        for action, keys in ((earlier, "Alt+Up"), (later, "Alt+Down"), (cancel, "Del")):
            action.setShortcut(keys)
        pause = add("Pause all", lambda: jobs.stop(not jobs.stopped), checkable=True)
        pause.set_tip("Begin nothing more, and let the running job wait; again: go on")
        tip, no_jobs = "Go on with the jobs of the last session", "No jobs of the last session wait."
        go_on = add("Go on with the last session", jobs.go_on, tip, lambda: "" if jobs.left else no_jobs)
        self._pause = pause
        can = {"earlier": earlier, "later": later, "cancel": cancel, "pause": pause, "go_on": go_on}
        self.panel = QueuePanel(can)
        self.panel.moved.connect(self._move)
        self.panel.shown.connect(self._show_rows)
        services.workspaces.put("queue", self.panel)
        self._actions.bind(self._actions.queue, lambda: services.workspaces.go_to("queue"))
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self._write)
        jobs.closing.connect(self._write)
        jobs.changed.connect(self._show)

    def engine_starts(self) -> None:
        """Bring the jobs of the last session back. They wait for the user: what ran may be what ended the program, and
        nobody expects a machine to compute and speak because a window was opened."""
        self._restored = True
        if not self._path.exists():
            return
        from paretone_app.features.queue import kept

        try:
            found, problems = kept.read(self._path)
        except PlainError as error:
            aside = self._path.with_suffix(".unread.bin")
            with suppress(OSError):
                self._path.replace(aside)
            self._notices.warn(f"{error} The file is now {aside}.")
            return
        if problems:
            self._notices.warn(f"Not restored from the last session: {' '.join(problems)}")
        if found:
            self._state.jobs.restore(found)
            sentence = f"{counted(len(found), 'job of the last session waits', 'jobs of the last session wait')}."
            self._notices.ask(sentence, (GO_ON,), lambda _: self._state.jobs.go_on(), "info")
        self._write()

    def _write(self) -> None:
        jobs = self._state.jobs
        now = (*jobs.all, *jobs.left)
        if not self._restored or jobs.closed or tuple(map(id, now)) == tuple(map(id, self._written)):
            return
        from paretone_app.features.queue import kept

        try:
            kept.write(self._path, now)
        except OSError as error:
            reason = files.reason(error)
            self._notices.warn(f"The queue cannot be kept for the next session: {self._path} ({reason}).")
        self._written = now

    def job_began(self, job: Job) -> None:
        self._began, self._progress = time.monotonic(), None

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if outcome is Outcome.FINISHED:
            self._lasted[job.kind.name, _model(job)] = time.monotonic() - self._began
        if outcome is Outcome.CANCELLED and not self._state.jobs.closed:
            self._offer_again(job)

    def _offer_again(self, job: Job) -> None:
        """Let *Undo* queue the cancelled ``job`` once more, if that is possible, and *Redo* cancel that."""
        from paretone_app.features.queue import kept

        if not kept.keeps(job):
            return
        jobs, title = self._state.jobs, _short(job.title)
        if job.number in self._withdrawn:
            self._withdrawn.discard(job.number)
            return
        latest = job

        def put(wanted: bool) -> None:
            nonlocal latest
            if wanted:
                with told(self._notices.warn):
                    latest = jobs.again(job, kept.resumed(job.command))
            elif latest in jobs.all:
                self._withdrawn.add(latest.number)
                jobs.cancel(latest)

        self._state.undo_stack.push(Edit(f"cancel {title}", True, False, put))

    def show_progress(self, event: Progress) -> None:
        self._progress = event
        self._show_rows()

    def _show(self) -> None:
        self._soon.start()
        self._show_rows()
        self._pause.setChecked(self._state.jobs.stopped)
        self._pause.setText("Go on with all" if self._state.jobs.stopped else "Pause all")

    def _show_rows(self) -> None:
        if not self.panel.is_seen:
            return
        jobs, ends, rows = self._state.jobs, datetime.now(), []
        known = True
        for job in (*jobs.all, *jobs.left):
            runs, state, share = job in jobs.running, "waits", None
            left = self._expected(job)
            if runs:
                state = "paused" if jobs.stopped else "runs"
                progress = self._progress if self._progress and self._progress.job == job.number else None
                if progress is not None and progress.total:
                    share, left = min(1.0, progress.done / progress.total), progress.seconds_left
                    state = f"{state}, {percent(share)}"
                elif left is not None:
                    left = max(0.0, left - (time.monotonic() - self._began))
            elif job in jobs.left:
                state = "of the last session"
            elif jobs.stopped:
                state = "paused"
            known = known and left is not None and not jobs.stopped and job not in jobs.left
            ends += timedelta(seconds=left or 0.0)
            setting = job.command.setting if isinstance(job.command, Synthesise) else None
            about = "" if setting is None else setting_text(setting)
            rows.append(
                Row(job.number, job.title, about, _model(job), state, f"{ends:%H:%M}" if known else "–", share, runs)
            )
        self.panel.show_jobs(rows, bool(jobs.left))

    def _expected(self, job: Job) -> float | None:
        """Seconds that ``job`` takes, if such jobs were done before."""
        command, known = job.command, None
        if isinstance(command, Synthesise) and job.kind is not Kind.REPEAT:
            known = self._state.cost.expected_seconds(command.setting, command.text)
        return self._lasted.get((job.kind.name, _model(job))) if known is None else known

    @property
    def _chosen(self) -> Job | None:
        row, jobs = self.panel.chosen, self._state.jobs
        return next((one for one in (*jobs.all, *jobs.left) if row is not None and one.number == row.number), None)

    def _why_not_move(self, by: int) -> str:
        waiting, chosen = self._state.jobs.waiting, self._chosen
        if chosen is None:
            return "Choose a job first."
        if chosen not in waiting:
            return "Only waiting jobs can be moved."
        return "" if 0 <= waiting.index(chosen) + by < len(waiting) else "It is the first or the last already."

    def _step(self, by: int) -> None:
        if (job := self._chosen) is not None:
            self._move_to(job, self._state.jobs.waiting.index(job) + by)

    def _move(self, number: int, row: int) -> None:
        jobs = self._state.jobs
        if (job := next((one for one in jobs.waiting if one.number == number), None)) is not None:
            self._move_to(job, row - len(jobs.running))

    def _move_to(self, job: Job, place: int) -> None:
        jobs = self._state.jobs
        put = partial(jobs.move, job)  # Does nothing once the job runs.
        self._state.undo_stack.push(Edit(f"move {_short(job.title)}", jobs.waiting.index(job), place, put))

    def _cancel(self) -> None:
        if (job := self._chosen) is not None:
            self.panel.withdrawn = job.number
            self._state.jobs.cancel(job)


def _short(title: str) -> str:
    return title if len(title) <= _LONGEST else f"{title[:_LONGEST].rstrip()}…"


def _model(job: Job) -> str:
    return "" if job.group is None else model_title(job.group.model)
