"""Listen: two to eight takes as lanes on one time axis, heard at equal loudness, switched in the middle of a word."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial

import numpy as np
from PySide6 import QtGui
from PySide6.QtCore import QEvent, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QLineEdit, QPushButton, QScrollBar, QSizePolicy, QToolButton, QWidget

from paretone.checks.faults import Checked
from paretone.checks.words import said_words
from paretone.figures.scatter import tick_texts
from paretone.measure.pitch import mean_pitch
from paretone.setting.take import Take
from paretone_app.audio.deck import Deck
from paretone_app.audio.player import Mode
from paretone_app.features.listen.analysis import Facts, Finder
from paretone_app.features.listen.canvas import ZOOM, Canvas, Lane, difference_of
from paretone_app.features.takes.table import DRAGGED
from paretone_app.numbers import counted, fixed, localised, significant, with_sign
from paretone_app.shell.colours import ON_GROUND, Colours, ground
from paretone_app.shell.theme import GAP, NEAR, SMALL, STRONG, TIGHT, pixmap, set_look, text_font
from paretone_app.shell.workspaces import recolour
from paretone_app.state.comparison import Comparison
from paretone_app.state.differences import model_title, setting_text
from paretone_app.state.playing import LANES, SIDES, Origin, Playing
from paretone_app.widgets import build
from paretone_app.widgets.action import Action
from paretone_app.widgets.invitation import EmptyState
from paretone_app.widgets.layouts import HBoxLayout, Scrolled, VBoxLayout
from paretone_app.widgets.panel_parts import Caution
from paretone_app.widgets.screen_readers import GROUP, PICTURE

FRAME_MILLISECONDS = 15
_HEAD = 0.27, 11, 20  # Width of the heads: share of the panel's, least and most in font heights.


class _Even(QFrame):
    """As high as its neighbours, however long its words are."""

    def hasHeightForWidth(self) -> bool:
        return False


class LaneHead(_Even):
    """Who speaks in a lane. Its actions are its menu, and have keys while it has the focus."""

    screen_role = GROUP

    noted = Signal(str, str)
    """Another note was written: the take's id, and the note."""

    def __init__(self, letter: str, colours: Colours, do: Callable[[str], object]) -> None:
        """``do`` is called with the name of an action."""
        super().__init__()
        self.letter, self._colours, self._heard, self._pinned = letter, colours, False, False
        self.setProperty("look", "lane")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.badge = build.named(
            QPushButton(letter), f"Hear lane {letter}", f"Hear this lane ({LANES.index(letter) + 1})"
        )
        self.badge.setFixedWidth(2 * self.fontMetrics().height())
        self.title = build.label(look="title", yielding=True)
        self.pin = build.named(QToolButton(), f"Pin lane {letter} as the reference")
        self.pin.setProperty("look", "quiet")
        self.remove = build.cross_button(f"Remove lane {letter}", "Remove from lanes (Del); the take stays in Takes")
        for button, what in (self.badge, "hear"), (self.pin, "pin"), (self.remove, "remove"):
            button.clicked.connect(partial(do, what))
            button.setCheckable(what != "remove")
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Each has a key of the head.
        for tool in map(build.keeping_room, (self.pin, self.remove)):
            tool.setFixedWidth(round(1.4 * self.fontMetrics().height()))
        self.facts = build.words("muted")
        self.facts.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.facts.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.note = build.keeping_room(build.named(QLineEdit(placeholderText="Note, #tags"), f"Note on lane {letter}"))
        self.note.setToolTip("Kept with the take; words with # are tags (T)")
        self.note.editingFinished.connect(self._tell_note)
        for one in (self.facts, self.note):
            one.setFont(text_font(self.font(), SMALL))
        self._of_others: list[Action] = []  # What can be done with any lane but the reference.
        for name, text, tip, keys in (
            ("hear", "Hear", "Switch to this lane", "Return"),
            ("pin", "Pin as reference", "Differences, pitch and length are compared with this lane", "P"),
            ("subtract", "Subtract from reference", "Show the reference minus this lane", "D"),
            ("up", "Move up", "Exchange it with the lane above", "Alt+Up"),
            ("down", "Move down", "Exchange it with the lane below", "Alt+Down"),
            ("remove", "Remove from lanes", "The take stays in Takes", "Del"),
            ("note", "Write note", "Words with # are tags", "T"),
        ):
            action = Action(text, tip, keys, self)
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.triggered.connect(self.note.setFocus if name == "note" else partial(do, name))
            self.addAction(action)
            if name in ("pin", "subtract"):
                self._of_others.append(action)
        head, foot = build.row(self.badge, (self.title, 1)), build.row((self.note, 1), self.pin, self.remove)
        build.fill(VBoxLayout(self), (head, (self.facts, 1), foot), (NEAR, TIGHT, NEAR, TIGHT)).setSpacing(TIGHT)
        self.setMinimumHeight(head.sizeHint().height() + 4 * self.fontMetrics().height())
        self.set_colours(colours)

    def show_take(self, take: str, title: str, facts: Sequence[str], note: str, detail: str) -> None:
        """``take``: its id; ``""`` if there is none, which ``title`` says."""
        self._take, there = take, bool(take)
        self.title.setText(title)
        # Lines break between facts only, without a separator at their ends.
        self.facts.setText("\u2003".join(one.replace(" ", "\u00a0") for one in facts))
        for label in (self.title, self.facts):
            label.setToolTip("\n".join(filter(None, (title, *facts, detail))))
        if not self.note.hasFocus() and note != self.note.text():
            self.note.setText(note)
        for one in (self.note, self.pin, self.remove, self.badge):
            one.setEnabled(there)
        for one in (self.note, self.pin, self.remove):
            one.setVisible(there)
        for action in self.actions():
            action.setEnabled(there and not (self._pinned and action in self._of_others))
        self.setAccessibleName(f"Lane {self.letter}: {title}")
        said = *facts, f"Note: {note}" if note else "", detail, "Reference" if self._pinned else ""
        self.setAccessibleDescription(". ".join(filter(None, said)))

    def show_state(self, heard: bool, pinned: bool) -> None:
        self._heard, self._pinned = heard, pinned
        self.badge.setChecked(heard)
        self.pin.setChecked(pinned)
        colour = self._colours.accent if pinned else self._colours.muted
        self.pin.setIcon(QtGui.QIcon(pixmap("pin", colour, self.fontMetrics().height(), self.devicePixelRatioF())))
        self.pin.setToolTip("Differences refer to this lane" if pinned else "Pin as the reference of differences (P)")

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        fill = lane_colour(self.letter, colours)
        pressed = ground(fill)
        self.badge.setStyleSheet(
            f"QPushButton {{ font-weight: {STRONG}; color: {fill}; padding: {TIGHT}px; }}"
            f"QPushButton:disabled {{ color: {colours.disabled}; }}"
            f"QPushButton:checked {{ background: {pressed}; border-color: {pressed}; color: {ON_GROUND}; }}"
        )
        self.show_state(self._heard, self._pinned)

    def _tell_note(self) -> None:
        if self.note.isModified():
            self.note.setModified(False)
            self.noted.emit(self._take, self.note.text())


def lane_colour(letter: str, colours: Colours) -> str:
    return {"A": colours.baseline, "B": colours.accelerated}.get(letter, colours.text)


class Ruler(QWidget):
    screen_role = PICTURE

    def __init__(self, canvas: Canvas) -> None:
        super().__init__()
        self._canvas = canvas
        self.setAccessibleName("Time axis")
        self.setFont(text_font(self.font(), SMALL))
        self.setFixedHeight(round(1.5 * self.fontMetrics().height()))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        canvas.seen_changed.connect(self.update)

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        metrics = self.fontMetrics()
        with QtGui.QPainter(self) as painter:
            painter.setPen(self.palette().color(self.foregroundRole()))
            most = max(1, self._canvas.room // metrics.horizontalAdvance("00.000 s   "))
            figures = self._canvas.time.ticks(most) if any(len(one.samples) for one in self._canvas.lanes) else ()
            for seconds, number in zip(figures, tick_texts(figures), strict=True):
                x, text = round(self._canvas.place(seconds)), f"{localised(number)} s"
                painter.drawLine(x, 0, x, 3)
                width = metrics.horizontalAdvance(text)
                painter.drawText(max(0, min(x - width // 2, self.width() - width)), self.height() - 3, text)


class ListenPanel(QWidget):
    """Keys: + and - zoom, Page Up and Page Down scroll; Shift zooms and Alt scrolls the frequencies; 0 shows all."""

    screen_role = GROUP

    seek_wanted = Signal(float)
    loop_wanted = Signal(float, float)
    """Loop a part of the lanes: start and end in seconds."""
    arranged = Signal(str, object, int, int)
    """The user arranged the lanes: what was done, their takes, the reference, the other compared lane."""
    noted = Signal(str, str)

    def __init__(
        self, deck: Deck, playing: Playing, compared: Comparison, colours: Colours, add_lanes: Action | None = None
    ) -> None:
        """``add_lanes`` adds the takes selected in Takes, which are dropped here."""
        super().__init__()
        self._add_lanes = add_lanes
        self._deck, self._playing, self._compared, self._colours = deck, playing, compared, colours
        self._coming: tuple[str, int, list[np.ndarray]] | None = None
        """Lane, sample rate and pieces of a take that streams."""
        self.notes: Mapping[str, str] = {}
        self.findings: Mapping[str, Checked] = {}
        self.finder = Finder(self)
        self._drawn_gains: tuple[float, ...] = ()  # Gains at which differences are drawn, equal to those of playback.
        self._laid_out: list[tuple[int, int]] = []
        self._soon = QTimer(self, singleShot=True, interval=100)
        self._soon.timeout.connect(self.show_lanes)
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self._lay_out)
        self._frames = QTimer(self, interval=FRAME_MILLISECONDS, timerType=Qt.TimerType.PreciseTimer)
        self._frames.timeout.connect(lambda: self._put_position(deck.player.position))
        self.setAccessibleName("Listen")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAcceptDrops(True)
        self._make_widgets()
        self._make_shortcuts()
        deck.changed.connect(self._show_deck)
        deck.analysed.connect(self.end_take)
        deck.lent_changed.connect(self.setDisabled)
        compared.changed.connect(self.show_lanes)
        playing.changed.connect(self._show_heard)
        playing.moved.connect(self._show_position)
        self.finder.found.connect(lambda key: self.show_lanes() if key[0] in ("facts", "words") else None)
        recolour(self, colours)
        self._show_deck()

    def _make_widgets(self) -> None:
        self._difference = build.label(look="muted", name="What differs", yielding=True)
        self._difference.setFixedHeight(self.fontMetrics().height())  # Its room stays: lanes do not move.
        self.caution = Caution()
        self._mode = build.label(look="muted", name="Switching mode", yielding=True)
        self._read_out = build.label(look="muted", name="Value under the mouse", yielding=True)
        self._read_out.hide()
        self._underruns = build.label(look="muted", name="Underruns")
        self.heads: list[LaneHead] = []
        self._reference = build.label(look="title", name="Reference")
        tip, letters = "Lane that is subtracted from the reference (D)", [(one, -1) for one in LANES]
        self._other = build.combo("Lane that is subtracted", letters, tip)  # As wide as it will be.
        self._other.activated.connect(lambda _: self._arrange("compare other lanes", other=self._other.currentData()))
        self._why_none = build.words("muted", name="Why there is no difference")
        self._why_none.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._why_none.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.difference_head = build.keeping_room(_Even())  # A second take moves no lane.
        build.fill(VBoxLayout(self.difference_head), (build.row(self._reference, self._other, 1), (self._why_none, 1)))
        self._column = QWidget()
        self._heads = VBoxLayout(self._column)
        build.fill(self._heads, [(self.difference_head, 2)]).setSpacing(NEAR)
        self.canvas = Canvas(self.finder, self._colours, self._spans)
        for watched in (self._column, self.canvas):
            watched.installEventFilter(self)
        self.canvas.sought.connect(self.seek_wanted)
        self.canvas.region_drawn.connect(self.loop_wanted)
        self.canvas.read_out.connect(self._show_read_out)
        self.canvas.seen_changed.connect(self._note_seen)
        self.empty = [EmptyState(f"Take {side} will appear here.", in_a_line=True) for side in SIDES]
        for one in self.empty:
            one.setParent(self.canvas)
        content, below, self._beside = QWidget(), QWidget(), QWidget()
        build.fill(HBoxLayout(content), (self._column, (self.canvas, 1))).setSpacing(0)
        bar = build.named(QScrollBar(Qt.Orientation.Horizontal), "Time in view, in milliseconds")
        self.bar = build.keeping_room(bar)  # Lanes keep their height when the view is zoomed.
        self.bar.valueChanged.connect(self._scroll)
        axis = VBoxLayout()
        build.fill(axis, (Ruler(self.canvas), self.bar)).setSpacing(0)
        build.fill(HBoxLayout(below), (self._beside, (axis, 1))).setSpacing(0)
        facts = build.row((self._mode, 1), (self._read_out, 1), self._underruns)
        lanes = Scrolled(content)
        lanes.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)  # The axis stays in view.
        parts: list[build.Placed] = [self._difference, self.caution, (lanes, 1), below, facts]
        build.fill(VBoxLayout(self), parts, (GAP, NEAR, GAP, NEAR)).setSpacing(NEAR)

    def _make_shortcuts(self) -> None:
        canvas = self.canvas
        keys: dict[str, Callable[[], object]] = {
            "+": lambda: canvas.zoom(1 / ZOOM, self._playing.position),
            "-": lambda: canvas.zoom(ZOOM, self._playing.position),
            "0": canvas.show_all,
            "PgUp": lambda: canvas.page(-0.8),
            "PgDown": lambda: canvas.page(0.8),
            "Shift+PgUp": lambda: canvas.zoom_bands(1 / ZOOM),
            "Shift+PgDown": lambda: canvas.zoom_bands(ZOOM),
            "Alt+PgUp": lambda: canvas.page_bands(0.5),
            "Alt+PgDown": lambda: canvas.page_bands(-0.5),
        }
        for key, do in keys.items():
            shortcut = QtGui.QShortcut(QtGui.QKeySequence(key), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(do)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.show_lanes()

    def set_difference(self, text: str) -> None:
        self._difference.setText(text)
        self._difference.setToolTip(text)

    def shut_down(self, wait: bool) -> None:
        self._frames.stop()
        self.finder.shut_down(wait)

    # --- Streams ------------------------------------------------------------------------------------------------------
    def begin_take(self, lane: str, rate: int) -> None:
        self._coming = (lane, rate, [])

    def add_to_take(self, samples: np.ndarray) -> None:
        if self._coming is not None:
            self._coming[2].append(samples)
            if not self._soon.isActive() and self.isVisible():
                self._soon.start()

    def end_take(self) -> None:
        """Remove the streaming take, of which nothing will be kept or which is drawn as a whole from now on."""
        self._coming = None
        self.show_lanes()

    # --- Lanes --------------------------------------------------------------------------------------------------------
    def _spans(self) -> list[tuple[int, int]]:
        there = self.heads if self.difference_head.isHidden() else [*self.heads, self.difference_head]
        return [(one.y(), one.height()) for one in there]

    def show_lanes(self) -> None:
        takes, deck = self._compared.lanes, self._deck
        while len(self.heads) > len(takes):
            self.heads.pop().deleteLater()
        for at in range(len(self.heads), len(takes)):
            self.heads.append(LaneHead(LANES[at], self._colours, lambda what, *_, at=at: self._do(at, what)))
            self.heads[at].noted.connect(self.noted)
            self._heads.insertWidget(at, self.heads[at], 3)
        first: dict[Hashable, Callable[[], object]] = {}
        last: dict[Hashable, Callable[[], object]] = {}
        drawn = []
        for letter, take in zip(LANES, takes, strict=False):
            colour = lane_colour(letter, self._colours)
            if self._coming is not None and self._coming[0] == letter and self._coming[2]:
                drawn.append(Lane(letter, "coming", np.concatenate(self._coming[2]), self._coming[1], colour))
            elif take is None:
                drawn.append(Lane(letter, "", np.zeros(0, np.float32), 24000))
            else:
                lane = Lane(letter, take.id, take.samples, take.sample_rate, colour, deck.gain_of(letter))
                first["facts", take.id] = partial(Facts.of, take)
                last["words", take.id] = partial(said_words, take)
                facts, words = (self.finder.get((what, take.id)) for what in ("facts", "words"))
                lane.facts = facts if isinstance(facts, Facts) else None
                lane.words = words if isinstance(words, tuple) else ()
                lane.faults = self.findings.get(take.id, Checked()).findings
                drawn.append(lane)
        reference = drawn[self._compared.reference]
        for at, (head, take, lane) in enumerate(zip(self.heads, takes, drawn, strict=True)):
            if lane is not reference and reference.facts is not None:
                lane.behind = reference.facts.pitch
            head.show_state(self._playing.now.letter == head.letter, lane is reference and take is not None)
            self._show_head(head, take, lane, reference)
            if at < len(SIDES):
                there = take is not None or len(lane.samples) > 0
                if there and self.empty[at].isAncestorOf(self.window().focusWidget()):
                    self.setFocus()  # Qt would give it to another panel.
                self.empty[at].setHidden(there)
        self._add_difference(drawn)
        self._drawn_gains = deck.gains
        self.canvas.set_lanes(drawn, first, last)
        self._note_seen()
        self.canvas.set_loop(None if deck.sound is not None else deck.loop)

    def _show_head(self, head: LaneHead, take: Take | None, lane: Lane, reference: Lane) -> None:
        if take is None:
            comes = self._coming is not None and self._coming[0] == head.letter
            head.show_take("", "Being made…" if comes else "No take", (), "", "")
            return
        first_audio = significant(take.measurements.first_audio_seconds, 2)
        parts = [f"RTF {significant(take.measurements.real_time_factor)}", f"first audio {first_audio} s"]
        if lane.facts is not None and lane.facts.metrics.loudness is not None:
            peak = lane.facts.metrics.true_peak or 0.0
            parts += [f"{fixed(lane.facts.metrics.loudness, 1)} LUFS", f"{with_sign(peak, '+')} dBTP"]
        checked = self.findings.get(take.id)
        if checked is not None or take.metrics.faults is not None:
            count = round(take.metrics.faults or 0) if checked is None else len(checked.findings)
            parts.append(counted(count, "fault", "faults"))
        if lane is not reference and len(reference.samples):
            parts.append(f"from {reference.letter}: {with_sign(take.seconds - reference.seconds, '+', 2)} s")
            if lane.facts is not None and reference.facts is not None:
                ratio = np.log2(mean_pitch(lane.facts.pitch) / mean_pitch(reference.facts.pitch))
                parts += [f"pitch {with_sign(12 * float(ratio), '+')} st"] if np.isfinite(ratio) else []
        facts = model_title(take.setting.model), *parts
        found = (f"{fixed(one.start, 2)} s: {one.sentence}" for one in (checked or Checked()).findings)
        detail = "\n".join((f"“{take.text}”", *found))
        head.show_take(take.id, setting_text(take.setting), facts, self.notes.get(take.id, take.remark), detail)

    def _add_difference(self, drawn: list[Lane]) -> None:
        """Add the difference of the compared lanes, or say why there is none."""
        compared, reason = self._compared, ""
        there = [at for at, one in enumerate(drawn) if len(one.samples)]
        self.difference_head.setVisible(len(there) > 1)
        if len(there) < 2:
            return
        one, two = drawn[compared.reference], drawn[compared.other]
        if self._coming is not None and self._coming[0] in (one.letter, two.letter):
            reason = f"Take {self._coming[0]} is being made."
        elif self._deck.analyser.busy:
            reason = "Measuring the loudness…"
        elif not self._deck.same_timing(one.letter, two.letter):
            reason = "Their timing differs."
        elif one.rate != two.rate:
            reason = "Their sample rates differ."
        others = [(LANES[at], at) for at in there if at != compared.reference]
        self._reference.setText(f"{one.letter} −")
        build.offer(self._other, others, compared.other)
        self._why_none.setText(reason)
        if not reason:
            drawn.append(difference_of(one, two))

    # --- Arranging ----------------------------------------------------------------------------------------------------
    def _do(self, at: int, what: str) -> None:
        """Carry out an action of the lane number ``at``."""
        order: list[int | None] = [*range(len(self._compared.lanes))]
        other, to = self._compared.other, at + (1 if what == "down" else -1)
        if what == "hear":
            self._deck.choose(LANES[at])
        elif what == "pin":
            self._arrange(f"pin lane {LANES[at]}", (), at, self._compared.reference if at == other else other)
        elif what == "subtract" and at != self._compared.reference:
            self._arrange("compare other lanes", other=at)
        elif what == "remove":
            order[at : at + 1] = [None] if len(order) == len(SIDES) else []
            self._reorder(f"remove lane {LANES[at]}", order)
        elif what in ("up", "down") and 0 <= to < len(order):
            order[at], order[to] = to, at
            self._reorder(f"move lane {LANES[at]}", order)
            self.heads[to].setFocus(Qt.FocusReason.OtherFocusReason)

    def _reorder(self, what: str, order: Sequence[int | None]) -> None:
        """Put the lanes into another order; what is compared stays with its takes."""
        now = self._compared
        reference, other = (order.index(one) if one in order else 0 for one in (now.reference, now.other))
        self._arrange(what, [None if at is None else now.lanes[at] for at in order], reference, other)

    def _arrange(
        self, what: str, lanes: Sequence[Take | None] = (), reference: int | None = None, other: int | None = None
    ) -> None:
        """Emit :attr:`arranged`; by default all is as before."""
        now = self._compared
        reference, other = now.reference if reference is None else reference, now.other if other is None else other
        self.arranged.emit(what, lanes or now.lanes, reference, other)

    def dragEnterEvent(self, event: QtGui.QDragEnterEvent) -> None:
        if event.mimeData().hasFormat(DRAGGED):
            event.acceptProposedAction()

    def dropEvent(self, event: QtGui.QDropEvent) -> None:
        if self._add_lanes is not None:
            self._add_lanes.trigger()

    # --- View ---------------------------------------------------------------------------------------------------------
    def _note_seen(self) -> None:
        """A loop begins with the visible section."""
        start, end = self._deck.seen = self.canvas.time.ends
        with QSignalBlocker(self.bar):
            self.bar.setRange(0, round(1000 * (self.canvas.whole.high - end + start)))
            self.bar.setPageStep(round(1000 * (end - start)))
            self.bar.setSingleStep(max(1, round(100 * (end - start))))
            self.bar.setValue(round(1000 * start))
        self.bar.setVisible(self.bar.maximum() > 0)

    def _scroll(self, milliseconds: int) -> None:
        start, end = self.canvas.time.ends
        self.canvas.page((milliseconds / 1000 - start) / (end - start))

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self._later.start()
        return False

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _lay_out(self) -> None:
        (share, least, most), em = _HEAD, self.fontMetrics().height()
        for one in (self._column, self._beside):
            one.setFixedWidth(round(max(least * em, min(share * self.width(), most * em))))
        self._heads.activate()
        spans = self._spans()
        for empty, (top, height) in zip(self.empty, spans, strict=False):
            empty.setGeometry(0, top, self.canvas.width(), height)
        if self._laid_out != spans:
            self._laid_out = spans
            self.canvas.redraw()

    # --- Playing ------------------------------------------------------------------------------------------------------
    def showEvent(self, event: QtGui.QShowEvent) -> None:
        super().showEvent(event)
        self.canvas.redraw()
        self._show_heard()

    def hideEvent(self, event: QtGui.QHideEvent) -> None:
        super().hideEvent(event)
        self._frames.stop()
        self.finder.want({})

    def _show_position(self, seconds: float) -> None:
        # While it plays, the playhead moves with every frame of the screen.
        if not self._frames.isActive():
            self._put_position(seconds)
        underruns, waits = self._deck.player.underruns, self._deck.waits[0]
        said = [counted(underruns, "underrun", "underruns")] if underruns else []
        said += [f"{counted(waits, 'wait', 'waits')} for the model"] if waits else []
        text = ", ".join(said)
        if text != self._underruns.text():
            self._underruns.setText(text)
            set_look(self._underruns, "warning" if underruns else "muted")

    def _show_read_out(self, text: str) -> None:
        """Show the value under the mouse instead of the mode; ``""`` restores the mode."""
        self._read_out.setText(text)
        self._read_out.setVisible(bool(text))
        self._mode.setVisible(not text)

    def _put_position(self, seconds: float) -> None:
        now = self._playing.now
        if self.isVisible() and now.origin is not Origin.TEST:
            # No playhead for a sound that is neither of a lane nor a part of one.
            there = bool(now.letter) or now.origin not in (Origin.SOUND, Origin.NOTHING)
            self.canvas.set_position(now.start + seconds if there else None, now.sounding)

    def _show_heard(self) -> None:
        if self._playing.now.sounding and self.isVisible():
            self._frames.start()
        else:
            self._frames.stop()
        for at, (head, take) in enumerate(zip(self.heads, self._compared.lanes, strict=False)):
            pinned = at == self._compared.reference and take is not None
            head.show_state(head.letter == self._playing.now.letter, pinned)
        self._show_position(self._playing.position)

    def _show_deck(self) -> None:
        deck = self._deck
        if not deck.lent:
            active = deck.player.comparison
            titles = dict(zip(Mode, ("In sync", "Restart", "Streaming", "Single"), strict=True))
            told = deck.complete or active.mode in (Mode.STREAM, Mode.ALONE)
            self._mode.setText(f"{titles[active.mode]}: {active.reason}" if told else "")
            self._mode.setToolTip(active.reason if told else "")
            if deck.gains != self._drawn_gains:
                self.show_lanes()
            self.canvas.set_loop(None if deck.sound is not None else deck.loop)
