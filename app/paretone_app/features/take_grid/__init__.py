"""Take grid: two knobs, or other dimensions, around a reference; pointing at a cell plays it."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import EXPLORE, FeatureAction, MenuPart, Place, Region

FEATURE = Feature(
    "take_grid",
    "paretone_app.features.take_grid.presenter:TakeGridPresenter",
    (Place("take_grid", "Take grid", Region.CENTRE, workspaces=(EXPLORE,)),),
    actions=(
        FeatureAction("grid_hear", "&Hear cell", "Play the cell of Take grid, or stop"),
        FeatureAction("grid_reference", "Make cell the &reference", "Compare all cells of Take grid with this one"),
        FeatureAction(
            "grid_make", "&Make empty cells…", "Make the takes of all empty cells, one after the other (Esc cancels)"
        ),
        FeatureAction(
            "grid_point", "Grid around selected &point", "Make the take of the point in Trade-off the grid's reference"
        ),
    ),
    menus=(MenuPart("Take &grid", ("grid_point", "grid_hear", "grid_reference", "grid_make"), inside="&Compare"),),
    keys=(
        ("move; play or stop; make the cell the reference", "arrow keys; Space; R"),
        ("make the cell's take; compare it as A, as B", "M; A, B"),
    ),
    about="Takes that differ in two knobs, in sentences, voices, seeds or models, as a grid: pointing at a cell plays "
    "it, colours say how much better or worse it is than the reference, and empty cells are made when asked.",
)
