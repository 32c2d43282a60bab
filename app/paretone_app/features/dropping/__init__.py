"""Files, folders and text that are dropped on the window: each goes where it belongs, and that is shown beforehand."""

from __future__ import annotations

from paretone_app.features.feature import Feature

FEATURE = Feature("dropping", "paretone_app.features.dropping.presenter:DroppingPresenter")
