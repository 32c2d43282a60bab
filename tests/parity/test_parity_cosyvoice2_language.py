"""CosyVoice 2's language model, its transformer and how it decodes, against the official code."""

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.models.cosyvoice2.language_model import (
    COSYVOICE_2,
    COSYVOICE_3,
    END,
    STOPS,
    CosyNames,
    LanguageModel,
    PromptIds,
    TableLayout,
)
from paretone.models.cosyvoice2.text import ENOUGH, LONGEST, SHORTEST, normalised, pieces
from paretone.models.families.language_network import IGNORED, TokenModel
from paretone.models.networks.causal import NOTHING, CausalConfig
from paretone.sampling.autoregressive import Request, decode
from paretone.sampling.tokens import Greedy, RepetitionAware, Uniforms
from paretone.training.spoken_tokens import collate_rows
from tests.parity.fixtures import Fixture, alternating, assert_close, assert_near, cases, fixtures
from tests.peers.cosyvoice2 import OfficialLoop

EMBEDDED, LOSS = 1e-6, 1e-4


LANGUAGE_MODELS = fixtures("ar", lambda said: {"qwen2_config", "qwen2lm", "bistream"} <= said.keys())
VERSION_3 = fixtures("cosyvoice3", lambda said: "cosyvoice3lm" in said)
both = pytest.mark.parametrize("fixture", [*LANGUAGE_MODELS, *VERSION_3])
prompts = pytest.mark.parametrize("fixture", LANGUAGE_MODELS)


def ratios_of(fixture: Fixture, case: str) -> dict[str, float]:
    """Of speech tokens to text tokens, as far as the words about the case give them."""
    said = fixture.description["cases"][case]["desc"]
    found = {name: re.search(rf"{which} ratio ([\d.]+)", said) for name, which in (("least", "min"), ("most", "max"))}
    return {name: float(one[1]) for name, one in found.items() if one}


def layout_of(fixture: Fixture) -> TableLayout:
    return COSYVOICE_3 if "cosyvoice3lm" in fixture.description else COSYVOICE_2


def model_of(fixture: Fixture) -> LanguageModel:
    """Of version 2 or 3."""
    weights = {name: value.clone() for name, value in fixture.weights.items()}
    # The fixtures leave out the head that is tied to the text's table.
    weights.setdefault("llm.model.lm_head.weight", weights["llm.model.model.embed_tokens.weight"])
    said = {name: value for name, value in fixture.description["qwen2_config"].items() if name != "attention_bias"}
    config = CausalConfig.read({"model_type": "qwen2", **said})
    return LanguageModel.from_official(weights, config, fixture.name, layout=layout_of(fixture))


def ids(fixture: Fixture, name: str) -> tuple[int, ...]:
    return tuple(fixture[name].flatten().tolist()) if name in fixture else ()


@prompts
def test_parity_cosyvoice2_lm_ids(fixture: Fixture) -> None:
    said, model = fixture.description["qwen2lm"], model_of(fixture)
    assert model.codes == said["speech_token_size"]
    assert model.codes + END == said["eos"]
    assert list(model.tokens.stops) == said["stop_token_ids"] and len(model.tokens.stops) == STOPS


@both
def test_parity_cosyvoice_lm_prompt(fixture: Fixture) -> None:
    model = model_of(fixture)
    prompt = PromptIds(ids(fixture, "prompt_text"), ids(fixture, "prompt_speech_token"))
    request = model.request(prompt, ids(fixture, "text"))
    assert_close(request.embedded, fixture["lm_input"], EMBEDDED, "lm_input")
    with torch.inference_mode():
        hidden = model.tokens.transformer(request.embedded, positions=request.positions)
    assert_close(hidden, fixture["prefill_hidden"].view_as(hidden), LOSS, "prefill_hidden")


@prompts
@pytest.mark.parametrize("case", ["maxlen", "ratio", "noprompt"])
def test_parity_cosyvoice2_lm_lengths(fixture: Fixture, case: str) -> None:
    model = model_of(fixture)
    request = model.request(PromptIds(), ids(fixture, "text"), **ratios_of(fixture, case))
    assert request.maximum == fixture.description["cases"][case]["n_tokens"]
    assert model.request(PromptIds(), ids(fixture, "text")).minimum == len(fixture["eos_minlen.tokens"])


@both
def test_parity_cosyvoice_lm_training_rows(fixture: Fixture) -> None:
    model, layout = model_of(fixture), layout_of(fixture)
    names = CosyNames(len(model.text), layout)
    run, target = ("train_uni", "target") if layout is COSYVOICE_3 else ("train.unistream", "lm_target")

    def part(kind: str, number: int) -> list[int]:
        name = f"train.{kind}_token"
        return fixture[name][number, : fixture[f"{name}_len"][number]].tolist() if name in fixture else []

    rows = [
        names.row([*part("instruct", number), *part("text", number)], part("speech", number), model.codes)
        for number in range(len(fixture["train.text_token"]))
    ]
    batch = collate_rows(rows)
    assert [len(row.labels) for row in rows] == fixture[f"{run}.lm_input_len"].tolist()
    # Upstream marks what is not predicted, and embeddings after the end of a row, by -1.
    assert torch.equal(batch.labels.masked_fill(~batch.predicting, -1), fixture[f"{run}.{target}"].long())
    marks = model.marks[: names.marks]
    embedded = F.embedding(batch.ids, torch.cat([model.text, marks, model.tokens.embedding]))
    filled = torch.where(batch.heard[..., None], embedded, -1.0)
    assert_close(filled, fixture[f"{run}.lm_input"], EMBEDDED, "lm_input")
    with torch.inference_mode():
        logits = model.tokens.logits(model.tokens.transformer(embedded))
    loss = F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=IGNORED)
    assert_close(loss[None], fixture[f"{run}.loss"], LOSS, "loss")
    if f"{run}.acc" in fixture:
        right = (logits.argmax(-1) == batch.labels)[batch.predicting].float().mean()
        assert_close(right[None], fixture[f"{run}.acc"], LOSS, "acc")


OFFICIALLY_MASKED = 1
"""Of three stop ids, or 200, the official code masks one before the least length."""
KINDS = "plain", "optimised"
models = pytest.mark.parametrize("kind", KINDS)
CASES = cases(LANGUAGE_MODELS, lambda fixture: fixture.description["cases"])


def token_model(model: LanguageModel, kind: str) -> TokenModel:
    return model.tokens.optimised() if kind == "optimised" else model.tokens


def official_request(model: LanguageModel, fixture: Fixture, case: str) -> Request:
    prompt = PromptIds(ids(fixture, "prompt_text"), ids(fixture, "prompt_speech_token"))
    given = PromptIds() if case == "noprompt" else prompt
    request = model.request(given, ids(fixture, "text"), **ratios_of(fixture, case))
    return replace(request, masked_stops=OFFICIALLY_MASKED)


def forced(model: LanguageModel, fixture: Fixture) -> Tensor:
    """Embeddings of the fixture's prompt and of the tokens after it."""
    return torch.cat([fixture["lm_input"], model.tokens.embed(ids(fixture, "tf_tokens"))[None]], dim=1)


class Recording(Greedy):
    """Remembers the scores that it is given."""

    def __init__(self) -> None:
        object.__setattr__(self, "seen", [])

    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        self.seen.extend(logits.clone())
        return super().probabilities(logits, history)


def assert_scores(found: Tensor, expected: Tensor) -> None:
    assert torch.equal(found.isinf(), expected.isinf())
    assert_near(found.nan_to_num(neginf=0), expected.nan_to_num(neginf=0), "log-probabilities")


def assert_greedy(model: TokenModel, request: Request, fixture: Fixture, case: str) -> None:
    sampler, said = Recording(), fixture.description["cases"][case]
    cycles = list(decode(model, request, sampler, Uniforms(0)))
    tokens = [token for cycle in cycles for token in cycle.tokens]
    assert tokens == fixture[f"{case}.tokens"].tolist()
    assert (len(tokens), len(cycles)) == (said["n_tokens"], said["n_sampler_calls"])
    assert cycles[-1].stopped is (len(cycles) > len(tokens))
    # The official code masks after the softmax, which leaves a constant between the two.
    expected = fixture[f"{case}.logp_seen_by_sampler"].log_softmax(-1)
    assert_scores(torch.stack(sampler.seen[: len(expected)]).log_softmax(-1), expected)


@pytest.mark.parametrize(("fixture", "case", "kind"), alternating(CASES, KINDS))
def test_parity_cosyvoice2_lm_greedy(fixture: Fixture, kind: str, case: str) -> None:
    model = model_of(fixture)
    model.tokens.bias += fixture[f"{case}.llm_decoder_bias_delta"]
    assert_greedy(token_model(model, kind), official_request(model, fixture, case), fixture, case)


@both
def test_parity_cosyvoice_lm_every_layer(fixture: Fixture) -> None:
    model, outputs = model_of(fixture), []
    with torch.inference_mode():
        embedded = forced(model, fixture)
        hidden = model.tokens.transformer(embedded, probe=lambda layer, name, value: outputs.append(value))
        logits = model.tokens.logits(hidden)
    found = [embedded, *outputs[:-1], hidden]
    for number, (one, other) in enumerate(zip(found, fixture["tf_hidden_states"], strict=True)):
        assert_near(one[0, -len(other) :], other, f"hidden state {number}")
    assert_near(logits[0, -len(fixture["tf_logits"]) :], fixture["tf_logits"], "logits")


@prompts
@models
@pytest.mark.parametrize(("case", "way"), [("subset_keep", "kept"), ("subset_draft", "skipped")])
def test_parity_cosyvoice2_lm_some_layers(fixture: Fixture, kind: str, case: str, way: str) -> None:
    model = model_of(fixture)
    retained, tokens = fixture[f"{case}.layers"].tolist(), token_model(model, kind)
    skip = frozenset(range(tokens.transformer.config.layers)) - set(retained) if way == "skipped" else NOTHING
    transformer = tokens.transformer if skip else tokens.kept(retained).transformer
    with torch.inference_mode():
        logits = tokens.logits(transformer(forced(model, fixture), skip=skip))
    expected = fixture[f"{case}.logits"]
    assert_near(logits[0, -len(expected) :], expected, "logits")


@prompts
@models
def test_parity_cosyvoice2_lm_in_blocks(fixture: Fixture, kind: str) -> None:
    model = model_of(fixture)
    tokens = token_model(model, kind)
    embedded = forced(model, fixture)
    cache = tokens.cache(embedded.shape[1] + 3)
    with torch.inference_mode():
        parts = []
        for part in embedded.split(4, dim=1):
            # What was rejected leaves nothing behind.
            start = cache.length
            tokens.transformer(torch.randn(1, 3, part.shape[-1]), cache)
            cache.crop(start)
            parts.append(tokens.transformer(part, cache))
        logits = tokens.logits(torch.cat(parts, dim=1))
    expected = fixture["tf_logits"]
    assert_near(logits[0, -len(expected) :], expected, "logits")


@pytest.mark.parametrize(("fixture", "case"), CASES)
def test_parity_cosyvoice2_official_loop(fixture: Fixture, case: str) -> None:
    pytest.importorskip("transformers")
    model = model_of(fixture)
    tokens, config = model.tokens, CausalConfig.read(fixture.description["qwen2_config"])
    assert tokens.bias is not None
    bias = tokens.bias + fixture[f"{case}.llm_decoder_bias_delta"]
    weights = tokens.plain_transformer.state_dict()
    loop = OfficialLoop(config, weights, model.text, tokens.embedding.detach(), tokens.head, bias, tokens.codes)
    request = official_request(model, fixture, case)
    found, scores = loop.speak(request.embedded, request.minimum, request.maximum, keep=True, greedy=True)
    assert found == fixture[f"{case}.tokens"].tolist()
    expected = fixture[f"{case}.logp_seen_by_sampler"]
    assert_scores(scores[: len(expected)], expected)


PROBABILITY = 1e-5
samplers = pytest.mark.parametrize("fixture", fixtures("ar", lambda said: "ras_sampling" in said.get("source", "")))


@samplers
@pytest.mark.parametrize(("variant", "name"), [("2026", "ras_head"), ("2025", "ras_pre_f2ddcbe")])
def test_parity_cosyvoice2_ras(fixture: Fixture, variant: str, name: str) -> None:
    sampler = RepetitionAware(variant)
    for case in fixture.description["cases"]:
        golden = {part: fixture[f"{case['name']}.{part}"] for part in ("logits", "history", "nucleus", name)}
        history = golden["history"].tolist()
        assert len(history) == case["history_len"]
        if case["mask_eos"]:
            golden["logits"][fixture.description["speech_token_size"]] = -math.inf
        found = sampler.probabilities(golden["logits"][None], history)[0]
        assert_close(found, golden[name], PROBABILITY, f"{name} of {case['name']}")
        nucleus = sampler.probabilities(golden["logits"][None], [])[0]
        assert_close(nucleus, golden["nucleus"], PROBABILITY, f"the nucleus of {case['name']}")
        assert (nucleus > 0).sum() == case["nucleus_size"]


def count(piece: str) -> int:
    """Words and signs, which the fixture counted instead of tokens."""
    return len(re.findall(r"\w+|[^\w\s]", piece))


@pytest.fixture(autouse=True)
def without_wetext(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wetext", None)


def assert_texts(fixture: Fixture) -> None:
    rows = fixture.description["rows"]
    for row in rows:  # Numbers are read by our own rules.
        assert normalised(row["text"])[0] == row["joined"] or any(map(str.isdigit, row["text"]))
    assert [list(pieces(row["joined"], count)) for row in rows] == [row["split"] for row in rows]


@pytest.mark.parametrize("fixture", fixtures("ar", lambda said: "tokenizer_stand_in" in said))
def test_parity_cosyvoice2_text(fixture: Fixture) -> None:
    sizes = fixture.description["params"]
    assert (sizes["token_max_n"], sizes["token_min_n"], sizes["merge_len"]) == (LONGEST, ENOUGH, SHORTEST)
    assert_texts(fixture)
