"""The file that says how a lab's Slurm cluster is asked for workers (docs/cluster.md)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from judge.yamlfile import YamlFile, joined

JOBS_S = 600.0
"""How long the first worker may take, from the job's submission on."""

_TEXTS = (
    *("queue", "account", "walltime", "memory", "python", "interface"),
    *("local_directory", "log_directory", "shared_temp_directory"),
)
_NUMBERS = ("cores", "death_timeout")
_LISTS = ("job_extra_directives", "job_script_prologue")
_OWN = ("jobs", "wait_s", "scheduler_options")
_REQUIRED = ("cores", "memory")
_SCHEDULER = ("host", "port", "interface")
_LINE = re.compile(r"[^\n]{1,1000}")
_MOST_S = 86_400
_MOST_JOBS = 1000
_MOST_PORT = 65_535


class ClusterError(ValueError):
    """A cluster that cannot be used; the text is one line that says what to change."""


@dataclass(frozen=True)
class SlurmJobs:
    """Workers by jobs: how many, how long the first may take, and what dask-jobqueue is told.

    options: keyword arguments of dask_jobqueue.SLURMCluster. scheduler: of Dask's scheduler.
    """

    jobs: int
    wait_s: float
    options: dict[str, Any]
    scheduler: dict[str, Any]


def load_slurm(path: Path) -> SlurmJobs:
    """Read a cluster file. Raises CaseFileError, whose text is one line."""
    file = YamlFile(path)
    root = file.mapping(file.root, "", ("slurm",), ("slurm",))
    keys = file.mapping(root["slurm"], "slurm", (*_OWN, *_TEXTS, *_NUMBERS, *_LISTS), _REQUIRED)
    whole = _whole(file, _MOST_S)
    readers = {
        **dict.fromkeys(_TEXTS, _text(file)),
        **dict.fromkeys(_NUMBERS, whole),
        **dict.fromkeys(_LISTS, _texts(file)),
    }
    return SlurmJobs(
        jobs=file.optional(keys, "jobs", "slurm", _whole(file, _MOST_JOBS), 1),
        wait_s=file.optional(keys, "wait_s", "slurm", whole, JOBS_S),
        options={
            key: read(keys[key], joined("slurm", key))
            for key, read in readers.items()
            if key in keys
        },
        scheduler=file.optional(keys, "scheduler_options", "slurm", _scheduler(file), {}),
    )


def _text(file: YamlFile) -> Callable[[yaml.Node, str], str]:
    return lambda node, field: file.text(node, field, _LINE, "a line of text")


def _whole(file: YamlFile, most: int) -> Callable[[yaml.Node, str], int]:
    return lambda node, field: file.whole(node, field, 1, most)


def _texts(file: YamlFile) -> Callable[[yaml.Node, str], list[str]]:
    def read(node: yaml.Node, field: str) -> list[str]:
        if not isinstance(node, yaml.SequenceNode):
            raise file.fail(node, field, "must be a list of lines")
        return [_text(file)(one, f"{field}[{index}]") for index, one in enumerate(node.value)]

    return read


def _scheduler(file: YamlFile) -> Callable[[yaml.Node, str], dict[str, Any]]:
    def read(node: yaml.Node, field: str) -> dict[str, Any]:
        keys = file.mapping(node, field, _SCHEDULER, ())
        return {
            key: _whole(file, _MOST_PORT)(value, joined(field, key))
            if key == "port"
            else _text(file)(value, joined(field, key))
            for key, value in keys.items()
        }

    return read
