"""Running ncu or nsys around the judge, and reading what they wrote."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from judge.profiling.commands import (
    ProfilerError,
    Target,
    ncu_command,
    ncu_raw_command,
    nsys_command,
    nsys_stats_command,
)
from judge.profiling.metrics import KernelProfile, NcuFormatError, parse_raw_page
from judge.profiling.report import TimeRow, parse_nsys_times
from judge.record import Record, from_json
from judge.text import plain
from judge.verdict import Verdict

_NO_COUNTERS = "ERR_NVGPUCTRPERM"
_COUNTERS_HELP = (
    "ncu may not read the GPU's performance counters here (ERR_NVGPUCTRPERM): run as root, in a "
    "container with --cap-add SYS_ADMIN, or ask for NVreg_RestrictProfilingToAdminUsers=0; "
    "--tool torch needs no counters"
)


def run_ncu(
    target: Target, launches: int, kernel: str | None, stem: Path, say: Callable[[str], None]
) -> tuple[Record, list[KernelProfile]]:
    """Profile with ncu: the judge's record and, where the case passed, every profiled launch.

    Leaves <stem>.ncu-rep, <stem>.csv (the raw page) and <stem>.log. Raises ProfilerError.
    """
    _remove(stem, (".ncu-rep", ".csv", ".log"))
    status, stdout = _run(ncu_command(target, launches, kernel, stem), say)
    log = Path(f"{stem}.log")
    complaint = _complaint(log)
    if _NO_COUNTERS in complaint:
        raise ProfilerError(_COUNTERS_HELP)
    record = _record(stdout, f"ncu ended with status {status} and no record; {complaint}")
    if not _passed(record):
        return record, []
    if not Path(f"{stem}.ncu-rep").is_file():
        which = f"kernel of a name that matches {kernel!r}" if kernel else "kernel"
        raise ProfilerError(f"ncu saw no {which} in the timed calls; {complaint}")
    csv_file = Path(f"{stem}.csv")
    status, page = _run(ncu_raw_command(stem), say)
    csv_file.write_text(page)
    if status != 0:
        raise ProfilerError(f"ncu could not print {stem}.ncu-rep: status {status}{_last(page)}")
    try:
        return record, parse_raw_page(page, str(csv_file))
    except NcuFormatError as error:
        raise ProfilerError(str(error)) from None


def run_nsys(
    target: Target, stem: Path, say: Callable[[str], None]
) -> tuple[Record, list[TimeRow]]:
    """Profile with nsys: the judge's record and, where the case passed, time by kernel.

    Leaves <stem>.nsys-rep and <stem>.csv. Raises ProfilerError.
    """
    _remove(stem, (".nsys-rep", ".csv"))
    status, stdout = _run(nsys_command(target, stem), say)
    record = _record(stdout, f"nsys ended with status {status} and no record{_last(stdout)}")
    if not _passed(record):
        return record, []
    if not Path(f"{stem}.nsys-rep").is_file():
        raise ProfilerError(f"nsys wrote no {stem}.nsys-rep: status {status}")
    csv_file = Path(f"{stem}.csv")
    status, table = _run(nsys_stats_command(stem), say)
    csv_file.write_text(table)
    if status != 0:
        raise ProfilerError(
            f"nsys stats could not read {stem}.nsys-rep: status {status}{_last(table)}"
        )
    return record, parse_nsys_times(table, str(csv_file))


def _remove(stem: Path, suffixes: Sequence[str]) -> None:
    """An earlier profile must not pass for this one."""
    for suffix in suffixes:
        Path(f"{stem}{suffix}").unlink(missing_ok=True)


def _run(command: Sequence[str], say: Callable[[str], None]) -> tuple[int, str]:
    """Exit status and standard output; standard error goes where ours goes."""
    say(f"+ {shlex.join(command)}")
    try:
        finished = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False
        )
    except OSError as error:
        raise ProfilerError(f"{command[0]} does not start: {error.strerror}") from None
    return finished.returncode, finished.stdout


def _record(stdout: str, otherwise: str) -> Record:
    """The judge's record among whatever else a profiler prints. Raises ProfilerError."""
    lines = stdout.splitlines()
    starts = [number for number, line in enumerate(lines) if line == "{"]
    ends = [number for number, line in enumerate(lines) if line == "}"]
    if not starts or not ends:
        raise ProfilerError(otherwise)
    try:
        return from_json("\n".join(lines[starts[0] : ends[-1] + 1]))
    except (msgspec.MsgspecError, ValueError) as error:
        raise ProfilerError(f"{otherwise}: {plain(str(error))}") from None


def _passed(record: Record) -> bool:
    return len(record.results) == 1 and record.results[0].verdict is Verdict.PASS


def _last(text: str) -> str:
    """The last line, where profilers put their complaints, behind a colon."""
    lines = text.strip().splitlines()
    return f": {plain(lines[-1])}" if lines else ""


def _complaint(log: Path) -> str:
    """The first error or warning in ncu's log, else where the log is."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    for kind in ("==ERROR==", "==WARNING=="):
        for line in lines:
            if line.startswith(kind):
                return plain(f"{log}: {line.removeprefix(kind)}")
    return f"see {log}"
