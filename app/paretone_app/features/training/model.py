"""Trainings that the panel offers: the forms that techniques' jobs declare, those of plug-ins included."""

from __future__ import annotations

from paretone.models.base import LANGUAGE
from paretone.techniques import technique
from paretone.training.forms import Figure, TrainingForm, training_forms
from paretone_app.numbers import general, percent


def offered(family: str, mel_steps: int) -> list[TrainingForm]:
    """Those for models of ``family``, the ones that are for it first; ``mel_steps`` as a model has them."""
    found = [
        one
        for one in training_forms()
        if family in one.families and (family != LANGUAGE or mel_steps or not technique(one.name).needs_mel_flow)
    ]
    return sorted(found, key=lambda one: one.families.index(family))


def training(name: str) -> TrainingForm:
    return next(one for one in training_forms() if one.name == name)


def figure_wording(figure: Figure, value: float) -> str:
    """The value of a validation's figure as people read it."""
    return percent(value) if figure.share else general(value, 3)
