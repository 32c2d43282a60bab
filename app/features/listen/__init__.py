"""Listen: A and B, heard and seen."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region

FEATURE = Feature(
    "listen",
    "app.features.listen.presenter:ListenPresenter",
    (Place("listen", "Listen", Region.BELOW),),
)
