"""Takes: every synthesis, with its figures."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import EXPLORE, INSPECT, LISTEN, FeatureAction, MenuPart, Place, Region

FEATURE = Feature(
    "takes",
    "paretone_app.features.takes.presenter:TakesPresenter",
    (Place("takes", "Takes", Region.BELOW, workspaces=(LISTEN, INSPECT, EXPLORE)),),
    actions=(
        FeatureAction("set_a", "Set selected take as &A", "Compare with this take as A", "F7"),
        FeatureAction("set_b", "Set selected take as &B", "Compare with this take as B", "F8"),
        FeatureAction("add_lane", "Add selected takes as &lanes", "Compare the selected takes, too", "Ctrl+F8"),
        FeatureAction("swap", "S&wap A and B", "Swap A and B", "F9"),
        FeatureAction("save_wav", "Save A and B as &WAV…", "Save both takes in a folder", "Ctrl+Shift+S"),
        FeatureAction("data_folder", "Open data &folder", "Open the folder of takes and calibrations", "Ctrl+Shift+D"),
        FeatureAction("choose_data_folder", "&Choose data folder…", "Keep takes and calibrations in another folder"),
    ),
    menus=(
        MenuPart("&File", ("save_wav", "data_folder", "choose_data_folder"), after="export_weights"),
        MenuPart("&Compare", (None, "set_a", "set_b", "add_lane", "swap", None)),
    ),
    terms="paretone_app.features.takes.table:TERMS",
    keys=(
        ("compare as A, as B; add as lane", "A, B; L"),
        ("star, run again, save as WAV, show file, delete", "S, R, W, V, Del"),
    ),
)
