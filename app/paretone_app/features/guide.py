"""The guide: the main job as a row of steps, and one sentence that says what to press next."""

from collections.abc import Iterable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QTextDocumentFragment
from PySide6.QtWidgets import QToolButton, QWidget

from paretone_app.features.presenter import Presenter, Services
from paretone_app.shell.actions import Actions
from paretone_app.shell.entries import MainStep
from paretone_app.shell.theme import NEAR
from paretone_app.state.jobs import Job, Kind
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout
from paretone_app.widgets.screen_readers import announce

_CHANGED = "It was done before, for another selection."
_DONE, _AGAIN = "✓", "↻"
"""Marks of steps: done, and done for another selection."""


class Guide(QWidget):
    """Steps as buttons; done ones are ticked, the next one is highlighted."""

    def __init__(self, steps: Iterable[MainStep], actions: Actions) -> None:
        super().__init__()
        self._steps = [(step, actions[step.action]) for step in steps]
        self.buttons: list[QToolButton] = []
        row = HBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        for _, action in self._steps:
            button = QToolButton()
            button.setDefaultAction(action)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.setProperty("look", "step")
            self.buttons.append(button)
            row.addWidget(button)
        row.addStretch(1)
        # One line: a longer sentence moves nothing below.
        self.hint = build.label(name="What to do next", rich=True, yielding=True)
        build.fill(VBoxLayout(self), [row, self.hint], (NEAR, NEAR, NEAR, NEAR)).setSpacing(NEAR)

    def show_progress(self, done: Sequence[bool | None], changed: Sequence[bool], instead: str = "") -> None:
        """Tick the steps in ``done`` and highlight the next; ``None`` hides a step that the model lacks. ``changed``:
        steps done for another selection. ``instead`` replaces the hint, which goes once all are done."""
        left_out = [one is None for one in done]
        following = next((index for index, one in enumerate(done) if not one and not left_out[index]), None)
        for index, ((step, action), button) in enumerate(zip(self._steps, self.buttons, strict=True)):
            button.setVisible(not left_out[index])
            number = index + 1 - sum(left_out[:index])
            shortcut = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            how_far = "done" if done[index] else "changed" if changed[index] else ""
            if not button.minimumWidth():  # A step that is done moves none after it.
                build.hold_width(button, *(f"{mark}  {step.title}" for mark in (_DONE, _AGAIN, "0")))
            button.setText(f"{_DONE if done[index] else _AGAIN if changed[index] else number}  {step.title}")
            button.setAccessibleName(", ".join(filter(None, (f"Step {number}: {step.title}", how_far))))
            tip = f"{action.toolTip()} ({shortcut})" if shortcut else action.toolTip()
            button.setToolTip(f"{tip}\n{_CHANGED}" if changed[index] else tip)
            if button.property("next") != (index == following):
                button.setProperty("next", index == following)
                button.style().unpolish(button)
                button.style().polish(button)
        self.hint.setVisible(following is not None)  # Done, the guide is one line.
        if instead or following is None:
            self.hint.setText(instead)
        else:
            (step, action), again = self._steps[following], f" {_CHANGED}" if changed[following] else ""
            # The reason why a step is unavailable replaces its hint.
            self.hint.setText(f"<b>Next:</b> {action.reason or step.hint}{again}")
        self.hint.setToolTip(self.hint.text())


class GuidePresenter(Presenter):
    """Owns the bar of steps above the Listen workspace's panels."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._job, self._features = services.job, services.features
        self.guide = Guide(self._job, services.actions)
        self._greeting = ""
        services.workspaces.put("steps", self.guide)

    def greet(self, words: str) -> None:
        """Show ``words`` in place of the hint, until the user begins a job."""
        self._greeting = words
        announce(self.guide, QTextDocumentFragment.fromHtml(words).toPlainText())
        self.changed.emit()

    def job_began(self, job: Job) -> None:
        if job.kind is not Kind.LOAD:
            self._greeting = ""

    def refresh(self) -> None:
        state, running = self._state, self._state.jobs.running
        done = {step.action: self._features[name].step_done(step.action) for step, name in self._job.items()}
        changed = [
            done[step.action] is False and self._features[name].step_changed(step.action)
            for step, name in self._job.items()
        ]
        instead = ""
        if state.jobs.held:
            instead = "A listening test is on; background work is paused. The page shows the keys at the bottom."
        elif self._greeting:
            instead = self._greeting
        elif running:
            instead = f"{running[0].kind.value}… You can use the panels meanwhile; <b>Esc</b> cancels."
        elif state.jobs.stopped and state.jobs.waiting:
            instead = "The queue is paused; <b>Pause all</b> in Queue goes on."
        elif not state.machine.device:
            instead = f"Opening Paretone: {state.selection.entry.title} is loaded next."
        elif not state.selection.ready or state.selection.candidate:
            instead = state.selection.why_not_ready()
        elif done.get("baseline") and not done.get("accelerated") and not state.selection.setting.techniques:
            instead = "<b>Next:</b> switch a technique on at the left, then speak the same sentence with it."
        self.guide.show_progress(list(done.values()), changed, instead)
