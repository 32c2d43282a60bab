"""The evaluations presenter: Setup offers to train the weights that are missing."""

from __future__ import annotations

from paretone_app.features.evaluations.model import EvaluationWeights
from paretone_app.features.presenter import Presenter, Services


class EvaluationsPresenter(Presenter):
    """Owns no panel."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._weights = EvaluationWeights(services.state)
