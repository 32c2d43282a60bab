"""Trainings offered by the panel: the forms declared by techniques' jobs, plug-ins included."""

from paretone.models.base import LANGUAGE, MelFlow
from paretone.techniques import technique
from paretone.training.forms import Figure, TrainingForm, training_forms
from paretone.wording import part_of
from paretone_app.numbers import general, localised


def offered(family: str, mel_flow: MelFlow | None) -> list[TrainingForm]:
    """Trainings for models of ``family``, first those that name it first; ``mel_flow``: a language model's flow."""
    found = [
        one
        for one in training_forms()
        if family in one.families
        and (family != LANGUAGE or not technique(one.name).of_mel_flow or technique(one.name).runs_on(mel_flow))
    ]
    return sorted(found, key=lambda one: one.families.index(family))


def training(name: str) -> TrainingForm:
    return next(one for one in training_forms() if one.name == name)


def figure_wording(figure: Figure, value: float) -> str:
    return localised(part_of(value)) if figure.share else general(value, 3)
