"""Ceilings of cards from files, and reports on paper."""

from pathlib import Path

import pytest

from paretone.errors import SettingError
from paretone.measure.roofline import ceilings, published
from paretone.measure.roofline.report import on_paper
from tests.app.features.roofline.test_panel import report as measured_report

OWN = '[[card]]\nname = "mine"\ntitle = "Mine"\nsource = "a guess"\nbytes = 1e12\noperations = { float32 = 1e13 }\n'


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    return tmp_path / ceilings.CARDS


def test_cards_say_where_their_ceilings_are_from() -> None:
    known = ceilings.cards()
    assert {"h100", "h200", "a100", "l20", "rtx-4090"} <= set(known)
    for one in known.values():
        assert one.stated and one.operations["float32"] <= one.operations["bfloat16"] < one.operations["int8"]
        assert 9 < one.ridge("float32") < one.ridge("bfloat16") < 500, "no unit was mistaken"
    assert known["h100"].operations["float32"] == published.CEILINGS.operations["float32"] == 67e12
    assert known["a100-40"].bytes_of("bfloat16") == 1.555e12


def test_own_cards_are_added_and_replace(own: Path) -> None:
    own.write_text(OWN + OWN.replace("mine", "h100"))
    assert ceilings.card("mine").device == "Mine" == ceilings.card("h100").device
    assert ceilings.card("mine").launch_seconds == ceilings.LAUNCH_SECONDS


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (OWN.replace("1e12", '"fast"'), r"card\[0\].bytes must be a number"),
        (OWN.replace("1e12", "-1.0"), "not a positive number"),
        (OWN.replace("float32", "int8"), "the ceiling of float32 is missing"),
        (OWN.replace("source", "sauce"), "unknown field 'sauce'"),
        (OWN.replace("1e13", '"x"'), "not a positive number"),
        ("[[card", r"cards.toml cannot be used"),
        ("card = 1", "must be a list"),
    ],
)
def test_a_faulty_file_is_a_sentence(own: Path, content: str, words: str) -> None:
    own.write_text(content)
    with pytest.raises(SettingError, match=words):
        ceilings.cards()


def test_an_unknown_card_is_refused_with_the_nearest() -> None:
    assert ceilings.card("H100") == ceilings.card("h100")
    with pytest.raises(SettingError, match=r"no card named 'rtx4090'; did you mean 'rtx-4090'\?"):
        ceilings.card("rtx4090")


def test_on_paper_the_same_work_has_other_floors() -> None:
    measured, card = measured_report(), ceilings.card("a100")
    paper = on_paper(measured, card)
    assert not paper.measured and paper.total == paper.floor
    counted = [one for phase in measured.phases for one in phase.components]
    for (_, one), before in zip(paper.components(), counted, strict=True):
        assert (one.work, one.calls, one.launches, one.seconds) == (before.work, before.calls, before.launches, None)
        floor = max(one.work.operations / 19.5e12, one.work.bytes / 2.039e12)
        assert one.floor(card) == pytest.approx(one.calls * floor)
    assert sum(paper.by_component().values()) == pytest.approx(paper.floor)
    assert "NVIDIA A100 Tensor Core GPU data sheet" in paper.notes[-1]
    assert measured.measured and measured.total == measured.measured, "the measured one is as it was"
