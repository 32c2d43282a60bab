"""Takes: every synthesis, with its figures."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import EXPLORE, INSPECT, LISTEN, Place, Region

FEATURE = Feature(
    "takes",
    "app.features.takes.presenter:TakesPresenter",
    (Place("takes", "Takes", Region.BELOW, workspaces=(LISTEN, INSPECT, EXPLORE)),),
    keys=(("compare as A, as B; star, run again, save as WAV, show file, delete", "A, B; S, R, W, V, Del"),),
)
