"""Checkpoint files, and which baseline a run gets."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import yaml
from make_record import make_case, make_environment

from judge.baseline import (
    Measure,
    checkpoint_baseline,
    choose,
    live_baseline,
    no_baseline,
    reference_baseline,
)
from judge.calibration import Calibration, default_name, write_checkpoints
from judge.checkpoints import BaselineError, fitting_checkpoints, load_checkpoints
from judge.implementations import FULL
from judge.record import Environment, RivalResult
from judge.repetitions import Repetitions
from judge.rivals import noisy
from judge.timing import summarize
from judge.verdict import Verdict

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
    choice = choose("auto", [CHAIN, SHORT, untimed], SLICE, [CHECKPOINTS], {})
    assert choice.baseline is not None
    assert choice.baseline.source == "checkpoints"
    assert set(choice.baseline.t100_ms) == {"chain_equal", "short_tail_state"}


def test_auto_measures_the_reference_else_and_says_why() -> None:
    choice = choose("auto", [CHAIN], H200, [CHECKPOINTS], {})
    assert choice.baseline is None
    assert choice.reason == (
        "baseline measured in this run: no checkpoint file fits NVIDIA H200 with 132 SMs"
    )
    choice = choose("auto", [CHAIN, make_case("secret")], SLICE, [CHECKPOINTS], {})
    assert choice.baseline is None
    assert choice.reason.endswith("has no times for the timed case secret")


def test_nothing_is_measured_where_nothing_is_timed() -> None:
    for kind in ("auto", "checkpoints", "reference"):
        choice = choose(kind, [make_case("a", timed=False)], CPU, [CHECKPOINTS], {})
        assert choice.baseline == no_baseline("no case of this run is timed")


def test_other_choices(tmp_path: Path) -> None:
    assert choose("reference", [CHAIN], SLICE, [CHECKPOINTS], {}).baseline is None
    path = write(tmp_path, GOOD)
    by_file = choose(str(path), [CHAIN], H200, [CHECKPOINTS], {}).baseline
    assert by_file is not None
    assert by_file.name == "mine"


def test_choices_that_cannot_be_met(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="no checkpoint file fits AMD EPYC; use --baseline ref"):
        choose("checkpoints", [CHAIN], CPU, [CHECKPOINTS], {})
    with pytest.raises(BaselineError, match=r"this device is AMD EPYC$"):
        choose(str(write(tmp_path, GOOD)), [CHAIN], CPU, [CHECKPOINTS], {})
    with pytest.raises(BaselineError, match="--baseline atuo: should be auto, checkpoints,"):
        choose("atuo", [CHAIN], CPU, [CHECKPOINTS], {})


PRESENT = {"flash_qla": "0.1.3", "fla": "0.6.0"}


@pytest.mark.parametrize(
    ("environment", "present", "source", "measure"),
    [
        (SLICE, PRESENT, "checkpoints", Measure.NOTHING),
        (H200, PRESENT, None, Measure.LIVE),
        (H200, {}, None, Measure.REFERENCE),
        (CPU, PRESENT, None, Measure.REFERENCE),
    ],
)
def test_auto_takes_checkpoints_that_fit_else_live_else_the_reference(
    environment: Environment, present: dict[str, str], source: str | None, measure: Measure
) -> None:
    choice = choose("auto", [CHAIN], environment, [CHECKPOINTS], present)
    assert (choice.baseline.source if choice.baseline else None) == source
    assert choice.measure is measure


def test_folders_are_tried_in_their_order(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, name in ((first, "one"), (second, "two")):
        folder.mkdir()
        write(folder, GOOD.replace("name: mine", f"name: {name}"))
    choice = choose("auto", [CHAIN], H200, [CHECKPOINTS, first, second], PRESENT)
    assert choice.baseline.name == "one"
    # a file without all cases gives way to the next folder's
    write(first, GOOD.replace("name: chain_equal", "name: another"))
    choice = choose("auto", [CHAIN], H200, [first, second], PRESENT)
    assert choice.baseline.name == "two"


def test_live_needs_a_gpu_and_an_implementation() -> None:
    assert choose("live", [CHAIN], H200, [CHECKPOINTS], PRESENT).measure is Measure.LIVE
    # asked for, it is taken even where checkpoints would fit
    assert choose("live", [CHAIN], SLICE, [CHECKPOINTS], PRESENT).measure is Measure.LIVE
    with pytest.raises(BaselineError, match=r"live: none of flash-qla, fla-core, .* is installed"):
        choose("live", [CHAIN], H200, [CHECKPOINTS], {})
    with pytest.raises(BaselineError, match="live: public implementations need a CUDA device"):
        choose("live", [CHAIN], CPU, [CHECKPOINTS], PRESENT)


VERSIONS = """versions: {torch: 2.10.0, tilelang: 0.1.15, flash_qla: 0.1.3, flashinfer: 0.6.13}
"""


def test_changed_versions_are_told_and_the_times_still_used(tmp_path: Path) -> None:
    path = str(write(tmp_path, GOOD + VERSIONS))
    choice = choose(path, [CHAIN], H200, [], {"flash_qla": "0.1.4"})
    assert choice.baseline is not None
    # make_environment: torch 2.11.0, TileLang 0.1.15; FlashInfer is not installed
    assert choice.reason == (
        "checkpoints mine were taken with torch 2.10.0, here 2.11.0; flash_qla 0.1.3, here 0.1.4: "
        "calibrate again"
    )
    same = GOOD + VERSIONS.replace("2.10.0", "2.11.0")
    assert choose(str(write(tmp_path, same)), [CHAIN], H200, [], PRESENT).reason == ""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("versions: {tourch: 2.0}\n", "versions.tourch: unknown key"),
        ("versions: 2.0\n", "versions: must be a mapping"),
        ("samples_sha256: abc\n", "samples_sha256: must be 64 hexadecimal digits"),
    ],
)
def test_what_calibration_adds_is_read_as_strictly(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(BaselineError, match=message):
        load_checkpoints(write(tmp_path, GOOD + more))


def rival(name: str, role: str, median_ms: float | None) -> RivalResult:
    timing = None if median_ms is None else summarize([median_ms * f for f in (0.9, 1.0, 1.2)])
    verdict = Verdict.WRONG if median_ms is None else Verdict.PASS
    return RivalResult("chain_equal", name, FULL, "1.0", verdict, "", role, timing, True)


def test_live_times_become_a_baseline_where_both_are_there() -> None:
    baseline = live_baseline([rival("fla", "t100", 2.0), rival("simple", "t60", 9.0)])
    assert (baseline.source, baseline.t100_ms, baseline.t60_ms) == (
        "live",
        {"chain_equal": 2.0},
        {"chain_equal": 9.0},
    )
    close = live_baseline([rival("fla", "t100", 2.0), rival("simple", "t60", 1.0)])
    assert close.t60_ms == {"chain_equal": 2.5}
    for failed in ("fla", "simple"):
        results = [rival("fla", "t100", 2.0), rival("simple", "t60", 9.0)]
        results = [
            rival(r.implementation, r.role, None) if r.implementation == failed else r
            for r in results
        ]
        assert live_baseline(results).t100_ms == {}


def test_what_scores_rest_on_is_called_noisy_where_its_calls_differ() -> None:
    """p90 − p10 may be 5 % of the median and 0.02 ms: 0.12 ms of a call of 2 ms, 0.025 of 0.1."""
    of_0_1, of_2 = rival("fla", "t100", 0.1), rival("simple", "t60", 2.0)
    assert noisy([of_0_1]) == []
    (line,) = noisy([of_0_1, of_2, rival("flash_qla", "", 2.0), rival("flashinfer", "t100", None)])
    assert line.startswith("chain_equal: simple (t60) is noisy: p90 − p10 is")


def calibration(*results: RivalResult) -> Calibration:
    date = "2026-01-02T03:04:05+00:00"
    return Calibration(H200, PRESENT, Repetitions(10, 3), date, [CHAIN, SHORT], results)


def test_a_calibrated_file_serves_later_runs_on_the_same_device(tmp_path: Path) -> None:
    path = tmp_path / "nvidia-h200-132-sms.yaml"
    assert f"{default_name(H200)}.yaml" == path.name
    timed = [rival("flash_qla", "t100", 2.0), rival("fla", "", 3.0), rival("simple", "t60", 9.0)]
    write_checkpoints(calibration(*timed), path)
    choice = choose("auto", [CHAIN], H200, [tmp_path], PRESENT)
    assert choice.reason == ""
    assert choice.baseline.t100_ms == {"chain_equal": 2.0}
    assert choice.baseline.t60_ms == {"chain_equal": 9.0}
    written = yaml.safe_load(path.read_text())
    assert written["versions"]["flash_qla"] == "0.1.3"
    assert written["cases"][0]["t100_by"] == "flash_qla"
    # p10 = 0.92, p90 = 1.16 of the median, between 0.9, 1.0 and 1.2
    assert written["cases"][0]["t100_spread"] == pytest.approx(0.24)
    samples = (tmp_path / written["samples"]).read_bytes()
    assert written["samples_sha256"] == hashlib.sha256(samples).hexdigest()
    kept = json.loads(samples)
    assert [one["implementation"] for one in kept] == ["flash_qla", "fla", "simple"]
    assert kept[1]["timing"]["samples_ms"] == pytest.approx([2.7, 3.0, 3.6])


def test_a_calibrated_file_is_refused_on_another_device(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    write_checkpoints(calibration(rival("fla", "t100", 2.0), rival("simple", "t60", 9.0)), path)
    for other in (make_environment("NVIDIA H100"), make_environment(H200.device_name, 16)):
        with pytest.raises(BaselineError, match="is for NVIDIA H200 with 132 SMs, this device is"):
            choose(str(path), [CHAIN], other, [], PRESENT)
        assert choose("auto", [CHAIN], other, [tmp_path], {}).measure is Measure.REFERENCE
    with pytest.raises(BaselineError, match="no times for the timed case short_tail_state"):
        choose(str(path), [CHAIN, SHORT], H200, [], PRESENT)


def test_nothing_is_written_where_no_case_has_both_times(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no public implementation was right"):
        write_checkpoints(calibration(rival("simple", "t60", 9.0)), tmp_path / "mine.yaml")
    assert list(tmp_path.iterdir()) == []


def test_none_runs_nothing_beside_the_submission() -> None:
    for environment in (SLICE, CPU):
        choice = choose("none", [CHAIN], environment, [CHECKPOINTS], {})
        assert choice.baseline is not None
        assert (choice.baseline.source, choice.baseline.t100_ms) == ("none", {})
