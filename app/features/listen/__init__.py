"""Listen: A and B, heard and seen."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.entries import MainStep
from app.shell.places import LISTEN, Place, Region

FEATURE = Feature(
    "listen",
    "app.features.listen.presenter:ListenPresenter",
    (Place("listen", "Listen", Region.CENTRE, workspaces=(LISTEN,)),),
    steps=(
        MainStep(
            "compare",
            "Compare A/B",
            "press <b>Compare A/B</b> (Ctrl+Space) to play, and again to switch: in the middle of a word if both "
            "have the same timing, otherwise from the beginning.",
            "<b>Compare</b>: play, and switch between A and B, in the middle of a word if both have the same timing; "
            "the loudness is matched.",
        ),
    ),
    keys=(("zoom in, out, show all", "+, −, 0"),),
)
