"""The demasking presenter: the canvases of A and B, and their sound after any step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paretone.errors import SettingError
from paretone.models.base import MASKED, Voice
from paretone.models.voices import shown_name
from paretone.session.commands import DecodePartial
from paretone.session.events import Event, PartialDecoded
from paretone.setting.take import Take
from paretone_app.audio.sound import Sound
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.state.jobs import Kind
from paretone_app.state.playing import setting_title
from paretone_app.widgets.action import ActionButton

if TYPE_CHECKING:
    from paretone_app.features.demasking.panel import DemaskingPanel


class DemaskingPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._player = services.features.find(PlayerPresenter)
        self._job = 0
        self._asked: tuple[str, Take, float, int] | None = None
        """Side and take of the part being decoded, its start in the take, in seconds, and its codebooks (0: all)."""
        self.demasking: DemaskingPanel | None = None
        self._make = ActionButton(self._actions.baseline, "Make take A", "primary")
        self._partial = services.actions.add(
            "Hear the ca&nvas at this step",
            self._decode_shown,
            "Decode the codes committed so far; masked ones add nothing",
            lambda: self._why_not(self._take("B" if self.demasking is None else self.demasking.side)),
        )
        self.later = {"demasking": self._build_demasking}

    def refresh(self) -> None:
        entry = self._state.selection.entry
        strange = "" if entry.family == MASKED else f"{entry.title} has no canvas: choose another model in Setup."
        self._make.set_reason(strange)

    def _decode_shown(self) -> None:
        panel = built(self.demasking)
        self.decode(panel.side, panel.passages.currentIndex(), panel.step, panel.codebooks.currentData() or 0)

    def _why_not(self, take: Take | None) -> str:
        """Why the canvas of ``take`` cannot be decoded, as a sentence, or ``""``."""
        state = self._state
        if take is None:
            return "This side has no take."
        if reason := state.selection.why_not_ready():
            return reason
        if state.selection.model_id != take.setting.model:
            return f"The take was made with {take.setting.model!r}; load that model to hear its canvas."
        if self._voice(take) is None:
            return f"The voice {shown_name(take.voice)!r} of the take is gone; choose it again in Setup."
        return ""

    def _take(self, side: str) -> Take | None:
        return self._state.comparison.take_a if side == "A" else self._state.comparison.take_b

    def _voice(self, take: Take) -> Voice | None:
        return next((one for one in self._state.selection.voices if one.id == take.voice), None)

    def follow(self, event: Event) -> None:
        if isinstance(event, PartialDecoded) and event.job == self._job and self._asked is not None:
            side, take, start, codebooks = self._asked
            # The side may have another take by now.
            part_of = (side, start) if self._take(side) is take else None
            first = f", first {codebooks} of its codebooks" if codebooks else ""
            title = setting_title(take.setting, f"Canvas of take {side} after step {event.step + 1}{first}")
            self._player.hear_sound(Sound(event.samples, event.sample_rate, title, take.text, part_of=part_of))

    def _build_demasking(self) -> DemaskingPanel:
        from paretone_app.features.demasking.panel import DemaskingPanel

        self.demasking = DemaskingPanel(self._theme.colours, self._partial)
        self.demasking.hear_wanted.connect(self._player.hear)
        self.demasking.follow(self._state.playing, self._state.coming)
        self.demasking.pages.empty.add(self._make)
        self._state.comparison.changed.connect(self._show_takes)
        self._show_takes()
        return self.demasking

    def _show_takes(self) -> None:
        built(self.demasking).set_takes(self._state.comparison.take_a, self._state.comparison.take_b)

    def decode(self, side: str, passage: int, step: int, codebooks: int = 0) -> None:
        """Decode a passage of ``"A"`` or ``"B"`` as it was after ``step``, with ``codebooks`` only its first ones, and
        play it. Raises :class:`PlainError` when it cannot be done."""
        take = self._take(side)
        voice = self._voice(take) if take is not None else None
        trace = take.trace.demasking if take is not None else None
        reason = self._why_not(take)
        if take is None or voice is None or reason:
            raise SettingError(reason)
        if trace is None:
            raise SettingError("The take has no canvas: its model does not fill in masked tokens.")
        chosen, setting = trace.passages[passage], take.setting
        self._asked = side, take, chosen.start, codebooks
        job = self._state.jobs.start(
            Kind.PARTIAL, lambda job: DecodePartial(job, chosen, step, voice, setting, codebooks)
        )
        self._job = job.number
