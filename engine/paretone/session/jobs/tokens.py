"""Prompts of language models as ids for other programs, and the sound of tokens that these give."""

from __future__ import annotations

from paretone.errors import SettingError
from paretone.models.families.language import LanguageSpeech
from paretone.session.commands import EncodePrompts, HearTokens
from paretone.session.events import PromptsEncoded, TokensHeard
from paretone.session.executor import Executor
from paretone.session.observers import JobObserver, RunningJob
from paretone.setting.setting import Setting
from paretone.techniques import resolve


def encode(command: EncodePrompts, executor: Executor, job: RunningJob) -> PromptsEncoded:
    """Make voice and text ready, and list what would be continued."""
    model, check = _language_model(executor, command.setting), JobObserver(job).check
    prompts = model.official_prompts(command.text, command.voice, resolve(model.info, command.setting), check)
    return PromptsEncoded(command.job, prompts, model.official_ids)


def hear(command: HearTokens, executor: Executor, job: RunningJob) -> TokensHeard:
    """Decode tokens to sound."""
    model, check = _language_model(executor, command.setting), JobObserver(job).check
    plan = resolve(model.info, command.setting)
    samples = model.heard(command.tokens, command.text, command.voice, plan, check)
    return TokensHeard(command.job, samples, model.info.sample_rate)


def _language_model(executor: Executor, setting: Setting) -> LanguageSpeech:
    """The loaded model. Raises :class:`SettingError` for one without tokens."""
    model = executor.model_for(setting)
    if not isinstance(model, LanguageSpeech):
        raise SettingError(f"{model.info.title} decodes no tokens one by one; choose a speech language model.")
    return model
