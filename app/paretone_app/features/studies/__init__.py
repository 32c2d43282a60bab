"""Studies: many settings on many sentences."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import EXPLORE, FeatureAction, MenuPart, Place, Region

MOST_RECENT = 12

FEATURE = Feature(
    "studies",
    "paretone_app.features.studies.presenter:StudiesPresenter",
    (Place("studies", "Studies", Region.CENTRE, workspaces=(EXPLORE,)),),
    actions=(
        FeatureAction("new_study", "&New study…", "Choose settings, sentences, voices and judges", "Ctrl+N"),
        FeatureAction("open_study", "&Open study…", "Open a study file", "Ctrl+Shift+U"),
        FeatureAction("open_study_folder", "Open study &folder…", "Open a folder with results", "Ctrl+Alt+U"),
        FeatureAction("open_example", "Open e&xample", "A finished study to look at, hear and use", "Ctrl+Alt+E"),
        FeatureAction("run_study", "&Run or resume study", "Run the remaining takes of this study", "F5"),
        FeatureAction("pause_study", "&Pause study", "Finish the current takes, then stop", "Shift+F5"),
        FeatureAction("use_study_setting", "&Use setting", "Load the selected setting into Setup", "Ctrl+J"),
        FeatureAction("report_study", "&Write report", "Write a page and tables, and open the page", "Ctrl+F5"),
        FeatureAction(
            "verify_study",
            "&Verify results",
            "Check the results against the study's file, the weights and the code, and make some takes again",
            "Ctrl+Alt+V",
        ),
        FeatureAction("close_study", "&Close study", "Close this study; its files stay", "Ctrl+W"),
    ),
    menus=(
        MenuPart(
            "St&udies",
            (
                *("new_study", "open_study", "open_study_folder", "open_example", None),
                *("run_study", "pause_study", "cancel", None),
                *("use_study_setting", "report_study", "verify_study", "close_study"),
            ),
        ),
    ),
)
