"""Common parts of targets for speech language models: admissible profiles, options, READMEs. Torch-free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paretone.export.accounts import OptionLedger
from paretone.export.delivery import Content
from paretone.export.targets import PROMPTS, Order, lists, prompts_file
from paretone.models.base import LANGUAGE
from paretone.models.catalogue import entry
from paretone.setting.knobs import Values
from paretone.setting.profile import Profile
from paretone.techniques import technique

if TYPE_CHECKING:
    from paretone.export.language_bundle import LanguageBundle


def why_not_language(profile: Profile, guided_weights: bool, program: str) -> str:
    """Reason why a profile is not for a model that ``program`` runs, as a sentence, or ``""``."""
    model = entry(profile.setting.model)
    if model.codes_per_token > 1:
        return (
            f"{model.title} completes each token to a frame of {model.codes_per_token} codes, which {program} does not "
            "know. The profile runs in any Paretone, and `paretone export-model` writes a student as a release."
        )
    if model.family == LANGUAGE:
        return ""
    return (
        f"The profile is for {model.title}, which does not decode token by token; {program} runs speech language "
        "models."
    )


def why_not_counted(profile: Profile, guided_weights: bool, program: str) -> str:
    """Like :func:`why_not_language`, for a program that gives every token the next position."""
    model = entry(profile.setting.model)
    if reason := why_not_language(profile, guided_weights, program):
        return reason
    if model.exports and model.exports.restarting:
        return (
            f"{model.title} counts positions anew where speech begins, but {program} gives every token the next one; "
            "export for transformers."
        )
    return ""


def drafts(profile: Profile) -> bool:
    return any(technique(one.technique).slot == "draft" for one in profile.setting.techniques)


def prompt_and_decoder(ledger: OptionLedger) -> None:
    """Record the options of prompts and of the decoder of tokens to audio, equal for all targets."""
    how, why = "in the prompts of prompts.json", "the decoder of tokens to audio is not exported"
    ledger.honour(how, "clone", "speaker", "mode", "instruction", "dates", "pronunciations")
    ledger.drop(why, "cross_fade", "stream", "stream_codes", "stream_context")
    # With repetition-aware sampling, the decoder stretches speech; otherwise the front end plans its length.
    ledger.honour_if(not is_repetition_aware(ledger.options), how, why, "speed")


def is_repetition_aware(options: Values) -> bool:
    """Whether the model resamples repeated tokens (CosyVoice 2)."""
    return "repeats" in options


def is_greedy(options: Values) -> bool:
    return options.get("temperature", 1.0) == 0


def common_files(order: Order, program: str, use: str, bundle: LanguageBundle) -> dict[str, Content]:
    """Files alike in all programs' folders: prompts, profile, and README with the ``use`` of the others."""
    chosen = entry(order.profile.setting.model)
    drafted = f"* Draft: {bundle.drafts}\n" if bundle.drafts else ""
    readme = (
        f"# A Paretone profile for {program}\n\n{use}\n\n"
        f"* Model: {chosen.title}, {bundle.speaks}; profile made on the checkpoint with SHA-256\n"
        f"  `{order.profile.checkpoint}`\n"
        f"{drafted}"
        f"* `profile.json` runs in Paretone\n"
        f"* Licence of the weights: {chosen.licence}\n\n"
        "## Texts, ids and sound\n\n"
        "`prompts.json` holds a sentence in a voice as ids, passage by passage, and the vocabulary: speech token `n` "
        f"has the id `first_code + n`, and `stops` end speech. {chosen.exports.prompts if chosen.exports else ''}\n\n"
        "Other sentences and voices as ids, and speech tokens as sound, are Paretone's:\n\n"
        "```\n"
        f'paretone tokens --model {chosen.id} --text "…" --out prompts.json\n'
        f"paretone tokens --model {chosen.id} --tokens tokens.json --out speech.wav\n"
        f"```\n\n{lists(order.account)}"
    )
    return {
        PROMPTS: prompts_file(bundle.model.ids, bundle.prompts, bundle.voice.id, order.account.options),
        "profile.json": order.profile.encoded(),
        "README.md": readme.encode(),
    }
