"""Exports for transformers run there, and say what we say."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from paretone import cli
from paretone.export.targets import account, target
from paretone.sampling.tokens import RepetitionAware
from tests.engine.export import small_exports
from tests.engine.export.small_exports import COSYVOICE, LM_MINI, Exported, drafted, exported, write_small

pytest.importorskip("transformers")


@pytest.fixture(scope="module", params=small_exports.NAMES)
def one(request: pytest.FixtureRequest, patch: pytest.MonkeyPatch, tmp_path_factory: Any) -> Exported:
    """A student that speaks and a draft that proposes, of each model."""
    model, techniques = request.param, (small_exports.student(), drafted(draft_length=2))
    return exported(write_small(model, tmp_path_factory.mktemp(model)), model, *techniques)


@pytest.fixture(scope="module")
def folder(one: Exported, tmp_path_factory: Any) -> Path:
    return one.to("transformers", tmp_path_factory.mktemp("out") / "folder")


@pytest.fixture(scope="module")
def script(folder: Path) -> Any:
    return run_module(folder)


def run_module(folder: Path) -> Any:
    """The folder's own ``generate.py``."""
    module: dict[str, Any] = {"__name__": "generate", "__file__": str(folder / "generate.py")}
    exec(compile((folder / "generate.py").read_text(), "generate.py", "exec"), module)
    return type("Script", (), {name: staticmethod(one) for name, one in module.items() if callable(one)})


def test_greedy_tokens_are_ours_with_and_without_the_assistant(one: Exported, folder: Path, script: Any) -> None:
    ours = one.greedy()
    model, assistant, content = script.load(folder)
    assert assistant.config.num_hidden_layers == model.config.num_hidden_layers == 2
    assert assistant.generation_config.num_assistant_tokens == 2
    assert len(ours) == len(content["prompts"]) and len(ours[0]) > 5
    assert [script.generate(model, None, content, number, greedy=True) for number in range(len(ours))] == ours
    passes = []
    model.register_forward_hook(lambda *given: passes.append(given))
    assisted = [script.generate(model, assistant, content, number, greedy=True) for number in range(len(ours))]
    assert assisted == ours
    # The drafts of these two are nearly the students themselves.
    most = 1.0 if one.profile.setting.model == COSYVOICE else 0.6
    assert len(passes) <= most * sum(len(tokens) + 1 for tokens in ours)


def test_the_vocabulary_reads_what_the_prompt_says(one: Exported, folder: Path) -> None:
    from transformers import AutoTokenizer

    content = json.loads((folder / "prompts.json").read_text())
    prompt, name = content["prompts"][0], one.profile.setting.model
    if name == LM_MINI:
        assert not (folder / "tokenizer.json").exists()
        assert prompt["positions"].count(0) == 2 and max(prompt["ids"]) < content["vocabulary"]["size"]
        return
    tokenizer = AutoTokenizer.from_pretrained(folder)
    written = tokenizer.decode(prompt["ids"])
    assert tokenizer(written, add_special_tokens=False)["input_ids"] == prompt["ids"]
    first, codes = content["vocabulary"]["first_code"], content["vocabulary"]["codes"]
    assert tokenizer.convert_tokens_to_ids(["<|s_0|>", f"<|s_{codes - 1}|>"]) == [first, first + codes - 1]
    if name == COSYVOICE:
        assert written.startswith("<|sos|>") and "<|task|><|s_" in written
        assert len(tokenizer) == content["vocabulary"]["size"]


def test_sampled_tokens_can_be_spoken(one: Exported, folder: Path, script: Any) -> None:
    model, assistant, content = script.load(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(content["prompts"][0], "maximum", 12)
        patch.setitem(content["prompts"][0], "minimum", 4)
        tokens = script.generate(model, assistant, content, seed=1)
        assert script.generate(model, assistant, content, seed=1) == tokens
    assert 4 <= len(tokens) <= 12
    assert all(0 <= token < content["vocabulary"]["codes"] for token in tokens)


def test_what_is_written_is_what_runs(one: Exported, folder: Path) -> None:
    root, name = one.root, one.profile.setting.model
    written, drafted = load_file(folder / "model.safetensors"), load_file(folder / "assistant" / "model.safetensors")
    (path,) = (root / "students").glob("*.safetensors")
    trained = load_file(path)
    prefix = "llm.model." if name == COSYVOICE else ""
    layer = "model.layers.1.mlp.up_proj.weight"
    assert torch.equal(written[layer], trained[f"{prefix}{layer}"])
    (path,) = (root / "drafts").glob("*.safetensors")
    first = "model.layers.0.mlp.up_proj.weight"
    assert torch.equal(drafted[first], load_file(path)[f"{prefix}{first}"])
    assert (folder / "score_bias.safetensors").exists() == (name == COSYVOICE)
    said = (folder / "README.md").read_text()
    assert "a student with 2 of 3 layers" in said and "* Draft: 2 layers" in said
    assert json.loads((folder / "profile.json").read_text())["setting"]["model"] == name
    assert one.to("transformers", folder) == folder, "every file is the same to the byte"


@pytest.mark.parametrize("repeats", ["2026", "2025"])
def test_repeated_tokens_are_drawn_as_ours(repeats: str) -> None:
    from paretone.export.copied.generate_speech import RepetitionAware as Theirs

    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        scores = torch.randn(1, 40, generator=generator) * 4
        history = torch.randint(0, 40, (15,), generator=generator).tolist()
        expected = RepetitionAware(repeats, 0.8, 25).probabilities(scores, history)
        found = Theirs(3, repeats, 0.8, 25)(torch.tensor([[1, 2, 3, *history]]), scores)
        assert torch.allclose(found.exp(), expected, atol=1e-6)
    certain = torch.full((1, 40), -1000.0)
    certain[0, 7] = 0.0
    assert Theirs(0, repeats, 0.8, 25)(torch.tensor([[7]]), certain).argmax() == 7


def test_tolerance_and_assistant_are_as_the_draft_has_them(patch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = exported(write_small(LM_MINI, tmp_path), LM_MINI, drafted(tolerance=0.3, adaptive=True))
    said = account(target("transformers"), one.profile)
    drops = {line.what: line.how for line in said.drops}
    assert "β = 0" in drops["SSD, Tolerance"]
    assert said.given["draft"] == {"length": 3, "adaptive": True}
    place = one.to("transformers", tmp_path / "out")
    config = json.loads((place / "assistant" / "generation_config.json").read_text())
    assert config["num_assistant_tokens_schedule"] == "heuristic"
    assert "the model itself" in (place / "README.md").read_text()
    place = exported(one.root, LM_MINI, temperature=0.0).to("transformers", tmp_path / "greedy")
    assert not (place / "assistant").exists()
    assert json.loads((place / "generation_config.json").read_text())["do_sample"] is False


def test_the_script_writes_tokens_that_are_spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = exported(write_small(LM_MINI, tmp_path), LM_MINI, drafted())
    script, tokens = run_module(one.to("transformers", tmp_path / "out")), tmp_path / "tokens.json"
    monkeypatch.setattr(sys, "argv", ["generate.py", "--greedy", "--out", str(tokens)])
    script.main()
    assert json.loads(tokens.read_text())["tokens"] == one.greedy()[0]
    given = ["--tokens", str(tokens), "--folder", str(one.root), "--out", str(tmp_path / "speech.wav")]
    assert cli.main(["tokens", *given]) == 0
    assert (tmp_path / "speech.wav").stat().st_size > 10_000


def test_without_temperature_a_penalty_still_counts(tmp_path: Path) -> None:
    one = exported(write_small(LM_MINI, tmp_path), LM_MINI, temperature=0.0, repetition_penalty=1.5)
    script = run_module(one.to("transformers", tmp_path / "out"))
    model, _, content = script.load(tmp_path / "out")
    said = one.spoken()
    assert script.generate(model, None, content) == said
    assert script.generate(model, None, content, greedy=True) == one.greedy()[0] != said
