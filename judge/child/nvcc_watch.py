"""Listening in on TileLang's own nvcc runs, for what ptxas says about the kernel it makes."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from judge.child.machine_code import find_disassembler, units_in_ptx, units_in_sass


@dataclass
class NvccRun:
    """One finished run: everything it printed, and the units its kernels use by kernel.

    code: what the units were read from, SASS where there is a disassembler, else PTX.
    """

    output: str
    units: dict[str, list[str]]
    code: str


class NvccWatch:
    """Stands between TileLang's nvcc module and subprocess; runs are noted by thread."""

    def __init__(self) -> None:
        self._here = threading.local()
        self._disassembler = find_disassembler()

    def install(self, nvcc_module: Any) -> None:
        """Watch the runs that this module starts through its own name `subprocess`.

        The kernel stays the same: -v makes ptxas talk, --keep leaves the PTX behind.
        """
        watch = self

        class WatchedProcess(subprocess.Popen):
            def __init__(self, command: list[str], **options: Any) -> None:
                self._keep: tempfile.TemporaryDirectory | None = None
                if watch.listening:
                    if not any("verbose" in part or part == "-v" for part in command):
                        command = [*command, "-Xptxas", "-v"]
                    if watch._disassembler is None:
                        self._keep = tempfile.TemporaryDirectory(prefix="nvcc")
                        command = [*command, "--keep", f"--keep-dir={self._keep.name}"]
                self._command = command
                super().__init__(command, **options)

            def communicate(self, *args: Any, **options: Any) -> tuple[Any, Any]:
                out, err = super().communicate(*args, **options)
                if watch.listening and self.returncode == 0:
                    watch._note(out, self._command, self._keep)
                if self._keep is not None:
                    self._keep.cleanup()
                return out, err

        nvcc_module.subprocess = SimpleNamespace(**vars(subprocess) | {"Popen": WatchedProcess})

    @property
    def listening(self) -> bool:
        """Whether this thread's runs are being noted."""
        return getattr(self._here, "runs", None) is not None

    @contextmanager
    def runs(self) -> Iterator[list[NvccRun]]:
        """A list that receives the runs of this thread inside the with block."""
        self._here.runs = []
        try:
            yield self._here.runs
        finally:
            self._here.runs = None

    def _note(
        self, out: bytes | None, command: list[str], keep: tempfile.TemporaryDirectory | None
    ) -> None:
        units, code = self._units(command, keep)
        self._here.runs.append(NvccRun((out or b"").decode(errors="replace"), units, code))

    def _units(
        self, command: list[str], keep: tempfile.TemporaryDirectory | None
    ) -> tuple[dict[str, list[str]], str]:
        if keep is not None:
            texts = [path.read_text() for path in Path(keep.name).glob("*.ptx")]
            return units_in_ptx("\n".join(texts)), "PTX" if texts else ""
        try:
            cubin = Path(command[command.index("-o") + 1])
            return units_in_sass(cubin, self._disassembler), "SASS"
        except (OSError, ValueError, IndexError, subprocess.SubprocessError):
            return {}, ""
