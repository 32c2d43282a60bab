"""Trade-off: takes and settings as points, speed against quality."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import EXPLORE, Place, Region

FEATURE = Feature(
    "tradeoff",
    "app.features.tradeoff.presenter:TradeoffPresenter",
    (Place("tradeoff", "Trade-off", Region.CENTRE, workspaces=(EXPLORE,)),),
    keys=(
        ("along the front; along all points; to its ends", "Left, Right; with Shift; Home, End"),
        ("play the point, or stop; compare it; select all", "Space; A, B; Ctrl+A"),
        ("zoom in, out, show everything; move the section", "+, −, 0; Ctrl with the arrow keys"),
    ),
    about="Trade-off shows every take and every setting of a study as a point, speed against quality, with the "
    "Pareto front: click to play, walk along it, compare any two, and load the best into Setup.",
)
