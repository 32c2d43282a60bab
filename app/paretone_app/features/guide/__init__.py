"""Guide: the main job as a row of steps."""

from __future__ import annotations

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import LISTEN, Place, Region

FEATURE = Feature(
    "guide",
    "paretone_app.features.guide.presenter:GuidePresenter",
    (Place("steps", "Steps", Region.HEAD, workspaces=(LISTEN,)),),
)
