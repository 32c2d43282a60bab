"""The log's presenter: everything that is noted becomes an entry."""

from __future__ import annotations

from app.features.log.panel import LogPanel
from app.features.presenter import Presenter, Services


class LogPresenter(Presenter):
    """Owns Log."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.log = LogPanel(services.theme.colours)
        services.notices.noted.connect(self.log.add)
        services.workspaces.put("log", self.log)
