"""Packed weights as a technique: measured once on a device, kept, refused with the reason, and combined with others."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.errors import SettingError
from paretone.models.kernels import few_rows
from paretone.models.kernels.few_rows import Int8Product
from paretone.models.minis.lm_mini import LmMiniSpeech
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques import foreseen, resolve
from paretone.techniques.weight_only import NAME, TECHNIQUE, Measured, Record, current_machine
from paretone.techniques.weight_only import measuring as measuring_module
from paretone.techniques.weight_only.measuring import measure, narrowed
from tests.engine.command_line import Console
from tests.engine.models.small_causal import small_model
from tests.engine.speaking import drafted, load, setting, shallow, spoken, write_all

pytestmark = pytest.mark.skipif(not few_rows.can_read_packed(), reason="this build of torch lacks the operators")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_all(tmp_path_factory.mktemp("language") / "model")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> LmMiniSpeech:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    return load(folder)


def used(**knobs: object) -> UsedTechnique:
    return UsedTechnique(NAME, Values(knobs))


def found(model: LmMiniSpeech, speed_up: float, bits: str = "int8") -> Measured:
    machine, group, within = current_machine(), 32 if bits == "int4" else 0, (speed_up - 0.05, speed_up + 0.05)
    return Measured(machine, model.info.fingerprint, bits, group, speed_up, *within, 0.02, 0.003)


def test_it_is_measured_once_and_kept(model: LmMiniSpeech, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    def measuring(*given: object) -> Measured:
        measured.append(given)
        return found(model, 1.4)

    monkeypatch.setattr(measuring_module, "measure", measuring)
    take = spoken(model, setting(used()))
    assert take.measurements.tokens and any("rounded to 8 bits" in note for note in take.notes)
    assert len(measured) == 1 and Record.of("lm-mini").measured == (found(model, 1.4),)
    spoken(load(folder), setting(used()))
    assert len(measured) == 1, "what is known is not measured again"
    assert any("by 0.003 nats" in one for one in resolve(model.info, setting(used())).notes)


def test_without_a_gain_it_is_refused_with_what_was_measured(model: LmMiniSpeech, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measuring_module, "measure", lambda *given: found(model, 0.8))
    with pytest.raises(SettingError, match=r"took 1\.25 times as long \(1\.18 to 1\.33\) on this device"):
        spoken(model, setting(used()))
    with pytest.raises(SettingError, match=r"One-token passes of LM mini with int8 weights took 1\.25 times as long"):
        resolve(model.info, setting(used()))
    assert TECHNIQUE.little(model.info).startswith("One-token passes of LM mini with int8 weights took 1.25 times")
    assert spoken(model, setting(used(anyway=True))).measurements.tokens
    Record.of("lm-mini").with_measured(replace(found(model, 0.98), high=1.01))
    with pytest.raises(SettingError, match=r"took 1\.02 times as long \(0\.99 to 1\.08\), which may be chance,"):
        resolve(model.info, setting(used()))


def test_it_goes_with_drafts_and_students(model: LmMiniSpeech, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring_module, "measure", lambda *given: replace(found(model, 1.4), checkpoint=given[-1]))
    chosen = setting(used(), drafted(adaptive=False))
    networks = model.networks(resolve(model.info, chosen))
    for network in (networks.target, networks.draft):
        assert network is not None
        layer = network.tokens.fused_transformer.fused_layers[0]
        assert all(isinstance(one, Int8Product) for one in (layer.queries_keys_values, layer.down, layer.gate_up))
        assert network.tokens.head_weight_bytes == 1.0
    assert model.own.tokens.head_weight_bytes > 1.0, "the model's own is left alone"
    assert networks is not None and model.networks(resolve(model.info, chosen)).target is networks.target
    drafting = spoken(model, chosen)
    assert drafting.measurements.target_passes < drafting.measurements.tokens
    student = setting(used(), shallow(depth=2))
    spoken(model, student)
    checkpoints = {one.checkpoint for one in Record.of("lm-mini").measured}
    assert checkpoints == {model.info.fingerprint, resolve(model.info, student).fingerprint}


def test_measuring_says_how_exact_and_how_fast() -> None:
    tokens = small_model().float().optimised()
    same = measure(tokens, tokens, "int8", 32, "0" * 64)
    assert same.error == same.divergence == 0 and same.group == 0 and same.low <= same.speed_up <= same.high
    packed = measure(tokens, narrowed(tokens, "int8", 32), "int8", 32, "0" * 64)
    assert 0 < packed.error < 0.1 and 0 < packed.divergence < 0.05
    assert (packed.machine, packed.checkpoint) == (current_machine(), "0" * 64)


def test_elsewhere_than_on_a_processor_it_is_refused(model: LmMiniSpeech) -> None:
    elsewhere = replace(model.info, device_type="cuda", device="NVIDIA card")
    with pytest.raises(SettingError, match="uses torch's operators for processors, and LM mini runs on NVIDIA card"):
        resolve(elsewhere, setting(used()))
    assert foreseen(setting(used())).products is not None


def test_a_damaged_record_is_measured_again(model: LmMiniSpeech, capsys: pytest.CaptureFixture[str]) -> None:
    record = Record.of("lm-mini").with_measured(found(model, 1.4))
    assert Record.of("lm-mini") == record
    other = record.with_measured(found(model, 1.6, "int4"))
    of = current_machine(), model.info.fingerprint
    assert len(other.measured) == 2 and other.find(*of, "int4", 32).speed_up == 1.6
    assert other.find("another machine", model.info.fingerprint, "int8", 32) is None
    for content in ("{", json.dumps({"schema": 1, "measured": [{}]})):
        record.path.write_text(content)
        assert Record.of("lm-mini").measured == ()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and all(one.endswith("packed weights are measured again.") for one in said)


def test_measured_on_the_command_line(paretone: Console) -> None:
    data = paretone.data("measure-weights", "--group", "32", "--json")
    assert [(one["bits"], one["group"]) for one in data["measured"]] == [("int8", 0), ("int4", 32)]
    assert all(one["low"] <= one["speed_up"] <= one["high"] for one in data["measured"])
    assert Path(data["path"]).is_file()
    said = paretone.out("measure-weights")
    assert "divergence (nats)" in said
    known = {one.bits: one.compared for one in Record.of("lm-mini").measured if one.group in (0, 32)}
    # What the refusal says, in the same sense.
    assert all(one in said for one in known.values()) and set(known) == {"int8", "int4"}
