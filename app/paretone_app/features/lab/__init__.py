"""Lab: blind listening tests."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import TEST, FeatureAction, MenuPart, Place, Region, TourStop

FEATURE = Feature(
    "lab",
    "paretone_app.features.lab.presenter:LabPresenter",
    (Place("lab", "Lab", Region.CENTRE, workspaces=(TEST,)),),
    actions=(
        FeatureAction("listening_test", "Listening &test…", "Test blindly whether a difference is audible", "Ctrl+L"),
    ),
    stops=(
        TourStop(
            "blind",
            "Test yourself blindly",
            "X is A or B, and nothing tells which. Four trials show how a test goes; a result that counts needs more.",
            place="lab",
            after="front",
        ),
    ),
    menus=(MenuPart("&Compare", ("listening_test",), after="play"),),
    keys=(
        ("play A, B, X; answer what X is", "A, B, X; 1, 2"),
        ("play the first, the second of a pair; answer", "A, B; 1 to 7"),
        (
            "play the reference, a sound, the previous or next one; rate it; next page",
            "R, 1 to 0, Left, Right; Up, Down, Page Up, Page Down; Return",
        ),
        ("before a test, play the noise, the tone; confirm the volume", "N, T; Return"),
        ("play or pause; loop, its start, its end; to the start", "Space; L, [, ]; Backspace"),
    ),
)
