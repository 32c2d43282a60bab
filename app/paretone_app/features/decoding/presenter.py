"""The decoding presenter: outcomes of the speech tokens of A and B, and playback from any token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paretone.models.base import LANGUAGE
from paretone.setting.take import Take
from paretone.techniques.speculative.view import VIEW
from paretone_app.audio.sound import Sound
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.features.views.presenter import ViewsPresenter
from paretone_app.state.playing import setting_title
from paretone_app.widgets.action import ActionButton
from paretone_app.widgets.side_panel import CHOSEN

if TYPE_CHECKING:
    from paretone_app.features.decoding.panel import DecodingPanel


class DecodingPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._chosen: Take | None = None
        self._player = services.features.find(PlayerPresenter)
        self.decoding: DecodingPanel | None = None
        self._make = ActionButton(self._actions.baseline, "Make take A", "primary")
        tip, find = "Measure several tolerances and draft lengths (opens Views)", services.features.find
        self.sweep = services.actions.add("S&weep β and L_d", lambda: find(ViewsPresenter).open(VIEW.name), tip)
        self.later = {"decoding": self._build_decoding}

    def _build_decoding(self) -> DecodingPanel:
        from paretone_app.features.decoding.panel import DecodingPanel

        self.decoding = DecodingPanel(self._theme.colours, self.sweep)
        self.decoding.hear_wanted.connect(self._hear)
        self.decoding.follow(self._state.playing, self._state.coming)
        self.decoding.pages.empty.add(self._make)
        for signal in (self._state.comparison.changed, self._state.comparison.chosen_changed):
            signal.connect(self._show_takes)
        self._show_takes()
        return self.decoding

    def refresh(self) -> None:
        entry = self._state.selection.entry
        strange = "" if entry.family == LANGUAGE else f"{entry.title} has no tokens: choose another model in Setup."
        self._make.set_reason(strange)

    def _show_takes(self) -> None:
        compared, panel = self._state.comparison, built(self.decoding)
        panel.set_takes(compared.take_a, compared.take_b)
        if compared.chosen is not self._chosen:
            self._chosen = compared.chosen
            panel.set_chosen(self._chosen)

    def _hear(self, side: str, seconds: float) -> None:
        if side != CHOSEN:
            self._player.hear(side, seconds)
        elif (take := self._chosen) is not None:
            title = setting_title(take.setting, "Chosen point")
            self._player.hear_sound(Sound(take.samples, take.sample_rate, title, take.text, take.id))
            self._player.deck.seek(seconds)
