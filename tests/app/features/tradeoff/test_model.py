"""The model of the trade-off view is imported without Qt."""

from __future__ import annotations

import paretone_app.features.tradeoff.model as model
from tests.app.without_qt import modules_without_qt


def test_no_module_of_the_model_imports_qt() -> None:
    assert {"axes", "points", "scene", "studies", "known_points"} <= modules_without_qt(model)
