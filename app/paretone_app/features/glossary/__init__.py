"""Glossary: meanings of the window's words, symbols and figures."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import FeatureAction, MenuPart

FEATURE = Feature(
    "glossary",
    "paretone_app.features.glossary.presenter:GlossaryPresenter",
    actions=(FeatureAction("glossary", "&Glossary", "What the control with the focus is about", "F1"),),
    menus=(MenuPart("&Help", ("glossary",), before="keys"),),
    terms="paretone_app.features.glossary.model:TERMS",
)
