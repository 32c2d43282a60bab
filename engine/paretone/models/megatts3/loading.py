"""From a folder to a MegaTTS 3 that speaks: the official release, or the bundled model, which lies in the same way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from paretone import device as devices
from paretone.audio.mel import MelFrontEnd
from paretone.models.base import Voice
from paretone.models.f5.front_end import PromptReader
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.interval_weights import find_interval_weights, folders
from paretone.models.kernels.precision import offered
from paretone.models.load_request import LoadRequest
from paretone.models.megatts3.adapter import FrontEnd, MegaSpeech
from paretone.models.megatts3.checkpoint import OfficialFolder
from paretone.models.megatts3.dit import BRANCHES, MegaDiT
from paretone.models.megatts3.duration_model import Tempo
from paretone.models.megatts3.front_end import OfficialFrontEnd
from paretone.models.megatts3.passages import MegaPassages, MegaPrompt
from paretone.models.megatts3.wavvae import LatentDecoder, WavDecoder
from paretone.models.minis.megatts3_mini import MegaMiniFolder, MegaMiniFrontEnd
from paretone.models.minis.natural_vocoder import GroupedCodec
from paretone.models.minis.speaking import NATURAL_PHONES
from paretone.setting.knobs import Values

OFFICIAL = "official"
"""Name of the official text front end."""


def load_megatts3(request: LoadRequest) -> MegaSpeech:
    """Load all parts. Raises :class:`CheckpointError`."""
    request.require_folder(
        "MegaTTS 3 is a folder of several models; choose the folder that holds diffusion_transformer and the others."
    )
    return _bundled(request) if MegaMiniFolder.is_at(request.place) else _official(request)


def _bundled(request: LoadRequest) -> MegaSpeech:
    folder = MegaMiniFolder(request.place, request.check)
    vocabulary = folder.vocabulary()
    codec = GroupedCodec(request.natural_vocoder())
    front_end = MegaMiniFrontEnd(codec, PromptReader(MelFrontEnd(), True, vocabulary.index), vocabulary)
    return _speech(request, folder.weights_path, folder.backbone(), codec, front_end, NATURAL_PHONES)


def _official(request: LoadRequest) -> MegaSpeech:
    folder = OfficialFolder(request.place, request.check)
    folder.require_parts()
    wavvae = folder.wavvae().to(request.device)
    request.status("Reading aligner and text front end …")
    front_end = OfficialReading(OfficialFrontEnd.load(folder, wavvae, request.device))
    request.status(f"Reading the transformer of {request.entry.title} …")
    return _speech(request, folder.backbone_path, folder.backbone(), WavDecoder(wavvae), front_end, OFFICIAL)


class OfficialReading:
    """The official front end as :class:`MegaSpeech` asks. Remembers the last text: it is asked for again and again."""

    def __init__(self, front_end: OfficialFrontEnd) -> None:
        self._front_end = front_end
        self._last: tuple[tuple[MegaPrompt, str, Tempo], MegaPassages] | None = None

    def __call__(
        self, text: str, voice: Voice, options: Values, check: Callable[[], None], seed: int | None = None
    ) -> tuple[MegaPrompt, MegaPassages]:
        audio = Path(voice.audio)
        tempo = Tempo(stretch=1 / float(options["speed"]), disturbance=float(options["disturbance"]) / 100)
        prompt = self._front_end.prompt(audio, check=check)
        # The same recording gives the same object as long as it is not changed.
        if self._last is None or self._last[0][0] is not prompt or self._last[0][1:] != (text, tempo):
            passages = self._front_end.passages(text, audio, tempo, check=check)
            self._last = (prompt, text, tempo), passages
        return prompt, self._last[1]


def _speech(
    request: LoadRequest, path: Path, backbone: MegaDiT, decoder: LatentDecoder, front_end: FrontEnd, reads: str
) -> MegaSpeech:
    chosen, device = request.entry, request.device
    request.status(f"Moving {chosen.title} to {devices.title(device)} …")
    backbone = backbone.to(device)
    backbone.fuse()
    digest = fingerprint(path, request.check)
    info = request.info(
        checkpoint=str(path),
        fingerprint=digest,
        sample_rate=decoder.sample_rate,
        layers=backbone.layers,
        branches=len(BRANCHES),
        parameters=sum(one.numel() for one in backbone.parameters()),
        text_front_end=reads,
        precisions=offered(device),
        interval_weights=find_interval_weights(folders(chosen.id, path), digest, request.check),
    )
    return MegaSpeech(info, backbone, decoder, front_end)
