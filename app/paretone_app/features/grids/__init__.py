"""Grid: times of a flow model's evaluations, and a search for better times."""

from paretone.models.base import FLOW, MEL_FLOW
from paretone_app.features.feature import Feature
from paretone_app.shell.entries import Place, Region

FEATURE = Feature(
    "grids",
    "paretone_app.features.grids.presenter:GridsPresenter",
    (Place("grids", "Grid", Region.CENTRE, (FLOW, MEL_FLOW)),),
    technique="searched_grid",
    about="A flow model goes from noise to speech in a few evaluations, and it matters at which times. Grid searches "
    "times for the loaded model and shows them next to the grids that anybody has.",
)
