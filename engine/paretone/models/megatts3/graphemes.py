"""The grapheme model: text to phones and tones, by the small language model of the official folder ``g2p``.

A causal model of the Qwen 2.5 type, run by ``transformers`` (optional extra ``megatts3``). Prompt and rules of ``g2p``
in ``tts/frontend_function.py``. Upstream samples from the single most likely token; that is greedy decoding.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from paretone.errors import CheckpointError, TextError
from paretone.extras import how_to_add, needing
from paretone.models.files.checkpoints import Shards, loading, pretrained, require_part
from paretone.models.files.config_file import ConfigFile
from paretone.models.megatts3.phones import SILENCE, UNKNOWN, separated
from paretone.observer import Check
from paretone.reading import shown

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

BEGIN, END_OF_TEXT = "<BOT>", "<BOS>"
FIRST_SPEECH_TOKEN = "<Reserved_TTS_0>"
END = 801
"""Speech token that ends the phones."""
LONGEST = 256
"""Maximum number of new tokens."""
NEEDED_FILES = ("config.json", "tokenizer_config.json")


@dataclass(frozen=True)
class ReadPhones:
    """Phones of a segment by official number; the first is silence."""

    phones: tuple[int, ...]
    tones: tuple[int, ...]
    finished: bool
    """False if the model had not stopped after :data:`LONGEST` tokens."""

    @property
    def unknown(self) -> int:
        """Number of tokens without a phone."""
        return self.phones.count(UNKNOWN)


class GraphemeModel:
    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, where: str) -> None:
        # Any: transformers' types hide the methods of generating models.
        self.network = cast("Any", model)
        self._tokenizer = tokenizer
        unknown = [token for token in (BEGIN, END_OF_TEXT, FIRST_SPEECH_TOKEN) if token not in tokenizer.get_vocab()]
        if unknown:
            raise CheckpointError(
                f"The tokenizer in {where} lacks {', '.join(unknown)}; it is not that of MegaTTS 3. Download it again."
            )
        self._offset = cast("int", tokenizer.convert_tokens_to_ids(FIRST_SPEECH_TOKEN))  # a list only for a list
        if self._offset + END >= self.network.get_input_embeddings().num_embeddings:
            raise CheckpointError(f"The model in {where} lacks the tokens of phones; it is not the one of MegaTTS 3.")

    @classmethod
    def load(cls, folder: Path, device: torch.device | str = "cpu") -> GraphemeModel:
        """Load an official folder: weights only from ``.safetensors``, and no code. Raises :class:`CheckpointError` on
        what is missing."""
        with needing(CheckpointError, "MegaTTS 3 reads text with the package transformers", how_to_add("megatts3")):
            from transformers import AutoModelForCausalLM, AutoTokenizer
        for name in NEEDED_FILES:
            require_part(folder / name, "download the folder g2p of the official release again")
        if not any(folder.glob("*.safetensors")):
            raise CheckpointError(f"{folder} holds no .safetensors file; download it from the official release again.")
        for path in folder.iterdir():
            if path.is_file():
                require_part(path, "download it again")
        _require_sizes(folder)
        with loading(folder):
            tokenizer = AutoTokenizer.from_pretrained(
                folder, padding_side="right", local_files_only=True, trust_remote_code=False
            )
        load = functools.partial(AutoModelForCausalLM.from_pretrained, trust_remote_code=False)
        return cls(pretrained(load, folder, str(folder)).to(device), tokenizer, str(folder))

    def prompt(self, text: str) -> list[int]:
        return [*self._tokenizer(f"{BEGIN}{text}{END_OF_TEXT}")["input_ids"], self._offset + SILENCE]

    @torch.inference_mode()
    def __call__(self, text: str, check: Check = lambda: None) -> ReadPhones:
        """Phones of one segment. ``check`` is called per token and may raise to cancel. Raises :class:`TextError` if
        the model returns no phones."""
        from transformers import StoppingCriteriaList

        def go_on(tokens: torch.Tensor, scores: object, **rest: object) -> torch.Tensor:
            check()
            return torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)

        ids = torch.tensor([self.prompt(text)], device=self.network.device)
        end = self._offset + END
        found = self.network.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=LONGEST,
            do_sample=False,
            temperature=None,
            top_p=None,
            top_k=None,
            eos_token_id=end,
            pad_token_id=end,
            stopping_criteria=StoppingCriteriaList([go_on]),
        )[0, ids.shape[1] - 1 :].tolist()
        finished = found[-1] == end
        tokens = [token - self._offset for token in (found[:-1] if finished else found)]
        pairs = [separated(token) for token in tokens]
        if not any(UNKNOWN < phone < SILENCE for phone, _ in pairs):
            raise TextError(f"The model found no phones in {shown(text)}; rephrase it.")
        phones, tones = zip(*pairs, strict=True)
        return ReadPhones(phones, tones, finished)


def _require_sizes(folder: Path) -> None:
    """Raise :class:`CheckpointError` if the sizes in ``config.json`` differ from the weights: the package would
    allocate a network of any size before comparing."""
    file, shards = ConfigFile.read(folder / "config.json"), Shards.find(folder)
    shapes = shards.shapes()
    for name, (weight, axis) in _SIZES.items():
        size = file.number(name)
        if weight in shapes and shapes[weight][axis] != size:
            raise CheckpointError(
                f"{file.where}: {name} is {size}, but {weight} in {shards.where} has {shapes[weight][axis]}; download "
                "both again."
            )
    layers = sum(name.endswith(".self_attn.q_proj.weight") for name in shapes)
    if layers and file.number("num_hidden_layers") != layers:
        raise CheckpointError(
            f"{file.where}: num_hidden_layers is {file.number('num_hidden_layers')}, but {shards.where} has {layers}; "
            "download both again."
        )


_SIZES = {
    "vocab_size": ("model.embed_tokens.weight", 0),
    "hidden_size": ("model.embed_tokens.weight", 1),
    "intermediate_size": ("model.layers.0.mlp.gate_proj.weight", 0),
}
"""Config field → (weight, axis)."""
