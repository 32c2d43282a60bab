"""Strategy: which cells of the strategy table are skipped."""

from paretone.models.base import FLOW
from paretone_app.features.feature import Feature
from paretone_app.shell.entries import FeatureAction, MainStep, MenuPart, Place, Region, TourStop

FEATURE = Feature(
    "strategy",
    "paretone_app.features.strategy.presenter:StrategyPresenter",
    (Place("strategy", "Strategy", Region.CENTRE, (FLOW,)),),
    technique="ditreducio",
    actions=(
        FeatureAction("calibrate", "&Calibrate", "Find which modules can be skipped at this threshold", "Ctrl+K"),
        FeatureAction("import_table", "&Import official table…", "Open a JSON file of the official code", "Ctrl+O"),
        FeatureAction("export_table", "E&xport official table…", "Save as JSON for the official code", "Ctrl+Shift+O"),
        FeatureAction(
            "skip_nothing", "Skip &nothing", "Replace the table by one that computes everything", "Ctrl+Shift+N"
        ),
    ),
    menus=(
        MenuPart("&Run", ("calibrate",), after="baseline"),
        MenuPart("&Strategy", ("import_table", "export_table", "skip_nothing")),
    ),
    steps=(
        MainStep(
            "calibrate",
            "Calibrate",
            "press <b>Calibrate</b> (Ctrl+K): DiTReducio finds which modules it can skip.",
            "<b>Calibrate</b>: each layer is skipped at each step, as a trial; skips with an error below δ are kept in "
            "the strategy table.",
            after="baseline",
        ),
    ),
    terms="paretone_app.features.strategy.grid:TERMS",
    stops=(
        TourStop(
            "skipped",
            "See what is skipped",
            "Each cell is one layer (row) at one step (column). Coloured cells are not computed: the output of an "
            "earlier step, or of the other branch, stands in for them.",
            place="strategy",
            after="difference",
            families=(FLOW,),
        ),
    ),
    keys=(
        ("move in the table", "Arrow keys"),
        ("cycle a cell: compute, temporal skip, branch skip", "Space"),
        ("copy as text", "Ctrl+C"),
    ),
)
