"""Budgets of SMs: refused where they cannot be had, and kept where they can."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner
from make_record import public_record
from rich.console import Console

from judge import sm_budget
from judge.checkpoints import load_checkpoints
from judge.cli import main
from judge.record import RivalResult, from_json
from judge.slices import choose_slice, predict
from judge.sm_budget import PROBE, BudgetError, BudgetProperties, SmBudget, check_budget
from judge.timing import summarize
from judge.verdict import Verdict
from judge.views.benchmarks import print_prediction
from judge.views.summary import summary_lines
from scripts.measure_waves import Spinner
from tests.trial import ROOT, VERDICT_CASES

H200 = SimpleNamespace(name="NVIDIA H200", multi_processor_count=132, L2_cache_size=60 << 20)


def test_no_budget_on_a_cpu() -> None:
    result = CliRunner().invoke(main, ["--device", "cpu", "--sms", "16"])
    assert result.exit_code == 2
    assert result.stderr.strip() == "Error: --sms 16: needs a CUDA device; leave it out on a CPU"


def test_no_budget_under_a_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSYS_SESSION", "1")
    result = CliRunner().invoke(main, ["--device", "cpu", "--sms", "16"])
    assert result.exit_code == 2
    assert "--sms 16: not under ncu or nsys" in result.stderr


@pytest.mark.parametrize("arguments", [("--sms", "0"), ("--sms", "many")])
def test_what_is_no_number_of_sms(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(main, ["--device", "cpu", *arguments]).exit_code == 2


def test_no_budget_above_the_device_or_without_green_contexts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(text: str) -> Callable[..., object]:
        def raises(*_: object) -> object:
            raise RuntimeError(text)

        return raises

    device = torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: H200)
    with pytest.raises(BudgetError, match=r"^--sms 133: this device has 132 SMs$"):
        check_budget(device, 133)
    monkeypatch.setattr(sm_budget, "SmBudget", fails("not built with it\nmore"))
    with pytest.raises(BudgetError, match=r"^--sms 16: not to be had here: not built with it$"):
        check_budget(device, 16)


class RoundOfStreams:
    """A green context that hands out its 32 streams in turn, as PyTorch 2.11's does."""

    def __init__(self) -> None:
        self.streams = [FakeStream() for _ in range(32)]
        self.handed_out = 0

    @staticmethod
    def create(num_sms: int, device_id: int) -> RoundOfStreams:
        return RoundOfStreams()

    def next_stream(self) -> FakeStream:
        self.handed_out += 1
        return self.streams[(self.handed_out - 1) % 32]

    Stream = next_stream


class FakeStream:
    def __init__(self) -> None:
        self.waited = 0

    def synchronize(self) -> None:
        self.waited += 1


class FakeParking:
    def __init__(self, stream: FakeStream, blocks: int) -> None:
        self.stream, self.blocks, self.parked = stream, blocks, False

    def enter(self) -> None:
        self.parked = True

    def leave(self) -> None:
        self.parked = False


@pytest.fixture
def parked_budget(monkeypatch: pytest.MonkeyPatch) -> tuple[SmBudget, FakeParking]:
    """A budget of 14 SMs where the hardware hands out 16, and what sits on the other two."""
    made: list[FakeParking] = []

    def park(stream: FakeStream, blocks: int) -> FakeParking:
        made.append(FakeParking(stream, blocks))
        return made[0]

    monkeypatch.setattr(torch.cuda.green_contexts, "GreenContext", RoundOfStreams)
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: None)
    monkeypatch.setattr(sm_budget, "_Parking", park)
    monkeypatch.setattr(sm_budget, "seen_sms", lambda _: 14 if made and made[0].parked else 16)
    return SmBudget(torch.device("cuda", 0), 14), made[0]


def test_streams_handed_out_are_never_the_parked_one(
    parked_budget: tuple[SmBudget, FakeParking],
) -> None:
    budget, parking = parked_budget
    assert parking.blocks == 2
    handed_out = [budget.new_stream() for _ in range(100)]
    assert len({id(one) for one in handed_out}) == 16
    assert not any(one in (budget.stream, parking.stream) for one in handed_out)


def test_nothing_waits_for_the_parked_blocks(parked_budget: tuple[SmBudget, FakeParking]) -> None:
    budget, parking = parked_budget
    other, whole = budget.new_stream(), []
    with budget.held():
        assert parking.parked
        budget.synchronize(whole.append)
        budget.empty_cache(lambda: whole.append("emptied"))
    assert (whole, budget.stream.waited, other.waited, parking.stream.waited) == ([], 1, 1, 0)
    assert not parking.parked
    budget.synchronize(whole.append, 0)
    budget.empty_cache(lambda: whole.append("emptied"))
    assert whole == [0, "emptied"]
    assert other.waited == 1


def test_a_budget_that_is_not_exact_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda.green_contexts, "GreenContext", RoundOfStreams)
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: None)
    monkeypatch.setattr(sm_budget, "_Parking", FakeParking)
    monkeypatch.setattr(sm_budget, "seen_sms", lambda _: 16)  # parking takes nothing away
    with pytest.raises(RuntimeError, match="a budget of 14 SMs, and a probe ran on 16"):
        SmBudget(torch.device("cuda", 0), 14)


def test_properties_differ_in_the_number_of_sms_alone() -> None:
    seen = BudgetProperties(H200, 16)
    assert (seen.multi_processor_count, seen.name, seen.L2_cache_size) == (
        16,
        "NVIDIA H200",
        60 << 20,
    )
    with pytest.raises(AttributeError):
        _ = seen.no_such_property


def test_a_report_says_what_a_budget_leaves_whole() -> None:
    record = public_record()
    record.environment.sms, record.environment.sms_of = 16, 132
    device = next(value.plain for name, value in summary_lines(record) if name == "Device")
    assert "16 of 132 SMs, memory bandwidth and L2 are the whole device's" in device


def test_a_slice_is_predicted_by_its_clock_and_its_own_checkpoints() -> None:
    chosen = choose_slice("h800-mig-1g.10gb", "NVIDIA H200")
    assert (chosen.sms, chosen.clock_factor) == (14, pytest.approx(1.128, abs=5e-4))
    record = public_record()
    deep = next(result for result in record.results if result.case.name == "deep_gva_state")
    deep.timing = summarize([2.831104 / chosen.clock_factor])  # the lab's t100
    file = load_checkpoints(ROOT / "cases" / "checkpoints" / chosen.checkpoints)
    rival = RivalResult(
        *("deep_gva_state", "fla", "full_forward", "0.6.0", Verdict.PASS, "", "t100"),
        *(summarize([4.0]), True),
    )
    prediction = predict(chosen, file, [deep], [rival])
    assert [(one.implementation, one.score) for one in prediction.times] == [
        ("student", pytest.approx(100.0)),
        ("fla", None),
    ]
    assert prediction.times[1].milliseconds == pytest.approx(4 * 1.128, abs=2e-3)
    console = Console(file=io.StringIO(), width=100)
    print_prediction(prediction, console)
    assert "Predicted for h800-mig-1g.10gb, not measured" in console.file.getvalue()
    with pytest.raises(BudgetError, match="known for NVIDIA H200, not for NVIDIA A100"):
        choose_slice("h800-mig-1g.10gb", "NVIDIA A100")


SUBMISSION = """
import torch
from right import gdn_prefill_forward as right

def gdn_prefill_forward(*arguments):
    assert torch.cuda.get_device_properties(0).multi_processor_count == {granted}
    with torch.cuda.stream(torch.cuda.Stream()):
        launches = torch.zeros(1024, dtype=torch.int32, device="cuda")
        torch.cuda.synchronize()
        probe = torch.cuda._compile_kernel(SOURCE, "sm_probe")
        probe((8192, 1, 1), (128, 1, 1), [launches])
    torch.cuda.synchronize()
    assert int((launches > 0).sum()) == {granted}
    return right(*arguments)
"""


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("asked", [8, 16])
def test_a_submission_and_its_own_streams_stay_inside(tmp_path: Path, asked: int) -> None:
    starter = (ROOT / "submissions" / "starter" / "tilelang_fwd.py").read_text()
    (tmp_path / "right.py").write_text(starter)
    source = f"SOURCE = {PROBE!r}\n" + SUBMISSION.format(granted=asked)
    (tmp_path / "tilelang_fwd.py").write_text(source)
    arguments = ["--submission", tmp_path, "--cases", VERDICT_CASES, "--sms", asked]
    options = ["--baseline", "none", "--output-format", "json", "--repetitions", "3"]
    result = CliRunner().invoke(main, [*map(str, arguments), *options])
    assert result.exit_code == 0, result.output
    record = from_json(result.stdout)
    assert record.environment.sms == asked
    assert record.environment.sms_of > asked


WAITING = """
import torch
from right import gdn_prefill_forward as right

stream = torch.cuda.Stream()
seen = torch.zeros(1024, dtype=torch.int32).pin_memory()
probe = torch.cuda._compile_kernel(SOURCE, "sm_probe")

def gdn_prefill_forward(*arguments):
    seen.zero_()
    probe((8192, 1, 1), (128, 1, 1), [seen], stream=stream)
    torch.cuda.synchronize()
    print("seen", int(seen.count_nonzero()))
    return right(*arguments)
"""


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_timed_call_may_wait_for_the_device_while_sms_are_held(tmp_path: Path) -> None:
    """On 14 SMs, two of a green context's sixteen are held, while a call is timed and not else."""
    starter = (ROOT / "submissions" / "starter" / "tilelang_fwd.py").read_text()
    (tmp_path / "right.py").write_text(starter)
    (tmp_path / "tilelang_fwd.py").write_text(f"SOURCE = {PROBE!r}\n" + WAITING)
    arguments = ["--submission", tmp_path, "--cases", VERDICT_CASES, "--sms", 14]
    options = ["--baseline", "none", "--output-format", "json", "--repetitions", "3"]
    result = CliRunner().invoke(main, [*map(str, arguments), *options])
    assert result.exit_code == 0, result.output
    log = Path(from_json(result.stdout).submission.log).read_text()
    assert set(re.findall(r"seen \d+", log)) == {"seen 14", "seen 16"}


CAPTURING = """
import torch
from right import gdn_prefill_forward as right

def gdn_prefill_forward(*arguments):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = right(*arguments)
    graph.replay()
    return tuple(tensor.clone() for tensor in result)
"""


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_graph_may_be_captured_while_sms_are_held(tmp_path: Path) -> None:
    starter = (ROOT / "submissions" / "starter" / "tilelang_fwd.py").read_text()
    (tmp_path / "right.py").write_text(starter)
    (tmp_path / "tilelang_fwd.py").write_text(CAPTURING)
    arguments = ["--submission", tmp_path, "--cases", VERDICT_CASES, "--sms", 14]
    options = ["--baseline", "none", "--output-format", "json", "--repetitions", "3"]
    result = CliRunner().invoke(main, [*map(str, arguments), *options])
    assert result.exit_code == 0, result.output


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(("blocks", "waves"), [(14, 1), (15, 2), (16, 2), (28, 2), (29, 3)])
def test_waves_of_large_blocks_on_fourteen_sms(blocks: int, waves: int) -> None:
    """Each block takes an SM for itself and spins: a whole number of times one wave."""
    device = torch.device("cuda", 0)
    spinner = Spinner(SmBudget(device, 14), device)
    assert round(spinner.milliseconds(blocks) / spinner.milliseconds(1)) == waves
