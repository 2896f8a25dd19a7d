"""Putting adversaries and honest submissions on trial, and noting what became of each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import torch

from judge.audit import AUDITS, Answers, answers
from judge.caches import log_folder, submission_cache
from judge.case import Case
from judge.child.log import ChildLog
from judge.device import gpu_identity
from judge.gpu_lock import gpu_lock
from judge.home import cache_root
from judge.record import CaseResult, Witness
from judge.repetitions import Repetitions
from judge.session import Session
from judge.submission import find_submission
from judge.suites import load_suite
from judge.trial import Limits
from judge.verdict import Rules, Verdict
from judge.witness import ALLOWANCES
from tests.adversary_files import COMMON, Entry
from tests.trial import (
    AUDIT_SEEDS,
    GIB,
    ROOT,
    SEED,
    STARTER,
    new_session,
    null_session,
    terms_for,
)

RESULTS_VARIABLE = "GDN_ADVERSARY_RESULTS"
"""Names a file that takes one line of JSON for each submission that was put on trial."""

V01 = ROOT / "submissions" / "v01_gemm" / "tilelang_fwd.py"
MARK_VARIABLE = "GDN_TRIAL_MARK"
"""Set for children, so that a process which outlives its child is found by its environment."""

_CASES = Path(__file__).with_name("adversary_cases.yaml")
# More than ten, so that the witness compares medians.
_COUNT = {"cpu": Repetitions(1, 12), "gpu": Repetitions(5, 40)}
# On a CPU enough pairs that their median counts, and then less needs to be let pass.
_ON_CPU = replace(ALLOWANCES["cpu"], pairs=12, rest_ms=5.0, rest_share=1.0)
_ALLOWANCES = {"cpu": _ON_CPU, "gpu": ALLOWANCES["cuda"]}
# On a CPU the audits of a run on a GPU, and more of quick repetitions: a trick that escapes once in
# thirty runs would fail the tests as often.
_AUDITS = {"cpu": replace(AUDITS["cuda"], quick=8), "gpu": AUDITS["cuda"]}
_MEMORY_GIB = 12.0
# On a CPU the work is done several times over: hidden, it must show on the clock of a judge whose
# cores other processes use too.
_SLOW_RIGHT = """
from starter import gdn_prefill_forward as once


def gdn_prefill_forward(*arguments):
    for _ in range({times}):
        result = once(*arguments)
    return result
"""
_TIMES = 6


@dataclass(frozen=True)
class Trial:
    """What became of one submission: its cases, and the rules word with what it rests on."""

    results: list[CaseResult]
    rules: tuple[Rules, str]


def cases() -> dict[str, Case]:
    """The cases by name: cpu, gpu and small."""
    return {case.name: case for case in load_suite(_CASES).cases}


def submission_of(entry: Entry, device: str, folder: Path) -> Path:
    """A participant's folder with this file in it, a right implementation and the tools."""
    folder.mkdir(parents=True)
    shutil.copy(entry.path, folder / "tilelang_fwd.py")
    shutil.copy(COMMON / "tools.py", folder / "tools.py")
    (folder / "judge_cache.txt").write_text(str(cache_root()))
    if device == "gpu":
        shutil.copy(V01, folder / "right.py")
    else:
        shutil.copy(STARTER, folder / "starter.py")
        (folder / "right.py").write_text(_SLOW_RIGHT.format(times=_TIMES))
    return folder


def try_entry(entry: Entry, device: str, tmp_path: Path, names: list[str]) -> Trial:
    """Put one file on trial with the cases of these names, one after the other, and note it."""
    phase, number = entry.limit or ("", 0.0)
    limits = Limits(**{phase: number}) if phase and phase != "memory" else Limits()
    memory = number if phase == "memory" else _MEMORY_GIB
    path = submission_of(entry, device, tmp_path / "submission" / entry.path.stem)
    submission = find_submission(path)
    if device == "gpu":
        shutil.copytree(compiled_v01(), submission_cache(submission.digest), dirs_exist_ok=True)
    log = ChildLog(tmp_path / "log.txt")
    session = new_session(
        submission,
        log,
        limits=limits,
        memory_limit=int(memory * GIB),
        device=torch_device(device),
    )
    try:
        results = _judged(session, device, names)
    finally:
        session.close()
        log.close()
    trial = Trial(results, session.rules)
    _note(entry, device, trial)
    return trial


@cache
def compiled_v01() -> Path:
    """The cache that v01's kernels for both cases are compiled into, once a test session.

    Each submission gets a copy: compiling for each would take most of the time on a GPU.
    """
    submission = find_submission(V01.parent)
    with tempfile.TemporaryDirectory() as folder:
        log = ChildLog(Path(folder) / "log.txt")
        session = new_session(submission, log, device=torch_device("gpu"))
        try:
            _judged(session, "gpu", ["gpu", "small"])
        finally:
            session.close()
            log.close()
    return submission_cache(submission.digest)


def _judged(session: Session, device: str, names: list[str]) -> list[CaseResult]:
    """The cases of these names, judged one after the other while nobody else is on the GPU."""
    place = torch_device(device)
    null_session(place)
    session.get_ready()
    with _alone_on_gpu() if device == "gpu" else nullcontext():
        return [_judged_case(session, device, cases()[name]) for name in names]


def _judged_case(session: Session, device: str, case: Case) -> CaseResult:
    place = torch_device(device)
    known = _answers(case, place)
    terms = terms_for(case, place, _ALLOWANCES[device])
    return session.judge("test", case, SEED, _COUNT[device], known, terms)


@contextmanager
def _alone_on_gpu() -> Iterator[None]:
    """Keep other workers of the tests away from the GPU; they start their children meanwhile."""
    with gpu_lock(f"tests-{gpu_identity(torch.device('cuda:0'))}", lambda text: None):
        yield


@cache
def _answers(case: Case, place: str) -> Answers:
    return answers(
        case, SEED, _AUDITS["cpu" if place == "cpu" else "gpu"], AUDIT_SEEDS, torch.device(place)
    )


def torch_device(device: str) -> str:
    """cpu, or the first GPU."""
    return "cpu" if device == "cpu" else "cuda:0"


@contextmanager
def holding_a_secret() -> Iterator[None]:
    """A process of the judge's account whose environment holds what adversaries look for."""
    environment = os.environ | {"GDN_TRIAL_TOKEN": "for the judge alone"}
    holder = subprocess.Popen(["sleep", "3600"], env=environment)
    try:
        yield
    finally:
        holder.kill()
        holder.wait()


class Neighbour:
    """An honest submission in a live child of its own, graded after each adversary.

    Its log lies among the judge's.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._log = ChildLog(log_folder() / f"neighbour-{os.getpid()}.txt")
        source = V01 if device == "gpu" else STARTER
        self._session = new_session(
            find_submission(source.parent), self._log, device=torch_device(device)
        )

    def graded(self) -> CaseResult:
        """What the small case of the honest submission comes to now."""
        (result,) = _judged(self._session, self._device, ["small"])
        return result

    def close(self) -> None:
        """End the child."""
        self._session.close()
        self._log.close()
        self._log.path.unlink()


def survivors(mark: str) -> list[str]:
    """Command lines of the processes whose environment holds this mark."""
    wanted = f"{MARK_VARIABLE}={mark}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes() + b"\0":
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def _figures(witness: Witness | None) -> dict[str, float | None] | None:
    return None if witness is None else asdict(witness)


def _note(entry: Entry, device: str, trial: Trial) -> None:
    """Add a line on the first case, or the first that did not pass, to the file that
    GDN_ADVERSARY_RESULTS names, if any."""
    path = os.environ.get(RESULTS_VARIABLE)
    if not path:
        return
    failed = (one for one in trial.results if one.verdict is not Verdict.PASS)
    told = next(failed, trial.results[0])
    name = "CPU" if device == "cpu" else torch.cuda.get_device_name()
    line = {
        "file": entry.name,
        "family": entry.family,
        "trick": entry.trick,
        "expected": f"rules {entry.rules}" if entry.rules else " or ".join(entry.caught_as),
        "verdict": str(told.verdict),
        "detail": told.detail.replace(f"{ROOT}/", ""),
        "rules": str(trial.rules[0]),
        "rules_detail": trial.rules[1],
        "witness": [_figures(result.witness) for result in trial.results],
        "device": name,
        "torch": torch.__version__,
        "date": datetime.now(UTC).date().isoformat(),
    }
    with Path(path).open("a") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
