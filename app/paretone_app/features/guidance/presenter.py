"""The guidance presenter: Setup shows what is to be known of weights with guidance in them."""

from __future__ import annotations

from paretone.techniques.guidance_free import TECHNIQUE
from paretone_app.features.guidance.training import TRAINING
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.training.model import lasting
from paretone_app.numbers import fixed, general
from paretone_app.state.app_state import AppState
from paretone_app.state.availability import TrainingOffer

NAME, TITLE = TECHNIQUE.name, TECHNIQUE.title


class GuidanceWeights:
    """Adds to :class:`paretone_app.state.availability.Availability` what only this technique knows."""

    def __init__(self, state: AppState) -> None:
        self._selection = state.selection
        self._availability = state.availability
        self._availability.explain("guidance", self.why_no_guidance)
        self._availability.offer_training(NAME, self.offer)

    def why_no_guidance(self) -> str:
        """Why the strength of guidance has no effect on accelerated takes, as a sentence, or ``""``."""
        info, options = self._selection.info, self._selection.options
        if "guidance" not in options:
            return ""
        if info is not None and info.trained_guidance is not None:
            return (
                f"{info.title} is {TITLE} (w = {fixed(info.trained_guidance, 2)}): its guidance is in its weights, and "
                "one branch runs."
            )
        if self._selection.is_used(NAME):
            return (
                f"{TITLE} has its guidance in its weights. Only the baseline is guided, by "
                f"{general(options['guidance'])}; switch off {TITLE} to change that."
            )
        return ""

    def offer(self) -> TrainingOffer | None:
        """The weights that the technique is to run with and that the loaded model has not."""
        info = self._selection.info
        if info is None or not self._selection.is_used(NAME) or TRAINING.why_not(info):
            return None
        if not self._availability.technique_problem(NAME):
            return None
        weight = float(self._selection.knobs(NAME)["weight"])
        return TrainingOffer(
            {"weight": weight},
            f"&Train weights for w = {fixed(weight, 2)}…",
            "Open Training to train weights for this guidance",
            f"This takes about {lasting(TRAINING.minutes(info))} of one CPU core, far less on a GPU.",
        )


class GuidancePresenter(Presenter):
    """Owns no panel."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._weights = GuidanceWeights(services.state)
