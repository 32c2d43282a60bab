"""Lab: blind listening tests: setup, trials, results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from html import escape

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QFormLayout, QFrame, QLabel, QPushButton, QStackedWidget, QTextBrowser, QWidget

from paretone.listening.results import MosResult, MushraResult, RankingResult, Result, StaircaseResult
from paretone.listening.trials import ABX, MUSHRA
from paretone_app.audio.player import Player
from paretone_app.features.lab.methods import AbxPage, MosPage, MushraPage, PreferencePage, StaircasePage
from paretone_app.features.lab.trial import TrialPage, answer_button, row_of, sound_button
from paretone_app.listening import stimuli as calibration
from paretone_app.listening.abx import AbxSession
from paretone_app.listening.mos import MosSession
from paretone_app.listening.mushra import MushraSession
from paretone_app.listening.planning import (
    DEFAULT_LENGTH,
    DEFAULT_PRACTICE,
    EXPLANATIONS,
    LONGEST,
    LONGEST_PRACTICE,
    TITLES,
    ListeningPlan,
)
from paretone_app.listening.session import ListeningSession
from paretone_app.listening.staircase import StaircaseSession
from paretone_app.listening.stimuli import Condition
from paretone_app.listening.wording import details, headline, signed, speed_up
from paretone_app.numbers import counted, fixed, percent
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import BROAD, GAP, NEAR, pixmap, set_look
from paretone_app.widgets import build, sketching
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import SpinBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import FormLayout, HBoxLayout, Scrolled, VBoxLayout
from paretone_app.widgets.panel_parts import TickList
from paretone_app.widgets.screen_readers import GROUP


@dataclass(frozen=True)
class LabActions:
    begin: Action
    export: Action
    """Write the whole test with its sounds, for webMUSHRA."""
    results: Action
    write_results: Action
    abandon: Action
    stop_waiting: Action
    reconnect: Action
    """Look for an audio device again."""


COMPARED, LIBRARY = "compared", "library"
_SOURCES = {
    COMPARED: "A and B of Listen",
    LIBRARY: "All takes: sentences common to the ticked settings",
}


@dataclass(frozen=True)
class LabChoice:
    method: str
    source: str
    ticked: tuple[str, ...]
    """Keys of conditions."""
    length: int
    listener: str
    """``""`` for a new listener."""
    practice: int
    """Practice trials before the test; not scored."""


_WIDEST, _HIGHEST, _BOX = 60, 26, 11
"""In font heights: greatest width and height of the controls; width of a box."""


class LabSetup(QWidget):
    choice_changed = Signal()

    def __init__(self, can: LabActions) -> None:
        super().__init__()
        self.can = can
        self._listeners: tuple[str, ...] = ()
        self._conditions: tuple[Condition, ...] = ()
        self.method = build.combo("Method", ((title, method) for method, title in TITLES.items()))
        self.explanation = build.words("muted")
        self.source = build.combo("What to compare", ((title, source) for source, title in _SOURCES.items()))
        self.ticks = TickList("Settings to compare")
        self.length = build.named(SpinBox(minimum=1, maximum=LONGEST), "Number of trials")
        practice, tip = SpinBox(minimum=0, maximum=LONGEST_PRACTICE), "Practice trials: answer shown, not scored"
        self.practice = build.named(practice, "Practice trials", tip)
        new = (("New listener", ""),)
        self.listener = build.combo("Listener", new, "A random name, not linked to a person")
        self.plan = build.words(name="The test")
        self.remarks = build.words("muted")
        self.begin_button = ActionButton(can.begin, look="primary")
        self.export_button, self.results_button = ActionButton(can.export), ActionButton(can.results)
        self.method.currentIndexChanged.connect(self._method_changed)
        self.source.currentIndexChanged.connect(self._source_changed)
        self.ticks.itemChanged.connect(lambda _: self.choice_changed.emit())
        self.length.valueChanged.connect(lambda _: self.choice_changed.emit())
        self.practice.valueChanged.connect(lambda _: self.choice_changed.emit())
        self.listener.currentIndexChanged.connect(lambda _: self.choice_changed.emit())
        self._lay_out()
        self.setFocusProxy(self.method)
        self._method_changed()
        self._source_changed()

    def _lay_out(self) -> None:
        form = FormLayout()
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapAllRows)
        form.addRow("Meth&od", self.method)
        form.addRow(self.explanation)
        form.addRow("&What to compare", self.source)
        self._ticks_label = build.title_of("Setti&ngs", self.ticks)
        left = build.fill(VBoxLayout(), (form, self._ticks_label, (self.ticks, 1), 0))
        numbers = FormLayout()
        numbers.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.FieldsStayAtSizeHint)
        em = self.fontMetrics().height()
        for box in (self.length, self.practice, self.listener):
            box.setMinimumWidth(_BOX * em)
        self._length_label = build.title_of("", self.length)
        numbers.addRow(self._length_label, self.length)
        numbers.addRow("Pr&actice trials", self.practice)
        numbers.addRow("&Listener", self.listener)
        buttons = build.row(self.begin_button, self.export_button, self.results_button, 1)
        right = build.fill(VBoxLayout(), (numbers, (self._said(), 1), buttons))
        held = QWidget()
        build.fill(HBoxLayout(held), ((left, 1), (right, 1))).insertSpacing(1, BROAD)
        # Otherwise controls would be as wide as sentences in a large window, and buttons far from their context.
        held.setMaximumWidth(_WIDEST * em)
        across = QWidget(maximumHeight=_HIGHEST * em)
        build.fill(HBoxLayout(across), ((held, 1), 0))
        build.fill(VBoxLayout(self), ((across, 1), 0))

    def _said(self) -> QWidget:
        """Description of the test, which is long for many rated settings."""
        area = build.named(Scrolled(build.column(self.plan, self.remarks, 1)), "The test")
        # Scrollable by arrow keys if necessary.
        area.verticalScrollBar().rangeChanged.connect(lambda _, last: area.let_keys_scroll(last > 0))
        return area

    def show_conditions(self, found: Sequence[Condition]) -> None:
        """Offer the settings with takes; keep ticks."""
        found = tuple(found)
        if found == self._conditions:
            return
        ticked = set(self.ticks.ticked)
        self._conditions = found
        self.ticks.offer((one.title, one.key, one.key in ticked) for one in found)

    def show_listeners(self, listeners: Sequence[str]) -> None:
        """Offer all earlier listeners, the latest last."""
        listeners = tuple(listeners)
        if listeners == self._listeners:
            return
        self._listeners = listeners
        known = ((f"Listener {one}", one) for one in reversed(listeners))
        build.offer(self.listener, [("New listener", ""), *known], self.listener.currentData())

    def choose_short_test(self, trials: int) -> None:
        """Choose an ABX test of A and B with this number of trials, without practice."""
        self.method.setCurrentIndex(self.method.findData(ABX))
        self.source.setCurrentIndex(self.source.findData(COMPARED))
        self.length.setValue(trials)
        self.practice.setValue(0)

    def choose(self, method: str, keys: Collection[str]) -> None:
        """Choose a test by ``method`` of the settings with these keys."""
        self.method.setCurrentIndex(self.method.findData(method))
        self.source.setCurrentIndex(self.source.findData(LIBRARY))
        self.ticks.offer((one.title, one.key, one.key in keys) for one in self._conditions)
        self.choice_changed.emit()

    def choose_listener(self, listener: str) -> None:
        """Choose an earlier listener."""
        self.listener.setCurrentIndex(max(0, self.listener.findData(listener)))

    def show_plan(self, plan: ListeningPlan, reason: str, cannot_export: str, warning: str) -> None:
        """Show the plan; ``reason`` and ``cannot_export`` disable starting and exporting; ``warning`` is a caution."""
        sentences = len(plan.items)
        if plan.why_not():
            self.plan.setText("")
        else:
            names = [f"{role}: {one.title}" for role, one in zip(plan.roles, plan.conditions, strict=True)]
            used = f", of which {len(plan.used)} are used" if len(plan.used) < sentences else ""
            self.plan.setText("\n".join([*names, f"{counted(sentences, 'sentence', 'sentences')} in common{used}"]))
        remarks = [] if reason else list(plan.remarks())
        self.remarks.setText("\n".join([reason, *remarks, warning]).strip())
        set_look(self.remarks, "warning" if reason or warning else "muted")
        self.can.begin.set_reason(reason)
        self.can.export.set_reason(cannot_export)

    @property
    def choice(self) -> LabChoice:
        return LabChoice(
            self.method.currentData(),
            self.source.currentData(),
            self.ticks.ticked,
            self.length.value(),
            self.listener.currentData() or "",
            self.practice.value(),
        )

    def _method_changed(self) -> None:
        method = self.method.currentData()
        self.explanation.setText(EXPLANATIONS[method])
        with QSignalBlocker(self.length), QSignalBlocker(self.practice):
            self.length.setValue(DEFAULT_LENGTH[method])
            self.practice.setValue(DEFAULT_PRACTICE[method])
        self._length_label.setText("&Pages at most" if method == MUSHRA else "Tr&ials")
        self.choice_changed.emit()

    def _source_changed(self) -> None:
        shown = self.source.currentData() == LIBRARY
        self.ticks.setVisible(shown)
        self._ticks_label.setVisible(shown)
        self.choice_changed.emit()


class LabResults(QWidget):
    def __init__(self, colours: Colours, can: LabActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._found: tuple[tuple[str, Result], ...] = ()
        self._problems: tuple[str, ...] = ()
        self.page = build.named(QTextBrowser(), "Results of listening tests")
        self.back = Action("&Another test", parent=self)
        self.back_button = ActionButton(self.back, look="primary")
        can.write_results.explain(lambda: "" if self._found else "No listening test has been completed yet.")
        self._write = can.write_results
        buttons = build.row(self.back_button, ActionButton(can.write_results), 1)
        self.pages = Invited(self.page, "No listening test has been completed yet.", sketching.bars(4))
        self.pages.offer(self.back, "Set up a test")
        build.fill(VBoxLayout(self), ((self.pages, 1), buttons), (GAP,) * 4)
        self.setFocusProxy(self.back_button)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self._show()

    def show_results(self, found: Sequence[tuple[str, Result]], problems: Sequence[str] = ()) -> None:
        """Show ``found``, method and result of each comparison in order, and ``problems`` with unreadable records."""
        self._found, self._problems = tuple(found), tuple(problems)
        self._show()

    def _show(self) -> None:
        self._write.refresh()
        muted, warning = self._colours.muted, self._colours.warning
        parts = [f"<p style='color:{warning}'>{escape(one)}</p>" for one in self._problems]
        self.pages.show_content(bool(self._found or self._problems))
        for method, result in self._found:
            parts.append(f"<p style='color:{muted}; margin-bottom:0'>{escape(TITLES[method])}</p>")
            parts.append(f"<h3 style='margin-top:0'>{escape(headline(result))}</h3>")
            table = _table_of(result)
            if table is not None:
                parts.append(_table(*table, muted))
            parts += [f"<p style='margin-top:0; margin-bottom:4'>{escape(one)}</p>" for one in details(result)]
            parts.append("<hr>")
        self.page.setHtml("".join(parts))


def _table_of(result: Result) -> tuple[Sequence[str], Sequence[Sequence[str]]] | None:
    """Head and rows of the table beneath a result's headline, if its method has one."""
    if isinstance(result, MushraResult):
        return ("Condition", "Median", "Quartiles", "Mean", "95 % interval", "n"), [
            (
                escape(one.condition),
                f"<b>{one.median:.0f}</b>",
                f"{one.lower_quartile:.0f} to {one.upper_quartile:.0f}",
                fixed(one.mean.mean, 1),
                f"{fixed(one.mean.low, 1)} to {fixed(one.mean.high, 1)}",
                str(one.mean.n),
            )
            for one in result.summaries
        ]
    if isinstance(result, MosResult):
        return ("Setting", "MOS", "95 % interval", "n"), [
            (
                escape(one.condition),
                f"<b>{fixed(one.mean.mean, 2)}</b>",
                f"{fixed(one.mean.low, 2)} to {fixed(one.mean.high, 2)}",
                str(one.mean.n),
            )
            for one in result.summaries
        ]
    if isinstance(result, StaircaseResult):
        return ("Setting", "Speed-up", "Right"), [
            (escape(title), speed_up(value), f"{right} of {trials}" if trials else "–")
            for title, value, (right, trials) in zip(result.titles, result.scale, result.right, strict=True)
        ]
    if isinstance(result, RankingResult):
        return ("Setting", "Strength", "95 % interval", "Best with", "n"), [
            (
                escape(title),
                f"<b>{fixed(one.strength, 2)}</b>",
                f"{fixed(one.low, 2)} to {fixed(one.high, 2)}",
                percent(one.best),
                str(one.compared),
            )
            for title, one in result.ranked
        ]
    return None


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], muted: str) -> str:
    head = "".join(f"<td style='color:{muted}; padding-right:1.5em'>{one}</td>" for one in columns)
    body = "".join(
        "<tr>" + "".join(f"<td style='padding-right:1.5em'>{cell}</td>" for cell in cells) + "</tr>" for cells in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


NOISE, TONE = range(2)
_SOUNDS = (("Noise", "N", "pink noise, 100 Hz to 8 kHz"), ("Tone", "T", "a tone of 1 kHz"))
_POLL_MILLISECONDS = 100


class VolumePage(QWidget):
    """Play noise or a tone at the level of the test to set the volume. Methods in, signals out."""

    screen_role = GROUP

    done = Signal()
    """The volume is set; the test can begin."""
    problem_changed = Signal(str)
    """Why nothing can be heard, as a sentence, or ``""``."""

    def __init__(self, target: float, player: Player, abandon: Action, parent: QWidget | None = None) -> None:
        """``target``: level of all sounds in the test, in LUFS."""
        super().__init__(parent)
        self._player = player
        self._problem = ""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Volume")
        self.leave_button = ActionButton(abandon)
        self.leave_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        top = build.row(build.label("Volume", "title"), 1, self.leave_button)
        words = QLabel(
            "Set a comfortable volume on your device at which soft details are audible, and do not change it "
            "until the test is over. All sounds of the test are as loud as these.",
            wordWrap=True,
        )
        self.buttons = tuple(sound_button(name, f"Hear {what}", f"Hear {what} ({key})") for name, key, what in _SOUNDS)
        self.begin_button = answer_button("Volume is set  (Return)", "Volume is set")
        set_look(self.begin_button, "primary")
        self.begin_button.clicked.connect(self.done)
        keys = "Keys: N plays the noise, T the tone; Space plays and pauses; Return continues."
        level = f"Both play at {signed(target)} LUFS (ITU-R BS.1770), in a loop."
        hint, facts = (build.label(text, "muted", wrapped=True) for text in (keys, level))
        self.setAccessibleDescription(f"{words.text()} {keys}")
        sounds = words, row_of(*self.buttons), self.begin_button
        build.fill(VBoxLayout(self), (top, 1, *sounds, 2, hint, facts), (GAP,) * 4)
        for place, button in enumerate(self.buttons):
            button.clicked.connect(lambda _=False, one=place: self.hear(one))
        for key, slot in (
            ("N", lambda: self.hear(NOISE)),
            ("T", lambda: self.hear(TONE)),
            ("Space", self._press_space),
            ("Return", self.done.emit),
            ("Enter", self.done.emit),
        ):
            QShortcut(QKeySequence(key), self, slot, Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self._poll = QTimer(self, interval=_POLL_MILLISECONDS)
        self._poll.timeout.connect(self._follow)
        rate = player.rate
        sounds = calibration.noise(rate), calibration.tone(rate)
        player.fade_out_and_in(False)
        player.load([(one, rate) for one in sounds], [calibration.gain(one, rate, target) for one in sounds])
        player.set_loop(0.0, calibration.SECONDS)
        self._poll.start()

    def hear(self, sound: int) -> None:
        self._player.choose(sound)
        self._player.play()
        self._show(sound)

    def shut_down(self) -> None:
        """Stop playing; the page is no longer used."""
        self._poll.stop()
        self._player.pause()
        self._player.clear_loop()

    def _press_space(self) -> None:
        focus = self.focusWidget()
        if isinstance(focus, QPushButton) and focus.hasFocus():
            focus.click()
        elif self._player.playing:
            self._player.pause()
            self._show(None)
        else:
            self.hear(self._player.choice)

    def _show(self, heard: int | None) -> None:
        for place, button in enumerate(self.buttons):
            button.setChecked(place == heard)

    def _follow(self) -> None:
        if self._player.problem != self._problem:
            self._problem = self._player.problem
            self.problem_changed.emit(self._problem)


class DeviceProblem(QFrame):
    """Why nothing can be heard, with a button that looks for an audio device again."""

    def __init__(self, reconnect: Action) -> None:
        super().__init__()
        self.hide()
        self.setProperty("look", "banner")
        self.setProperty("level", "warning")
        self._icon, self._text = QLabel(), build.words(name="Audio device")
        button = ActionButton(reconnect, "Reco&nnect")
        build.fill(HBoxLayout(self), (self._icon, (self._text, 1), button), (GAP, NEAR, NEAR, NEAR))

    def say(self, problem: str, shown: bool) -> None:
        """Set the text to ``problem``; ``shown``: show it."""
        self._text.setText(problem)
        self.setVisible(shown)

    def set_colours(self, colours: Colours) -> None:
        size = self.fontMetrics().height()
        self._icon.setPixmap(pixmap("speaker-off", colours.warning, size, self.devicePixelRatioF()))


class LabPanel(QWidget):
    """One page at a time: setup, volume, trials, results."""

    answered = Signal(object)
    """A :class:`TrialRecord` just given."""
    shown = Signal()

    def __init__(self, colours: Colours, can: LabActions) -> None:
        super().__init__()
        self.can = can
        self._colours = colours
        self.setup = LabSetup(can)
        self.results = LabResults(colours, can)
        self.results.back.triggered.connect(self.show_setup)
        self._waiting = WaitingPage(can.stop_waiting)
        self.trial: TrialPage | None = None
        """Page of the current test."""
        self.volume: VolumePage | None = None
        """Page to set the volume, while shown."""
        self._device_problem = DeviceProblem(can.reconnect)
        self._pages = QStackedWidget()
        for page in (self.setup, self.results, self._waiting):
            self._pages.addWidget(page)
        build.fill(VBoxLayout(self), (self._device_problem, (self._pages, 1)), (GAP, NEAR, GAP, NEAR))
        self.set_colours(colours)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.results.set_colours(colours)
        self._device_problem.set_colours(colours)
        if self.trial is not None:
            self.trial.set_colours(colours)

    def show_setup(self) -> None:
        """Show the setup page."""
        self._go_to(self.setup)
        self.setup.method.setFocus()

    def show_results(self) -> None:
        self._go_to(self.results)
        self.results.back_button.setFocus()

    def show_waiting(self, sentence: str, can_cancel: bool = False) -> None:
        """Show the state of preparations for a test."""
        self._waiting.say(sentence, can_cancel)
        self._go_to(self._waiting)

    def set_volume(self, target: float, player: Player, then: Callable[[], None]) -> None:
        """Let the user set the volume at ``target`` LUFS with ``player``, then call ``then``."""
        self.volume = VolumePage(target, player, self.can.abandon, self._pages)
        self.volume.done.connect(then)
        self._show_page_with_sound(self.volume)

    def begin(self, session: ListeningSession, player: Player) -> None:
        """Run ``session`` with ``player``."""
        self._end_volume()
        kinds = {
            AbxSession: AbxPage,
            MosSession: MosPage,
            MushraSession: MushraPage,
            StaircaseSession: StaircasePage,
        }
        kind = kinds.get(type(session), PreferencePage)
        self.trial = kind(session, player, self._colours, self.can.abandon, self._pages)
        self.trial.answered.connect(self.answered)
        self._show_page_with_sound(self.trial)

    def _show_page_with_sound(self, page: VolumePage | TrialPage) -> None:
        page.problem_changed.connect(lambda problem: self._device_problem.say(problem, bool(problem)))
        self._pages.addWidget(page)
        self._go_to(page)
        page.setFocus()

    def _end_volume(self) -> None:
        if self.volume is not None:
            self.volume.shut_down()
            self._pages.removeWidget(self.volume)
            self.volume.deleteLater()
            self.volume = None

    def end(self) -> None:
        """End the test, complete or not."""
        self._end_volume()
        if self.trial is not None:
            self.trial.shut_down()
            self._pages.removeWidget(self.trial)
            self.trial.deleteLater()
            self.trial = None
        self._device_problem.say("", False)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown.emit()

    def _go_to(self, page: QWidget) -> None:
        self._pages.setCurrentWidget(page)
        self.setFocusProxy(page if isinstance(page, TrialPage | VolumePage) else page.focusProxy() or page)


class WaitingPage(QWidget):
    """Progress of the preparation of a test."""

    def __init__(self, stop: Action) -> None:
        super().__init__()
        self._words = QLabel(alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        self.cancel_button = ActionButton(stop)
        build.fill(VBoxLayout(self), (1, self._words, build.row(1, self.cancel_button, 1), 1), (GAP,) * 4)

    def say(self, sentence: str, can_cancel: bool) -> None:
        """Show ``sentence``; ``can_cancel``: whether the user can stop waiting."""
        self._words.setText(sentence)
        self.cancel_button.setVisible(can_cancel)
