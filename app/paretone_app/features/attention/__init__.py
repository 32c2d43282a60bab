"""Attention: diagonal similarity per layer and step, and the attention maps."""

from paretone.models.base import FLOW
from paretone_app.features.feature import Feature
from paretone_app.shell.entries import Place, Region

FEATURE = Feature(
    "attention",
    "paretone_app.features.attention.presenter:AttentionPresenter",
    (Place("attention", "Attention", Region.CENTRE, (FLOW,)),),
    technique="ditreducio",
    keys=(("capture the selected cell", "Space"), ("pan, zoom, show all", "Arrow keys, + and −, 0")),
)
