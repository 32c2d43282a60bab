"""Names, shapes and sizes of the released weights: a model that has all of them and no others loads strictly."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from paretone.models.cosyvoice2.hift import PLAIN_CONVOLUTIONS, Hift
from paretone.models.cosyvoice2.language_model import COSYVOICE_2, COSYVOICE_3, TableLayout, official_shapes
from paretone.models.cosyvoice2.token_to_mel import TokenToMel
from paretone.models.cosyvoice3.checkpoint import flow_config as causal_flow_config
from paretone.models.cosyvoice3.config import VOCODER as CAUSAL
from paretone.models.cosyvoice3.config import FlowConfig as CausalFlowConfig
from paretone.models.cosyvoice3.flow import TokenToMel as CausalTokenToMel
from paretone.models.f5.checkpoint import expected_shapes
from paretone.models.f5.config import VARIANTS
from paretone.models.llasa.checkpoint import EMBEDDING
from paretone.models.llasa.xcodec2 import XCodec2Config, XCodec2Decoder
from paretone.models.megatts3.aligner import Aligner, AlignerConfig
from paretone.models.megatts3.config import DiTConfig
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.megatts3.wavvae import Encoder, WavVAE, WavVAEConfig
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.layers import PARAMETRISED, stored_shapes
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.models.networks.vocos import Vocos, VocosConfig
from paretone.models.omnivoice.checkpoint import OmniVoiceFolder, hubert
from paretone.models.omnivoice.higgs import HiggsConfig, HiggsDecoder, HiggsEncoder
from paretone.models.qwen3_tts.speaker_encoder import SpeakerConfig, SpeakerEncoder
from paretone.models.qwen3_tts.speech_tokenizer import CodecDecoder, CodecEncoder
from paretone.models.qwen3_tts.talker import Talker, TalkerConfig
from tests.parity.fixtures import KEYS, released

F5_ENTRIES = 2545
LLASA_1B = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
}
OMNIVOICE = {
    "model_type": "omnivoice",
    "audio_vocab_size": 1025,
    "audio_mask_id": 1024,
    "num_audio_codebook": 8,
    "llm_config": {
        "model_type": "qwen3",
        "vocab_size": 151676,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
    },
}
QWEN3_PREDICTOR = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 5,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "vocab_size": 2048,
}
Shapes = dict[str, tuple[int, ...]]


def shapes_of(module: nn.Module, prefix: str = "") -> Shapes:
    return {f"{prefix}{name}": tuple(value.shape) for name, value in module.state_dict().items()}


def llasa_shapes() -> Shapes:
    return shapes_of(CausalTransformer(CausalConfig.read(LLASA_1B)), "model.") | {EMBEDDING: (193_800, 2048)}


def qwen3_shapes(hidden: int, feed_forward: int) -> Shapes:
    talker = QWEN3_PREDICTOR | {
        "hidden_size": hidden,
        "intermediate_size": feed_forward,
        "num_hidden_layers": 28,
        "text_vocab_size": 151936,
        "text_hidden_size": 2048,
        "vocab_size": 3072,
        "num_code_groups": 16,
        "codec_eos_token_id": 2150,
        "code_predictor_config": QWEN3_PREDICTOR,
    }
    speaker = SpeakerEncoder(SpeakerConfig(width=hidden))
    return shapes_of(Talker(TalkerConfig.read(talker)), "talker.") | shapes_of(speaker, "speaker_encoder.")


def cosyvoice_shapes(layout: TableLayout) -> Shapes:
    transformer = CausalConfig(896, 24, 14, 2, 64, 4864, 1e-6, 1e6, biased=True)
    return official_shapes(transformer, 151936, 6561 + layout.stops, layout)


@pytest.mark.parametrize(
    ("name", "expected", "numbers"),
    [
        ("CosyVoice2_flow", lambda: shapes_of(TokenToMel()), 112_549_360),
        ("CosyVoice2_hift", lambda: stored_shapes(Hift(), PARAMETRISED, PLAIN_CONVOLUTIONS), None),
        ("CosyVoice2_llm", lambda: cosyvoice_shapes(COSYVOICE_2), None),
        (
            "CosyVoice3_flow",
            lambda: shapes_of(CausalTokenToMel()),
            332_257_088 + 32,
        ),  # With the speeds of rotation, a buffer.
        ("CosyVoice3_hift", lambda: stored_shapes(Hift(CAUSAL), PARAMETRISED, PLAIN_CONVOLUTIONS), None),
        ("CosyVoice3_llm", lambda: cosyvoice_shapes(COSYVOICE_3), None),
        ("Qwen3TTS_0.6B_Base", lambda: qwen3_shapes(1024, 3072), 914_643_008),
        ("Qwen3TTS_1.7B_Base", lambda: qwen3_shapes(2048, 6144), 1_928_677_440),
        (
            "Qwen3TTS_tokenizer",
            lambda: shapes_of(CodecDecoder(), "decoder.") | shapes_of(CodecEncoder(), "encoder."),
            None,
        ),
        ("Llasa_1B", llasa_shapes, 1_370_048_512),
        ("XCodec2_decoder", lambda: shapes_of(XCodec2Decoder(XCodec2Config())), None),
        ("MegaTTS3_dit", lambda: shapes_of(MegaDiT(DiTConfig())), 458_834_496),
        ("MegaTTS3_aligner", lambda: shapes_of(Aligner(AlignerConfig())), None),
        ("MegaTTS3_wavvae", lambda: stored_shapes(WavVAE(WavVAEConfig(), Encoder())), None),
        (
            "OmniVoice",
            lambda: shapes_of(MaskedNetwork(MaskedConfig.read(OMNIVOICE))),
            612_577_280 + 8,
        ),  # Offsets of the codebooks, which are no parameters.
    ],
)
def test_parity_names_and_shapes(name: str, expected: Callable[[], Shapes], numbers: int | None) -> None:
    with torch.device("meta"):
        found = expected()
    assert found == released(name)
    if numbers is not None:
        assert sum(map(math.prod, found.values())) == numbers


def test_parity_sizes_follow_from_the_released_shapes(tmp_path: Path) -> None:
    assert DiTConfig.from_shapes(released("MegaTTS3_dit"), "MegaTTS3_dit") == DiTConfig()
    assert causal_flow_config(released("CosyVoice3_flow"), "the release") == CausalFlowConfig()
    assert XCodec2Config.from_shapes(released("XCodec2_decoder"), "the release") == XCodec2Config()
    with torch.device("meta"):
        assert AlignerConfig.of_weights(Aligner(AlignerConfig()).state_dict(), "the release") == AlignerConfig()
        decoders = XCodec2Decoder(XCodec2Config()), WavVAE(WavVAEConfig())
    assert round(sum(one.numel() for one in decoders[0].parameters()) / 1e6, 1) == 187.0
    assert round(sum(map(math.prod, stored_shapes(decoders[1]).values())) / 1e6, 2) == 226.08
    path = tmp_path / "config.yaml"
    path.write_text(
        "audio_sample_rate: 24000\nhop_size: 240\nwin_size: 1200\nfft_size: 1200\nvae_stride: 4\nframes_multiple: 8\n"
        "melgan_config:\n  frame_shift: 240\n  use_tanh: true\n  num_band: 1\n  up_sample: [5, 4, 4, 3]\n"
    )
    shapes = {"proj_to_decoder.bias": (320,), "decoder.model_up.12.weight_v": (1, 128, 7)}
    weights = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
    assert WavVAEConfig.read(path, weights) == WavVAEConfig()


def test_parity_codec_of_omnivoice_in_two_parts() -> None:
    pytest.importorskip("transformers")
    names = released("OmniVoice_audio_tokenizer")
    with torch.device("meta"):
        parts = HiggsDecoder(HiggsConfig()), HiggsEncoder(HiggsConfig(), hubert(HiggsConfig()))
    found = shapes_of(parts[0]) | shapes_of(parts[1])
    assert found.items() <= names.items()
    assert sum(one.numel() for one in parts[0].parameters()) > 20_000_000
    assert all(OmniVoiceFolder.is_of_codec(name) for name in names.keys() - found.keys())
    assert not OmniVoiceFolder.is_of_codec("acoustic_model.conv1.weight")


@pytest.mark.parametrize("name", list(VARIANTS))
def test_parity_names_and_shapes_of_f5(name: str) -> None:
    recorded = name if (KEYS / f"{name}.json").is_file() else name.replace("F5TTS_", "F5TTS_v1_")
    expected = expected_shapes(replace(VARIANTS[name], text_num_embeds=F5_ENTRIES))
    assert {f"transformer.{key}": shape for key, shape in expected.items()} == released(recorded)


def test_parity_names_and_shapes_of_vocos() -> None:
    with torch.device("meta"):
        expected = shapes_of(Vocos(VocosConfig()))
    recorded = released("Vocos_mel_24khz")
    assert expected == {key: shape for key, shape in recorded.items() if not key.startswith("feature_extractor.")}
