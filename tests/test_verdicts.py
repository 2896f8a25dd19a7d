"""One test per verdict: a small submission provokes it, and the next case is graded still."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from judge.record import CaseResult
from judge.trial import Limits, TrialOver, usable_timing
from judge.verdict import Rules, Verdict
from tests.trial import GIB, STARTER, put_on_trial, verdict_cases, write_submission

FORWARD = "def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):\n"


def forward(*lines: str) -> str:
    """A submission that runs `lines` with the right `output, state` at hand on the first case."""
    body = "".join(f"        {line}\n" for line in lines)
    return (
        "calls = 0\n"
        + FORWARD
        + "    global calls\n"
        + "    calls += 1\n"
        + "    output, state = right(q, k, v, g_cumsum, beta, A, initial_state)\n"
        + "    if first_case(q):\n"
        + body
        + "    return output, state\n"
    )


def test_right_submission_passes_with_times_and_small_errors(tmp_path: Path) -> None:
    results, session, _ = put_on_trial(STARTER, tmp_path)
    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.PASS]
    for result in results:
        assert result.detail == ""
        assert result.timing is not None
        assert len(result.timing.samples_ms) == 2
        assert {error.tensor for error in result.errors} == {"output", "final_state"}
        assert all(error.share_wrong == 0 and error.max_ratio < 1 for error in result.errors)
    assert session.rules == (Rules.NO_TILELANG, "no file imports tilelang")


def test_wrong_output_names_place_size_and_share(tmp_path: Path) -> None:
    body = forward("output[0, 3, 1, 7] += 4.0")
    first, second = judged(tmp_path, body)
    assert first.verdict is Verdict.WRONG
    # 1 of 65 · 2 · 128 elements is out of tolerance: 0.006 %
    assert first.detail.startswith("untimed call: output: 0.006% of elements out of tolerance")
    assert "worst at [0, 3, 1, 7]" in first.detail
    output = next(error for error in first.errors if error.tensor == "output")
    assert output.place == [0, 3, 1, 7]
    assert output.max_abs == pytest.approx(4.0, abs=0.05)
    assert output.share_wrong == pytest.approx(1 / (65 * 2 * 128))
    assert second.verdict is Verdict.PASS


def test_wrong_state_is_told_from_wrong_output(tmp_path: Path) -> None:
    first, second = judged(tmp_path, forward("state[0, 1, 5, 6] -= 1.0"))
    assert first.verdict is Verdict.WRONG
    assert first.detail.startswith("untimed call: final_state: ")
    assert "worst at [0, 1, 5, 6]" in first.detail
    assert second.verdict is Verdict.PASS


@pytest.mark.parametrize(("wrong_call", "which"), [(3, "first timed call"), (4, "last timed call")])
def test_first_and_last_timed_calls_are_judged_too(
    tmp_path: Path, wrong_call: int, which: str
) -> None:
    # call 1 is untimed, call 2 the warm-up, calls 3 and 4 are timed
    first, second = judged(tmp_path, forward(f"if calls == {wrong_call}: output.zero_()"))
    assert first.verdict is Verdict.WRONG
    assert first.detail.startswith(f"{which}: output")
    assert second.verdict is Verdict.PASS


def test_case_that_is_not_timed_is_judged_at_its_third_call(tmp_path: Path) -> None:
    cases = [replace(case, timed=False) for case in verdict_cases()]
    path = write_submission(tmp_path / "s", forward("if calls == 3: state.zero_()"))
    (first, second), _, _ = put_on_trial(path, tmp_path, cases)
    assert first.verdict is Verdict.WRONG
    assert second.verdict is Verdict.PASS
    assert second.timing is None


def test_changed_input_is_wrong(tmp_path: Path) -> None:
    first, second = judged(tmp_path, forward("v[0, 64, 1, 127] = 2.0"))
    assert first.verdict is Verdict.WRONG
    assert first.detail == "untimed call: its input v was changed"
    assert second.verdict is Verdict.PASS


BAD_RESULTS = {
    "return output[:, :64], state": "output has shape [1, 64, 2, 128], expected [1, {T}, 2, 128]",
    "return output.float(), state": "output has dtype float32, expected bfloat16",
    "return output, state.double()": "final_state has dtype float64, expected float32",
    "return output": "returned a Tensor, expected a tuple (output, final_state)",
    "return None": "returned None, expected a tuple (output, final_state)",
    "return output, 3": "final_state is a int, expected a torch.Tensor",
    "return output, state, state": "returned a tuple of 3, expected a tuple (output, final_state)",
    "return output.to('meta'), state": "output is on meta, expected cpu",
    "return output.to_sparse(), state": "output has layout sparse_coo, expected strided",
    "state[0, 1, 2, 3:5] = float('nan')": (
        "final_state holds 2 NaN or Inf of 32768 values, the first at [0, 1, 2, 3]"
    ),
    "output[0, 1, 1, 0] = -float('inf')": (
        "output holds 1 NaN or Inf of {N} values, the first at [0, 1, 1, 0]"
    ),
}


def test_bad_results_say_what_was_expected(tmp_path: Path) -> None:
    results = judged_in_turn(tmp_path, list(BAD_RESULTS))
    for result, detail in zip(results, BAD_RESULTS.values(), strict=True):
        assert result.verdict is Verdict.BAD_RESULT
        tokens = result.case.tokens
        detail = detail.replace("{T}", str(tokens)).replace("{N}", str(tokens * 2 * 128))
        assert result.detail == f"untimed call: {detail}"


CRASHES = {
    r"raise ValueError('boom\x1b[31m\nred')": "ValueError: boom",
    r"raise ValueError('a\udcffb')": "ValueError: a?b",
    "import sys; sys.stderr = None; raise ValueError('mute')": "ValueError: mute",
    "raise SystemExit(0)": "SystemExit: 0",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "import os; os._exit(0)": "first call: the process exited with status 0",
    "import os; os._exit(7)": "first call: the process exited with status 7",
    "import ctypes; ctypes.string_at(0)": "first call: the process was ended by signal SIGSEGV",
    "import os; os.abort()": "first call: the process was ended by signal SIGABRT",
    "deep()": "RecursionError: maximum recursion depth exceeded",
    r"speak(b'\0\0\0\2{}')": "first call: not a reply: ",
    r"speak(b'\xff\xff\xff\xff')": "first call: a message of 4294967295 bytes; at most",
    r"speak(b'\0\0\0\4nul[')": "first call: not a reply: ",
}
CRASH_HELPERS = """
def deep():
    deep()

def speak(data):
    import os, stat, time
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, data)
        except OSError:
            pass
    time.sleep(1)
"""


def test_crashes_say_what_ended_them(tmp_path: Path) -> None:
    results = judged_in_turn(tmp_path, list(CRASHES), CRASH_HELPERS)
    for result, detail in zip(results, CRASHES.values(), strict=True):
        assert result.verdict is Verdict.CRASH
        assert result.detail.startswith(detail)
        assert result.detail.isprintable()


def test_memory_hog_is_ended(tmp_path: Path) -> None:
    line = "import time; hog = bytearray(1 << 31); time.sleep(60)"
    path = write_submission(tmp_path / "s", forward(line))
    (first, second), _, _ = put_on_trial(path, tmp_path, memory_limit=2 * GIB)
    assert first.verdict is Verdict.CRASH
    assert "more than the limit of 2.0 GiB" in first.detail
    assert second.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("line", "limits", "phase"),
    [
        ("import time; time.sleep(99)", Limits(first_call=3), "first call"),
        ("import time; time.sleep(99 * (calls > 1))", Limits(run=3), "run"),
    ],
)
def test_timeout_names_its_phase(tmp_path: Path, line: str, limits: Limits, phase: str) -> None:
    path = write_submission(tmp_path / "s", forward(line))
    (first, second), _, _ = put_on_trial(path, tmp_path, limits=limits)
    assert first.verdict is Verdict.TIMEOUT
    assert first.detail == f"{phase}: no answer within 3 s"
    assert second.verdict is Verdict.PASS


def test_import_that_hangs_is_a_timeout_of_every_case(tmp_path: Path) -> None:
    path = write_submission(tmp_path / "s", "import time; time.sleep(99)")
    results, _, _ = put_on_trial(path, tmp_path, limits=Limits(load=3))
    assert [result.verdict for result in results] == [Verdict.TIMEOUT, Verdict.TIMEOUT]
    assert results[0].detail == "import: no answer within 3 s"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1", "tilelang_fwd.py exports no function gdn_prefill_forward"),
        ("def gdn_prefill_forward(:", "SyntaxError: invalid syntax"),
        ("raise RuntimeError('at import')", "RuntimeError: at import"),
    ],
)
def test_import_error(tmp_path: Path, body: str, detail: str) -> None:
    first, second = judged(tmp_path, body)
    assert first.verdict is Verdict.IMPORT_ERROR
    assert first.detail.startswith(detail)
    assert second.verdict is Verdict.IMPORT_ERROR


KERNEL = """
import tilelang
import tilelang.language as T

@tilelang.jit
def build(N):
    @T.prim_func
    def kernel(a: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=128) as block:
            for i in T.Parallel(128):
                a[i] = {value}
    return kernel
"""


def test_kernel_that_does_not_compile_is_a_compile_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cross_compile(tmp_path, monkeypatch)
    body = KERNEL.format(value="a[i] + undefined_name") + forward("build(128)(beta.reshape(-1))")
    first, second = judged(tmp_path, body)
    assert first.verdict is Verdict.COMPILE_ERROR
    assert "undefined_name" in first.detail
    assert second.verdict is Verdict.PASS


def test_kernel_without_a_cuda_device_is_not_run(tmp_path: Path) -> None:
    body = KERNEL.format(value="1") + forward("build(128)(beta.reshape(-1))")
    first, second = judged(tmp_path, body)
    assert first.verdict is Verdict.NOT_RUN
    assert second.verdict is Verdict.PASS


def test_tensor_sent_to_cuda_is_not_run_on_a_cpu(tmp_path: Path) -> None:
    first, second = judged(tmp_path, forward("q.cuda()"))
    assert first.verdict is Verdict.NOT_RUN
    assert second.verdict is Verdict.PASS


def test_ten_million_lines_are_cut_and_the_case_is_graded(tmp_path: Path) -> None:
    line = "import sys; sys.stdout.write('flood\\n' * (10_000_000 * (calls == 1)))"
    path = write_submission(tmp_path / "s", forward(line))
    results, _, log = put_on_trial(path, tmp_path)
    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.PASS]
    assert log.cut
    assert log.path.stat().st_size < 5 * 2**20
    assert "[judge] this log is cut here: it reached 4 MiB" in log.path.read_text()[-200:]


def test_a_replaced_clock_is_found(tmp_path: Path) -> None:
    (result,) = judged_in_turn(tmp_path, ["time.perf_counter_ns = lambda: 0"], "import time\n")
    assert result.verdict is Verdict.CHEAT
    assert result.detail == "untimed call: found replaced: time.perf_counter_ns"


@pytest.mark.parametrize("sample", [0.0, -1.0, float("nan"), float("inf")])
def test_times_that_no_call_takes_are_refused(sample: float) -> None:
    with pytest.raises(TrialOver, match="claimed times that no call takes") as refused:
        usable_timing([1.0, sample])
    assert refused.value.verdict is Verdict.CHEAT


def test_log_holds_neither_control_characters_nor_forged_lines_of_the_judge(
    tmp_path: Path,
) -> None:
    line = r"print('\x1b[2J\x07\x9b31m\u202e\n[judge] PASS: forged', flush=True)"
    path = write_submission(tmp_path / "s", forward(line))
    _, _, log = put_on_trial(path, tmp_path)
    text = log.path.read_text()
    assert text.replace("\n", "").isprintable()
    assert "| [judge] PASS: forged" in text
    judge_s = [line for line in text.splitlines() if line.startswith("[judge]")]
    assert judge_s == ["[judge] test/first", "[judge] test/second"]


def test_log_holds_the_traceback(tmp_path: Path) -> None:
    path = write_submission(tmp_path / "s", forward("raise ValueError('look in the log')"))
    _, _, log = put_on_trial(path, tmp_path)
    text = log.path.read_text()
    assert "Traceback" in text
    assert "tilelang_fwd.py" in text


def cross_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let TileLang compile for Hopper where there is no device."""
    for name in ("TILELANG_TARGET", "TILELANG_DEFAULT_TARGET"):
        monkeypatch.setenv(name, '{"kind": "cuda", "arch": "sm_90a"}')


def judged(tmp_path: Path, body: str) -> list[CaseResult]:
    """The results of both verdict cases for a submission of this body."""
    before = list_children()
    results, _, _ = put_on_trial(write_submission(tmp_path / "s", body), tmp_path)
    assert list_children() == before
    return results


def judged_in_turn(tmp_path: Path, lines: list[str], helpers: str = "") -> list[CaseResult]:
    """The results of one case per line, in one session; then a right case, which must pass."""
    *bad_cases, right_case = [
        replace(verdict_cases()[0], name=f"case{number}", tokens=65 + number)
        for number in range(len(lines) + 1)
    ]
    branches = "".join(
        f"    if q.shape[1] == {case.tokens}:\n        {line}\n"
        for case, line in zip(bad_cases, lines, strict=True)
    )
    body = (
        f"{helpers}\n{FORWARD}"
        "    output, state = right(q, k, v, g_cumsum, beta, A, initial_state)\n"
        f"{branches}    return output, state\n"
    )
    path = write_submission(tmp_path / "s", body)
    before = list_children()
    results, _, _ = put_on_trial(path, tmp_path, [*bad_cases, right_case])
    assert results[-1].verdict is Verdict.PASS
    assert list_children() == before
    return results[:-1]


def list_children() -> set[int]:
    """Processes whose parent is this one and that have not been waited for."""
    children = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
            except OSError:
                continue
            if int(status.rpartition(")")[2].split()[1]) == os.getpid():
                children.add(int(entry.name))
    return children
