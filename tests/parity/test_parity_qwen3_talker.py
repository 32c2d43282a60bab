"""Qwen3-TTS's talker and code predictor against the official classes: layers, steps, the loop, replayed sampling."""

import itertools
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.models.files.checkpoints import loaded_strictly
from paretone.models.kernels.few_rows import product
from paretone.models.qwen3_tts.frames import FrameModel, FramePredictor
from paretone.models.qwen3_tts.talker import LEAST_FRAMES, CodePredictor, FramePrompt, Talker, TalkerConfig
from paretone.sampling.autoregressive import Request, decode
from paretone.sampling.tokens import Greedy, Nucleus, TokenSampler
from paretone.setting.plan import InnerDrafts
from tests.parity.fixtures import Fixture, assert_close, assert_near, cases, qwen3_fixtures

PROBABILITY = 1e-5


def talker_of(fixture: Fixture, case: str = "") -> Talker:
    config = TalkerConfig.read(fixture.description["config"]["talker_config"])
    weights = {name: value.clone() for name, value in fixture.part("talker.").items()}
    if f"{case}.eos_row" in fixture:
        weights["codec_head.weight"][config.end] = fixture[f"{case}.eos_row"]
    return loaded_strictly(lambda: Talker(config), weights, fixture.name)


talkers = pytest.mark.parametrize("fixture", qwen3_fixtures("talker"))


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
            assert_near(one[0], other, f"hidden state {number}")
        assert_near(talker.codec_head(hidden[0, -3:]), fixture["prefill.logits"], "logits")
        embedded = talker.tables().frames(fixture["forced.codes"].long().T)
        fed = torch.stack([one + prompt.fed_with(frame) for frame, one in enumerate(embedded)])
        assert_near(fed, fixture["forced.step_inputs"], "step inputs")
        steps = torch.cat([talker.model(one[None, None], cache)[0] for one in fed])
    assert_near(steps, fixture["forced.hidden"], "hidden after each frame")
    assert_near(talker.codec_head(steps), fixture["forced.logits"], "logits after each frame")


@talkers
def test_parity_qwen3_talker_with_some_layers(fixture: Fixture) -> None:
    talker, prompt = talker_of(fixture), prompt_of(fixture, "stream")
    retained = set(fixture["subset.layers"].tolist())
    skip = frozenset(range(talker.config.transformer.layers)) - retained
    embedded = torch.cat([prompt.embedded, fixture["forced.step_inputs"]])[None]
    with torch.inference_mode():
        logits = talker.codec_head(talker.model(embedded, skip=skip)[0, -4:])
    assert_near(logits, fixture["subset.logits"], "logits")


GREEDY = ["stream", "eos", "min_new", "all_text", "batch.0", "batch.1"]


def frames(
    model: FrameModel,
    prompt: FramePrompt,
    most: int,
    first: TokenSampler,
    others: TokenSampler,
    uniforms: Callable[[], float] = lambda: 0.5,
) -> list[tuple[int, ...]]:
    """Codes of each frame."""
    length = len(prompt.embedded)
    how = {"shared": prompt.shared, "complete": model.completing(prompt, others)}
    request = Request(prompt.embedded[None], torch.arange(length), length, LEAST_FRAMES, most, **how)
    return [cycle.frames for cycle in decode(model, request, first, uniforms) if not cycle.stopped]


@pytest.mark.parametrize(
    ("fixture", "case"), cases(qwen3_fixtures("talker"), lambda one: sorted({*GREEDY} & {*one.description["cases"]}))
)
def test_parity_qwen3_greedy_frames(fixture: Fixture, case: str) -> None:
    model, said = FrameModel.of(talker_of(fixture, case)), fixture.description["cases"][case]
    first = Nucleus(top_k=1, repetition_penalty=1.3 if case == "all_text" else 1.0)
    # Upstream's limit counts the last id, which gets no frame.
    for others in (Nucleus(top_k=1), Greedy()):
        found = frames(model, prompt_of(fixture, case), said["frames"], first, others)
        assert torch.equal(torch.tensor(found), fixture[f"{case}.codes"].long())
    if f"{case}.eos_row" in fixture:
        longer = frames(model, prompt_of(fixture, case), said["frames"] + 5, first, Greedy())
        assert longer == found, "speech ends by itself"


class Seen:
    """Remembers the probabilities of another sampler, and the scores."""

    def __init__(self, inner: TokenSampler) -> None:
        self.inner, self.found, self.scores = inner, [], []

    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        found = self.inner.probabilities(logits, history)
        self.found.append(found[0])
        self.scores.append(logits[0])
        return found


def samplers_of(said: dict) -> tuple[Nucleus, Nucleus]:
    """Of the first codes and of the others."""
    how = said["settings"]
    first = Nucleus(how["temperature"], how["top_k"], how["top_p"], how["repetition_penalty"])
    return first, Nucleus(how["subtalker_temperature"], how["subtalker_top_k"], how["subtalker_top_p"])


@pytest.mark.parametrize("case", ["sampled", "sampled_narrow"])
@talkers
def test_parity_qwen3_replayed_sampling(fixture: Fixture, case: str) -> None:
    if case not in fixture.description["cases"]:
        pytest.skip(f"{fixture.name} has no {case}")
    model, said = FrameModel.of(talker_of(fixture)), fixture.description["cases"][case]
    prompt, codes = prompt_of(fixture, case), fixture[f"{case}.codes"].long()
    first, plain = samplers_of(said)
    first, others = Seen(first), Seen(plain)
    uniforms = fixture[f"{case}.uniforms"]
    found = frames(model, prompt, said["frames"], first, others, replay(uniforms))
    assert torch.equal(torch.tensor(found), codes)
    expected = fixture[f"{case}.talker_probabilities"][: said["frames"]]
    spoken = torch.stack(first.found[: said["frames"]])[:, : model.codes]
    assert_close(spoken, expected[:, : model.codes], PROBABILITY, "first codes")
    expected = fixture[f"{case}.predictor_probabilities"]
    assert_close(torch.stack(others.found), expected.flatten(0, 1), PROBABILITY, "other codes")
    in_one_call = frames(model, prompt, said["frames"], first, plain, replay(uniforms))
    assert torch.equal(torch.tensor(in_one_call), codes)


@pytest.mark.parametrize("most", [1, 3, 99])
@pytest.mark.parametrize("layers", [1, 2])
@talkers
def test_parity_qwen3_drafted_codes(fixture: Fixture, layers: int, most: int) -> None:
    model, sampled = FrameModel.of(talker_of(fixture)), fixture.description["cases"]["sampled"]
    if layers >= model.predictor.transformer.config.layers:
        pytest.skip("no layers are left to check")
    drafting, (first, others) = model.drafting(InnerDrafts(layers, most)), samplers_of(sampled)
    prompt, uniforms = prompt_of(fixture, "sampled"), replay(fixture["sampled.uniforms"])
    found = frames(drafting, prompt, sampled["frames"], first, others, uniforms)
    assert torch.equal(torch.tensor(found), fixture["sampled.codes"].long())
    said = fixture.description["cases"]["stream"]
    greedy = frames(drafting, prompt_of(fixture, "stream"), said["frames"], Nucleus(top_k=1), Greedy())
    assert torch.equal(torch.tensor(greedy), fixture["stream.codes"].long())


def predictor_of(fixture: Fixture) -> tuple[CodePredictor, FramePredictor, Tensor]:
    """The code predictor as it is and as it runs, and the embeddings of the talker's codes."""
    config = TalkerConfig.read(fixture.description["config"]["talker_config"])
    weights = fixture.part("talker.code_predictor.")
    plain = loaded_strictly(lambda: Talker(config).code_predictor, weights, fixture.name)
    return plain, FramePredictor.of(plain), fixture.weights["talker.model.codec_embedding.weight"]


predictors = pytest.mark.parametrize("fixture", qwen3_fixtures("code_predictor"))


@predictors
def test_parity_qwen3_code_predictor(fixture: Fixture) -> None:
    plain, predictor, table = predictor_of(fixture)
    uniforms = [0.5] * predictor.groups
    rows = zip(fixture["past_hidden"][:, 0], table[fixture["first_ids"].long()], itertools.count())
    for state, first, row in rows:
        seen = Seen(Greedy())
        ids, operations = predictor.predict(state, first, seen, uniforms)
        assert torch.equal(ids, fixture["greedy.ids"][row].long())
        assert_near(torch.stack(seen.scores), fixture["greedy.logits"][row], "scores step by step")
        known = [one.weight[code] for one, code in zip(plain.model.codec_embedding, ids[:-1], strict=False)]
        with torch.inference_mode():
            once = plain.scores(torch.stack([state, first, *known])[None])
        assert_near(once[0], fixture["parallel.logits"][row], "scores in one pass")
        drafted, of_drafts = predictor.drafted(InnerDrafts(1, predictor.groups + 1)).predict(
            state, first, Greedy(), uniforms
        )
        assert torch.equal(drafted, ids) and 0 < operations != of_drafts > 0
    loss = F.cross_entropy(fixture["parallel.logits"].flatten(0, 1), fixture["greedy.ids"].long().flatten())
    assert_close(loss, fixture["parallel.loss"], 1e-5, "the loss that training needs")


@predictors
def test_parity_qwen3_code_predictor_sampled(fixture: Fixture) -> None:
    _, predictor, table = predictor_of(fixture)
    seen, uniforms = Seen(Nucleus(0.8, 10, 0.9)), fixture["sampled.uniforms"].tolist()
    first = table[fixture["first_ids"][0].long()]
    found, _ = predictor.predict(fixture["past_hidden"][0, 0], first, seen, uniforms)
    assert found.tolist() == fixture["sampled.ids"].tolist()
    assert_close(torch.stack(seen.found), fixture["sampled.probabilities"], PROBABILITY, "probabilities")


@predictors
def test_heads_of_another_kind_than_the_layers_choose_the_same_codes(fixture: Fixture) -> None:
    """As where large weights are read faster plain, and the heads' packed."""
    network, plain, table = predictor_of(fixture)
    heads = [network.lm_head[0], *(product(one.weight.detach()) for one in network.lm_head[1:])]
    mixed = FramePredictor(plain.transformer, network.small_to_mtp_projection, heads, plain.tables)
    given = fixture["past_hidden"][0, 0], table[fixture["first_ids"][0].long()], Nucleus(0.8, 10, 0.9)
    uniforms = fixture["sampled.uniforms"].tolist()
    assert torch.equal(mixed.predict(*given, uniforms)[0], plain.predict(*given, uniforms)[0])
