"""A release of MegaTTS 3 in the official layout, with random weights and small sizes, written to a folder."""

from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch
import yaml
from torch import Tensor, nn

from paretone.models.files.config_file import ConfigFile
from paretone.models.megatts3.aligner import Aligner, AlignerConfig
from paretone.models.megatts3.config import DiTConfig
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.megatts3.duration_model import DurationConfig, DurationModel
from paretone.models.megatts3.wavvae import Encoder, WavVAE, WavVAEConfig
from paretone.models.networks.layers import stored_shapes
from tests.engine.models.official import write_noise

TRANSFORMER_CONFIG = {"win_size": 1200, "frames_multiple": 8}
WAVVAE_CONFIG = {
    "audio_sample_rate": 24000,
    "hop_size": 240,
    "win_size": 1200,
    "vae_stride": 4,
    "melgan_config": {"frame_shift": 240, "use_tanh": True, "num_band": 1, "up_sample": [5, 4, 4, 3]},
}
DURATION_CONFIG = {
    "dur_txt_hs": 32,
    "dur_model_hidden_size": 48,
    "dur_model_layers": 2,
    "dur_code_size": 128,
    "dur_model_type": "ar_mse",
    "encoder_type": "rel_fft",
    "num_heads": 2,
    "enc_layers": 1,
    "ffn_hidden_size": 64,
    "enc_ffn_kernel_size": 3,
    "enc_prenet": True,
    "enc_pre_ln": True,
    "lm_use_enc": True,
    "mega_use_char": False,
    "use_ph_pos_embed": True,
    "use_rot_embed": True,
    "use_spk_embed": False,
    "use_spk_id": False,
    "use_spk_enc": False,
    "ling_labels": ["tone"],
    "ling_label_dict_size": [20],
}
SMALL_WAVVAE = WavVAEConfig(width=16, channels=4)
SMALL_ALIGNER = AlignerConfig(bands=80, width=32, layers=1, places=400, tokens=64, vocabulary=1600)
SMALL_DIT = DiTConfig(
    dim=64, layers=2, heads=1, ff_hidden=128, local_cond=24, ctx_mask=4, phone_layers=1, phone_ff_hidden=64
)


def random_weights(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> dict[str, Tensor]:
    """Small random numbers of these shapes."""
    generator = torch.Generator().manual_seed(seed)
    return {name: 0.1 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def shapes_of(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in module.state_dict().items()}


def wavvae_weights(encoder: bool = False) -> dict[str, Tensor]:
    return random_weights(stored_shapes(WavVAE(SMALL_WAVVAE, Encoder(4, 16) if encoder else None)), 1)


def save_checkpoint(path: Path, name: str, weights: dict[str, Tensor]) -> None:
    """As the official training code saves: ordered dictionaries in a pickle."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"global_step": 7, "state_dict": OrderedDict({name: OrderedDict(weights)})}, path)


def write_config(path: Path, entries: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(entries), encoding="utf-8")


def write_release(root: Path, encoder: bool = False, graphemes: bool = True) -> None:
    write_config(root / "diffusion_transformer/config.yaml", TRANSFORMER_CONFIG)
    write_config(root / "duration_lm/config.yaml", DURATION_CONFIG)
    durations = DurationModel(DurationConfig.read(ConfigFile(DURATION_CONFIG, "small"), 174))
    parts = {
        "diffusion_transformer": ("dit", MegaDiT(SMALL_DIT)),
        "aligner_lm": ("model", Aligner(SMALL_ALIGNER)),
        "duration_lm": ("dur_model", durations),
    }
    for seed, (folder, (name, module)) in enumerate(parts.items(), 2):
        save_checkpoint(root / folder / "model_only_last.ckpt", name, random_weights(shapes_of(module), seed))
    write_config(root / "wavvae/config.yaml", WAVVAE_CONFIG)
    name = "model_only_last.ckpt" if encoder else "decoder.ckpt"
    save_checkpoint(root / "wavvae" / name, "model_gen", wavvae_weights(encoder))
    (root / "g2p").mkdir(parents=True, exist_ok=True)
    if graphemes:
        write_folder(root / "g2p")


def write_voice(path: Path, latents: bool = True) -> Path:
    """A second and two thirds of noise, for which the release wants 54 latents."""
    write_noise(path)
    if latents:
        np.save(path.with_suffix(".npy"), np.random.default_rng(1).standard_normal((1, 55, 32)).astype(np.float32))
    return path


SPEECH_TOKENS = 802
OTHERS = ("<BOT>", "<BOS>")
FIRST = 256 + len(OTHERS)
"""The number of the first speech token."""


def write_folder(folder: Path, without: str = "", speech: int = SPEECH_TOKENS) -> None:
    """``without`` leaves one of the marks out; ``speech`` are the tokens of phones."""
    import tokenizers
    import transformers

    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    bytewise = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={letter: number for number, letter in enumerate(alphabet)}, merges=[])
    )
    bytewise.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    added = [*OTHERS, *(f"<Reserved_TTS_{number}>" for number in range(speech))]
    bytewise.add_special_tokens([f"{name}x" if name == without else name for name in added])
    transformers.PreTrainedTokenizerFast(tokenizer_object=bytewise).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=FIRST + speech,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=False,
        initializer_range=0.5,
    )
    model = transformers.Qwen2ForCausalLM(config).eval()
    with torch.no_grad():  # A trained model goes on with speech tokens only.
        model.lm_head.weight[:FIRST] = 0
    model.save_pretrained(folder)
