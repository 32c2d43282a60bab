"""A grapheme model of the released kind, with random weights and a tokenizer of bytes, written to a folder."""

from __future__ import annotations

from pathlib import Path

import torch

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
