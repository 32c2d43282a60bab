"""Profiles with the servers' own cache: vLLM-Omni's and SGLang's configurations, read back by the real cache-dit."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from paretone.export.copied import model_folder, speech_request
from paretone.export.programs import sglang, vllm_omni
from paretone.export.targets import account, export
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.profile import Profile
from paretone.setting.setting import UsedTechnique
from paretone.techniques import dual_block_cache
from tests.engine.export.programs.scripts import called, flags, needs_shell, profile

MODEL = "F5TTS_v1_Base"
ALL = {
    "Fn_compute_blocks": 2,
    "Bn_compute_blocks": 1,
    "residual_diff_threshold": 0.15,
    "max_warmup_steps": 3,
    "warmup_interval": 2,
    "max_cached_steps": 9,
    "max_continuous_cached_steps": 4,
    "max_accumulated_residual_diff_threshold": 2.5,
    "steps_computation_mask": "1101",
    "steps_computation_policy": "static",
    "taylorseer_order": 2,
}


def cached(cache: dict, **options: object) -> Profile:
    return profile(MODEL, UsedTechnique(dual_block_cache.NAME, Values(cache)), **options)


def test_what_a_server_does_not_pass_on_is_dropped() -> None:
    said = account(vllm_omni.TARGET, cached(ALL))
    title = dual_block_cache.TECHNIQUE.title.partition(" (")[0]
    dropped = [line.what for line in said.drops if line.what.startswith(title)]
    assert [what.partition(", ")[2] for what in dropped] == [
        "Warmup interval",
        "Max accumulated residual diff",
        "Steps computation mask",
        "Steps computation policy",
    ]
    assert set(said.given["cache_dit"]) == {*vllm_omni.CACHE_FIELDS, "enable_taylorseer"}
    assert not any(line.what.startswith(title) for line in account(vllm_omni.TARGET, cached({})).drops)
    assert not any(line.what.startswith(title) for line in account(sglang.TARGET, cached(ALL)).drops)


@pytest.mark.parametrize(
    ("options", "what", "honoured"),
    [
        ({"steps": 7}, "Step grid", True),
        ({"steps": 9, "spacing": "uniform"}, "Step grid", True),
        ({"steps": 7, "spacing": "uniform"}, "Step grid", False),
        ({"sway": -0.5}, "Sway", False),
        ({"solver": "midpoint"}, "Solver", False),
        ({}, "Solver", True),
    ],
)
def test_the_servers_own_grid_is_said(options: dict, what: str, honoured: bool) -> None:
    said = account(vllm_omni.TARGET, profile(MODEL, **options))
    assert (what in [line.what for line in said.honours]) is honoured
    assert (what in [line.what for line in said.drops]) is not honoured


@needs_shell
def test_vllm_omni_is_started_with_the_cache(tmp_path: Path) -> None:
    export(cached(ALL, steps=16, guidance=1.5), "vllm-omni", tmp_path / "it's here", Observer())
    words, _ = called(tmp_path / "it's here" / "serve.sh", "vllm")
    assert words[:2] == ["serve", "SWivid/F5-TTS/F5TTS_v1_Base"]
    given = flags(words)
    assert given["--cache-backend"] == "cache_dit"
    assert json.loads(given["--cache-config"])["residual_diff_threshold"] == 0.15
    assert {"--omni", "--trust-remote-code", "--port"} <= set(given)
    request = json.loads((tmp_path / "it's here" / "request.json").read_text())
    assert (request["num_inference_steps"], request["guidance_scale"], request["seed"]) == (16, 1.5, 5)
    readme = (tmp_path / "it's here" / "README.md").read_text()
    assert "never run in it" in readme and "pull request 7153" in readme


def test_no_guidance_is_not_taken_for_none_given(tmp_path: Path) -> None:
    export(profile(MODEL, guidance=0.0), "vllm-omni", tmp_path, Observer())
    assert 0 < json.loads((tmp_path / "request.json").read_text())["guidance_scale"] < 1e-5
    assert not (tmp_path / "cache_config.json").exists()
    assert "--cache" not in (tmp_path / "serve.sh").read_text()


@needs_shell
def test_sglang_is_started_with_the_file(tmp_path: Path) -> None:
    export(cached(ALL, steps=16), "sglang", tmp_path, Observer())
    words, _ = called(tmp_path / "serve.sh", "sglang", "my/pipeline")
    given = flags(words)
    assert (words[0], given["--model-path"], given["--backend"]) == ("serve", "my/pipeline", "diffusers")
    path = Path(given["--cache-dit-config"])
    assert path.samefile(tmp_path / "cache_dit.yaml")
    assert yaml.safe_load(path.read_text())["cache_config"]["steps_computation_mask"] == [1, 1, 0, 1]
    request = json.loads((tmp_path / "request.json").read_text())
    assert request == {"num_inference_steps": 16, "guidance_scale": 2.0, "seed": 5}
    readme = (tmp_path / "README.md").read_text()
    for line in ("SGLANG_CACHE_DIT_FN=2", "SGLANG_CACHE_DIT_RDT=0.15", "SGLANG_CACHE_DIT_TAYLORSEER=true"):
        assert line in readme
    assert "variables leave out warmup_interval" in readme and "SGLang has no F5-TTS" in readme


@contextmanager
def server(status: int = 200) -> Iterator[tuple[str, list[dict]]]:
    """A server that answers with a sound, or not; its address and what it was asked."""
    asked: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append({"path": self.path, **json.loads(self.rfile.read(int(self.headers["Content-Length"])))})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"RIFF" if status == 200 else b"no such model")

        def log_message(self, *given: object) -> None:
            """Nobody reads it."""

    with HTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{serving.server_port}/", asked
        finally:
            serving.shutdown()
            thread.join()


def test_the_client_sends_the_profiles_fields(tmp_path: Path) -> None:
    export(profile(MODEL, steps=12), "vllm-omni", tmp_path, Observer())
    (tmp_path / "voice.wav").write_bytes(b"sound")
    body = speech_request.body("Hello.", str(tmp_path / "voice.wav"), "What is said.", tmp_path / "request.json")
    with server() as (address, asked):
        assert speech_request.ask(address, body) == b"RIFF"
    assert asked[0]["path"] == "/v1/audio/speech"
    assert (asked[0]["input"], asked[0]["num_inference_steps"], asked[0]["seed"]) == ("Hello.", 12, 5)
    assert (asked[0]["ref_audio"], asked[0]["ref_text"]) == ("data:audio/wav;base64,c291bmQ=", "What is said.")
    with server(404) as (address, _), pytest.raises(OSError, match="answers 404: no such model"):
        speech_request.ask(address, body)


@needs_shell
def test_omnivoice_is_served_from_a_folder_with_the_settings(tmp_path: Path) -> None:
    given = profile("OmniVoice", steps=16, guidance=1.2, shift=0.2, language="en")
    out = tmp_path / "out"
    export(given, "vllm-omni", out, Observer())
    release = tmp_path / "release"
    (release / "audio_tokenizer").mkdir(parents=True)
    (release / "model.safetensors").write_bytes(b"weights")
    (release / "config.json").write_text('{"model_type": "omnivoice", "num_step": 32}')
    model_folder.make(release, tmp_path / "made", out / "generation.json")
    config = json.loads((tmp_path / "made" / "config.json").read_text())
    assert config["model_type"] == "omnivoice"
    assert (config["num_step"], config["guidance_scale"], config["t_shift"]) == (16, 1.2, 0.2)
    assert (tmp_path / "made" / "model.safetensors").read_bytes() == b"weights"
    assert (tmp_path / "made" / "audio_tokenizer").is_dir()
    assert json.loads((release / "config.json").read_text())["num_step"] == 32
    with pytest.raises(FileExistsError):
        model_folder.make(release, tmp_path / "made", out / "generation.json")
    request = json.loads((out / "request.json").read_text())
    assert request["extra_params"] == {"seed": 5}
    assert request["language"] == "en" and "instructions" not in request
    words, _ = called(out / "serve.sh", "vllm", str(tmp_path / "made"))
    assert words[:3] == ["serve", str(tmp_path / "made"), "--omni"]


def test_what_is_not_served_is_refused() -> None:
    for model in ("f5-mini", "lm-mini", "CosyVoice2-0.5B", "MegaTTS3"):
        assert "vLLM-Omni's diffusion engine serves" in account(vllm_omni.TARGET, profile(model)).why_not
    assert "guidance in its weights" in account(vllm_omni.TARGET, profile(MODEL), guided_weights=True).why_not
    assert "not a model of a diffusion server" in account(sglang.TARGET, profile("OmniVoice")).why_not
