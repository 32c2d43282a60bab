"""The folder of the official release, part by part.

===========================  =====================================================
``llm.pt``                     the language model
``flow.pt``                    speech tokens to mel frames
``hift.pt``                    mel frames to audio
``speech_tokenizer_v2.onnx``   speech tokens of recordings
``campplus.onnx``              the speaker's embedding
``CosyVoice-BlankEN``          the text tokenizer, and sizes of the transformer
===========================  =====================================================

``cosyvoice2.yaml`` is not read: upstream executes it, and all sizes that could differ follow from the weights. They are
read without running code in them, and strictly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from paretone.errors import CheckpointError
from paretone.models.base import DraftWeights, StudentWeights
from paretone.models.cosyvoice2.config import EncoderConfig, EstimatorConfig, FlowConfig, HiftConfig
from paretone.models.cosyvoice2.hift import GENERATOR, Hift
from paretone.models.cosyvoice2.language_model import HEAD, LAYERS, LanguageModel
from paretone.models.cosyvoice2.model import MODEL
from paretone.models.cosyvoice2.speech_tokenizer import SPEAKER, TOKENIZER, RecordingEncoder
from paretone.models.cosyvoice2.text import MERGES, VOCABULARY, TextTokenizer
from paretone.models.cosyvoice2.token_to_mel import TokenToMel
from paretone.models.families.language_network import DraftTensors
from paretone.models.files.checkpoints import loaded_strictly, read_float_weights, read_weights, shapes_of
from paretone.models.files.config_file import ConfigFile, WeightShapes
from paretone.models.networks.causal import CausalConfig

LANGUAGE_MODEL, FLOW, VOCODER = "llm.pt", "flow.pt", "hift.pt"
BLANK = "CosyVoice-BlankEN"
CONFIG = f"{BLANK}/config.json"
COUNTERS = ("epoch", "step")
"""Numbers that the official training keeps next to the weights."""
PARTS = (LANGUAGE_MODEL, FLOW, VOCODER, TOKENIZER, SPEAKER, CONFIG, f"{BLANK}/{VOCABULARY}", f"{BLANK}/{MERGES}")


@dataclass(frozen=True)
class OfficialFolder:
    """The release in ``root``, or a fine-tune: parts that it did not train, and so lacks, are those of the release in
    its usual place. Reading raises :class:`CheckpointError`, and calls ``check``, which may cancel."""

    root: Path
    device: torch.device | str = "cpu"
    check: Callable[[], None] = lambda: None

    def require_parts(self) -> None:
        """Raise :class:`CheckpointError` that names missing files."""
        own = any((self.root / name).is_file() for name in PARTS)
        missing = [name for name in PARTS if not (self.place(name) if own else self.root / name).is_file()]
        if missing:
            raise CheckpointError(
                f"{self.root} is not a complete release of CosyVoice 2: it lacks {', '.join(missing)}; download it "
                f"again. What a fine-tune lacks is taken from {MODEL.folder}, if the release is there."
            )

    def place(self, name: str) -> Path:
        """A part of :attr:`root` or, unless that is there, of the release."""
        own = self.root / name
        return own if own.exists() else MODEL.folder / name

    @property
    def checkpoint(self) -> Path:
        """Weight file that identifies the model."""
        return self.place(LANGUAGE_MODEL)

    def tokenizer(self) -> TextTokenizer:
        return TextTokenizer.load(self.place(CONFIG).parent)

    def recording_encoder(self) -> RecordingEncoder:
        return RecordingEncoder(self.place(TOKENIZER).parent)

    def language_model(self) -> LanguageModel:
        """The language model as trained, float32 on the device."""
        weights = read_weights(self.checkpoint, self.check, COUNTERS)
        model = LanguageModel.from_official(weights, self._transformer(), str(self.checkpoint))
        return model.to(torch.device(self.device))

    def student(self, student: StudentWeights) -> LanguageModel:
        """The language model in a student's file, under the names of ``llm.pt``; the tied head may be missing."""
        weights = read_float_weights(Path(student.path), self.check)
        model = LanguageModel.from_official(weights, self._transformer(), student.path, tied=True)
        return model.to(torch.device(self.device))

    def draft(self, draft: DraftWeights) -> DraftTensors:
        return DraftTensors.read(draft, LAYERS, HEAD, check=self.check)

    def flow(self) -> TokenToMel:
        path = self.place(FLOW)
        weights = read_weights(path, self.check, COUNTERS)
        config = flow_config(shapes_of(weights), str(path))
        return loaded_strictly(lambda: TokenToMel(config), weights, str(path)).to(self.device)

    def vocoder(self) -> Hift:
        path = self.place(VOCODER)
        weights = read_weights(path, self.check)
        vocoder = Hift(hift_config(shapes_of(weights), str(path)))
        vocoder.load_official(weights, str(path))
        return vocoder.eval().requires_grad_(False).to(self.device)

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
            look_ahead=shape("encoder.pre_lookahead_layer.conv1.weight", 3)[2] - 1,
        ),
        estimator=EstimatorConfig(
            channels=channels,
            heads=shape("decoder.estimator.down_blocks.0.1.0.attn1.to_q.weight", 2)[0] // head_width,
            head_width=head_width,
            blocks=shape.count(r"decoder\.estimator\.down_blocks\.0\.1\.(\d+)\."),
            middle_stages=shape.count(r"decoder\.estimator\.mid_blocks\.(\d+)\."),
        ),
    )


def hift_config(shapes: Mapping[str, tuple[int, ...]], where: str) -> HiftConfig:
    """Sizes of ``hift.pt``, by its tensors; all but the widths are the release's. Raises :class:`CheckpointError`."""
    plain = {name.removeprefix(GENERATOR): value for name, value in shapes.items()}
    shape = WeightShapes(plain, where, "the vocoder of CosyVoice 2")
    channels, bands, _ = shape("conv_pre.parametrizations.weight.original1", 3)
    pitch_channels = shape("f0_predictor.classifier.weight", 2)[1]
    return HiftConfig(bands=bands, channels=channels, pitch_channels=pitch_channels)
