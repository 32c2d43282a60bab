"""Qwen3-TTS's talker and code predictor against the official classes: layers, steps, the loop, replayed sampling."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.models.files.checkpoints import loaded_strictly
from paretone.models.qwen3_tts.talker import FramePrompt, FrameSampling, Talker, TalkerConfig
from paretone.sampling.tokens import Greedy, Nucleus, draw
from tests.parity.fixtures import Fixture, assert_close, cases, fixtures, full_precision

RELATIVE, PROBABILITY = 1e-4, 1e-5
TALKER = "talker."


def of_kind(kind: str) -> list:
    return fixtures("qwen3", lambda said: said.get("kind") == kind)


def talker_of(fixture: Fixture, case: str = "") -> Talker:
    full_precision()
    config = TalkerConfig.read(fixture.description["config"]["talker_config"])
    weights = {name.removeprefix(TALKER): value.clone() for name, value in fixture.weights.items()}
    if f"{case}.eos_row" in fixture:
        weights["codec_head.weight"][config.end] = fixture[f"{case}.eos_row"]
    return loaded_strictly(lambda: Talker(config), weights, fixture.name)


def assert_within(found: Tensor, expected: Tensor, what: str) -> None:
    assert_close(found, expected, RELATIVE * (expected.max() - expected.min()).item(), what)


talkers = pytest.mark.parametrize("fixture", of_kind("qwen3_talker"))


def prompt_of(fixture: Fixture, case: str) -> FramePrompt:
    row = 0
    if case.startswith("batch."):
        row, case = int(case.removeprefix("batch.")), "batch"
    embedded, trailing = (
        fixture[f"{case if f'{case}.{name}' in fixture else 'stream'}.{name}"]
        for name in ("inputs_embeds", "trailing_text_hidden")
    )
    embedded = embedded[row]
    if f"{case}.attention_mask" in fixture:
        embedded = embedded[fixture[f"{case}.attention_mask"][row].bool()]
    return FramePrompt(embedded, trailing[row], fixture["tts_pad_embed"][0, 0])


def replay(uniforms: Tensor) -> Callable[[], float]:
    return iter(uniforms.tolist()).__next__


@talkers
def test_parity_qwen3_talker_layers_and_steps(fixture: Fixture) -> None:
    talker, prompt, outputs = talker_of(fixture), prompt_of(fixture, "stream"), []
    cache = talker.model.cache(len(prompt.embedded) + len(fixture["forced.step_inputs"]))
    with torch.inference_mode():
        hidden = talker.model(prompt.embedded[None], cache, probe=lambda layer, name, value: outputs.append(value))
        found = [prompt.embedded[None], *outputs[:-1], hidden]
        for number, (one, other) in enumerate(zip(found, fixture["prefill.hidden_states"], strict=True)):
            assert_within(one[0], other, f"hidden state {number}")
        assert_within(talker.codec_head(hidden[0, -3:]), fixture["prefill.logits"], "logits")
        embedded = talker.frames_embedded(fixture["forced.codes"].long().T)
        fed = torch.stack([one + prompt.fed_with(frame) for frame, one in enumerate(embedded)])
        assert_within(fed, fixture["forced.step_inputs"], "step inputs")
        steps = torch.cat([talker.model(one[None, None], cache)[0] for one in fed])
    assert_within(steps, fixture["forced.hidden"], "hidden after each frame")
    assert_within(talker.codec_head(steps), fixture["forced.logits"], "logits after each frame")


@talkers
def test_parity_qwen3_talker_with_some_layers(fixture: Fixture) -> None:
    talker, prompt = talker_of(fixture), prompt_of(fixture, "stream")
    retained = set(fixture["subset.layers"].tolist())
    skip = frozenset(range(talker.config.transformer.layers)) - retained
    embedded = torch.cat([prompt.embedded, fixture["forced.step_inputs"]])[None]
    with torch.inference_mode():
        logits = talker.codec_head(talker.model(embedded, skip=skip)[0, -4:])
    assert_within(logits, fixture["subset.logits"], "logits")


GREEDY = ["stream", "eos", "min_new", "all_text", "batch.0", "batch.1"]


def listed(fixture: Fixture) -> list[str]:
    return [case for case in GREEDY if case in fixture.description["cases"]]


@pytest.mark.parametrize(("fixture", "case"), cases(of_kind("qwen3_talker"), listed))
def test_parity_qwen3_greedy_frames(fixture: Fixture, case: str) -> None:
    talker, said = talker_of(fixture, case), fixture.description["cases"][case]
    penalty = 1.3 if case == "all_text" else 1.0
    sampling = FrameSampling(Nucleus(top_k=1, repetition_penalty=penalty), Greedy())
    # Upstream's limit counts the last id, which gets no frame.
    found = list(talker.frames(prompt_of(fixture, case), said["frames"], lambda: 0.5, sampling))
    assert torch.equal(torch.tensor(found), fixture[f"{case}.codes"].long())
    if f"{case}.eos_row" in fixture:
        longer = list(talker.frames(prompt_of(fixture, case), said["frames"] + 5, lambda: 0.5, sampling))
        assert longer == found, "speech ends by itself"


class Seen:
    """Remembers the probabilities of another sampler."""

    def __init__(self, inner: Nucleus) -> None:
        self.inner, self.found = inner, []

    def probabilities(self, logits: Tensor, history: list[int]) -> Tensor:
        found = self.inner.probabilities(logits, history)
        self.found.append(found[0])
        return found


@pytest.mark.parametrize("case", ["sampled", "sampled_narrow"])
@talkers
def test_parity_qwen3_replayed_sampling(fixture: Fixture, case: str) -> None:
    if case not in fixture.description["cases"]:
        pytest.skip(f"{fixture.name} has no {case}")
    talker, said = talker_of(fixture), fixture.description["cases"][case]
    how = said["settings"]
    first = Seen(Nucleus(how["temperature"], how["top_k"], how["top_p"], how["repetition_penalty"]))
    others = Seen(Nucleus(how["subtalker_temperature"], how["subtalker_top_k"], how["subtalker_top_p"]))
    frames = talker.frames(
        prompt_of(fixture, case), said["frames"], replay(fixture[f"{case}.uniforms"]), FrameSampling(first, others)
    )
    assert torch.equal(torch.tensor(list(frames)), fixture[f"{case}.codes"].long())
    expected = fixture[f"{case}.talker_probabilities"][: said["frames"]]
    found = torch.stack(first.found[: said["frames"]])[:, : expected.shape[1]]
    assert_close(found, expected, PROBABILITY, "first codes")
    expected = fixture[f"{case}.predictor_probabilities"]
    assert_close(torch.stack(others.found), expected.flatten(0, 1), PROBABILITY, "other codes")


predictors = pytest.mark.parametrize("fixture", of_kind("qwen3_code_predictor"))


def likeliest(seen: list[Tensor], group: int, given: Tensor) -> int:
    seen.append(given)
    return int(given.argmax())


@predictors
def test_parity_qwen3_code_predictor(fixture: Fixture) -> None:
    full_precision()
    config = TalkerConfig.read(fixture.description["config"]["talker_config"])
    weights = {name.removeprefix("talker.code_predictor."): value for name, value in fixture.weights.items()}
    table = weights.pop("talker.model.codec_embedding.weight")
    predictor = loaded_strictly(lambda: Talker(config).code_predictor, weights, fixture.name)
    rows = zip(fixture["past_hidden"][:, 0], table[fixture["first_ids"].long()], itertools.count())
    for state, first, row in rows:
        scores: list[Tensor] = []
        with torch.inference_mode():
            found = predictor.predict(state, first, partial(likeliest, scores))
            assert found == fixture["greedy.ids"][row].tolist()
            assert_within(torch.stack(scores), fixture["greedy.logits"][row], "scores step by step")
            ids = torch.tensor(found)
            known = [one.weight[code] for one, code in zip(predictor.model.codec_embedding, ids[:-1], strict=False)]
            once = predictor.scores(torch.stack([state, first, *known])[None])
        assert_within(once[0], fixture["parallel.logits"][row], "scores in one pass")
    loss = F.cross_entropy(fixture["parallel.logits"].flatten(0, 1), fixture["greedy.ids"].long().flatten())
    assert_close(loss, fixture["parallel.loss"], 1e-5, "the loss that training needs")


@predictors
def test_parity_qwen3_code_predictor_sampled(fixture: Fixture) -> None:
    full_precision()
    config = TalkerConfig.read(fixture.description["config"]["talker_config"])
    weights = {name.removeprefix("talker.code_predictor."): value for name, value in fixture.weights.items()}
    table = weights.pop("talker.model.codec_embedding.weight")
    predictor = loaded_strictly(lambda: Talker(config).code_predictor, weights, fixture.name)
    sampler, uniforms, seen = Nucleus(0.8, 10, 0.9), replay(fixture["sampled.uniforms"]), []

    def choose(group: int, given: Tensor) -> int:
        seen.append(sampler.probabilities(given[None], ())[0])
        return draw(seen[-1], uniforms())

    with torch.inference_mode():
        found = predictor.predict(fixture["past_hidden"][0, 0], table[fixture["first_ids"][0].long()], choose)
    assert found == fixture["sampled.ids"].tolist()
    assert_close(torch.stack(seen), fixture["sampled.probabilities"], PROBABILITY, "probabilities")
