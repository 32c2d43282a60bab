"""The takes compared in up to eight lanes, of which the first two are A and B; their differences and the speed-up."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoStack

from paretone.measure.processor_time import BUSY
from paretone.setting.compatibility import are_others
from paretone.setting.setting import Difference, Setting
from paretone.setting.take import AnyTake, Take
from paretone.wording import listed
from paretone_app.numbers import times
from paretone_app.state.differences import difference_words, differences, speed_of_b, within_sentence
from paretone_app.state.editing import Edit
from paretone_app.state.playing import LANES, SIDES


def _conditions(one: AnyTake, two: AnyTake) -> tuple[tuple[str, bool], ...]:
    """Conditions that must agree for a comparison of speeds, and whether they differ."""
    return (
        ("model", one.setting.model != two.setting.model),
        ("weights", are_others(one.checkpoint, two.checkpoint)),
        ("text", one.text != two.text),
        ("voice", one.voice != two.voice),
        ("device", one.measurements.device != two.measurements.device),
        ("machine", one.machine != two.machine),
    )


class Comparison(QObject):
    changed = Signal()
    chosen_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.lanes: tuple[Take | None, ...] = (None, None)
        """A, B, and up to six further takes."""
        self.reference, self.other = 0, 1
        """Lanes compared with each other: all differences are from the reference."""
        self.chosen: Take | None = None
        """Take of a point chosen in a study, shown in views next to A and B."""

    @property
    def take_a(self) -> Take | None:
        return self.lanes[0]

    @property
    def take_b(self) -> Take | None:
        return self.lanes[1]

    def set_a(self, take: Take | None) -> None:
        self.arrange((take, *self.lanes[1:]))

    def set_b(self, take: Take | None) -> None:
        self.arrange((self.lanes[0], take, *self.lanes[2:]))

    def arrange(self, lanes: Sequence[Take | None], reference: int | None = None, other: int | None = None) -> None:
        """Put takes into the lanes; beyond A and B, empty ones close up. The compared lanes stay if they can."""
        kept = (*lanes[:2], *(one for one in lanes[2:] if one is not None))[: len(LANES)]
        self.lanes = (*kept, None, None)[: max(len(SIDES), len(kept))]
        there = range(len(self.lanes))
        asked = [one for one in (reference, self.reference, 0) if one is not None and one in there]
        self.reference = asked[0]
        asked = [one for one in (other, self.other, 1, 0) if one is not None and one in there]
        self.other = next(one for one in asked if one != self.reference)
        self.changed.emit()

    def change(
        self, stack: QUndoStack, what: str, lanes: Sequence[Take | None], reference: int | None, other: int | None
    ) -> None:
        """:meth:`arrange` as an entry of ``stack`` that says ``what``."""
        before = self.lanes, self.reference, self.other
        stack.push(Edit(what, before, (lanes, reference, other), lambda arranged: self.arrange(*arranged)))

    def set_chosen(self, take: Take | None) -> None:
        """Show ``take``, neither A nor B, in views; ``None`` for none."""
        if take is not self.chosen:
            self.chosen = take
            self.chosen_changed.emit()

    def made_with(
        self, setting: Setting, weights: str = "", others: Sequence[AnyTake] = ()
    ) -> tuple[AnyTake | None, AnyTake | None]:
        """The take, B, A or one of ``others``, made with exactly this setting and ``weights``, whose figures a profile
        quotes, and the take that it was measured against, if known and comparable."""
        lanes = (one for one in (self.take_b, self.take_a) if one is not None and not one.unfinished)
        takes = [one for one in (*lanes, *others) if one.measurements.seconds]
        made = (one for one in takes if one.setting == setting and not are_others(one.checkpoint, weights))
        take = next(made, None)
        baseline = next((one for one in takes if take is not None and one.id == take.fidelity_to), None)
        alike = take and baseline and not any(differs for _, differs in _conditions(baseline, take))
        return take, baseline if alike else None

    def differences(self, *pair: int) -> tuple[Difference, ...]:
        """All differences, text and voice included, of the second lane of ``pair`` from the first, by default of the
        compared ones; empty unless both are set."""
        one, two = (self.lanes[at] for at in pair or (self.reference, self.other))
        return differences(one, two) if one is not None and two is not None else ()

    def headline(self) -> str:
        """Speed-up of B over A, or why it cannot be given, as a sentence; ``""`` unless both are set."""
        one, two = self.take_a, self.take_b
        if one is None or two is None or not one.measurements.seconds or not two.measurements.seconds:
            return ""
        if reason := self._why_no_ratio(one, two):
            return f"No speed-up is given: {reason}."
        ratio = one.measurements.real_time_factor / two.measurements.real_time_factor
        return f"{speed_of_b(ratio)} ({_runs(one, two)})"

    def basis(self) -> str:
        """What the speed-up of :meth:`headline` compares, in sentences; ``""`` without a speed-up."""
        one, two = self.take_a, self.take_b
        if one is None or two is None or self._why_no_ratio(one, two):
            return ""
        if not one.repeats and not two.repeats:
            repeat = "Repeat ×5, studies and paretone compare repeat both."
            return f"Compares real-time factors of one run of each take. {repeat}"
        return (
            f"Compares real-time factors. A: {_run_text(one)}, B: {_run_text(two)}. Studies and paretone compare run "
            "both in turn and report how certain the difference is."
        )

    def _why_no_ratio(self, one: Take, two: Take) -> str:
        """Why the speeds of A and B cannot be compared, as a phrase, or ``""``."""
        apart = [what for what, differs in _conditions(one, two) if differs]
        return self._cut_short(0, 1) or (f"A and B differ in {listed(apart)}" if apart else "")

    def _cut_short(self, *lanes: int) -> str:
        takes = [(LANES[lane], self.lanes[lane]) for lane in lanes]
        return " and ".join(f"{lane} was {one.unfinished}" for lane, one in takes if one is not None and one.unfinished)

    def warning(self, *pair: int) -> str:
        """Warning if the lanes of ``pair`` (default: the compared ones) differ in more than techniques, or in none."""
        pair = pair or (self.reference, self.other)
        one, two = (self.lanes[at] for at in pair)
        if one is None or two is None:
            return ""
        if cut := self._cut_short(*pair):
            return f"{cut}: their figures cannot be compared."
        found, both = self.differences(*pair), " and ".join(LANES[at] for at in pair)
        others = [within_sentence(difference_words(one)[0]) for one in found if not one.technique]
        if not found:
            if one.id == two.id:
                return f"{both} are the same take."
            return f"{both} have the same setting, seed, text and voice: there is no difference to hear."
        if [one.what for one in found] == ["seed"]:
            return f"{both} have the same setting with different seeds: only their noise differs."
        if len(others) == len(found):
            return f"{both} differ in {listed(others)}, and not in a technique."
        if not others:
            return ""
        return f"{both} also differ in {listed(others)}: what you hear is not the technique alone."


def _runs(one: Take, two: Take) -> str:
    """Number of runs of both takes, with a warning if the machine was busy."""
    counts = {max(1, len(take.repeats)) for take in (one, two)}
    if len(counts) > 1:
        runs = f"A: {_run_text(one)}, B: {_run_text(two)}"
    else:
        runs = "one run each" if counts == {1} else f"medians of {counts.pop()} runs"
    busy = [side for side, take in (("A", one), ("B", two)) if take.measurements.busy]
    if busy:
        runs += f"; {BUSY} during {' and '.join(busy)}"
        first, second = (take.measurements.cpu_time_factor for take in (one, two))
        if first and second:
            runs += f": {times(first / second)} as fast in CPU time"
    return runs


def _run_text(take: Take) -> str:
    return f"median of {len(take.repeats)} runs" if len(take.repeats) > 1 else "one run"
