"""Exported profiles in the software that they are for: OmniVoice's package, the Triton recipe, cache-dit."""

import json
from pathlib import Path

import pytest

from paretone.export.programs import vllm_omni
from paretone.export.targets import export
from paretone.observer import Observer
from paretone.techniques import dual_block_cache
from tests import official
from tests.engine.export.programs.test_served_caches import ALL, cached
from tests.engine.techniques.test_caches import PACKAGES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def triton_run() -> dict:
    """Findings of :mod:`tests.peers.f5_triton` in the official package's environment."""
    return official.run("tests.peers.f5_triton")


def test_the_recipe_gives_the_engines_mel(triton_run: dict) -> None:
    assert len(triton_run["differences"]) == 14
    assert {name: value for name, value in triton_run["differences"].items() if not value < 1e-4} == {}
    assert len(set(triton_run["sums"].values())) == 7, "every profile sounds different"


def test_one_branch_runs_alone_where_the_engine_takes_it(triton_run: dict) -> None:
    rows = triton_run["rows"]
    assert rows["v1, one branch, from 1"] == [1, 2], "one and two requests"
    assert rows["v1, one branch, from 2"] == [2], "one request runs twice in an engine that takes no fewer"
    assert rows["v1, epss, from 1"] == [2, 4]
    assert rows["v1, first steps guided, from 1"] == [1, 2, 4], "the later steps of one request run one branch"


def test_the_recipe_is_changed_and_given_back(triton_run: dict) -> None:
    assert "from paretone_sampler import F5TTS" in triton_run["text"]
    assert triton_run["restored"]


@pytest.fixture(scope="module")
def omnivoice_run() -> dict:
    """Findings of :mod:`tests.peers.omnivoice_exports` in the package's environment."""
    return official.run("tests.peers.omnivoice_exports", path=official.omnivoice())


def test_omnivoice_gives_the_engines_codes(omnivoice_run: dict) -> None:
    assert len(omnivoice_run["codes"]) == 3
    for name, (ours, theirs) in omnivoice_run["codes"].items():
        assert ours == theirs, name
    sizes = {name: (len(ours), len(ours[0])) for name, (ours, _) in omnivoice_run["codes"].items()}
    assert sizes["one branch, fixed order"] == (8, 50), "the duration is honoured"
    assert len({json.dumps(ours) for ours, _ in omnivoice_run["codes"].values()}) == 3
    assert all(omnivoice_run["repeated"].values()), "the seed makes equal calls equal"
    assert omnivoice_run["restored"]
    assert omnivoice_run["overridden"] > 0
    assert {"--text", "--instruct", "--guidance_scale", "--ref_audio"} <= set(omnivoice_run["flags"])


def test_what_does_not_belong_to_omnivoice_is_refused_with_the_reason(omnivoice_run: dict) -> None:
    reasons = {
        "twice": "remove it first",
        "no model": "not an OmniVoice",
        "kind": "not a profile for omnivoice",
        "schema": "reads 1",
        "precision": "damaged",
    }
    assert {name for name, reason in reasons.items() if reason not in omnivoice_run["refusals"][name]} == set()
    assert omnivoice_run["loading"] == "torch.bfloat16"


def test_cache_dit_reads_what_is_written(tmp_path: Path) -> None:
    for name, cache in (("all", ALL), ("usual", {})):
        export(cached(cache), "sglang", tmp_path / f"sglang {name}", Observer())
        export(cached(cache), "vllm-omni", tmp_path / f"vllm {name}", Observer())
    files = [tmp_path / f"sglang {name}" / "cache_dit.yaml" for name in ("all", "usual")]
    files += [tmp_path / f"vllm {name}" / "cache_config.json" for name in ("all", "usual")]
    packages = official.packages("cache-dit-1.5.3", *PACKAGES)
    every, usual, served, served_usual = official.run("tests.peers.cache_dit_reading", *map(str, files), path=packages)
    assert {name: every[name] for name in ALL} == ALL | {"steps_computation_mask": [1, 1, 0, 1]}
    knobs = {knob.name: knob.default for knob in dual_block_cache.KNOBS}
    assert {name: usual[name] for name in vllm_omni.CACHE_FIELDS} == {
        name: knobs[name] for name in vllm_omni.CACHE_FIELDS
    }
    assert usual["warmup_interval"] == 1
    assert "steps_computation_mask" not in usual, "none"
    assert {name: served[name] for name in vllm_omni.CACHE_FIELDS} == {
        name: ALL[name] for name in vllm_omni.CACHE_FIELDS
    }
    assert served_usual == usual
