"""Takes: every synthesis, with its figures."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region

FEATURE = Feature(
    "takes",
    "app.features.takes.presenter:TakesPresenter",
    (Place("takes", "Takes", Region.BELOW),),
    keys=(("compare as A, as B; star, run again, save as WAV, show file, delete", "A, B; S, R, W, V, Del"),),
)
