"""From a folder to the bundled language model that speaks."""

from __future__ import annotations

from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.language_weights import find_language_weights, places
from paretone.models.load_request import LoadRequest
from paretone.models.minis.folder import NATURAL_PHONES
from paretone.models.minis.frames import SAMPLE_RATE
from paretone.models.minis.lm_mini.adapter import LmMiniSpeech
from paretone.models.minis.lm_mini.checkpoint import LmMiniFolder
from paretone.models.minis.lm_mini.parts import read_parts


def load_lm_mini(request: LoadRequest) -> LmMiniSpeech:
    """Load all parts. Raises :class:`CheckpointError`."""
    chosen, device = request.entry, request.device
    request.require_folder(f"{chosen.title} is a folder with a speech tokenizer in it; choose the folder.")
    folder = LmMiniFolder(request.place, request.check)
    network, parts = folder.network(device), read_parts(request, folder)
    digest = fingerprint(folder.weights_path, request.check)
    info = request.info(
        checkpoint=str(folder.weights_path),
        fingerprint=digest,
        sample_rate=SAMPLE_RATE,
        layers=network.tokens.transformer.config.layers,
        branches=1,
        parameters=folder.parameters(),
        text_front_end=NATURAL_PHONES,
    )
    info = find_language_weights(places(chosen.id, request.place), digest, request.check).on(info)
    return LmMiniSpeech(info, network, parts, lambda student: folder.student(student, device), folder.draft)
