"""What the trade-off view shows is worked out without Qt."""

from __future__ import annotations

from tests.app.without_qt import import_without_qt


def test_no_module_of_the_model_imports_qt() -> None:
    names = ("axes", "parallel", "saved", "scene", "words")
    import_without_qt("paretone_app.results.points", *(f"paretone_app.features.tradeoff.{one}" for one in names))
