"""Our reading of texts against NeMo text processing: each difference has a reason, or one of the two is wrong."""

import json
import re
import subprocess
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from paretone.front_end.numbers import ONES, TENS
from tests import official
from tests.engine.front_end.references import written
from tests.peers.official import NEMO, ROOT

_NUMBER = f"(?:{'|'.join((*ONES, *TENS[2:], 'oh', 'hundred', 'thousand', 'hours'))}|o'clock)"
_LEFT = (
    "k ms tsp tbsp h ma psi s km g wpm mpg khz usd sat tue mon fri pp ext tel no rd n st ste hwy ave rm ctrl max prof "
    "min inc avg approx sen pls ref p brb idk btw thx imo tbh ly mah db au fig corp sec wks w in gb sq ft gal bpm fps "
    "gbps dec oct figs txt wwii blvd apt co wm assoc asst mgr doz tmrw acct dr inv ngl hrs yo mins ev ch univ pts ne "
    "int'l lg mi imho gen ppm weds addr gib lbs kwh para kb ea tn sc mk l v c m t f msg thurs appt art secs "
    "add'l adm anniv arr ast aves b btwn ca chap chem chs dep dept dist ex exp fl flt gbs hosp hr jas kr kts "
    "lat mag matt med minn mp su my nne nw op pa pg pgs pt q qt reb ser tab wt yoy yrs "
    "gov't mos yr bn sw oz a hz mb bps bpd util ba bus rom iiib rep app pkg smh mtg cf bros pvt regt sens tues sept "
    "calif avail qtr sta stn nr pcm cap sf ac rms rev ln jan yds pop wwi srs ppg rpg apg tth mwf temp atm chr cal e i "
    "r bp on ur rte long civ fed vol iv qty wed sun sh blk ct ok vis dpi ppl govt depts orgs col cont dir mktg exec "
    "eng lmk tril refs par nr temp hum hrs mgr sq mil ra esq ht mph jn eq precip mo lb conf nmi attn "
    "iiia qd bg nf nc bb qxh cmaj u equiv nabh sm mass tmrw bc mvt sts kt kg bapt geo chas nov feb mar sess educ esp "
    "ret accts incl req'd sep qg cadd bbmaj sgt capt mt mob"
).split()
"""Short forms and units that NeMo leaves as they are written."""


def explained() -> list[tuple[str, str, set[str]]]:
    """Reason, pattern of "our words ⟶ NeMo's", and the classes of text in which this is so (all without any)."""
    rows = Path(__file__).with_name("nemo.tsv").read_text(encoding="utf-8").splitlines()
    macros = {"NUMBERS": f"(?:{_NUMBER}(?: {_NUMBER})*)?", "LEFT": "|".join((*_LEFT, "[ivxlcdm]+"))}
    found = []
    for why, ours, theirs, kinds in (row.split("\t") for row in rows):
        pattern = f"(?:{ours}) ⟶ (?:{theirs})"
        for name, words in macros.items():
            pattern = pattern.replace(name, words)
        found.append((why, pattern, set(kinds.split())))
    return found


def words(text: str) -> list[str]:
    joined = re.sub(r"(?<![A-Za-z])(?:[A-Za-z]\.)+", lambda one: one[0].replace(".", "") + " ", text)
    found = re.findall(r"[^\W_]+(?:'[a-z]+)*|[^\w\s.,?!\":;]", joined.lower())
    return [one for one in found if one != "and"]


def differences(ours: list[str], theirs: list[str]) -> list[tuple[str, str]]:
    matched = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    return [(" ".join(ours[a:b]), " ".join(theirs[c:d])) for kind, a, b, c, d in matched if kind != "equal"]


def reason(kind: str, ours: str, theirs: str) -> str:
    """Why they differ; empty if nobody knows."""
    fitting = (
        why
        for why, pattern, kinds in explained()
        if re.fullmatch(pattern, f"{ours} ⟶ {theirs}") and kind in (kinds or {kind})
    )
    return next(fitting, "")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_another_reader_differs_only_where_it_is_known_why() -> None:
    rows = written()
    python = official.python(NEMO)
    command = [str(python), "-m", "tests.peers.nemo", str(python.parents[1] / "grammars")]
    texts = json.dumps([text for _, text, _ in rows])
    done = subprocess.run(command, input=texts, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    readings = json.loads(done.stdout)
    found = [
        (kind, text, *one, reason(kind, *one))
        for (kind, text, right), theirs in zip(rows, readings, strict=True)
        for one in differences(words(right.replace("|", "")), words(theirs))
    ]
    assert [one for one in found if not one[-1]] == []
    assert {one[-1] for one in found} == {why for why, *_ in explained()}, "a reason is not needed any more"
    same = sum(words(said) == words(right.replace("|", "")) for (*_, right), said in zip(rows, readings, strict=True))
    assert same > 300, "it did read them"
