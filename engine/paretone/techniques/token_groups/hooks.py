"""Hooks of token groups in studies: see :mod:`paretone.studies.hooks`. Torch-free."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paretone.models.base import SpeechModel, Utterance
from paretone.observer import Observer
from paretone.setting.setting import Setting
from paretone.techniques.token_groups.groups import Groups


def preparer() -> Callable[[SpeechModel, Sequence[Utterance], Setting, Observer], Groups]:
    """Finder of groups on one worker. They follow from the model's tables, not from what it speaks."""

    def prepare(model: SpeechModel, utterances: Sequence[Utterance], setting: Setting, observer: Observer) -> Groups:
        # Imports torch.
        from paretone.techniques.token_groups.finding import find_groups

        return find_groups(model, setting, observer)

    return prepare
