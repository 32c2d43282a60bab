"""CosyVoice 3's edition of the release folder of :mod:`paretone.models.cosyvoice2.checkpoint`, and its loader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paretone.models.cosyvoice2.adapter import CosySpeech, load_cosyvoice
from paretone.models.cosyvoice2.checkpoint import COSYVOICE2, Edition
from paretone.models.cosyvoice2.language_model import COSYVOICE_3
from paretone.models.cosyvoice2.model import LANGUAGE_MODEL, REINFORCED_MODEL
from paretone.models.cosyvoice2.speech_tokenizer import MEL
from paretone.models.cosyvoice3.config import (
    ADDED,
    ESTIMATOR,
    HIGHEST,
    LAYOUT,
    MOST_SILENT,
    PREFIX,
    REINFORCED,
    SILENT,
    FlowConfig,
)
from paretone.models.cosyvoice3.flow import TokenToMel
from paretone.models.cosyvoice3.model import MODEL
from paretone.models.files.config_file import WeightShapes
from paretone.models.loading import LoadRequest


def flow_config(shapes: Mapping[str, tuple[int, ...]], where: str) -> FlowConfig:
    """Sizes of ``flow.pt``, from the shapes of its tensors. Raises :class:`paretone.errors.CheckpointError`."""
    shape = WeightShapes(shapes, where, "the flow of CosyVoice 3")
    bands, speaker_width = shape("spk_embed_affine_layer.weight", 2)
    channels, _, reach = shape("pre_lookahead_layer.conv1.weight", 3)
    width = shape("decoder.estimator.proj_out.weight", 2)[1]
    head_width = 2 * shape("decoder.estimator.rotary_embed.inv_freq", 1)[0]
    return FlowConfig(
        tokens=shape("input_embedding.weight", 2)[0],
        speaker_width=speaker_width,
        bands=bands,
        estimator=replace(
            ESTIMATOR,
            dim=width,
            depth=shape.count(r"decoder\.estimator\.transformer_blocks\.(\d+)\."),
            heads=shape("decoder.estimator.transformer_blocks.0.attn.to_q.weight", 2)[0] // head_width,
            dim_head=head_width,
            ff_mult=shape("decoder.estimator.transformer_blocks.0.ff.ff.0.0.weight", 2)[0] // width,
        ),
        look_ahead_channels=channels,
        look_ahead=reach - 1,
    )


COSYVOICE3 = Edition(
    COSYVOICE_3,
    lambda shapes, where: TokenToMel(flow_config(shapes, where)),
    "speech_tokenizer_v3.onnx",
    causal_vocoder=True,
    mel=replace(MEL, highest=HIGHEST),
    more_text=ADDED,
    prefix=PREFIX,
    silent=SILENT,
    most_silent=MOST_SILENT,
    release=lambda: MODEL.folder,
)


def edition_of(layout: str) -> Edition:
    """Edition of the release in a model's ``layout``."""
    return COSYVOICE3 if layout == LAYOUT else COSYVOICE2


def load_cosyvoice3(request: LoadRequest) -> CosySpeech:
    """Raises :class:`paretone.errors.CheckpointError`."""
    weights = REINFORCED_MODEL if request.variant == REINFORCED else LANGUAGE_MODEL
    return load_cosyvoice(request, COSYVOICE3, weights)
