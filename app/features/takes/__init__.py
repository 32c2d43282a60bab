"""Takes: every synthesis, with its figures."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region

FEATURE = Feature(
    "takes",
    "app.features.takes.presenter:TakesPresenter",
    (Place("takes", "Takes", Region.BELOW),),
)
