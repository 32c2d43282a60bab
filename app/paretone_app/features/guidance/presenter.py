"""The guidance presenter: Setup shows what is to be known of weights with guidance in them."""

from __future__ import annotations

from paretone_app.features.guidance.model import GuidanceWeights
from paretone_app.features.presenter import Presenter, Services


class GuidancePresenter(Presenter):
    """Owns no panel."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._weights = GuidanceWeights(services.state)
