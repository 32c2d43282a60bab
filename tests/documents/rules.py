"""Which printed commands are not run by the tests, which only in full, and what is shortened where they run.

A rule is a pattern that is looked for in the command as it is printed. Every rule must match some command, and no
command two of them.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatch


@dataclass(frozen=True)
class Rule:
    """Commands that match ``pattern`` are an exception."""

    pattern: str
    reason: str
    page: str = "*"
    """The pages that it is about, below ``resources/docs``, as a pattern."""

    def matches(self, command: str, page: str) -> bool:
        """Whether it is about a command of a page."""
        return fnmatch(page, self.page) and re.search(self.pattern, command) is not None


NOT_RUN = (
    Rule(r"--device cuda|tests\.peers omnivoice-card", "needs a GPU"),
    Rule(r"^paretone download ", "downloads gigabytes; test_cli_download.py downloads small files from a local server"),
    Rule(
        r"--model (MegaTTS3|CosyVoice2-0\.5B|Fun-\S+|OmniVoice|Llasa-\w+|Qwen3-TTS-\S+) (?!.*--device cuda)",
        "needs an official checkpoint; the parity tests run the same code on small ones in the official layout",
    ),
    Rule(
        r"^paretone bench |^python -m tests\.peers ",
        "measures for minutes to hours; the tests of the benches run each of them on small models",
    ),
    Rule(
        r"^paretone study (run|export) resources/studies/(?!papers/)",
        "minutes to hours of takes, or their results; test_study.py reads all of these files",
    ),
    Rule(
        r"^paretone (serve|load|judge replies/|study run servers) ?",
        "serves until it is stopped, or needs a server; test_speech_server.py does both",
        "speech-server*.md",
    ),
    Rule(r"^(pip|paretone serve)", "installs, or serves a window; test_ssh.py does both", "gpu-server.md"),
    Rule(r"--ray ", "needs a cluster; test_cluster.py starts one"),
    Rule(r"^paretone study (run|status|export) adams_bashforth\.toml|adams_bashforth:", "test_tutorial.py does it"),
    Rule(r"^(source|pip) ", "changes the environment; test_tutorial.py does it", "your-own-technique.md"),
    Rule(r"", "needs the package of the page; tests/plugins/test_plugins.py runs them", "your-own-model.md"),
    Rule(
        r"^(uv|pipx?|python3?(?! packaging/dev)|source|sudo|paretone-gui)\b",
        "installs, or opens a window",
        "install*.md",
    ),
    Rule(r"^(sudo |\./|python3 packaging/freeze\.py)", "packs a gigabyte for minutes", "packaged-program.md"),
    Rule(r"^(\w+=\S+ )?python -m tests\.tools\.endurance", "runs for an hour", "endurance*.md"),
    Rule(
        r"^(?!paretone (speak|export) |paretone tokens --model lm-mini --voice)",
        "needs the other program, or what it has made",
        "servers*.md",
    ),
    Rule(r"^python3 packaging/dev\.py ", "these tests are it, or it opens the window; test_dev.py tests the script"),
    Rule(r"^python -m tests\.tools\.recipes ", "trains for minutes to hours; test_session.py begins each recipe"),
    Rule(r"^python -m tests\.tools\.held_out_voices ", "speaks for an hour", "checks.md"),
    Rule(r"^python -m tests\.tools\.pictures ", "renews the pictures, for minutes; test_pictures.py"),
    Rule(r"^(\w+=\S+ )?python -m pytest ", "runs tests, which are run anyway"),
    Rule(r"samples resources/samples/", "speaks for six minutes; test_samples.py makes samples of a small file"),
    Rule(r"--technique compilation", "compiles for minutes; test_compiled.py compiles small networks"),
)
"""What no test runs, and why not."""

REFUSED = {"study set-aside my.toml": "is not damaged, so it stays where it is"}
"""Commands that have nothing to do here, and what they say of it."""
ONLY_IN_FULL: tuple[Rule, ...] = (
    Rule(r"view token-groups", "speaks eight sentences; test_token_groups.py computes the view"),
    Rule(r"view objectives", "calibrates for several thresholds and budgets"),
    Rule(r"view (speculation|depth|attention-maps)|--as beta", "computes for many seconds; so do others", "papers.md"),
    Rule(r"study run resources/studies/papers/", "speaks every setting of a table, here once", "papers.md"),
    Rule(r"calibrate --objective end", "runs the trajectory some fifty times"),
    Rule(r"calibrate --thresholds|worst\.json", "calibrates several times"),
    Rule(r"search-grid|--grid grid", "tries two dozen grids"),
    Rule(r"view order-of-convergence", "samples with every solver at every number of steps"),
    Rule(r"measure-weights", "measures four packings in rounds"),
    Rule(r"error_curve:", "speaks three sentences to measure the curve"),
    Rule(r"roofline --(setting|model (?!.*--device cuda))", "measures in rounds; test_cli_flow.py does so always"),
    Rule(r"samples my-samples\.toml", "speaks, judges and encodes; test_samples.py does so always"),
    Rule(
        r"^paretone train (?!.*(--device cuda|--model (CosyVoice2|Fun-|Llasa)))", "trains; here for some seconds each"
    ),
    Rule(r"compare .* --judge naturalness", "asks three judges; test_compare_judged.py does so always"),
)
"""What only ``--thorough`` runs, since it takes longer than some seconds."""

SHORTER = dict.fromkeys(("--sentences", "--doublings", "--count"), "1")
SHORTER |= {"--text": "Rice.", "--steps": "4", "--threshold": "0.4", "--minutes": "0.1"}
"""Values of options in place of those that are printed, unless these are 0."""
FEWER = (
    (r"^steps=(16|32)\b", "steps=4"),
    (r"^(steps) = (16|32)$", r"\1 = 2"),
    (r'^"steps.steps" = .*$', '"steps.steps" = ["off", 1]'),
    (r"^options\.steps = 32$", "options.steps = 4"),
    (r"^options\.steps = 16$", "options.steps = 3"),
    (r"^options\.steps = 7$", "options.steps = 2"),
    (r'^sentences = ("harvard"\ncount = \d+|\["The harvest.*\])$', 'sentences = ["Rice."]'),
    (r"^(voices|rounds) = \d+$", r"\1 = 1"),
    (r"^seeds = \[0, 1\]$", "seeds = [0]"),
)
"""The same in what sides of a comparison say, and in files that a document has its readers save."""
ADDED = {
    "calibrate": (("--text", "Rice."), ("--steps", "2"), ("--no-evidence",)),
    "compare": (("--repeats", "1"),),
    "search-grid": (("--passes", "1"), ("--text", "Rice.")),
    "train voice-corpus": (("--voices", "2"), ("--sentences", "2")),
    "transfer": (("--steps", "2"),),
    "view": (("--steps", "4"), ("--text", "Rice.")),
}
"""Options that a command is given in addition, unless printed. Speech with a table of few steps has as many."""
