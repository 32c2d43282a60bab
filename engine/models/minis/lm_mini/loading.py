"""From a folder to the bundled language model that speaks."""

from __future__ import annotations

from engine.audio.mel import MelFrontEnd
from engine.errors import CheckpointError
from engine.models.f5.prompts import PromptReader
from engine.models.files.checkpoints import fingerprint
from engine.models.files.language_weights import find_language_weights, places
from engine.models.load_request import LoadRequest
from engine.models.minis.frames import SAMPLE_RATE
from engine.models.minis.lm_mini.adapter import LmMiniSpeech
from engine.models.minis.lm_mini.checkpoint import LmMiniFolder
from engine.models.minis.lm_mini.front_end import LmMiniFrontEnd

PHONES = "phones"
"""Name of its text front end."""


def load_lm_mini(request: LoadRequest) -> LmMiniSpeech:
    """Load all parts. Raises :class:`CheckpointError`."""
    chosen, device = request.entry, request.device
    request.require_folder(f"{chosen.title} is a folder with a speech tokenizer in it; choose the folder.")
    folder = LmMiniFolder(request.place, request.check)
    layout = folder.layout()
    network = folder.network(device)
    tokenizer, mean_mels = folder.tokenizer(device)
    if tokenizer.config.codes != layout.codes:
        raise CheckpointError(
            f"The speech tokenizer in {request.place} has {tokenizer.config.codes} codes, but the model speaks "
            f"{layout.codes}: they do not belong together. Restore the model folder."
        )
    vocoder = request.vocos()
    reader = PromptReader(MelFrontEnd(), whole_frames=True)
    front_end = LmMiniFrontEnd(tokenizer, mean_mels, folder.durations(), layout.vocabulary, reader, chosen.title)
    digest = fingerprint(folder.weights_path, request.check)
    config = network.tokens.transformer.config
    info = request.info(
        checkpoint=str(folder.weights_path),
        fingerprint=digest,
        sample_rate=SAMPLE_RATE,
        layers=config.layers,
        branches=1,
        parameters=folder.parameters(),
        text_front_end=PHONES,
    )
    info = find_language_weights(places(chosen.id, request.place), digest, request.check).on(info)
    mean_mel = next(iter(mean_mels.values()))
    return LmMiniSpeech(
        info,
        network,
        tokenizer,
        vocoder,
        front_end,
        layout,
        mean_mel,
        lambda student: folder.student(student, device),
        folder.draft,
    )
