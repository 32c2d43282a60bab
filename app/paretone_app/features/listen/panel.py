"""Listen: two to eight takes as lanes on one time axis, heard at equal loudness, switched in the middle of a word."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import QEvent, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDropEvent,
    QHideEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import QScrollBar, QSizePolicy, QWidget

from paretone.checks.faults import Finding
from paretone.checks.speech import said_words
from paretone.measure.pitch import mean_pitch
from paretone.setting.take import Take
from paretone_app.audio.deck import Deck
from paretone_app.audio.player import Mode
from paretone_app.features.listen.analysis import Facts, Finder, facts_of
from paretone_app.features.listen.canvas import ZOOM, Canvas, Lane, difference_of
from paretone_app.features.listen.heads import DifferenceHead, LaneHead, lane_colour
from paretone_app.numbers import counted, fixed, general, signed
from paretone_app.results.takes import takes_in
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, NEAR, SMALL, text_font
from paretone_app.state.comparison import Comparison
from paretone_app.state.differences import model_title, setting_text
from paretone_app.state.playing import LANES, SIDES, Origin, Playing
from paretone_app.widgets import build
from paretone_app.widgets.invitation import EmptyState
from paretone_app.widgets.layouts import HBoxLayout, Scrolled, VBoxLayout
from paretone_app.widgets.panel_parts import Caution
from paretone_app.widgets.panel_parts import Facts as Line
from paretone_app.widgets.screen_readers import GROUP, PICTURE

FRAME_MILLISECONDS = 15
_DRAW_MILLISECONDS = 100
"""Between two drawings of a take that streams."""
_HEAD = 0.24, 9, 20
"""Width of the heads: share of the panel's, least and most in font heights."""


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

    def paintEvent(self, event: QPaintEvent) -> None:
        start, end = self._canvas.seen
        apart = self.fontMetrics().horizontalAdvance("000.000 s") * 1.4 / self._canvas.per_second
        step = 10.0 ** np.ceil(np.log10(apart))
        step = next(one for one in (step / 5, step / 2, step) if one >= apart)
        places = max(0, -int(np.floor(np.log10(step) + 1e-9)))
        with QPainter(self) as painter:
            painter.setPen(self.palette().color(self.foregroundRole()))
            for number in range(int(np.ceil(start / step - 1e-9)), int(end / step + 1e-9) + 1):
                x = self._canvas.place(number * step)
                painter.drawLine(round(x), 0, round(x), 3)
                text = f"{fixed(number * step, places)} s"
                half = self.fontMetrics().horizontalAdvance(text) / 2
                painter.drawText(round(max(0.0, min(x - half, self.width() - 2 * half))), self.height() - 3, text)


class ListenPanel(QWidget):
    """Keys: + and - zoom, Page Up and Page Down scroll, with Shift they zoom the frequencies, 0 shows all."""

    screen_role = GROUP

    seek_wanted = Signal(float)
    loop_wanted = Signal(float, float)
    """Loop a part of the lanes: start and end in seconds."""
    arranged = Signal(str, object, int, int)
    """The user arranged the lanes: what was done, their takes, the reference, the other compared lane."""
    noted = Signal(str, str)
    """A note was written: the take's id, and the note."""
    takes_dropped = Signal(object)
    """Ids of takes to add as lanes."""

    def __init__(self, deck: Deck, playing: Playing, compared: Comparison, colours: Colours) -> None:
        super().__init__()
        self._deck, self._playing, self._compared, self._colours = deck, playing, compared, colours
        self._coming: tuple[str, int, list[np.ndarray]] | None = None
        """Lane, sample rate and pieces of a take that streams."""
        self.notes: Mapping[str, str] = {}
        self.findings: Mapping[str, tuple[Finding, ...]] = {}
        self.finder = Finder(self)
        self._known: tuple[object, ...] = ()
        self._laid_out: list[tuple[int, int]] = []
        self._drawn_gains: tuple[float, ...] = ()
        """Gains at which differences are drawn, equal to those of playback."""
        self._soon = QTimer(self, singleShot=True, interval=_DRAW_MILLISECONDS)
        self._soon.timeout.connect(self.show_lanes)
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self._lay_out)
        self._frames = QTimer(self, interval=FRAME_MILLISECONDS, timerType=Qt.TimerType.PreciseTimer)
        self._frames.timeout.connect(self._show_frame)
        self.setAccessibleName("Listen")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAcceptDrops(True)
        self._make_widgets()
        self._make_shortcuts()
        deck.changed.connect(self._show_deck)
        deck.analysed.connect(self._end_coming)
        deck.lent_changed.connect(self.setDisabled)
        compared.changed.connect(self.show_lanes)
        playing.changed.connect(self._show_heard)
        playing.moved.connect(self._show_position)
        self.finder.found.connect(self._show_found)
        self.set_colours(colours)
        self._show_deck()

    def _make_widgets(self) -> None:
        self._difference = build.words("muted", name="What differs")
        self._difference.hide()
        self.caution, self._facts = Caution(), Line()
        self.heads: list[LaneHead] = []
        self._column = QWidget()
        self._column_layout = build.fill(VBoxLayout(self._column), ())
        self._column_layout.setSpacing(NEAR)
        self.difference_head = DifferenceHead()
        self.difference_head.chosen.connect(lambda lane: self._arrange("compare other lanes", other=lane))
        self._column_layout.addWidget(self.difference_head)
        self.canvas = Canvas(self.finder, self._colours, self._spans)
        self.canvas.sought.connect(self.seek_wanted)
        self.canvas.region_drawn.connect(self.loop_wanted)
        self.canvas.read_out.connect(self._facts.show_read_out)
        self.canvas.seen_changed.connect(self._note_seen)
        self.empty = [EmptyState(f"Take {side} will appear here.", in_a_line=True) for side in SIDES]
        for one in self.empty:
            one.setParent(self.canvas)
        content = QWidget()
        build.fill(HBoxLayout(content), (self._column, (self.canvas, 1))).setSpacing(0)
        self._scrolled = Scrolled(content)
        self._column.installEventFilter(self)
        self._ruler = Ruler(self.canvas)
        self._beside = QWidget()
        self.bar = build.named(QScrollBar(Qt.Orientation.Horizontal), "Time in view, in milliseconds")
        self.bar.valueChanged.connect(self._scroll)
        axis = build.column(self._ruler, self.bar)
        below = build.row(self._beside, (axis, 1))
        for one in (axis, below):
            one.layout().setSpacing(0)
        parts: list[build.Placed] = [self._difference, self.caution, (self._scrolled, 1), below, self._facts]
        build.fill(VBoxLayout(self), parts, (GAP, NEAR, GAP, NEAR)).setSpacing(NEAR)

    def _make_shortcuts(self) -> None:
        canvas = self.canvas
        middle = lambda: (canvas.low + canvas.high) / 2  # noqa: E731
        for key, do in {
            "+": lambda: canvas.zoom(1 / ZOOM, self._playing.position),
            "-": lambda: canvas.zoom(ZOOM, self._playing.position),
            "0": canvas.show_all,
            "PgUp": lambda: canvas.page(-0.8),
            "PgDown": lambda: canvas.page(0.8),
            "Shift+PgUp": lambda: canvas.zoom_bands(1 / ZOOM, middle()),
            "Shift+PgDown": lambda: canvas.zoom_bands(ZOOM, middle()),
        }.items():
            shortcut = QShortcut(QKeySequence(key), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(do)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.caution.set_colours(colours)
        for head in self.heads:
            head.set_colours(colours)
        self.canvas.set_colours(colours)
        self.show_lanes()

    def set_difference(self, text: str) -> None:
        self._difference.setText(text)
        self._difference.setVisible(bool(text))

    def shut_down(self, wait: bool) -> None:
        self._frames.stop()
        self.finder.shut_down(wait)

    # --- Streams ------------------------------------------------------------------------------------------------------
    def begin_take(self, lane: str, rate: int) -> None:
        """Begin a streaming take; :meth:`add_to_take` adds its samples at ``rate`` hertz."""
        self._coming = (lane, rate, [])

    def add_to_take(self, samples: np.ndarray) -> None:
        if self._coming is not None:
            self._coming[2].append(samples)
            if not self._soon.isActive() and self.isVisible():
                self._soon.start()

    def end_take(self, finished: bool) -> None:
        """End the streaming take: a finished one is drawn as a whole after its analysis, another one is removed."""
        if not finished:
            self._end_coming()

    def _end_coming(self) -> None:
        self._coming = None
        self.show_lanes()

    # --- Lanes --------------------------------------------------------------------------------------------------------
    def _spans(self) -> list[tuple[int, int]]:
        there = [*self.heads, *([self.difference_head] if not self.difference_head.isHidden() else [])]
        return [(one.y(), one.height()) for one in there]

    def _facts_of(self, take: Take) -> Facts | None:
        found = self.finder.get(("facts", take.id))
        return found if isinstance(found, Facts) else None

    def show_lanes(self) -> None:
        """Show the takes of all lanes."""
        deck, takes = self._deck, self._compared.lanes
        self._have_heads(len(takes))
        drawn = list[Lane]()
        first: dict[Hashable, Callable[[], object]] = {}
        last: dict[Hashable, Callable[[], object]] = {}
        reference = self._compared.take_of_reference
        of_reference = None if reference is None else self._facts_of(reference)
        for letter, there in zip(LANES, takes, strict=False):
            take = deck.analysed_takes.get(letter)
            if self._coming is not None and self._coming[0] == letter and self._coming[2]:
                _, rate, pieces = self._coming
                drawn.append(Lane(letter, "coming", np.concatenate(pieces), rate, lane_colour(letter, self._colours)))
            elif take is None or there is None:
                drawn.append(Lane(letter, "", np.zeros(0, np.float32), 24000))
            else:
                facts = self._facts_of(take)
                words = self.finder.get(("words", take.id))
                first["facts", take.id] = partial(facts_of, take)
                last["words", take.id] = partial(said_words, take)
                lane = Lane(letter, take.id, take.samples, take.sample_rate, lane_colour(letter, self._colours))
                lane.gain, lane.facts = deck.gain_of(letter), facts
                lane.words = words if isinstance(words, tuple) else ()
                lane.faults = self.findings.get(take.id, ())
                if take is not reference and of_reference is not None:
                    lane.below = of_reference.pitch
                drawn.append(lane)
        for take, lane, empty in zip(takes, drawn, self.empty, strict=False):
            empty.setVisible(take is None and not len(lane.samples))
        self._show_heads(takes, reference)
        self._show_difference(drawn)
        self._known, self._drawn_gains = self._found(), deck.gains
        self.canvas.set_lanes(drawn, first, last)
        self.canvas.set_loop(None if deck.sound is not None else deck.loop)
        self._place_empty()

    def _found(self) -> tuple[object, ...]:
        """What is known of whole takes."""
        there = (one.id for one in self._compared.lanes if one is not None)
        return tuple(self.finder.get((what, one)) for one in there for what in ("facts", "words"))

    def _show_found(self) -> None:
        if any(one is not other for one, other in zip(self._found(), self._known, strict=False)):
            self.show_lanes()

    def _have_heads(self, count: int) -> None:
        while len(self.heads) > count:
            self.heads.pop().deleteLater()
        for at in range(len(self.heads), count):
            head = LaneHead(LANES[at], self._colours, partial(self._do, at))
            head.noted.connect(partial(self._tell_note, at))
            self._column_layout.insertWidget(at, head, 3)
            self.heads.append(head)
        self._column_layout.setStretchFactor(self.difference_head, 2)

    def _show_heads(self, takes: Sequence[Take | None], reference: Take | None) -> None:
        of_reference = None if reference is None else self._facts_of(reference)
        for at, (head, take) in enumerate(zip(self.heads, takes, strict=True)):
            head.show_state(self._heard_lane == head.letter, at == self._compared.reference and take is not None)
            if take is None:
                head.show_take("", (), "", "")
                continue
            facts, measured = self._facts_of(take), take.measurements
            parts = [model_title(take.setting.model), f"RTF {general(measured.real_time_factor, 3)}"]
            parts.append(f"first audio {fixed(measured.first_audio_seconds, 2)} s")
            if facts is not None and facts.loudness is not None and facts.true_peak is not None:
                parts += [f"{fixed(facts.loudness, 1)} LUFS", f"{fixed(facts.true_peak, 1)} dBTP"]
            if (faults := take.metrics.faults) is not None or take.id in self.findings:
                count = len(self.findings[take.id]) if take.id in self.findings else round(faults or 0)
                parts.append(counted(count, "fault", "faults"))
            if reference is not None and take is not reference:
                apart = f"{signed(take.seconds - reference.seconds, 2)} s"
                if facts is not None and of_reference is not None:
                    ratio = np.log2(mean_pitch(facts.pitch) / mean_pitch(of_reference.pitch))
                    apart += f", pitch {signed(12 * float(ratio), 1)} st" if np.isfinite(ratio) else ""
                parts.append(f"from {LANES[self._compared.reference]}: {apart}")
            parts = [one.replace("-", "−") for one in parts[1:]]
            detail = "\n".join(f"{fixed(one.start, 2)} s: {one.sentence}" for one in self.findings.get(take.id, ()))
            about = "\n".join(filter(None, (f"“{take.text}”", detail)))
            parts.insert(0, model_title(take.setting.model))
            head.show_take(setting_text(take.setting), parts, self.notes.get(take.id, take.remark), about)

    def _show_difference(self, drawn: list[Lane]) -> None:
        """Add the difference of the compared lanes, if there is one."""
        compared = self._compared
        there = [at for at, one in enumerate(drawn) if len(one.samples)]
        one, two = drawn[compared.reference], drawn[compared.other]
        self.difference_head.setVisible(len(there) > 1)
        if len(there) < 2:
            return
        reason, coming = "", self._coming[0] if self._coming else ""
        if coming in (one.letter, two.letter):
            reason = f"Take {coming} is being made."
        elif not len(one.samples) or not len(two.samples):
            reason = "One of the two has no take."
        elif not self._deck.same_timing(one.letter, two.letter):
            reason = "The takes have different timing: a difference would mean nothing."
        elif one.rate != two.rate:
            reason = "The takes have different sample rates: no difference to show."
        others = [(LANES[at], at) for at in there if at != compared.reference]
        self.difference_head.show_pair(one.letter, others, compared.other, reason)
        if not reason:
            drawn.append(difference_of(one, two))

    # --- Arranging ----------------------------------------------------------------------------------------------------
    def _do(self, at: int, what: str) -> None:
        """Carry out an action of the lane number ``at``."""
        lanes, last = list(self._compared.lanes), len(self._compared.lanes) - 1
        reference, other = self._compared.reference, self._compared.other
        match what:
            case "hear":
                self._deck.choose(LANES[at])
            case "pin":
                self._arrange(f"pin lane {LANES[at]}", reference=at, other=reference if at == other else other)
            case "subtract" if at != reference:
                self._arrange("compare other lanes", other=at)
            case "up" | "down":
                to = at + (1 if what == "down" else -1)
                if 0 <= to <= last:
                    lanes[at], lanes[to] = lanes[to], lanes[at]
                    moved = {at: to, to: at}
                    ends = moved.get(reference, reference), moved.get(other, other)
                    self._arrange(f"move lane {LANES[at]}", lanes, *ends)
                    self.heads[to].setFocus(Qt.FocusReason.OtherFocusReason)
            case "remove":
                lanes[at : at + 1] = [None] if last < len(SIDES) else []
                kept = 0 if reference == at else reference - (reference > at and last >= len(SIDES))
                self._arrange(f"remove lane {LANES[at]}", lanes, kept, other - (other > at and last >= len(SIDES)))
            case _:
                pass

    def _arrange(
        self,
        what: str,
        lanes: Sequence[Take | None] | None = None,
        reference: int | None = None,
        other: int | None = None,
    ) -> None:
        now = self._compared
        self.arranged.emit(
            what,
            now.lanes if lanes is None else tuple(lanes),
            now.reference if reference is None else reference,
            now.other if other is None else other,
        )

    def _tell_note(self, at: int, text: str) -> None:
        take = self._compared.lanes[at]
        if take is not None:
            self.noted.emit(take.id, text)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if takes_in(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self.takes_dropped.emit(takes_in(event.mimeData()))
        event.acceptProposedAction()

    # --- View ---------------------------------------------------------------------------------------------------------
    def _note_seen(self) -> None:
        """A loop begins with the visible section."""
        start, end = self._deck.seen = self.canvas.seen
        with QSignalBlocker(self.bar):
            self.bar.setRange(0, round(1000 * (self.canvas.duration - end + start)))
            self.bar.setPageStep(round(1000 * (end - start)))
            self.bar.setSingleStep(max(1, round(100 * (end - start))))
            self.bar.setValue(round(1000 * start))

    def _scroll(self, milliseconds: int) -> None:
        self.canvas.follows = False
        self.canvas.look(milliseconds / 1000, self.canvas.span)

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        if event.type() is QEvent.Type.LayoutRequest:
            self._later.start()
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _lay_out(self) -> None:
        share, least, most = _HEAD
        em = self.fontMetrics().height()
        for one in (self._column, self._beside):
            one.setFixedWidth(round(max(least * em, min(share * self.width(), most * em))))
        self._column_layout.activate()
        if self._laid_out != (spans := self._spans()):
            self._laid_out = spans
            self.canvas.redraw()
            self._place_empty()

    def _place_empty(self) -> None:
        for one, (top, height) in zip(self.empty, self._spans(), strict=False):
            one.setGeometry(0, top, self.canvas.width(), height)

    # --- Playing ------------------------------------------------------------------------------------------------------
    @property
    def _heard_lane(self) -> str:
        now = self._playing.now
        return now.letter if now.origin is not Origin.TEST else ""

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show_heard()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._frames.stop()

    def _show_frame(self) -> None:
        """While it plays, the playhead moves with every frame of the screen."""
        self._put_position(self._deck.player.position)

    def _show_position(self, seconds: float) -> None:
        if not self._frames.isActive():
            self._put_position(seconds)
        self._facts.show_underruns(self._deck.player.underruns, self._deck.waits[0])

    def _put_position(self, seconds: float) -> None:
        now = self._playing.now
        if self.isVisible() and now.origin is not Origin.TEST:
            # No playhead for a sound that is neither of a lane nor a part of one.
            there = bool(now.letter) or now.origin is not Origin.SOUND
            self.canvas.set_position(now.start + seconds if there else None, now.sounding)

    def _show_heard(self) -> None:
        now = self._playing.now
        if now.sounding and self.isVisible():
            self._frames.start()
        else:
            self._frames.stop()
        for at, head in enumerate(self.heads):
            head.show_state(head.letter == self._heard_lane, at == self._compared.reference)
        self._show_position(self._playing.position)

    def _show_deck(self) -> None:
        deck = self._deck
        if deck.lent:
            return
        active = deck.player.comparison
        titles = dict(zip(Mode, ("In sync", "In part", "Restart", "Streaming", "Single"), strict=True))
        told = deck.complete or active.mode in (Mode.STREAM, Mode.ALONE)
        self._facts.show_mode(titles[active.mode], active.reason if told else "")
        if deck.gains != self._drawn_gains:
            self.show_lanes()
        self.canvas.set_loop(None if deck.sound is not None else deck.loop)
