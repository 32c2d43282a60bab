"""Layers: importance of each layer, and the choice of kept ones."""

from paretone.models.base import LANGUAGE
from paretone_app.features.feature import Feature
from paretone_app.shell.entries import Place, Region

FEATURE = Feature(
    "layers",
    "paretone_app.features.layers.presenter:LayersPresenter",
    (Place("layers", "Layers", Region.CENTRE, (LANGUAGE,)),),
    technique="spade",
    study="paretone_app.features.layers.study:KIND",
    keys=(
        ("select a layer; keep or remove it", "Left, Right; Space"),
        ("keep one layer more, one less", "Up, Down"),
        ("copy as text", "Ctrl+C"),
    ),
    about="SPADE removes layers of speech language models: Layers shows the importance of each.",
)
