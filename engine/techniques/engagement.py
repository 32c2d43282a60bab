"""What a setting means on a loaded model: every technique's say, resolved once before anything runs. Torch-free.

Each family resolves its own: :mod:`engine.techniques.flow_engagement`, :mod:`engine.techniques.language_engagement`,
:mod:`engine.techniques.masked_engagement`.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import PlainError
from engine.models.base import LANGUAGE, MASKED, ModelInfo
from engine.setting.setting import Setting
from engine.techniques import flow_engagement, language_engagement, masked_engagement
from engine.techniques.ditreducio.table import StrategyTable
from engine.techniques.flow_engagement import Engagement
from engine.techniques.language_engagement import LanguageEngagement
from engine.techniques.masked_engagement import MaskedEngagement


def engage(
    info: ModelInfo, setting: Setting, artefacts: Sequence[StrategyTable] = ()
) -> Engagement | LanguageEngagement | MaskedEngagement:
    """Resolve ``setting`` on the loaded model that ``info`` describes; ``artefacts`` hold what it names by fingerprint.

    Raises :class:`SettingError` and :class:`ProfileError` that say why it cannot be used.
    """
    if info.family == LANGUAGE:
        return language_engagement.engage(info, setting)
    if info.family == MASKED:
        return masked_engagement.engage(info, setting)
    return flow_engagement.engage(info, setting, artefacts)


def problem(info: ModelInfo, setting: Setting, artefacts: Sequence[StrategyTable] = ()) -> str | None:
    """Why ``setting`` cannot be used on the loaded model, as a sentence, or ``None``."""
    try:
        engage(info, setting, artefacts)
    except PlainError as error:
        return str(error)
    return None
