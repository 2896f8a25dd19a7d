"""The judge's side of a child: start it, ask it, watch it, end it."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from judge.caches import TARGET_VARIABLES, submission_caches, write_files
from judge.child.log import ChildLog
from judge.child.protocol import (
    HEADER_BYTES,
    Close,
    Reply,
    Request,
    decode_reply,
    encode,
    message_length,
)
from judge.profiles import TARGET, DeviceProfile
from judge.submission import STUDENT_FOLDER, Submission

_ROOT = Path(__file__).resolve().parents[2]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from judge.child.worker import main; main(int(sys.argv[2]), sys.argv[3])"
)
_SECRET_VARIABLE = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|PRIVATE_?KEY", re.IGNORECASE)
# Set by ncu and nsys for the processes that they follow; none is a secret, though one is called
# NV_TPS_LAUNCH_TOKEN.
_PROFILER_VARIABLES = (
    *("NV_TPS_", "NV_NSIGHT_", "NV_COMPUTE_PROFILER_", "NVIDIA_PROCESS_INJECTION_"),
    *("NVIDIA-PROCESS-TRACKING", "NSYS_", "QUADD_"),
)
_POLL_S = 0.05
_EXIT_WAIT_S = 2.0
_PROFILED_EXIT_WAIT_S = 60.0
_OOM_SCORE = "900"


class ChildError(Exception):
    """A child that gave no answer; the text is one line that says why."""


class ChildDied(ChildError):
    """It ended: by a signal, by an exit status, or killed for the memory it took."""


class ChildTimeout(ChildError):
    """It did not answer in time."""


@dataclass(frozen=True)
class ChildOptions:
    """What every child of a run is started with.

    device: torch device as the child sees it. visible_devices: CUDA_VISIBLE_DEVICES, None to
    leave it as it is. threads: CPU threads. memory_limit: resident bytes above which it is killed.
    judge_kernels: contents of the judge's compiled kernels, by path.
    profile: the device that the submission is checked for, None where it is graded.
    """

    device: str
    visible_devices: str | None
    threads: int
    memory_limit: int
    judge_kernels: dict[str, bytes] = field(default_factory=dict)
    profile: DeviceProfile | None = None


def default_memory_limit() -> int:
    """Resident bytes that a child may take: 16 GiB, or 70 % of the machine's memory if less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(16 * 2**30, total * 7 // 10)


def followed_by_profiler() -> bool:
    """Whether ncu or nsys runs this process, and so its children."""
    return any(name.startswith(_PROFILER_VARIABLES) for name in os.environ)


class Child:
    """A live process that holds one submission."""

    def __init__(self, submission: Submission, options: ChildOptions, log: ChildLog) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="gdn-judge-"))
        self._memory_limit = options.memory_limit
        self._process: subprocess.Popen[bytes] | None = None
        try:
            write_files(submission.files, self._folder / STUDENT_FOLDER)
            kernels = self._folder / "judge_kernels"
            write_files(options.judge_kernels, kernels)
            targets = dict.fromkeys(TARGET_VARIABLES, TARGET) if options.profile else {}
            settings = {
                "device": options.device,
                "folder": str(self._folder),
                "entry": submission.entry,
                "threads": options.threads,
                "judge_root": str(_ROOT),
                "environment": submission_caches(submission.digest) | targets,
                "profile": options.profile,
            }
            environment = self._environment(options, kernels)
            self._channel, theirs = socket.socketpair()
            read_fd, write_fd = os.pipe()
            self._log_thread = log.drain(read_fd)
            with theirs:
                try:
                    self._process = subprocess.Popen(
                        [
                            *(sys.executable, "-P", "-u", "-c", _START),
                            *(str(_ROOT), str(theirs.fileno())),
                            msgspec.json.encode(settings).decode(),
                        ],
                        stdin=subprocess.DEVNULL,
                        stdout=write_fd,
                        stderr=write_fd,
                        pass_fds=(theirs.fileno(),),
                        cwd=self._folder,
                        env=environment,
                        start_new_session=True,
                    )
                finally:
                    os.close(write_fd)
            self._channel.setblocking(False)
            with contextlib.suppress(OSError):
                Path(f"/proc/{self._process.pid}/oom_score_adj").write_text(_OOM_SCORE)
        except BaseException:
            self.kill()
            raise

    def ask(self, request: Request, limit_s: float) -> Reply:
        """Send a request and wait for its reply. Raises ChildError, ProtocolError."""
        deadline = time.monotonic() + limit_s
        try:
            self._channel.settimeout(limit_s)
            self._channel.sendall(encode(request))
        except TimeoutError:
            raise ChildTimeout("no answer in time") from None
        except OSError:
            raise self._death() from None
        finally:
            self._channel.setblocking(False)
        return self.reply(deadline - time.monotonic())

    def reply(self, limit_s: float) -> Reply:
        """Wait for a reply that needs no request: Ready. Raises as `ask` does."""
        deadline = time.monotonic() + limit_s
        length = message_length(self._read(HEADER_BYTES, deadline))
        return decode_reply(self._read(length, deadline))

    def read_bytes(self, count: int, limit_s: float) -> bytearray:
        """Read exactly `count` raw bytes that follow a reply. Raises ChildError."""
        return self._read(count, time.monotonic() + limit_s)

    def pause(self, paused: bool) -> None:
        """Stop the child's process group, or let it go on."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGSTOP if paused else signal.SIGCONT)

    def close(self) -> None:
        """Ask the child to end, then make sure."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._channel.sendall(encode(Close()))
            with contextlib.suppress(subprocess.TimeoutExpired):
                # a profiler's library hands over what it collected while the process ends
                self._process.wait(
                    _PROFILED_EXIT_WAIT_S if followed_by_profiler() else _EXIT_WAIT_S
                )
        self.kill()

    def kill(self) -> None:
        """End the child and its process group at once, and remove its folder."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._channel.close()
            self._log_thread.join(_EXIT_WAIT_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _environment(self, options: ChildOptions, kernels: Path) -> dict[str, str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(_PROFILER_VARIABLES) or not _SECRET_VARIABLE.search(name)
        }
        temporary = self._folder / "tmp"
        temporary.mkdir()
        if not followed_by_profiler():  # its library in the child meets it in their common TMPDIR
            environment["TMPDIR"] = str(temporary)
        environment |= {
            "TILELANG_CACHE_DIR": str(kernels),
            "TILELANG_TMP_DIR": str(kernels / "tmp"),
            "OMP_NUM_THREADS": str(options.threads),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if options.visible_devices is not None:
            environment["CUDA_VISIBLE_DEVICES"] = options.visible_devices
        return environment

    def _read(self, count: int, deadline: float) -> bytearray:
        data = bytearray(count)
        view = memoryview(data)
        position = 0
        while position < count:
            if time.monotonic() > deadline:
                raise ChildTimeout("no answer in time")
            ended = self._process.poll() is not None
            readable, _, _ = select.select([self._channel], [], [], 0 if ended else _POLL_S)
            if readable:
                try:
                    received = self._channel.recv_into(view[position:])
                except OSError:
                    received = 0
                if received == 0:
                    raise self._death()
                position += received
            elif ended:
                raise self._death()
            else:
                self._check_memory()
        return data

    def _check_memory(self) -> None:
        try:
            fields = Path(f"/proc/{self._process.pid}/statm").read_text().split()
        except OSError:
            return
        resident = int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else 0
        if resident > self._memory_limit:
            raise ChildDied(
                f"took {resident / 2**30:.1f} GiB of memory, "
                f"more than the limit of {self._memory_limit / 2**30:.1f} GiB"
            )

    def _death(self) -> ChildDied:
        try:
            status = self._process.wait(_EXIT_WAIT_S)
        except subprocess.TimeoutExpired:
            return ChildDied("closed its channel to the judge")
        if status >= 0:
            return ChildDied(f"the process exited with status {status}")
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = str(-status)
        return ChildDied(f"the process was ended by signal {name}")
