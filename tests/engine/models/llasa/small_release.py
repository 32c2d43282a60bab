"""A release of LLaSA in the official layout, with random weights and small sizes, and XCodec2 in both of its layouts.

What it says is noise, but every step is real.
"""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from paretone.models.files.checkpoints import WEIGHTS
from paretone.models.files.releases import INDEX
from paretone.models.llasa.checkpoint import EMBEDDING, HEAD
from paretone.models.llasa.xcodec2 import XCodec2Config, XCodec2Decoder
from paretone.models.networks.causal import CausalConfig, CausalTransformer

TOKENIZER = Path(__file__).resolve().parents[3] / "golden" / "ar" / "llasa_tokenizer" / "tokenizer.json"
ROWS, CODES, FIRST_CODE, END = 394, 96, 298, 295
LOCAL = [*range(FIRST_CODE, FIRST_CODE + CODES), END]
"""Official ids of local ones."""
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": ROWS,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "factor": 32.0,
        "high_freq_factor": 4.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "tie_word_embeddings": True,
}
SMALL_CODEC = XCodec2Config(width=64, latent=128, layers=2, heads=1, feed_forward=96)


def language_weights(tied: bool = True) -> dict[str, Tensor]:
    """By official names, bfloat16, as in the release."""
    torch.manual_seed(0)
    transformer = CausalTransformer(CausalConfig.read(CONFIG))
    weights = {f"model.{name}": value for name, value in transformer.state_dict().items()}
    weights[EMBEDDING] = torch.randn(ROWS, CONFIG["hidden_size"]) * 0.3
    if not tied:
        weights[HEAD] = torch.randn(ROWS, CONFIG["hidden_size"]) * 0.3
    return {name: value.bfloat16() for name, value in weights.items()}


def write_release(root: Path, **parts: int) -> Path:
    """Codec and language model; the folder of this one."""
    write_original_codec(root / "xcodec2")
    return write_language_model(root / "Llasa-1B", **parts)


def write_language_model(folder: Path, tied: bool = True, shards: int = 1) -> Path:
    """A folder as ``HKUSTAudio/Llasa-1B``, or, with several ``shards``, as the larger ones."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | {"tie_word_embeddings": tied}))
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    weights = language_weights(tied)
    if shards == 1:
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
        return folder
    listed = {}
    for number in range(shards):
        name = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        part = {key: weights[key] for key in sorted(weights)[number::shards]}
        save_file(part, folder / name, metadata={"format": "pt"})
        listed |= dict.fromkeys(part, name)
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": listed}))
    return folder


def student_tensors(layers: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """As a training writes them: layers numbered without gaps, both tables whole."""
    weights = language_weights()
    kept = {name: value for name, value in weights.items() if not name.startswith("model.layers.")}
    for place, layer in enumerate(layers):
        prefix = f"model.layers.{layer}."
        kept |= {
            f"model.layers.{place}.{name.removeprefix(prefix)}": value
            for name, value in weights.items()
            if name.startswith(prefix)
        }
    head = torch.zeros(ROWS, CONFIG["hidden_size"])
    head[LOCAL] = weights[EMBEDDING][LOCAL].float() * 2
    return {name: value.half() for name, value in (kept | {HEAD: head}).items()}


def codec_weights() -> dict[str, Tensor]:
    """The decoder's, by original names, loud enough to tell one code from another."""
    torch.manual_seed(1)
    decoder = XCodec2Decoder(SMALL_CODEC)
    for parameter in decoder.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
    return {name: value.detach().clone() for name, value in decoder.state_dict().items()}


def write_original_codec(folder: Path) -> Path:
    """A folder as ``HKUSTAudio/xcodec2``: the encoder's weights lie in the same file."""
    folder.mkdir(parents=True, exist_ok=True)
    encoder = {"CodecEnc.conv_blocks.0.bias": torch.zeros(3), "semantic_model.masked_spec_embed": torch.zeros(3)}
    save_file(codec_weights() | encoder, folder / WEIGHTS)
    (folder / "config.json").write_text(json.dumps({"model_type": "xcodec2", "use_vocos": True}))
    return folder


def write_converted_codec(folder: Path) -> Path:
    """A folder as ``HKUSTAudio/xcodec2-hf``, written by ``transformers``, with its rotary embedding."""
    from transformers import Wav2Vec2BertConfig, Xcodec2Config, Xcodec2Model
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    torch.manual_seed(2)
    semantic = Wav2Vec2BertConfig(
        hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, add_adapter=False
    )
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = Xcodec2Config(
        **sizes,
        num_key_value_heads=4,
        head_dim=16,
        encoder_hidden_size=4,
        semantic_model_config=semantic,
        quantization_dim=128,
    )
    model = Xcodec2Model(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
    model.save_pretrained(folder)
    return folder
