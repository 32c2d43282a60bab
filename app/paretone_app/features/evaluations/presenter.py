"""The evaluations presenter: Setup offers to train the weights that are missing."""

from __future__ import annotations

from paretone.techniques.average_velocity import TECHNIQUE
from paretone_app.features.evaluations.training import TRAINING
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.training.model import lasting
from paretone_app.state.app_state import AppState
from paretone_app.state.availability import TrainingOffer


class EvaluationWeights:
    """Adds to :class:`paretone_app.state.availability.Availability` what only this technique knows."""

    def __init__(self, state: AppState) -> None:
        self._selection = state.selection
        self._availability = state.availability
        self._availability.offer_training(TECHNIQUE.name, self.offer)

    def offer(self) -> TrainingOffer | None:
        """The weights that the technique is to run with and that the loaded model has not."""
        info, name = self._selection.info, TECHNIQUE.name
        if info is None or info.interval_weights or not self._selection.is_used(name) or TRAINING.why_not(info):
            return None
        return TrainingOffer(
            {},
            "&Train weights for few evaluations…",
            "Open Training to train weights of this model for one to four evaluations",
            f"This takes about {lasting(TRAINING.minutes(info))} of one CPU core, far less on a GPU.",
        )


class EvaluationsPresenter(Presenter):
    """Owns no panel."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._weights = EvaluationWeights(services.state)
