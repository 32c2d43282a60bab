"""Guide: the main job as a row of steps."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import LISTEN, Place, Region

FEATURE = Feature(
    "guide",
    "app.features.guide.presenter:GuidePresenter",
    (Place("steps", "Steps", Region.HEAD, workspaces=(LISTEN,)),),
)
