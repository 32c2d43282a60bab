"""Listen: playback and plots of A and B."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import LISTEN, MainStep, Place, Region, TourStop

FEATURE = Feature(
    "listen",
    "paretone_app.features.listen.presenter:ListenPresenter",
    (Place("listen", "Listen", Region.CENTRE, workspaces=(LISTEN,)),),
    steps=(
        MainStep(
            "compare",
            "Compare A/B",
            "press <b>Compare A/B</b> (Ctrl+Space) to play, and again to switch, in the middle of a word.",
            "<b>Compare</b>: play, and switch between A and B, in the middle of a word if both have the same timing; "
            "the loudness is matched.",
        ),
    ),
    stops=(
        TourStop(
            "difference",
            "Hear the difference",
            "Take B is the same sentence from the same noise, with what you chose to skip. Switch between A and B "
            "while they play, as often as you like.",
            place="listen",
            after="threshold",
        ),
    ),
    keys=(
        ("zoom in, out, show all", "+, −, 0"),
        ("scroll; zoom, scroll the frequencies", "Page Up, Page Down; with Shift, with Alt"),
        ("on a lane: hear, pin as reference, subtract, move, remove, note", "Return, P, D, Alt+Up, Alt+Down, Del, T"),
    ),
)
