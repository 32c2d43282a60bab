"""Lab: blind listening tests: setup, trials, results."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QStackedWidget, QTextBrowser, QWidget

from paretone.listening.results import MosResult, MushraResult, RankingResult, Result, StaircaseResult
from paretone.listening.trials import ABX, MUSHRA
from paretone_app.audio.player import Player
from paretone_app.features.lab.methods import AbxPage, MosPage, MushraPage, PreferencePage, StaircasePage
from paretone_app.features.lab.trial import SoundPage, TrialPage, answer_button, row_of, sound_button
from paretone_app.listening import planning
from paretone_app.listening import stimuli as calibration
from paretone_app.listening.abx import AbxSession
from paretone_app.listening.mos import MosSession
from paretone_app.listening.mushra import MushraSession
from paretone_app.listening.session import ListeningSession
from paretone_app.listening.staircase import StaircaseSession
from paretone_app.listening.stimuli import Condition
from paretone_app.listening.wording import details, headline, speed_up
from paretone_app.numbers import counted, fixed, percent, with_sign
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import BROAD, GAP, NEAR, TIGHT, WIDE, pixmap, set_look
from paretone_app.shell.workspaces import recolour
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import SpinBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import HBoxLayout, Scrolled, VBoxLayout
from paretone_app.widgets.panel_parts import ShownPanel, TickList

COMPARED, LIBRARY = "compared", "library"
_SOURCES = {COMPARED: "A and B of Listen", LIBRARY: "All takes: sentences common to the ticked settings"}


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


_COLUMN, _BOX = 34, 5  # In font heights: greatest width of a column, least width of a number.


class LabSetup(QWidget):
    """Three steps in one column: what is compared, who listens, how many trials and what these can show."""

    choice_changed = Signal()

    def __init__(self, can: Mapping[str, Action]) -> None:
        super().__init__()
        self.can = can
        self._conditions: tuple[Condition, ...] = ()
        self.method = build.combo("Method", ((title, method) for method, title in planning.TITLES.items()))
        self.explanation = build.words("muted")
        self.source = build.combo("What to compare", ((title, source) for source, title in _SOURCES.items()))
        self.ticks = TickList("Settings to compare")
        self.length = build.named(SpinBox(minimum=1, maximum=planning.LONGEST), "Number of trials")
        practice = SpinBox(minimum=0, maximum=planning.LONGEST_PRACTICE)
        tip = "Practice trials: answer shown, not scored"
        self.practice = build.named(practice, "Practice trials", tip)
        new = (("New listener", ""),)
        self.listener = build.combo("Listener", new, "A random name, not linked to a person")
        self.plan = build.words(name="The test")
        self.remarks = build.words("muted")
        self.begin_button, self.export_button = ActionButton(can["begin"], look="primary"), ActionButton(can["export"])
        self.method.currentIndexChanged.connect(self._method_changed)
        self.source.currentIndexChanged.connect(self._source_changed)
        changes = (self.ticks.itemChanged, self.length.valueChanged, self.practice.valueChanged)
        for changed in (*changes, self.listener.currentIndexChanged):
            changed.connect(lambda _: self.choice_changed.emit())
        self._lay_out()
        self.setFocusProxy(self.method)
        self._method_changed()
        self._source_changed()

    def _lay_out(self) -> None:
        em = self.fontMetrics().height()
        self._length_label, practice = build.title_of("", self.length), build.title_of("Pr&actice", self.practice)
        for box in (self.length, self.practice):
            box.setMinimumWidth(_BOX * em)
        for combo in (self.method, self.source, self.listener):
            combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        what, whom, many = (
            build.title_of(title, field)
            for title, field in (("1  &What", self.method), ("2  Wh&om", self.listener), ("3  How man&y", self.length))
        )
        for title in (what, whom, many):
            title.setProperty("look", "title")
            title.setContentsMargins(0, 0 if title is what else WIDE, 0, 0)
        listeners = build.row((self.listener, 1), self.export_button)
        numbers = build.row(self._length_label, self.length, practice, self.practice, 1)
        # The list is as long as the page; a page too low for all scrolls.
        steps = (what, self.method, self.explanation, self.source, (self.ticks, 100), whom, listeners, many, numbers)
        content = QWidget()
        begin = build.row(self.begin_button, 1)
        build.fill(VBoxLayout(content), (*steps, self.plan, self.remarks, begin, 1), (TIGHT, 0, GAP, 0))
        area = build.named(Scrolled(content), "The test")
        area.verticalScrollBar().rangeChanged.connect(lambda _, last: area.let_keys_scroll(last > 0))
        self.ticks.setMinimumHeight(5 * em)
        build.fill(VBoxLayout(self), ((area, 1),))

    def show_conditions(self, found: Sequence[Condition]) -> None:
        """Offer the settings with takes; keep ticks."""
        if tuple(found) != self._conditions:
            ticked, self._conditions = set(self.ticks.ticked), tuple(found)
            self.ticks.offer((one.title, one.key, one.key in ticked) for one in found)

    def show_listeners(self, listeners: Sequence[str]) -> None:
        """Offer all earlier listeners, the latest last."""
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
        self.listener.setCurrentIndex(max(0, self.listener.findData(listener)))

    def show_plan(self, plan: planning.ListeningPlan, reason: str, cannot_export: str, warning: str) -> None:
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
        self.can["begin"].set_reason(reason)
        self.can["export"].set_reason(cannot_export)

    @property
    def choice(self) -> LabChoice:
        method, source, listener = (box.currentData() for box in (self.method, self.source, self.listener))
        return LabChoice(method, source, self.ticks.ticked, self.length.value(), listener or "", self.practice.value())

    def _method_changed(self) -> None:
        method = self.method.currentData()
        self.explanation.setText(planning.EXPLANATIONS[method])
        with QSignalBlocker(self.length), QSignalBlocker(self.practice):
            self.length.setValue(planning.DEFAULT_LENGTH[method])
            self.practice.setValue(planning.DEFAULT_PRACTICE[method])
        self._length_label.setText("&Pages at most" if method == MUSHRA else "Tr&ials")
        self.choice_changed.emit()

    def _source_changed(self) -> None:
        self.ticks.setVisible(self.source.currentData() == LIBRARY)
        self.choice_changed.emit()


_NO_RESULTS = "No listening test has been completed yet."


class LabResults(QWidget):
    def __init__(self, colours: Colours, write: Action) -> None:
        super().__init__()
        self._colours, self._write = colours, write
        self._found: tuple[tuple[str, Result], ...] = ()
        self._problems: tuple[str, ...] = ()
        self.page = build.named(QTextBrowser(), "Results of listening tests")
        self.pages = Invited(self.page, _NO_RESULTS)
        write.explain(lambda: "" if self._found else _NO_RESULTS)
        title = build.title_of("Past resu&lts", self.page)
        title.setProperty("look", "title")
        build.fill(VBoxLayout(self), (title, (self.pages, 1), build.row(ActionButton(write), 1)))
        self.setFocusProxy(self.page)

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
        for method, result in self._found:
            parts.append(f"<p style='color:{muted}; margin-bottom:0'>{escape(planning.TITLES[method])}</p>")
            parts.append(f"<h3 style='margin-top:0'>{escape(headline(result))}</h3>")
            table = _table_of(result)
            if table is not None:
                parts.append(_table(*table, muted))
            parts += [f"<p style='margin-top:0; margin-bottom:4'>{escape(one)}</p>" for one in details(result)]
            parts.append("<hr>")
        self.page.setHtml("".join(parts))
        self.pages.show_content(bool(parts))


def _table_of(result: Result) -> tuple[Sequence[str], Sequence[Sequence[str]]] | None:
    """Head and rows of the table beneath a result's headline, if its method has one."""
    rows: list[Sequence[str]] = []
    if isinstance(result, MushraResult):
        for one in result.summaries:
            quartiles = f"{one.lower_quartile:.0f} to {one.upper_quartile:.0f}"
            mean, interval = fixed(one.mean.mean, 1), _interval(one.mean.low, one.mean.high, 1)
            rows.append((one.condition, f"<b>{one.median:.0f}</b>", quartiles, mean, interval, str(one.mean.n)))
        return ("Condition", "Median", "Quartiles", "Mean", "95 % interval", "n"), rows
    if isinstance(result, MosResult):
        means = ((one.condition, one.mean) for one in result.summaries)
        return ("Setting", "MOS", "95 % interval", "n"), [
            (title, f"<b>{fixed(mean.mean, 2)}</b>", _interval(mean.low, mean.high, 2), str(mean.n))
            for title, mean in means
        ]
    if isinstance(result, StaircaseResult):
        return ("Setting", "Speed-up", "Right"), [
            (title, speed_up(value), f"{right} of {trials}" if trials else "–")
            for title, value, (right, trials) in zip(result.titles, result.scale, result.right, strict=True)
        ]
    if isinstance(result, RankingResult):
        for title, place in result.ranked:
            strength, interval = f"<b>{fixed(place.strength, 2)}</b>", _interval(place.low, place.high, 2)
            rows.append((title, strength, interval, percent(place.best), str(place.compared)))
        return ("Setting", "Strength", "95 % interval", "Best with", "n"), rows
    return None


def _interval(low: float, high: float, places: int) -> str:
    return f"{fixed(low, places)} to {fixed(high, places)}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], muted: str) -> str:
    """The first cell of a row is plain text, the others rich."""

    def line(first: str, figures: Sequence[str], look: str = "") -> str:
        look = f"padding-right:1.5em{look}"
        cells = "".join(f"<td align='right' style='{look}'>{one}</td>" for one in figures)
        return f"<tr><td style='{look}'>{first}</td>{cells}</tr>"

    lines = [line(columns[0], columns[1:], f"; color:{muted}")]
    lines += [line(escape(title), figures) for title, *figures in rows]
    return f"<table>{''.join(lines)}</table>"


NOISE, TONE = range(2)
_SOUNDS = (("Noise", "N", "pink noise, 100 Hz to 8 kHz"), ("Tone", "T", "a tone of 1 kHz"))


class VolumePage(SoundPage):
    """Play noise or a tone at the level of the test to set the volume."""

    name = "Volume"

    done = Signal()
    """The volume is set; the test can begin."""

    def __init__(self, target: float, player: Player, abandon: Action, parent: QWidget) -> None:
        """``target``: level of all sounds in the test, in LUFS."""
        super().__init__(player, parent)
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
        level = f"Both play at {with_sign(target)} LUFS (ITU-R BS.1770), in a loop."
        hint, facts = (build.label(text, "muted", wrapped=True) for text in (keys, level))
        self.setAccessibleDescription(f"{words.text()} {keys}")
        sounds = words, row_of(*self.buttons), self.begin_button
        build.fill(VBoxLayout(self), (top, 1, *sounds, 2, hint, facts), (GAP,) * 4)
        for place, button in enumerate(self.buttons):
            button.clicked.connect(lambda _=False, one=place: self.hear(one))
        hearing = (("N", lambda: self.hear(NOISE)), ("T", lambda: self.hear(TONE)))
        self._bind((*hearing, ("Return", self.done.emit), ("Enter", self.done.emit)))
        rate = player.rate
        sounds = calibration.noise(rate), calibration.tone(rate)
        player.fade_out_and_in(False)
        player.load([(one, rate) for one in sounds], [calibration.gain(one, rate, target) for one in sounds])
        player.set_loop((0.0, calibration.SECONDS))
        self._poll.start()

    def hear(self, button: int) -> None:
        self.player.choose(button)
        self.player.play()
        self._show(button)

    def shut_down(self) -> None:
        super().shut_down()
        self.player.set_loop(None)

    def _to_hear(self) -> int:
        return self.player.choice

    def _pause(self) -> None:
        super()._pause()
        self._show(None)

    def _show(self, heard: int | None) -> None:
        for place, button in enumerate(self.buttons):
            button.setChecked(place == heard)


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

    def say(self, problem: str) -> None:
        self._text.setText(problem)
        self.setVisible(bool(problem))

    def set_colours(self, colours: Colours) -> None:
        size = self.fontMetrics().height()
        self._icon.setPixmap(pixmap("speaker-off", colours.warning, size, self.devicePixelRatioF()))


class LabPanel(ShownPanel):
    """One page at a time: setup next to past results, volume, trials."""

    answered = Signal(object)
    """A :class:`TrialRecord` just given."""

    def __init__(self, colours: Colours, can: Mapping[str, Action]) -> None:
        super().__init__()
        self.can = can
        self._colours = colours
        self.setup = LabSetup(can)
        self.results = LabResults(colours, can["write_results"])
        self.waiting = WaitingPage(can["stop_waiting"])
        self.trial: TrialPage | None = None
        self.volume: VolumePage | None = None
        self.device_problem = DeviceProblem(can["reconnect"])
        self._pages = QStackedWidget()
        em = self.fontMetrics().height()
        for one in (self.setup, self.results):
            one.setMaximumWidth(_COLUMN * em)
        self._start = QWidget()
        build.fill(HBoxLayout(self._start), (1, (self.setup, 100), (self.results, 100), 1)).setSpacing(BROAD)
        self._start.setFocusProxy(self.setup)
        for page in (self._start, self.waiting):
            self._pages.addWidget(page)
        build.fill(VBoxLayout(self), (self.device_problem, (self._pages, 1)), (GAP, NEAR, GAP, NEAR))
        recolour(self, colours)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours

    def show_setup(self) -> None:
        self._go_to(self._start)
        self.setup.method.setFocus()

    def show_waiting(self, sentence: str, can_cancel: bool = False) -> None:
        self.waiting.say(sentence, can_cancel)
        self._go_to(self.waiting)

    def set_volume(self, target: float, player: Player, then: Callable[[], None]) -> None:
        """Let the user set the volume at ``target`` LUFS with ``player``, then call ``then``."""
        self.volume = VolumePage(target, player, self.can["abandon"], self._pages)
        self.volume.done.connect(then)
        self._show_page_with_sound(self.volume)

    def begin(self, session: ListeningSession, player: Player) -> None:
        self._end(self.volume)
        self.volume = None
        kinds = {AbxSession: AbxPage, MosSession: MosPage, MushraSession: MushraPage, StaircaseSession: StaircasePage}
        kind = kinds.get(type(session), PreferencePage)
        self.trial = kind(session, player, self._colours, self.can["abandon"], self._pages)
        self.trial.answered.connect(self.answered)
        self._show_page_with_sound(self.trial)

    def _show_page_with_sound(self, page: SoundPage) -> None:
        page.problem_changed.connect(self.device_problem.say)
        self._pages.addWidget(page)
        self._go_to(page)
        page.setFocus()

    def _end(self, page: SoundPage | None) -> None:
        if page is not None:
            page.shut_down()
            self._pages.removeWidget(page)
            page.deleteLater()

    def end(self) -> None:
        """End the test, complete or not."""
        self._end(self.volume)
        self._end(self.trial)
        self.volume = self.trial = None
        self.device_problem.say("")

    def _go_to(self, page: QWidget) -> None:
        self._pages.setCurrentWidget(page)
        self.setFocusProxy(page if isinstance(page, SoundPage) else page.focusProxy() or page)


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
