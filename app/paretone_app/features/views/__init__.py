"""Views: figures about the loaded model."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import Place, Region

FEATURE = Feature(
    "views",
    "paretone_app.features.views.presenter:ViewsPresenter",
    (Place("views", "Views", Region.CENTRE),),
    keys=(("from point to point, from panel to panel", "Arrow keys; Page Up, Page Down"),),
)
