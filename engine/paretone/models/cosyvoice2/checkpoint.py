"""The folder of an official release of CosyVoice 2 or 3, part by part.

===========================  =====================================================
``llm.pt``                     the language model
``flow.pt``                    speech tokens to mel frames
``hift.pt``                    mel frames to audio
``speech_tokenizer_v2.onnx``   speech tokens of recordings (``_v3`` in CosyVoice 3)
``campplus.onnx``              the speaker's embedding
``CosyVoice-BlankEN``          the text tokenizer, and sizes of the transformer
===========================  =====================================================

The release's ``.yaml`` is not read: upstream executes it, and all sizes that could differ follow from the weights. They
are read without running code in them, and strictly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from paretone.audio.mel import MelFrontEnd
from paretone.errors import CheckpointError
from paretone.models.base import DraftWeights, StudentWeights
from paretone.models.cosyvoice2.config import EncoderConfig, EstimatorConfig, FlowConfig, HiftConfig
from paretone.models.cosyvoice2.hift import GENERATOR, Hift
from paretone.models.cosyvoice2.language_model import COSYVOICE_2, HEAD, LAYERS, LanguageModel, TableLayout
from paretone.models.cosyvoice2.model import FLOW, LANGUAGE_MODEL, MODEL, TITLE, TITLE_1, edition_in, trained_parts
from paretone.models.cosyvoice2.speech_tokenizer import MEL, SPEAKER, TOKENIZER, RecordingEncoder
from paretone.models.cosyvoice2.text import TextTokenizer
from paretone.models.cosyvoice2.token_to_mel import TokenFlow, TokenToMel
from paretone.models.families.language_network import DraftTensors
from paretone.models.files.byte_pairs import MERGES, VOCABULARY
from paretone.models.files.checkpoints import loaded_strictly, read_float_weights, read_weights, shapes_of
from paretone.models.files.config_file import ConfigFile, WeightShapes
from paretone.models.networks.causal import CausalConfig
from paretone.observer import Check
from paretone.reading import named_first

VOCODER = "hift.pt"
BLANK = "CosyVoice-BlankEN"
CONFIG = f"{BLANK}/config.json"
COUNTERS = ("epoch", "step")
"""Numbers that the official training keeps next to the weights."""


@dataclass(frozen=True)
class Edition:
    """What differs between CosyVoice 2 and 3."""

    layout: TableLayout
    flow: Callable[[Mapping[str, tuple[int, ...]], str], TokenFlow] = field(repr=False)
    """Makes the flow for the shapes of the tensors in ``flow.pt`` and its path."""
    tokenizer: str
    """File of the model from recordings to speech tokens."""
    causal_vocoder: bool
    mel: MelFrontEnd
    """Mel frames of recordings."""
    more_text: tuple[str, ...] = ()
    """Tokens of text after CosyVoice 2's."""
    prefix: str = ""
    """Beginning of every prompt, which ends with the mark of an instruction; without it, only instructions do."""
    silent: frozenset[int] = frozenset()
    """Speech tokens of silence, of which a run reaches the flow only up to ``most_silent``."""
    most_silent: int = 0
    release: Callable[[], Path] | None = field(default=None, repr=False)
    """Usual folder of the release, for what a fine-tune lacks."""

    @property
    def title(self) -> str:
        return self.layout.title


COSYVOICE2 = Edition(
    COSYVOICE_2,
    lambda shapes, where: TokenToMel(flow_config(shapes, where)),
    TOKENIZER,
    causal_vocoder=False,
    mel=MEL,
    release=lambda: MODEL.folder,
)


@dataclass(frozen=True)
class OfficialFolder:
    """The release in ``root``, or a fine-tune: parts that it did not train, and so lacks, are those of the release in
    its usual place. Reading raises :class:`CheckpointError`, and calls ``check``, which may cancel."""

    root: Path
    device: torch.device | str = "cpu"
    check: Check = lambda: None
    edition: Edition = COSYVOICE2
    language_weights: str = LANGUAGE_MODEL
    """File of the language model."""

    def require_parts(self) -> None:
        """Raise :class:`CheckpointError` that names missing files, or the edition that the weights are of."""
        found = edition_in(self.root)
        if found not in ("", self.edition.title):
            better = f"{TITLE} or 3; Paretone does not have the first" if found == TITLE_1 else found
            raise CheckpointError(
                f"{self.root} holds weights of {found}, not of {self.edition.title}: choose {better}."
            )
        parts = (self.language_weights, FLOW, VOCODER, self.edition.tokenizer, SPEAKER)
        names = (*parts, CONFIG, f"{BLANK}/{VOCABULARY}", f"{BLANK}/{MERGES}")
        tuned = found or any((self.root / name).is_file() for name in names)
        missing = [name for name in names if not (self.place(name) if tuned else self.root / name).is_file()]
        if missing:
            release = self.edition.release
            lent = f" What a fine-tune lacks is taken from {release()}, if the release is there." if release else ""
            raise CheckpointError(
                f"{self.root} is not a complete release of {self.edition.title}: it lacks {', '.join(missing)}; "
                f"download it again.{lent}"
            )

    def place(self, name: str) -> Path:
        """A part of :attr:`root`, whatever its file is called, or, unless that is there, of the release. Raises
        :class:`CheckpointError` if several files are such parts."""
        own, release = self.root / name, self.edition.release
        if own.exists():
            return own
        trained = [path for part, path, _ in trained_parts(self.root) if part == name]
        if len(trained) > 1:
            several = named_first([path.name for path in trained], 5)
            raise CheckpointError(
                f"{self.root} has no {name}, but several files of such weights ({several}): rename one to {name}."
            )
        return trained[0] if trained else own if release is None else release() / name

    @property
    def checkpoint(self) -> Path:
        """Weight file that identifies the model."""
        return self.place(self.language_weights)

    def tokenizer(self) -> TextTokenizer:
        return TextTokenizer.load(self.place(CONFIG).parent, self.edition.more_text)

    def recording_encoder(self) -> RecordingEncoder:
        return RecordingEncoder(self.place(self.edition.tokenizer).parent, self.edition.tokenizer)

    def language_model(self) -> LanguageModel:
        """The language model as trained, float32 on the device."""
        return self._language_model(read_weights(self.checkpoint, self.check, COUNTERS), str(self.checkpoint))

    def student(self, student: StudentWeights) -> LanguageModel:
        """The language model in a student's file, under the names of ``llm.pt``; the tied head may be missing."""
        return self._language_model(read_float_weights(Path(student.path), self.check), student.path)

    def _language_model(self, weights: Mapping[str, torch.Tensor], where: str) -> LanguageModel:
        model = LanguageModel.from_official(weights, self._transformer(), where, layout=self.edition.layout)
        return model.to(torch.device(self.device))

    def draft(self, draft: DraftWeights) -> DraftTensors:
        return DraftTensors.read(draft, LAYERS, HEAD, check=self.check)

    def flow(self) -> TokenFlow:
        path = self.place(FLOW)
        weights, where = read_weights(path, self.check, COUNTERS), str(path)
        return loaded_strictly(lambda: self.edition.flow(shapes_of(weights), where), weights, where).to(self.device)

    def vocoder(self) -> Hift:
        path = self.place(VOCODER)
        weights = read_weights(path, self.check)
        config = hift_config(shapes_of(weights), str(path), self.edition)
        return Hift.official(config, weights, str(path)).to(self.device)

    def _transformer(self) -> CausalConfig:
        file = ConfigFile.read(self.place(CONFIG))
        file.require("model_type", "qwen2")
        return CausalConfig.read(file)


def flow_config(shapes: Mapping[str, tuple[int, ...]], where: str) -> FlowConfig:
    """Sizes of ``flow.pt``, from the shapes of its tensors. Raises :class:`CheckpointError`."""
    shape = WeightShapes(shapes, where, "the flow of CosyVoice 2")
    tokens, width = shape("input_embedding.weight", 2)
    bands, speaker_width = shape("spk_embed_affine_layer.weight", 2)
    channels = shape("decoder.estimator.final_block.block.0.weight", 3)[0]
    head_width = EstimatorConfig().head_width
    return FlowConfig(
        tokens=tokens,
        speaker_width=speaker_width,
        bands=bands,
        encoder=EncoderConfig(
            width=width,
            heads=shape("encoder.encoders.0.self_attn.pos_bias_u", 2)[0],
            feed_forward=shape("encoder.encoders.0.feed_forward.w_1.weight", 2)[0],
            layers=shape.count(r"encoder\.encoders\.(\d+)\."),
            upsampled_layers=shape.count(r"encoder\.up_encoders\.(\d+)\."),
        ),
        look_ahead=shape("encoder.pre_lookahead_layer.conv1.weight", 3)[2] - 1,
        estimator=EstimatorConfig(
            channels=channels,
            heads=shape("decoder.estimator.down_blocks.0.1.0.attn1.to_q.weight", 2)[0] // head_width,
            head_width=head_width,
            blocks=shape.count(r"decoder\.estimator\.down_blocks\.0\.1\.(\d+)\."),
            middle_stages=shape.count(r"decoder\.estimator\.mid_blocks\.(\d+)\."),
        ),
    )


def hift_config(shapes: Mapping[str, tuple[int, ...]], where: str, edition: Edition = COSYVOICE2) -> HiftConfig:
    """Sizes of ``hift.pt``, by its tensors; all but the widths are the release's. Raises :class:`CheckpointError`."""
    plain = {name.removeprefix(GENERATOR): value for name, value in shapes.items()}
    shape = WeightShapes(plain, where, f"the vocoder of {edition.title}")
    channels, bands, _ = shape("conv_pre.parametrizations.weight.original1", 3)
    pitch_channels = shape("f0_predictor.classifier.weight", 2)[1]
    return HiftConfig(bands=bands, channels=channels, pitch_channels=pitch_channels, causal=edition.causal_vocoder)
