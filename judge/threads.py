"""How many cores this process really has, which is what thread counts should follow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path("/")


def available_cores(root: Path = _ROOT) -> int:
    """Cores that the affinity mask and every enclosing cgroup's CPU quota allow, at least 1.

    A quota of 1.5 cores counts as 1: a second thread would be throttled half of the time.
    root: where /proc and /sys are looked for.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min([cores, *(int(quota) for quota in _quotas(root))]))


def physical_cores(cores: Sequence[int], root: Path = _ROOT) -> list[tuple[int, ...]]:
    """These cores, as the kernel numbers them, in groups of those that share a physical one.

    At work at the same time, those of a group slow each other down. A virtual machine may not be
    told which they are; each is a group of its own then. root: where /sys is looked for.
    """
    groups: dict[frozenset[int], list[int]] = {}
    for core in cores:
        topology = root / f"sys/devices/system/cpu/cpu{core}/topology"
        siblings = _numbers(_read(topology / "thread_siblings_list")) | {core}
        groups.setdefault(frozenset(siblings), []).append(core)
    return [tuple(group) for group in groups.values()]


def _numbers(listed: str) -> set[int]:
    """The numbers that a list such as 0-2,8 names."""
    numbers: set[int] = set()
    for part in listed.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def _quotas(root: Path) -> list[float]:
    """The CPU quotas, in cores, of this process's cgroups (version 1 and 2) and their parents."""
    quotas = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            mount = root / "sys/fs/cgroup"
        elif "cpu" in controllers.split(","):
            mount = root / "sys/fs/cgroup/cpu"
        else:
            continue
        # Inside a container the path may be the host's: what does not exist here is skipped.
        group = mount / path.lstrip("/")
        for folder in (group, *group.parents):
            quotas += _quota(folder)
            if folder == mount:
                break
    return quotas


def _quota(folder: Path) -> list[float]:
    """The quota that one cgroup folder states, in cores: one number, or none."""
    quota, period = "", ""
    if limit := _read(folder / "cpu.max").split():
        quota, period = limit[0], limit[-1]
    elif limit := _read(folder / "cpu.cfs_quota_us").split():
        quota, period = limit[0], _read(folder / "cpu.cfs_period_us").strip()
    # "max" (version 2) and -1 (version 1) mean no quota
    if quota.isdigit() and period.isdigit() and int(period) > 0:
        return [int(quota) / int(period)]
    return []


def _read(path: Path) -> str:
    """The file's text, empty where it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
