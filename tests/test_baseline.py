"""Checkpoint files, and which baseline a run gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from make_record import make_case, make_environment

from judge.baseline import checkpoint_baseline, choose, no_baseline, reference_baseline
from judge.checkpoints import BaselineError, fitting_checkpoints, load_checkpoints
from judge.timing import summarize

CHECKPOINTS = Path(__file__).parent.parent / "cases" / "checkpoints"
SLICE = make_environment("NVIDIA H800 PCIe MIG 1g.10gb", 14)
H200 = make_environment()
CPU = make_environment("AMD EPYC", None)
CHAIN = make_case("chain_equal", (1, 8192, 4, 4))
SHORT = make_case("short_tail_state", (1, 1025, 2, 8), initial_state=1.0)

GOOD = """\
name: mine
device: NVIDIA h200*
sms: 132
protocol: as the lab
source: measured
cases:
  - {name: chain_equal, batch: 1, tokens: 8192, qk_heads: 4, v_heads: 4, t60_ms: 2.0, t100_ms: 1.9}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_lab_slice() -> None:
    file = load_checkpoints(CHECKPOINTS / "h800-mig-1g.10gb.yaml")
    assert (file.name, file.sms, len(file.cases)) == ("h800-mig-1g.10gb", 14, 8)
    deep = file.cases["deep_gva_state"]
    assert (deep.shape, deep.t60_ms, deep.t100_ms) == ((1, 16384, 8, 32), 22.717567, 2.831104)
    assert all(c.t60_ms >= 1.25 * c.t100_ms for c in file.cases.values())


def test_a_file_fits_by_name_and_sms() -> None:
    assert [f.name for f in fitting_checkpoints(CHECKPOINTS, SLICE)] == ["h800-mig-1g.10gb"]
    assert fitting_checkpoints(CHECKPOINTS, H200) == []
    assert fitting_checkpoints(CHECKPOINTS, CPU) == []
    assert fitting_checkpoints(CHECKPOINTS, make_environment(SLICE.device_name, 16)) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sms: 132", "sms: many", "3: sms: 'many' is not a whole number"),
        ("sms: 132", "sms: 0", "3: sms: '0' is not a whole number from 1"),
        ("sms: 132\n", "", "1: sms: missing"),
        ("source: measured", "source:", "5: source: must be text"),
        ("source: measured", "sauce: measured", "5: sauce: unknown key; did you mean source?"),
        ("sms: 132", "sms: 132\nsms: 14", "4: sms: stands already on line 3"),
        ("t60_ms: 2.0", "t60_ms: -2", "7: cases[0].t60_ms: '-2' is not a time in ms above 0"),
        ("t60_ms: 2.0", "t60_ms: .nan", "7: cases[0].t60_ms: '.nan' is not a time"),
        ("t60_ms: 2.0", "t60_ms: 1.9", "7: cases[0].t60_ms: 1.9 must be above t100_ms, which is"),
        ("tokens: 8192, ", "", "7: cases[0].tokens: missing"),
        ("tokens: 8192", "tokens: 8.5", "7: cases[0].tokens: '8.5' is not a whole number"),
        ("name: chain_equal", "name: a b", "7: cases[0].name: must be a case's name"),
        ("cases:\n", "cases: none\nmore:\n", "7: more: unknown key"),
        ("device: N", "device: [N", "3: is not valid YAML"),
    ],
)
def test_wrong_file_is_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(BaselineError) as caught:
        load_checkpoints(path)
    line = str(caught.value)
    assert line.startswith(f"{path}:{message}")
    assert "\n" not in line


def test_a_case_twice_and_no_case_at_all(tmp_path: Path) -> None:
    last = GOOD.splitlines()[-1]
    with pytest.raises(BaselineError, match="name: chain_equal stands already above"):
        load_checkpoints(write(tmp_path, f"{GOOD}{last}\n"))
    with pytest.raises(BaselineError, match="cases: must be a list of at least one case"):
        load_checkpoints(write(tmp_path, GOOD.replace(last, "").replace("cases:", "cases: []")))


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just text", "\x00"])
def test_a_file_of_another_form(tmp_path: Path, text: str) -> None:
    with pytest.raises(BaselineError, match=r"mine\.yaml:1: "):
        load_checkpoints(write(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="cannot be read: No such file"):
        load_checkpoints(tmp_path / "mine.yaml")


def test_t60_is_never_below_its_least_ratio(tmp_path: Path) -> None:
    baseline = checkpoint_baseline(load_checkpoints(write(tmp_path, GOOD)), [CHAIN])
    assert (baseline.source, baseline.name) == ("checkpoints", "mine")
    assert baseline.t100_ms == {"chain_equal": 1.9}
    assert baseline.t60_ms == {"chain_equal": pytest.approx(2.375)}  # 1.25 · 1.9, above 2.0


def test_a_case_that_the_file_lacks_or_has_at_another_shape(tmp_path: Path) -> None:
    file = load_checkpoints(write(tmp_path, GOOD))
    with pytest.raises(BaselineError, match="no times for the timed case short_tail_state"):
        checkpoint_baseline(file, [CHAIN, SHORT])
    small = make_case("chain_equal", (1, 64, 4, 4))
    with pytest.raises(BaselineError, match="are for B T Hq Hv 1 8192 4 4, the case has 1 64 4 4"):
        checkpoint_baseline(file, [small])


def test_reference_times_are_t60_on_a_gpu_and_t100_on_a_cpu() -> None:
    timings = {"a": summarize([8.0])}
    gpu = reference_baseline("cuda", timings)
    assert (gpu.t100_ms, gpu.t60_ms) == ({"a": 2.0}, {"a": 8.0})
    cpu = reference_baseline("cpu", timings)
    assert (cpu.t100_ms, cpu.t60_ms) == ({"a": 8.0}, {"a": 32.0})
    assert gpu.source == cpu.source == "reference"
    assert gpu.timings == timings
    assert "simple_tilelang" in gpu.name
    assert "PyTorch" in cpu.name


def test_auto_takes_checkpoints_where_they_hold_every_timed_case() -> None:
    untimed = make_case("anything", timed=False)
    choice = choose("auto", [CHAIN, SHORT, untimed], SLICE, CHECKPOINTS)
    assert choice.baseline is not None
    assert choice.baseline.source == "checkpoints"
    assert set(choice.baseline.t100_ms) == {"chain_equal", "short_tail_state"}


def test_auto_measures_the_reference_else_and_says_why() -> None:
    choice = choose("auto", [CHAIN], H200, CHECKPOINTS)
    assert choice.baseline is None
    assert choice.reason == (
        "baseline measured in this run: no checkpoint file fits NVIDIA H200 with 132 SMs"
    )
    choice = choose("auto", [CHAIN, make_case("secret")], SLICE, CHECKPOINTS)
    assert choice.baseline is None
    assert choice.reason.endswith("has no times for the timed case secret")


def test_nothing_is_measured_where_nothing_is_timed() -> None:
    for kind in ("auto", "checkpoints", "reference"):
        choice = choose(kind, [make_case("a", timed=False)], CPU, CHECKPOINTS)
        assert choice.baseline == no_baseline("no case of this run is timed")


def test_other_choices(tmp_path: Path) -> None:
    assert choose("reference", [CHAIN], SLICE, CHECKPOINTS).baseline is None
    path = write(tmp_path, GOOD)
    by_file = choose(str(path), [CHAIN], H200, CHECKPOINTS).baseline
    assert by_file is not None
    assert by_file.name == "mine"


def test_choices_that_cannot_be_met(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="no checkpoint file fits AMD EPYC; use --baseline ref"):
        choose("checkpoints", [CHAIN], CPU, CHECKPOINTS)
    with pytest.raises(BaselineError, match="--baseline live: no public implementation"):
        choose("live", [CHAIN], H200, CHECKPOINTS)
    with pytest.raises(BaselineError, match=r"this device is AMD EPYC$"):
        choose(str(write(tmp_path, GOOD)), [CHAIN], CPU, CHECKPOINTS)
    with pytest.raises(BaselineError, match="--baseline atuo: should be auto, checkpoints,"):
        choose("atuo", [CHAIN], CPU, CHECKPOINTS)


def test_none_runs_nothing_beside_the_submission() -> None:
    for environment in (SLICE, CPU):
        choice = choose("none", [CHAIN], environment, CHECKPOINTS)
        assert choice.baseline is not None
        assert (choice.baseline.source, choice.baseline.t100_ms) == ("none", {})
