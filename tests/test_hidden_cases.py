"""What hidden cases leave behind: nothing that a later child could tell of in a public one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge import caches
from judge.bench import Plan
from judge.case import HIDDEN_SUITE
from judge.check import CheckPlan, check
from judge.check_session import CheckLimits
from judge.cli import main
from judge.commands import engine_options
from judge.engines.local import LaneDevice
from judge.profiles import PROFILES
from judge.record import Record
from judge.sandbox.kinds import choose_sandbox
from judge.site.log_excerpt import log_excerpt
from judge.store.store import Store
from judge.submission import ENTRY, submission_from
from judge.suites import load_suites, select_cases
from tests.checking import HEAD, forward, kernel
from tests.trial import cpu_plan, write_submission

PLAIN, FAILING, HIDDEN = 64, 65, 77  # tokens of the three cases
TELLTALE = f"""
    import os
    from pathlib import Path

    NOTE = Path(os.environ["TILELANG_CACHE_DIR"]) / "note.so"

    def gdn_prefill_forward(*inputs):
        NOTE.parent.mkdir(exist_ok=True)
        with NOTE.open("a") as note:
            note.write(f"<{{inputs[0].shape[1]}}>")
        print("told", NOTE.read_text())
        if inputs[0].shape[1] == {FAILING}:
            raise RuntimeError(NOTE.read_text())
        return right(*inputs)
"""
HEADING = "[judge] hidden/"
TELLTALE_WITH_A_KERNEL = """
import os
from pathlib import Path

NOTE = Path(os.environ["TILELANG_CACHE_DIR"]) / "note.so"
launch = gdn_prefill_forward


def gdn_prefill_forward(*inputs):
    NOTE.parent.mkdir(exist_ok=True)
    with NOTE.open("a") as note:
        note.write(f"<{inputs[0].shape[1]}>")
    print("told", NOTE.read_text())
    return launch(*inputs)
"""


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(caches.CACHE_VARIABLE, str(tmp_path / "cache"))
    caches.check_cache_root()


def suite_file(folder: Path, suite: str, *tokens: int) -> Path:
    lines = [f"suite: {suite}", "tolerance: 5e-3", "cases:"]
    shape = "batch: 1, qk_heads: 1, v_heads: 1, timed: false"
    lines += [f"  - {{name: t{count}, tokens: {count}, {shape}}}" for count in tokens]
    path = folder / f"{suite}.yaml"
    path.write_text("\n".join(lines))
    return path


def case_files(folder: Path) -> list[Path]:
    """A hidden suite before a public one, as files sorted by name have it."""
    hidden = suite_file(folder, HIDDEN_SUITE, HIDDEN)
    return [hidden, suite_file(folder, "public", PLAIN, FAILING)]


def kept(digest: str) -> str:
    """What the judge keeps of the note."""
    return (caches.submission_cache(digest) / "tilelang" / "note.so").read_text()


def graded(tmp_path: Path, hidden: Path, public: Path) -> Record:
    store = tmp_path / "store.sqlite"
    words = ["--cases", str(public), "--hidden", str(hidden), "--store", str(store), "--fresh"]
    uploads = str(tmp_path / "uploads")
    done = CliRunner().invoke(main, ["grade", uploads, "--device", "cpu", *words])
    assert done.exit_code == 0, done.output
    with Store(store) as opened:
        return list(opened.results())[-1].record


def test_a_second_run_tells_nothing_of_the_hidden_case_that_the_first_one_saw(
    tmp_path: Path,
) -> None:
    write_submission(tmp_path / "uploads" / "someone", TELLTALE)
    hidden, public = case_files(tmp_path)
    first = graded(tmp_path, hidden, public)
    assert f"<{HIDDEN}>" in Path(first.submission.log).read_text()  # else there is nothing to tell
    second = graded(tmp_path, hidden, public)
    assert second.submission.log != first.submission.log
    before, heading, _ = Path(second.submission.log).read_text().partition(HEADING)
    assert heading
    secret = f"<{HIDDEN}>"
    assert secret not in before
    assert secret not in str(log_excerpt(second))
    details = {result.case.tokens: result.detail for result in second.results}
    assert secret not in details[FAILING]
    assert secret not in kept(second.submission.digest)
    # what public cases left is kept from run to run
    calls = 3
    assert f"<{PLAIN}>" * calls + f"<{FAILING}><{PLAIN}>" in details[FAILING]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc, which TileLang compiles with")
def test_a_check_keeps_what_public_cases_compile_and_nothing_of_hidden_ones(
    tmp_path: Path,
) -> None:
    source = HEAD + kernel() + forward() + TELLTALE_WITH_A_KERNEL
    submission = submission_from("someone", "someone", ENTRY, {ENTRY: source.encode()})
    suites = load_suites(case_files(tmp_path))
    cases = [(suite.name, case) for suite in suites for case in suite.cases]
    assert cases[0][0] == HIDDEN_SUITE
    plan = CheckPlan(submission, cases, PROFILES["h200"], CheckLimits(), choose_sandbox("auto"))
    report = check(plan, _Quiet())
    assert f"<{HIDDEN}>" in Path(report.submission.log).read_text()
    assert f"<{PLAIN}>" in kept(submission.digest)
    assert f"<{HIDDEN}>" not in kept(submission.digest)
    assert len([*caches.submission_cache(submission.digest).rglob("*.so")]) > 1


def test_no_hidden_case_is_compiled_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(engine_options, "installed_version", lambda name: "0.1.15")
    hidden, public = case_files(tmp_path)
    lanes = [LaneDevice("cpu-1", "")]
    stage = engine_options.compile_stage(_plan(public), lanes, None)
    assert [suite for suite, _ in stage.setup.cases] == ["public"] * 2
    assert engine_options.compile_stage(_plan(hidden), lanes, None) is None


def test_hidden_cases_come_last(tmp_path: Path) -> None:
    chosen = select_cases(load_suites(case_files(tmp_path)))
    assert [case.tokens for _, case in chosen] == [PLAIN, FAILING, HIDDEN]


def test_hidden_cases_keep_their_order_in_whatever_order_their_file_has_them(
    tmp_path: Path,
) -> None:
    orders = []
    for tokens in ((3, 1, 2), (2, 3, 1)):
        suites = load_suites([suite_file(tmp_path, HIDDEN_SUITE, *tokens)])
        orders.append([case.name for _, case in select_cases(suites)])
    assert orders == [["t1", "t2", "t3"]] * 2


def test_a_link_put_in_the_way_of_a_folder_brings_nothing_into_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, left = tmp_path / "outside", tmp_path / "left"
    for folder, name in ((outside, "secret"), (left, "own")):
        folder.mkdir()
        (folder / name).write_text(name)
    (left / "folder").symlink_to(outside)
    # as if the link had replaced a folder after that was looked at
    seen = [*os.scandir(left / "folder")]
    monkeypatch.setattr(caches, "walk", lambda folder: seen)
    caches.save_submission_cache("cd" * 32, left, None)
    assert not list(caches.submission_cache("cd" * 32).rglob("*"))
    monkeypatch.setattr(caches, "walk", os.scandir)
    caches.save_submission_cache("cd" * 32, left, None)
    assert [path.name for path in caches.submission_cache("cd" * 32).iterdir()] == ["own"]


class _Quiet:
    def message(self, message: str) -> None:
        pass


def _plan(cases: Path) -> Plan:
    return cpu_plan(cases, baseline="none", protocol="lab")
