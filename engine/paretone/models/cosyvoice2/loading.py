"""From the official folder to a CosyVoice 2 that speaks."""

from __future__ import annotations

from paretone.errors import CheckpointError
from paretone.models.cosyvoice2.adapter import CosySpeech
from paretone.models.cosyvoice2.checkpoint import FLOW, LANGUAGE_MODEL, OfficialFolder
from paretone.models.cosyvoice2.front_end import VoicePrompts
from paretone.models.files.checkpoints import fingerprint
from paretone.models.load_request import LoadRequest

FRONT_END = "qwen2"
"""Name of the text front end."""


def load_cosyvoice2(request: LoadRequest) -> CosySpeech:
    """Load all parts but those that hear recordings, which are read with the first new voice.

    Raises :class:`CheckpointError`.
    """
    chosen, device = request.entry, request.device
    request.require_folder(
        f"CosyVoice 2 is a folder of several models; choose the folder that holds {LANGUAGE_MODEL} and the others."
    )
    folder = OfficialFolder(request.place, device, request.check)
    folder.require_parts()
    encoder, tokenizer = folder.recording_encoder(), folder.tokenizer()
    request.status("Reading flow and vocoder …")
    flow, vocoder = folder.flow(), folder.vocoder()
    request.status(f"Reading the language model of {chosen.title} …")
    model = folder.language_model()
    tokenizer.require_rows(len(model.text), f"the text embedding in {folder.checkpoint}")
    if flow.config.tokens < model.codes:
        raise CheckpointError(
            f"{LANGUAGE_MODEL} in {folder.root} speaks {model.codes} tokens, but {FLOW} knows {flow.config.tokens}: "
            "they do not belong together. Download the official release again."
        )
    digest = fingerprint(folder.checkpoint, request.check)
    info = request.info(
        checkpoint=str(folder.checkpoint),
        fingerprint=digest,
        sample_rate=vocoder.config.sample_rate,
        layers=model.tokens.transformer.config.layers,
        branches=1,
        parameters=model.parameters,
        text_front_end=FRONT_END,
    )
    prompts = VoicePrompts(encoder, model.codes, flow.config.speaker_width)
    flow_base = fingerprint(folder.root / FLOW, request.check)
    speech = CosySpeech(info, folder, model, flow, vocoder, tokenizer, prompts, flow_base)
    speech.look_for_weights(request.check)
    return speech
