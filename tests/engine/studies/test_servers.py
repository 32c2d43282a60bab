"""Servers in studies: what their tables may say, and a server that is not there."""

import json
import re
from pathlib import Path

import pytest

from paretone.errors import StudyError
from paretone.studies.definition import parse, to_toml
from paretone.studies.results import read
from paretone.studies.running import FINISHED
from paretone.studies.servers import TOKEN, target_of
from paretone.studies.study import SERVER
from tests.engine.studies.small import finished, study

HERE = {"url": "http://127.0.0.1:9", "name": "Box"}


def test_a_setting_is_made_of_each_load_and_field(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text('{"num_inference_steps": 16, "voice": "mia", "seed": 9}')
    given = {**HERE, "clients": [1, 8], "request": "request.json", "token": True}
    given |= {"fields": {"speed": 1.5}, "vary": {"num_inference_steps": [8, 16]}}
    found = parse({"grid": {"steps": [8]}, "server": [given]}, root=tmp_path)
    servers = [one for one in found.candidates if one.origin == SERVER]
    assert [one.name for one in servers] == [
        f"Box, at {clients}, num_inference_steps {steps}" for clients in ("1 client", "8 clients") for steps in (8, 16)
    ]
    assert found.candidates[-4:] == tuple(servers) and found.takes == len(found.candidates) * found.takes_each
    with pytest.raises(StudyError, match=TOKEN):
        target_of(servers[0].setting, "anna")
    monkeypatch.setenv(TOKEN, "secret")
    target = target_of(servers[0].setting, "anna")
    fields = {"num_inference_steps": 8, "speed": 1.5, "seed": 9}
    assert (target.voice, target.token, target.fields) == ("mia", "secret", fields)
    assert target.body("Rice.", 3)["seed"] == 3, "the study's in place of the file's"
    assert "secret" not in json.dumps(servers[0].setting.to_json())
    assert parse(found.to_json(), root=tmp_path).candidates == found.candidates and to_toml(found.to_json())


def test_fields_within_others_are_sent_as_an_export_has_them(tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text('{"extra_params": {"seed": 5, "shift": 0.1}, "response_format": "wav"}')
    given = {**HERE, "clients": 1, "request": "request.json", "vary": {"extra_params.shift": [0.1, 0.3]}}
    found = parse({"server": [given]}, root=tmp_path)
    targets = [target_of(one.setting, "anna") for one in found.candidates]
    said = [one.body("Rice.", 3)["extra_params"] for one in targets]
    assert said == [{"seed": 3, "shift": 0.1}, {"seed": 3, "shift": 0.3}]
    assert targets[0].body("Rice.", None)["extra_params"] == {"seed": 5, "shift": 0.1}
    assert found.candidates[1].name == "Box, at 1 client, extra_params.shift 0.3"
    assert parse(found.to_json(), root=tmp_path).candidates == found.candidates


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"url": "box:8880"}, r"server[0].url must be an address"),
        ({"clients": 0}, "clients must be from 1"),
        ({"clients": [1, 2000]}, "clients must be from 1"),
        ({"clients": ["8"]}, "whole numbers"),
        ({"vary": {"speed": 2}}, "vary.speed must be a list"),
        ({"fields": {"token": "x"}}, "token is not a field of a request; give it as server[0].token"),
        ({"vary": {"clients": [1, 8]}}, "clients is not a field of a request; give it as server[0].clients"),
        ({"vary": {"input": ["a", "b"]}}, "the field 'input' of a request is the study's"),
        ({"vary": {"seed": [1, 2]}}, "the field 'seed' of a request is the study's"),
        ({"fields": {"ref": {"a": [1]}}}, "the field 'ref.a' of a request must be a number"),
        ({"fields": {"ref": 1, "ref.a": 2}}, "the field 'ref' of a request has a value, and fields within it"),
        ({"vary": {"extra_params": {"seed": [1, 2]}}}, "the field 'extra_params.seed' of a request is the study's"),
        ({"vary": {"response_format": ["wav", "mp3"]}}, "response_format must be pcm or wav, not 'mp3'"),
        ({"request": "none.json"}, "none.json cannot be read: No such file or directory"),
        ({"adress": "x"}, "adress is an unknown field"),
    ],
)
def test_a_mistake_is_told_by_its_field(change: dict, words: str) -> None:
    with pytest.raises(StudyError, match=re.escape(words)):
        parse({"server": [{**HERE, **change}]})
    with pytest.raises(StudyError, match=re.escape("server[1] asks for the same")):
        parse({"server": [HERE, HERE]})


def test_a_server_that_is_not_there_leaves_the_rest_of_the_study(tmp_path: Path) -> None:
    assert finished(tmp_path / "s", study(server=[{**HERE, "clients": 1}])) == FINISHED
    *others, server = read(tmp_path / "s").settings
    assert all(one.finished == 3 for one in others) and server.finished == 0
    assert "does not speak: no connection" in server.problem
    assert finished(tmp_path / "t", study(grid=None, options=None, server=[HERE])) == FINISHED, "no model is loaded"
