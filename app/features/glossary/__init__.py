"""Glossary: what the words, symbols and figures of the window mean."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.entries import FeatureAction, MenuPart

FEATURE = Feature(
    "glossary",
    "app.features.glossary.presenter:GlossaryPresenter",
    actions=(FeatureAction("glossary", "&Glossary", "What the control with the focus is about", "F1"),),
    menus=(MenuPart("&Help", ("glossary",), before="keys"),),
    terms="app.features.glossary.terms:TERMS",
)
