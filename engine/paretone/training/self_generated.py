"""Speech tokens that a model spoke itself: what its drafts and students learn from if there is no corpus.

Many sentences at a time, by the sampler that will be used, in the voices that will be used. Kept is what ended by
itself with as many tokens as it has phones, so that phones and tokens are paired as in a recording.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from paretone.models.base import Voice
from paretone.models.kernels.fused_causal import FusedTransformer
from paretone.models.minis.lm_mini import SHORTEST, SPARE, Layout, LmMiniFrontEnd, positions
from paretone.models.minis.speaking import MiniPrompt
from paretone.sampling.tokens import TokenSampler
from paretone.training.spoken_tokens import SpokenTokens
from paretone.training.token_recipe import TokenNetwork

TOGETHER = 48
"""Sentences that are spoken in one pass."""
Progress = Callable[[int, int], None]


def speak_tokens(
    network: TokenNetwork,
    layout: Layout,
    front_end: LmMiniFrontEnd,
    voices: Sequence[Voice],
    sentences: Sequence[str],
    sampler: TokenSampler,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> tuple[SpokenTokens, ...]:
    """Let ``network`` speak its share of ``sentences`` in each of ``voices``, in the order of the sentences.

    ``progress`` is called with spoken and total sentences, of those that are being spoken their share, before every
    token, and may raise to cancel. The pace of each sentence is drawn from ``seed`` and its number.
    """
    generator = torch.Generator().manual_seed(seed)
    texts: list[tuple[int, Voice, np.ndarray]] = []
    for number, sentence in enumerate(sentences):
        voice = voices[number % len(voices)]
        passages = front_end.passages(sentence, 1.0, seed=seed + number)
        texts += [(number, voice, passage.phones) for passage in passages.passages if len(passage.phones)]
    transformer = FusedTransformer.of(network.transformer)
    found: dict[int, SpokenTokens] = {}
    done = 0
    for voice in voices:
        own = sorted(
            ((len(phones), number, phones) for number, who, phones in texts if who is voice), key=lambda one: one[:2]
        )
        prompt = front_end.prompt(voice)
        for start in range(0, len(own), TOGETHER):
            batch = own[start : start + TOGETHER]
            texts_of = [phones for _, _, phones in batch]

            def begin(share: float, done: int = done, batch: int = len(batch)) -> None:
                progress(done + int(share * batch), len(texts))

            spoken = _spoken(network, transformer, layout, prompt, texts_of, sampler, generator, begin)
            for (length, number, phones), codes in zip(batch, spoken, strict=True):
                if codes is not None and len(codes) == length:
                    found[number] = SpokenTokens(voice.id, phones.astype(np.int16), np.array(codes, np.int16))
            done += len(batch)
    progress(done, len(texts))
    return tuple(found[number] for number in sorted(found))


@torch.inference_mode()
def _spoken(
    network: TokenNetwork,
    transformer: FusedTransformer,
    layout: Layout,
    prompt: MiniPrompt,
    texts: Sequence[np.ndarray],
    sampler: TokenSampler,
    generator: torch.Generator,
    begin: Callable[[float], None],
) -> list[list[int] | None]:
    """Codes for each of ``texts``, ``None`` if speech did not end. Shorter texts are filled up with ends. ``begin``
    gets before every token what share of the most that there may be is done."""
    lengths = torch.tensor([len(phones) for phones in texts])
    text = len(prompt.phones) + int(lengths.max()) + 1
    ids = torch.full((len(texts), text + 1 + len(prompt.codes)), layout.end_of_text)
    ids[:, : len(prompt.phones)] = torch.from_numpy(prompt.phones)
    for row, phones in enumerate(texts):
        ids[row, len(prompt.phones) : len(prompt.phones) + len(phones)] = torch.from_numpy(phones)
    ids[:, text] = layout.start_of_speech
    ids[:, text + 1 :] = torch.tensor(prompt.codes) + layout.first_code
    most = int(lengths.max()) + SPARE
    cache = transformer.cache(ids.shape[1] + most, len(texts))
    places = positions(text, len(prompt.codes))
    hidden = transformer(network.embedding(ids), cache, places)[:, -1]
    codes: list[list[int]] = [[] for _ in texts]
    ended = torch.zeros(len(texts), dtype=torch.bool)
    for step in range(most):
        begin(step / most)
        logits = network.head(hidden)
        logits[step < SHORTEST * lengths, layout.codes :] = -torch.inf
        drawn = torch.multinomial(sampler.probabilities(logits, ()), 1, generator=generator)[:, 0]
        ended |= drawn >= layout.codes
        if ended.all():
            break
        for row in (~ended).nonzero()[:, 0].tolist():
            codes[row].append(int(drawn[row]))
        following = drawn.clamp(max=layout.codes - 1) + layout.first_code
        place = torch.tensor([len(prompt.codes) + 1 + step])
        hidden = transformer(network.embedding(following)[:, None], cache, place)[:, -1]
    return [spoken if over else None for spoken, over in zip(codes, ended.tolist(), strict=True)]
