"""Cores from affinity and cgroup quotas, in made-up /proc and /sys trees."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from judge.threads import available_cores, physical_cores


@pytest.fixture(autouse=True)
def sixteen_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """An affinity mask of sixteen cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)


def tree(root: Path, files: dict[str, str]) -> Path:
    """The files, written under root."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 16),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 16),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "350000 100000\n"}, 3),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        # the parent's quota binds although the group itself has none
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
                "sys/fs/cgroup/a/cpu.max": "200000 100000\n",
            },
            2,
        ),
        # in a container the path is the host's and the mount shows only this group
        ({"proc/self/cgroup": "0::/docker/x\n", "sys/fs/cgroup/cpu.max": "400000 100000"}, 4),
        # version 1
        (
            {
                "proc/self/cgroup": "7:memory:/x\n4:cpu,cpuacct:/x\n",
                "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "500000\n",
                "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n",
            },
            5,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            16,
        ),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "\n"}, 16),
    ],
)
def test_quota_and_affinity(tmp_path: Path, files: dict[str, str], cores: int) -> None:
    assert available_cores(tree(tmp_path, files)) == cores


def test_affinity_binds_below_the_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "800000 100000\n"}
    assert available_cores(tree(tmp_path, files)) == 2


def siblings(listed: dict[int, str]) -> dict[str, str]:
    """The files in which the kernel lists the cores that share a physical one."""
    folder = "sys/devices/system/cpu"
    return {f"{folder}/cpu{n}/topology/thread_siblings_list": text for n, text in listed.items()}


@pytest.mark.parametrize(
    ("listed", "cores", "groups"),
    [
        ({0: "0,2\n", 1: "1,3\n", 2: "0,2\n", 3: "1,3\n"}, range(4), [(0, 2), (1, 3)]),
        ({0: "0-1\n", 1: "0-1\n", 2: "2-3\n", 3: "2-3\n"}, range(4), [(0, 1), (2, 3)]),
        ({0: "0,2\n", 1: "1,3\n", 2: "0,2\n"}, [0, 1, 2], [(0, 2), (1,)]),  # 3 is not ours
        ({0: "0\n", 1: "1\n"}, [0, 1], [(0,), (1,)]),
        ({}, [4, 5], [(4,), (5,)]),
        ({4: "nonsense\n"}, [4], [(4,)]),
    ],
)
def test_physical_cores(
    listed: dict[int, str],
    cores: Sequence[int],
    groups: list[tuple[int, ...]],
    tmp_path: Path,
) -> None:
    assert physical_cores(cores, tree(tmp_path, siblings(listed))) == groups
