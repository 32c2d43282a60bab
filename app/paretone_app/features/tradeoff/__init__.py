"""Trade-off: takes and settings as points, speed against quality."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import EXPLORE, FeatureAction, MenuPart, Place, Region, TourStop

FEATURE = Feature(
    "tradeoff",
    "paretone_app.features.tradeoff.presenter:TradeoffPresenter",
    (
        Place("tradeoff", "Trade-off", Region.CENTRE, workspaces=(EXPLORE,), first=True),
        Place("parallel", "Parallel axes", Region.CENTRE, workspaces=(EXPLORE,)),
    ),
    actions=(
        FeatureAction("point_hear", "&Hear point", "Play the point selected in Trade-off; again: stop", "Ctrl+H"),
        FeatureAction("point_a", "Set point as &A", "Compare the point selected in Trade-off as A", "Shift+F7"),
        FeatureAction("point_b", "Set point as &B", "Compare the point selected in Trade-off as B", "Shift+F8"),
        FeatureAction("point_keep", "Add point to &Takes", "Copy the study's take into Takes", "Ctrl+6"),
        FeatureAction("point_use", "&Use point in Setup", "Load the point's setting and strategy table", "Ctrl+7"),
        FeatureAction("front_back", "Bac&k along the front", "Select the front's next point to the left", "Ctrl+["),
        FeatureAction("front_on", "&On along the front", "Select the front's next point to the right", "Ctrl+]"),
        FeatureAction(
            "front_play",
            "Play the front",
            "Hear one sentence by each setting of the front in turn; walk to repeat one of them; again: silence",
            "Ctrl+9",
            checkable=True,
        ),
        FeatureAction(
            "front_mark",
            "Now I hear it, or &no longer",
            "While the front is played: mark the step after which a difference is heard, or no longer (N)",
        ),
        FeatureAction(
            "front_heard",
            "&Find what I can hear…",
            "Blind test along the front: from which speed-up on is a difference heard?",
            "Ctrl+8",
        ),
        FeatureAction(
            "shown_study", "Study within ranges…", "New study of what is brushed on Parallel axes: knobs and bounds"
        ),
        FeatureAction("shown_rank", "Rank what is shown…", "Blind test of 3 to 12 shown settings: which is preferred?"),
        *(
            FeatureAction(name, text, tip, checkable=True)
            for name, text, tip in (
                ("point_dominated", "Show &dominated points", "Also show points beaten on both axes"),
                ("point_intervals", "Show &intervals", "95 % bootstrap intervals over sentences"),
                ("point_ratios", "Show &ratios", "Divide figures by those of each point's baseline"),
                ("point_published", "Show &published results", "Results of five papers, as ratios to their baselines"),
                ("point_log_x", "&Logarithmic X axis", "Logarithmic X axis, for figures above 0"),
                ("point_log_y", "Lo&garithmic Y axis", "Logarithmic Y axis, for figures above 0"),
            )
        ),
        FeatureAction("point_nearer", "&Zoom in", "Zoom Trade-off in around the selected point"),
        FeatureAction("point_farther", "Zoo&m out", "Zoom Trade-off out"),
        FeatureAction("point_everything", "Show &everything", "Show all points of Trade-off"),
        FeatureAction(
            "selection_save", "Save selection…", "Save axes, filter and selected points of studies to share them"
        ),
        FeatureAction("selection_open", "Open selection…", "Select what another person has saved, on the same study"),
        FeatureAction("point_svg", "Export as SVG…", "Save the Trade-off view as SVG"),
        FeatureAction("point_png", "Export as PNG…", "Save the Trade-off view as PNG"),
        FeatureAction("point_csv", "Export as CSV…", "Save the Trade-off view as CSV"),
    ),
    stops=(
        TourStop(
            "front",
            "Walk along the front",
            "Each point is a setting, speed against quality. On the front lie those that no other "
            "beats on both; a click plays a point.",
            place="tradeoff",
            after="skipped",
        ),
    ),
    menus=(
        MenuPart(
            "Trade-&off",
            (
                *("point_hear", "point_a", "point_b", "point_keep", "point_use", None),
                *("front_back", "front_on", "front_play", "front_mark", "front_heard"),
                *("shown_rank", "shown_study", None),
                *("point_dominated", "point_intervals", "point_ratios", "point_published"),
                *("point_log_x", "point_log_y", None),
                *("point_nearer", "point_farther", "point_everything", None),
                *("selection_save", "selection_open", None),
                *("point_svg", "point_png", "point_csv"),
            ),
            inside="&Compare",
        ),
    ),
    keys=(
        ("along the front; along all points; to its ends", "Left, Right; with Shift; Home, End"),
        ("play the point, or stop; compare it; select all", "Space; A, B; Ctrl+A"),
        ("while the front is played: now I hear it, or no longer", "N"),
        ("parallel axes: to the next; upper end of its range; lower end", "Left, Right; Up, Down; with Shift"),
        ("zoom in, out, show everything; move the section", "+, −, 0; Ctrl with the arrow keys"),
    ),
    about="Trade-off shows every take and every setting of a study as a point, speed against quality, with the "
    "Pareto front: click to play, walk along it, compare any two, and load the best into Setup.",
)
