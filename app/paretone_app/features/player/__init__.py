"""The player: one for the whole window, below every panel."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import Place, Region

FEATURE = Feature(
    "player",
    "paretone_app.features.player.presenter:PlayerPresenter",
    (Place("player", "Player", Region.FOOT),),
    keys=(
        ("play A, play B, switch", "A, B, X"),
        ("play a lane", "1 … 8"),
        ("play or pause; stop", "Space; S"),
        ("back and forth; by smaller steps", "Left, Right; with Shift"),
        ("to the start", "Home"),
        ("loop on or off; its start, its end here", "L; [, ]"),
        ("match loudness; look for an audio device again", "M; N"),
    ),
)
