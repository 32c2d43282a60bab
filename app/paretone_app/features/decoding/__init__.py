"""Decoding: the outcome of every speech token of A and B."""

from paretone.models.base import LANGUAGE
from paretone_app.features.feature import Feature
from paretone_app.shell.entries import Place, Region

FEATURE = Feature(
    "decoding",
    "paretone_app.features.decoding.presenter:DecodingPresenter",
    (Place("decoding", "Decoding", Region.CENTRE, (LANGUAGE,)),),
    technique="speculative",
    keys=(
        ("from token to token, line to line, cycle to cycle", "Left, Right; Up, Down; Page Up, Page Down"),
        ("play from the token", "Space"),
        ("copy as text", "Ctrl+C"),
    ),
    about="Speech language models decode token by token. SSD drafts several tokens per pass of the model: "
    "Decoding shows the outcome of every token.",
)
