"""Which takes are compared as A and B, and what is to be known about that."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from app.state.differences import difference_words, differences, speed_of_b
from engine.setting.setting import Difference, Setting
from engine.setting.take import Take


def _conditions(one: Take, two: Take) -> tuple[tuple[str, object, object], ...]:
    """What must be the same in both takes for their speeds to be compared."""
    known = bool(one.checkpoint and two.checkpoint)
    return (
        ("model", one.setting.model, two.setting.model),
        ("weights", one.checkpoint if known else "", two.checkpoint if known else ""),
        ("text", one.text, two.text),
        ("voice", one.voice, two.voice),
        ("device", one.measurements.device, two.measurements.device),
        ("machine", one.machine, two.machine),
    )


class Comparison(QObject):
    """A and B."""

    changed = Signal()
    """Other takes are A and B."""
    chosen_changed = Signal()
    """Another take is :attr:`chosen`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.take_a: Take | None = None
        self.take_b: Take | None = None
        self.chosen: Take | None = None
        """The take of a point that was chosen elsewhere, to be seen inside next to A and B."""

    def set_a(self, take: Take | None) -> None:
        """Compare with ``take`` as A."""
        self.take_a = take
        self.changed.emit()

    def set_b(self, take: Take | None) -> None:
        """Compare with ``take`` as B."""
        self.take_b = take
        self.changed.emit()

    def set_chosen(self, take: Take | None) -> None:
        """See ``take`` inside, which is neither A nor B; ``None`` for none."""
        if take is not self.chosen:
            self.chosen = take
            self.chosen_changed.emit()

    def made_with(self, setting: Setting) -> Take | None:
        """The take, B or A, that was made with exactly this setting; a profile quotes its figures."""
        return next((one for one in (self.take_b, self.take_a) if one is not None and one.setting == setting), None)

    def differences(self) -> tuple[Difference, ...]:
        """Everything in which A and B differ, text and voice included; empty unless both are set."""
        return differences(self.take_a, self.take_b) if self.take_a is not None and self.take_b is not None else ()

    def headline(self) -> str:
        """How much faster B was than A, or why that cannot be said, as a sentence; ``""`` unless both are set."""
        one, two = self.take_a, self.take_b
        if one is None or two is None or not one.measurements.seconds or not two.measurements.seconds:
            return ""
        apart = [what for what, left, right in _conditions(one, two) if left != right]
        if apart:
            return f"No speed-up is given: A and B differ in {_listed(apart)}."
        ratio = one.measurements.real_time_factor / two.measurements.real_time_factor
        return f"{speed_of_b(ratio)} (one run each)"

    def warning(self) -> str:
        """A sentence when A and B differ in more than the technique, or ``""``."""
        others = [_within_sentence(difference_words(one)[0]) for one in self.differences() if not one.technique]
        if not others:
            return ""
        return f"A and B also differ in {_listed(others)}: what you hear is not the technique alone."


def _listed(names: Sequence[str]) -> str:
    """At least one of them, the last after "and"."""
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def _within_sentence(title: str) -> str:
    """A title as it stands within a sentence."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]
