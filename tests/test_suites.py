"""Suite files: what each wrong line is told, and what the shipped files hold."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from judge.case import Case
from judge.suites import load_suite, load_suites, select_cases
from judge.yamlfile import MAX_BYTES, CaseFileError

CASES = Path(__file__).parent.parent / "cases"
SHIPPED = [CASES / f"{name}.yaml" for name in ("public", "correctness", "hidden", "smoke")]
HEAD = "suite: s\ntolerance: 5e-3\ncases:\n"  # so that the first case stands on line 4
FIRST = "  - {name: a, batch: 1, tokens: 64, qk_heads: 4, v_heads: 8}\n"


def case_line(**changes: object) -> str:
    """A valid file whose first case (line 4) has these fields, written as they stand."""
    fields = {"name": "a", "batch": 1, "tokens": 64, "qk_heads": 4, "v_heads": 8, **changes}
    return HEAD + "  - {" + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "}\n"


def shape(case: Case) -> tuple:
    """B, T, Hq, Hv and the initial state's scale."""
    return case.batch, case.tokens, case.qk_heads, case.v_heads, case.initial_state


def complaint(tmp_path: Path, text: str | bytes) -> str:
    """What is said about a file of this content, without the folder's name."""
    path = tmp_path / "x.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(CaseFileError) as caught:
        load_suite(path)
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith(f"{tmp_path}/")
    return message.removeprefix(f"{tmp_path}/")


BAD_FILES = [
    # YAML itself
    ("", "x.yaml:1: is empty; write its keys, or give another file"),
    ("# nothing\n", "x.yaml:1: is empty"),
    (HEAD + "  - {name: a\n", "x.yaml:5: is not valid YAML: while parsing a flow mapping, "),
    ("suite: s\n\tweight: 1\n", "x.yaml:2: is not valid YAML: "),
    ("suite: s\n---\nsuite: t\n", "x.yaml:2: is not valid YAML: "),
    (b"suite: s\n# \xff\n", "x.yaml:2: is not UTF-8 text; save it as UTF-8"),
    (b"suite: s\nweight: \x00\n", "x.yaml:2: is not valid YAML: special characters"),
    ("a: &a [1]\nb: [*a, *a]\n", "x.yaml:1: anchors and aliases are not allowed"),
    ("[" * 20_000, "x.yaml:1: is nested deeper than 8 levels"),
    ("#" * (MAX_BYTES + 1), f"x.yaml: is too large; at most {MAX_BYTES} bytes are read"),
    # the top level
    ("- 1\n", "x.yaml:1: must be a mapping with the keys suite, weight, tolerance"),
    ("text\n", "x.yaml:1: must be a mapping"),
    ("suite: s\ntolerance: 1\n", "x.yaml:1: cases: missing; required here: suite"),
    ("suite: s\nwieght: 0.6\n", "x.yaml:2: wieght: unknown key; did you mean weight?"),
    ("suite: s\nxyz: 0.6\n", "x.yaml:2: xyz: unknown key; use one of suite, weight, tolerance"),
    ("suite: s\nsuite: t\n", "x.yaml:2: suite: stands already on line 1; keep one of the two"),
    ("suite: a b\ntolerance: 1\ncases: []\n", "x.yaml:1: suite: must be a name of at most 64"),
    ("suite: s\ntolerance: 1\ncases: []\n", "x.yaml:3: cases: must be a list of at least one"),
    ("suite: s\ntolerance: 1\ncases:\n", "x.yaml:3: cases: must be a list of at least one case"),
    ("weight: 1.5\n" + HEAD + FIRST, "x.yaml:1: weight: '1.5' is not a number from 0 to 1"),
    ("weight: -0.1\n" + HEAD + FIRST, "x.yaml:1: weight: '-0.1' is not a number from 0 to 1"),
    ("weight: .nan\n" + HEAD + FIRST, "x.yaml:1: weight: '.nan' is not a number from 0 to 1"),
    ("tilelang: new\n" + HEAD + FIRST, "x.yaml:1: tilelang: must be a version such as 0.1.9"),
    ("suite: s\ntolerance: 0\ncases:\n" + FIRST, "x.yaml:2: tolerance: '0' is not a number"),
    # a case's keys
    (HEAD + "  - 5\n", "x.yaml:4: cases[0]: must be a mapping with the keys name, batch, tokens"),
    (HEAD + "  - {name: a}\n", "x.yaml:4: cases[0].batch: missing; required here: name, batch"),
    (HEAD + FIRST + "  - {batch: 1}\n", "x.yaml:5: cases[1].name: missing; required here: name"),
    (case_line(token=1), "x.yaml:4: cases[0].token: unknown key; did you mean tokens?"),
    (HEAD + "  - name: a\n    batch: 1\n    batch: 2\n", "x.yaml:6: cases[0].batch: stands"),
    (HEAD + "  - {[1]: 2}\n", "x.yaml:4: cases[0].?: unknown key"),
    # names
    (HEAD + FIRST + FIRST, "x.yaml:5: cases[1].name: a stands already at "),
    (case_line(name='"a\\u001b[31m"'), "x.yaml:4: cases[0].name: must be a name of at most 64"),
    (case_line(name='"=1+1"'), "x.yaml:4: cases[0].name: must be a name of at most 64"),
    (case_line(name="[a]"), "x.yaml:4: cases[0].name: must be a name of at most 64"),
    # sizes
    (case_line(tokens=0), "x.yaml:4: cases[0].tokens: '0' is not a whole number from 1 to"),
    (case_line(batch=-1), "x.yaml:4: cases[0].batch: '-1' is not a whole number from 1 to"),
    (case_line(batch="true"), "x.yaml:4: cases[0].batch: 'true' is not a whole number from 1"),
    (case_line(tokens="64.0"), "x.yaml:4: cases[0].tokens: '64.0' is not a whole number"),
    (case_line(tokens="010"), "x.yaml:4: cases[0].tokens: '010' is not a whole number"),
    (case_line(tokens="1_000"), "x.yaml:4: cases[0].tokens: '1_000' is not a whole number"),
    (HEAD + "  - name: a\n    batch: 1\n    tokens: 1:30\n    qk_heads: 1\n    v_heads: 1\n",
     "x.yaml:6: cases[0].tokens: '1:30' is not a whole number"),
    (case_line(tokens="9" * 5000), "x.yaml:4: cases[0].tokens: '99999"),
    (case_line(tokens='"64"'), "x.yaml:4: cases[0].tokens: must be a whole number from 1 to"),
    (case_line(tokens="[64]"), "x.yaml:4: cases[0].tokens: must be a whole number from 1 to"),
    (case_line(tokens=""), "x.yaml:4: cases[0].tokens: '' is not a whole number from 1 to"),
    (case_line(v_heads=6),
     "x.yaml:4: cases[0].v_heads: 6 is not a multiple of qk_heads 4; use 4, 8, 12, …"),
    (case_line(v_heads=2), "x.yaml:4: cases[0].v_heads: 2 is not a multiple of qk_heads 4; use 4"),
    # overrides
    (case_line(gate="random_decoy"), "x.yaml:4: cases[0].gate: 'random_decoy' is no gate; did you"),
    (case_line(gate="soft"), "x.yaml:4: cases[0].gate: 'soft' is no gate; use one of"),
    (case_line(gate="no"), "x.yaml:4: cases[0].gate: 'no' is no gate"),
    (case_line(gate="constant"), "x.yaml:4: cases[0].gate: 'constant' is no gate; did you"),
    (case_line(gate="{}"), "x.yaml:4: cases[0].gate.constant: missing"),
    (case_line(gate="{constant: 0.5}"), "x.yaml:4: cases[0].gate.constant: '0.5' is not a log"),
    (case_line(gate="{constant: -.inf}"), "x.yaml:4: cases[0].gate.constant: '-.inf' is not a log"),
    (case_line(gate="{constnat: 0}"), "x.yaml:4: cases[0].gate.constnat: unknown key; did you"),
    (case_line(gate="[mixed]"), "x.yaml:4: cases[0].gate: must be a gate, without quotes"),
    (case_line(beta=1.01), "x.yaml:4: cases[0].beta: '1.01' is not a number from 0 to 1"),
    (case_line(beta=-1), "x.yaml:4: cases[0].beta: '-1' is not a number from 0 to 1"),
    (case_line(beta="half"), "x.yaml:4: cases[0].beta: 'half' is not a number from 0 to 1"),
    (case_line(initial_state="yes"), "x.yaml:4: cases[0].initial_state: 'yes' is not none, or a"),
    (case_line(initial_state=".inf"), "x.yaml:4: cases[0].initial_state: '.inf' is not none, or"),
    (case_line(initial_state="1e999"), "x.yaml:4: cases[0].initial_state: '1e999' is not none, or"),
    (case_line(initial_state=-1), "x.yaml:4: cases[0].initial_state: '-1' is not none, or"),
    (case_line(timed="yes"), "x.yaml:4: cases[0].timed: 'yes' is neither true nor false; write"),
    (case_line(timed=1), "x.yaml:4: cases[0].timed: '1' is neither true nor false; write"),
    (case_line(timed='"true"'), "x.yaml:4: cases[0].timed: must be true or false, without quotes"),
    (case_line(equal_keys="{}"), "x.yaml:4: cases[0].equal_keys: must be true or false"),
    (case_line(zero_values="on"), "x.yaml:4: cases[0].zero_values: 'on' is neither true nor"),
    (case_line(tolerance=0), "x.yaml:4: cases[0].tolerance: '0' is not a number above 0"),
    (case_line(tolerance=-5e-3), "x.yaml:4: cases[0].tolerance: '-0.005' is not a number above 0"),
    (case_line(tolerance=".nan"), "x.yaml:4: cases[0].tolerance: '.nan' is not a number above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BAD_FILES)
def test_wrong_file_is_one_line_with_file_line_and_field(
    tmp_path: Path, text: str | bytes, expected: str
) -> None:
    assert complaint(tmp_path, text).startswith(expected)


def test_duplicate_name_names_both_lines(tmp_path: Path) -> None:
    message = complaint(tmp_path, HEAD + FIRST + FIRST)
    assert message.startswith("x.yaml:5: ")
    assert f"{tmp_path}/x.yaml:4; give it another name" in message


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing.yaml", "No such file or directory"), (".", "Is a directory")],
)
def test_unreadable_file(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(CaseFileError) as caught:
        load_suite(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: cannot be read: {reason}; give a YAML file"


def test_control_characters_do_not_reach_the_message(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\nb.yaml"
    with pytest.raises(CaseFileError) as caught:
        load_suite(path)
    assert str(caught.value).isprintable()


def test_every_field_is_read_and_defaults_are_as_documented(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    text = (
        "suite: own\nweight: 0.25\ntolerance: 5e-3\ntilelang: 0.1.9\ncases:\n"
        "  - {name: plain, batch: 2, tokens: 65, qk_heads: 2, v_heads: 6}\n"
        "  - {name: full, batch: 1, tokens: 1, qk_heads: 1, v_heads: 8, initial_state: 30,\n"
        "     gate: {constant: -1e-3}, beta: 1, equal_keys: true, zero_values: true,\n"
        "     timed: false, tolerance: .25}\n"
        "  - {name: none, batch: 1, tokens: 1, qk_heads: 1, v_heads: 1, initial_state: none,\n"
        "     gate: mixed, beta: 0}\n"
    )
    path.write_text(text)
    suite = load_suite(path)
    assert (suite.name, suite.weight, suite.tilelang) == ("own", 0.25, "0.1.9")
    assert suite.path == str(path)
    assert suite.digest == hashlib.sha256(text.encode()).hexdigest()
    assert suite.cases == (
        Case("plain", 2, 65, 2, 6, None, "random_decay", None, None, False, False, True, 5e-3),
        Case("full", 1, 1, 1, 8, 30.0, "constant", -1e-3, 1.0, True, True, False, 0.25),
        Case("none", 1, 1, 1, 1, None, "mixed", None, 0.0, False, False, True, 5e-3),
    )


def test_weight_and_tilelang_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(HEAD + FIRST)
    suite = load_suite(tmp_path / "x.yaml")
    assert suite.weight is None
    assert suite.tilelang is None


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (HEAD.replace("suite: s", "suite: t") + FIRST, "y.yaml:4: cases[0].name: a stands already"),
        (HEAD + FIRST.replace("name: a", "name: b"), "y.yaml:1: suite: s stands already at"),
    ],
)
def test_two_files_do_not_share_a_name(tmp_path: Path, second: str, expected: str) -> None:
    (tmp_path / "x.yaml").write_text(HEAD + FIRST)
    (tmp_path / "y.yaml").write_text(second)
    with pytest.raises(CaseFileError) as caught:
        load_suites([tmp_path / "x.yaml", tmp_path / "y.yaml"])
    assert str(caught.value).startswith(f"{tmp_path}/{expected}")
    assert f"{tmp_path}/x.yaml:" in str(caught.value)


def test_selection() -> None:
    suites = load_suites(SHIPPED)
    assert len(select_cases(suites)) == sum(len(suite.cases) for suite in suites)
    chosen = select_cases(suites, case_names=["wide_gva_state", "t1", "chain_equal"])
    assert [(suite.name, case.name) for suite, case in chosen] == [
        ("public", "chain_equal"),
        ("public", "wide_gva_state"),
        ("correctness", "t1"),
    ]
    chosen = select_cases(suites, ["smoke"], ["t1"])
    assert [suite.name for suite, _ in chosen] == ["correctness"] + ["smoke"] * 5


@pytest.mark.parametrize(
    ("suite_names", "case_names", "expected"),
    [
        ([], ["chain_eqal"], "--case: 'chain_eqal' is not there; did you mean chain_equal?"),
        ([], ["chain_equal", "t1"], "--case: 't1' is not there; use one of short_tail_state, "),
        (["publik"], [], "--suite: 'publik' is not there; did you mean public?"),
        (["zzz"], [], "--suite: 'zzz' is not there; use one of public, smoke"),
        ([], ["a\x1b[31m\n"], "--case: 'a\\x1b[31m\\n' is not there; use one of "),
    ],
)
def test_unknown_choice(suite_names: list[str], case_names: list[str], expected: str) -> None:
    suites = load_suites([SHIPPED[0], SHIPPED[3]])
    with pytest.raises(CaseFileError) as caught:
        select_cases(suites, suite_names, case_names)
    assert str(caught.value).startswith(expected)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("files", [SHIPPED, [SHIPPED[2]]], ids=["all", "hidden alone"])
def test_a_complaint_proposes_no_hidden_case(files: list[Path]) -> None:
    suites = load_suites(files)
    (hidden,) = (suite for suite in suites if suite.name == "hidden")
    for case in hidden.cases:
        with pytest.raises(CaseFileError) as caught:
            select_cases(suites, [], [case.name + "x"])
        told = str(caught.value).partition(" is not there; ")[2]
        assert told
        assert not {case.name for case in hidden.cases} & set(re.findall(r"\w+", told))


def test_public_cases_are_the_labs() -> None:
    """The lab's table: B, T, Hq, Hv, initial state, gate."""
    suite = load_suite(CASES / "public.yaml")
    assert (suite.weight, suite.tilelang) == (0.6, "0.1.9")
    table = {case.name: (*shape(case), case.gate) for case in suite.cases}
    assert table == {
        "short_tail_state": (1, 1025, 2, 8, 1.0, "random_decay"),
        "chain_equal": (1, 8192, 4, 4, None, "random_decay"),
        "parallel_equal": (1, 2048, 16, 16, None, "random_decay"),
        "parallel_gva": (1, 2048, 4, 16, None, "mixed"),
        "long_low_gva": (1, 32768, 2, 8, None, "random_decay"),
        "batch_split_gva": (4, 8192, 2, 8, None, "random_decay"),
        "wide_gva_state": (1, 8192, 16, 64, 1.0, "random_decay"),
        "deep_gva_state": (1, 16384, 8, 32, 1.0, "random_decay"),
    }


def test_timed_cases_keep_the_labs_tolerance_and_are_drawn_as_the_lab_draws() -> None:
    for suite in load_suites(SHIPPED):
        for case in suite.cases:
            if case.timed:
                assert case.tolerance == 5e-3, case.name
                assert (case.beta, case.equal_keys, case.zero_values) == (None, False, False)


def test_hidden_cases_are_new_shapes_and_gates() -> None:
    public, _, hidden, _ = load_suites(SHIPPED)
    assert hidden.weight == 0.4
    assert len(hidden.cases) >= 6
    assert all(case.timed for case in hidden.cases)
    shapes = {shape(case)[:4] for case in public.cases}
    for case in hidden.cases:
        assert shape(case)[:4] not in shapes, case.name
    assert {case.gate for case in hidden.cases} >= {"mixed", "constant", "hard_forget"}


def test_correctness_suite_covers_the_edges() -> None:
    cases = load_suite(CASES / "correctness.yaml").cases
    assert not any(case.timed for case in cases)
    assert {case.tokens for case in cases} >= {1, 63, 64, 65, 127, 128, 129}
    assert {case.v_heads // case.qk_heads for case in cases} >= {1, 2, 3, 8}
    assert any(case.batch > 1 and case.initial_state for case in cases)
    assert {case.beta for case in cases} >= {0.0, 1.0}
    assert any(case.equal_keys for case in cases)
    assert any(case.zero_values for case in cases)
    assert any((case.initial_state or 0) >= 10 for case in cases)
    gates = {"random_decay", "mixed", "no_decay", "hard_forget", "constant"}
    assert {case.gate for case in cases} == gates


def test_every_timed_shape_comes_once_more_with_nothing_forgotten() -> None:
    public, correctness, hidden, _ = load_suites(SHIPPED)
    kept = {shape(case) for case in correctness.cases if case.gate == "no_decay"}
    for case in (*public.cases, *hidden.cases):
        assert shape(case) in kept, case.name
