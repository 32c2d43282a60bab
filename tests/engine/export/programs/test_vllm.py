"""Exports for vLLM: transformers loads both folders, the command and the requests hold what is meant."""

import json
import shlex
from pathlib import Path

import pytest
import torch

from paretone.errors import ProfileError
from paretone.export.programs.vllm import LARGEST_BIAS
from paretone.export.targets import account, target
from tests.engine.export.small_exports import COSYVOICE, LLASA, LM_MINI, drafted, exported, student, write_small

pytestmark = pytest.mark.usefixtures("patch")
transformers = pytest.importorskip("transformers")
ENOUGH = 25
"""Tokens that are compared: nothing is cached here."""


def greedy(model: object, request: dict) -> list[int]:
    """What a server gives for ``request`` where it always takes the most likely of the allowed ids."""
    allowed, ids = torch.tensor(request["allowed_token_ids"]), list(request["prompt"])
    bias = torch.tensor([request.get("logit_bias", {}).get(str(one), 0.0) for one in request["allowed_token_ids"]])
    stops, found = set(request["stop_token_ids"]), []
    while len(found) < min(request["max_tokens"], ENOUGH):
        scores = model(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids))).logits[0, -1, allowed] + bias
        if len(found) < request["min_tokens"]:
            scores[[one in stops for one in request["allowed_token_ids"]]] = -torch.inf
        ids.append(int(allowed[scores.argmax()]))
        if ids[-1] in stops:
            break
        found.append(ids[-1])
    return found


def test_a_student_and_its_draft(tmp_path: Path) -> None:
    one = exported(write_small(LLASA, tmp_path), LLASA, student(), drafted(draft_length=4), temperature=0.9, top_k=30)
    place = one.to("vllm", tmp_path / "out")
    command = shlex.split((place / "serve.sh").read_text().splitlines()[-1])
    assert command[:3] == ["vllm", "serve", "./model"]
    speculative = json.loads(command[command.index("--speculative-config") + 1])
    assert speculative == {"model": "./draft", "num_speculative_tokens": 4, "method": "draft_model"}
    models = {}
    for name in ("model", speculative["model"]):
        models[name] = transformers.AutoModelForCausalLM.from_pretrained(place / name, dtype=torch.float32).eval()
        assert transformers.AutoTokenizer.from_pretrained(place / name).convert_tokens_to_ids("<|s_0|>") == 298
    # What vLLM asks of a draft.
    assert len({one.config.vocab_size for one in models.values()}) == 1
    assert models["model"].config.architectures == ["LlamaForCausalLM"]
    request = json.loads((place / "requests" / "0.json").read_text())
    assert (request["temperature"], request["top_k"], request["seed"]) == (0.9, 30, 3)
    with torch.inference_mode():
        found = greedy(models["model"], request)
    assert [one - 298 for one in found] == one.greedy()[0][:ENOUGH]


def test_cosyvoice_2_has_its_bias_in_the_requests(tmp_path: Path) -> None:
    one = exported(write_small(COSYVOICE, tmp_path), COSYVOICE)
    place = one.to("vllm", tmp_path / "out")
    assert not (place / "draft").exists() and "--speculative-config" not in (place / "serve.sh").read_text()
    request = json.loads((place / "requests" / "0.json").read_text())
    model = transformers.AutoModelForCausalLM.from_pretrained(place / "model", dtype=torch.float32).eval()
    with torch.inference_mode():
        found = greedy(model, request)
    first = json.loads((place / "prompts.json").read_text())["vocabulary"]["first_code"]
    assert [one - first for one in found] == one.greedy()[0][:ENOUGH]
    assert "Repeated tokens" in {line.what for line in account(target("vllm"), one.profile).drops}


def test_a_bias_that_would_be_clamped_is_refused(tmp_path: Path) -> None:
    root = write_small(COSYVOICE, tmp_path)
    weights = torch.load(root / "llm.pt", weights_only=True)
    weights["llm_decoder.bias"][0] = 2 * LARGEST_BIAS
    torch.save(weights, root / "llm.pt")
    one = exported(root, COSYVOICE)
    with pytest.raises(ProfileError, match="bias of up to 200"):
        one.to("vllm", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("model", "reason"), [(LM_MINI, "counts positions anew"), (COSYVOICE, "without the draft")])
def test_what_vllm_cannot_run_is_refused(tmp_path: Path, model: str, reason: str) -> None:
    one = exported(write_small(model, tmp_path), model, drafted())
    with pytest.raises(ProfileError, match=reason):
        one.to("vllm", tmp_path / "out")
