"""From a folder to the bundled masked model that speaks."""

from __future__ import annotations

from paretone.errors import CheckpointError
from paretone.models.families.masked_networks import offered
from paretone.models.files.checkpoints import fingerprint
from paretone.models.load_request import LoadRequest
from paretone.models.minis.folder import NATURAL_PHONES
from paretone.models.minis.frames import SAMPLE_RATE
from paretone.models.minis.natural_coding import natural_coding
from paretone.models.minis.omni_mini.adapter import OmniMiniSpeech
from paretone.models.minis.omni_mini.checkpoint import OmniMiniFolder
from paretone.models.minis.omni_mini.front_end import OmniMiniFrontEnd
from paretone.models.minis.texts import Texts


def load_omni_mini(request: LoadRequest) -> OmniMiniSpeech:
    """Load all parts. Raises :class:`CheckpointError`."""
    chosen, device = request.entry, request.device
    request.require_folder(f"{chosen.title} is a folder with a codec in it; choose the folder.")
    folder = OmniMiniFolder(request.place, request.check)
    layout, network = folder.layout(), folder.network().to(device)
    codec = folder.codec(device)
    config, sizes = network.config, codec.config
    if (config.codebooks, config.mask) != (sizes.codebooks, sizes.codes):
        raise CheckpointError(
            f"The codec in {request.place} has {sizes.codebooks} codebooks of {sizes.codes} codes, but the model "
            f"speaks {config.codebooks} of {config.mask}: they do not belong together. Restore the model folder."
        )
    if config.text_vocabulary != layout.tokens:
        raise CheckpointError(
            f"The model in {request.place} knows {config.text_vocabulary} text tokens, but its layout.json names "
            f"{layout.tokens}; restore the model folder."
        )
    info = request.info(
        checkpoint=str(folder.weights_path),
        fingerprint=fingerprint(folder.weights_path, request.check),
        sample_rate=SAMPLE_RATE,
        layers=config.transformer.layers,
        branches=2,
        parameters=sum(one.numel() for one in network.parameters()),
        text_front_end=NATURAL_PHONES,
        precisions=offered(device),
    )
    coding = natural_coding(request, codec)
    return OmniMiniSpeech(info, network, coding, OmniMiniFrontEnd(coding, Texts(), layout))
