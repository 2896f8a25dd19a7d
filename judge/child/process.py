"""The judge's side of a child: start it, ask it, watch it, end it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from judge.caches import (
    TARGET_VARIABLES,
    compiler_variables,
    load_submission_cache,
    save_submission_cache,
    write_files,
)
from judge.child.arguments import InputForm
from judge.child.errors import ChildDied, ChildTimeout
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
from judge.child.shared_memory import JudgeMemory
from judge.child.variables import child_variables, followed_by_profiler
from judge.profiles import TARGET, DeviceProfile
from judge.sandbox.accounts import Account, take_account
from judge.sandbox.confine import Confinement, confinement_json
from judge.sandbox.kinds import Kind, Sandbox, counts_own_tasks, isolated
from judge.sandbox.processes import (
    adopt_orphans,
    adopted_from,
    descendants,
    orphans,
    reap,
    signal_all,
)
from judge.sandbox.tree import give, remove
from judge.sandbox.view import Mounts, bubblewrap_command, gpu_files
from judge.sandbox.watch import ResourceLimits, Watch
from judge.submission import STUDENT_FOLDER, Submission

_ROOT = Path(__file__).resolve().parents[2]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from judge.sandbox.confine import confine; confine(sys.argv.pop()); "
    "from judge.child.worker import main; main(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])"
)
_POLL_S = 0.05
_LOOKS = 1000  # at the slot, before other things are looked at: about 0.1 ms
_PAUSE_S = 0.001
_EXIT_WAIT_S = 2.0
_KILL_WAIT_S = 10.0
_PROFILED_EXIT_WAIT_S = 60.0
_SIGNALLED = 128  # bubblewrap exits with this plus the signal that ended its child
_TASK_MARGIN = 32
_live: set[int] = set()  # process ids of this judge's children


@dataclass(frozen=True)
class ChildOptions:
    """What every child of a run is started with.

    device: torch device as the child sees it. visible_devices: CUDA_VISIBLE_DEVICES, None to
    leave it as it is. threads: CPU threads. memory_limit: resident bytes above which it is killed.
    judge_kernels: contents of the judge's compiled kernels, by path.
    profile: the device that the submission is checked for, None where it is graded.
    sandbox: what contains the child. gpu: UUID of the device, empty where there is none.
    limits: what else it may take. inputs: what the function takes. sms: how many SMs it may use,
    None for the whole device.
    """

    device: str
    visible_devices: str | None
    threads: int
    memory_limit: int
    judge_kernels: dict[str, bytes] = field(default_factory=dict)
    profile: DeviceProfile | None = None
    sandbox: Sandbox = field(kw_only=True)
    gpu: str = ""
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    inputs: InputForm = InputForm.PREPARED
    sms: int | None = None


def default_memory_limit() -> int:
    """Resident bytes that a child may take: 16 GiB, or 70 % of the machine's memory if less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(16 * 2**30, total * 7 // 10)


class Child:
    """A live process that holds one submission.

    keeps_cache: whether what it compiles is kept for later children of that submission.
    """

    def __init__(
        self,
        submission: Submission,
        options: ChildOptions,
        log: ChildLog,
        *,
        keeps_cache: bool = True,
    ) -> None:
        self._digest = submission.digest
        self._keeps_cache = keeps_cache
        self._sandbox = options.sandbox
        # under bubblewrap the sandbox's first process adopts orphans; a profiler's are its own
        self._adopts = self._sandbox.confined and not isolated(self._sandbox)
        self._account: Account | None = None
        self._watch: Watch | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._memory: JudgeMemory | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="gdn-judge-"))
        self._cache = self._folder / "cache"
        try:
            if self._sandbox.own_account:
                self._account = take_account()
                if self._adopts:  # a judge that was killed may have left some
                    self._account.end_processes()
            kernels = self._make_folder(submission, options)
            targets = dict.fromkeys(TARGET_VARIABLES, TARGET) if options.profile else {}
            settings = {
                "device": options.device,
                "folder": str(self._folder),
                "entry": submission.entry,
                "threads": options.threads,
                "judge_root": str(_ROOT),
                "environment": compiler_variables(self._cache) | targets,
                "profile": options.profile,
                "inputs": options.inputs,
                "sms": options.sms,
            }
            environment = child_variables(
                self._folder,
                kernels,
                self._cache,
                threads=options.threads,
                visible_devices=options.visible_devices,
                sms=options.sms,
            )
            prefix = self._prefix(options, environment)
            if self._adopts:
                adopt_orphans()
            self._memory = JudgeMemory()
            self._channel, theirs = socket.socketpair()
            read_fd, write_fd = os.pipe()
            self._log_thread = log.drain(read_fd)
            with theirs:
                try:
                    self._process = subprocess.Popen(
                        [
                            *(*prefix, sys.executable, "-P", "-u", "-c", _START),
                            *(str(_ROOT), str(theirs.fileno()), str(self._memory.descriptor)),
                            msgspec.json.encode(settings).decode(),
                            confinement_json(self._confinement(options)),
                        ],
                        stdin=subprocess.DEVNULL,
                        stdout=write_fd,
                        stderr=write_fd,
                        pass_fds=(theirs.fileno(), self._memory.descriptor),
                        cwd=self._folder,
                        env=environment,
                        start_new_session=True,
                    )
                finally:
                    os.close(write_fd)
            _live.add(self._process.pid)
            self._channel.setblocking(False)
            if self._sandbox.confined:
                self._watch = Watch(
                    self._processes,
                    self._end_processes,
                    self._folder,
                    options.memory_limit,
                    options.limits.for_threads(options.threads),
                    options.limits,
                )
        except BaseException:
            self.kill()
            raise

    def ask(self, request: Request, limit_s: float) -> Reply:
        """Send a request and wait for its reply. Raises ChildError, ProtocolError."""
        deadline = time.monotonic() + limit_s
        self.send(request, limit_s)
        return self.reply(deadline - time.monotonic())

    def send(self, request: Request, limit_s: float) -> None:
        """Send a request whose `reply` is read later. Raises ChildError."""
        if limit_s <= 0:
            raise ChildTimeout("no answer in time")
        try:
            self._channel.settimeout(limit_s)
            self._channel.sendall(encode(request))
        except TimeoutError:
            raise ChildTimeout("no answer in time") from None
        except OSError:
            raise self._death() from None
        finally:
            self._channel.setblocking(False)

    def wait_until_seed_is_awaited(self, limit_s: float) -> bool:
        """Wait until the child has done what comes before a repetition, and waits for its seed.

        False where it answers or ends instead, of which `reply` tells. Keeps the core busy, at
        first at least: the child keeps its own busy meanwhile. Raises ChildTimeout.
        """
        start = time.monotonic()
        while not any(self._memory.is_seed_awaited() for _ in range(_LOOKS)):
            if self._process.poll() is not None or select.select([self._channel], [], [], 0)[0]:
                return False
            waited_s = time.monotonic() - start
            if waited_s > limit_s:
                raise ChildTimeout("no answer in time")
            if waited_s > _POLL_S:
                time.sleep(_PAUSE_S)
        return True

    def hand_over(self, seed: int) -> None:
        """Give the seed to a child that waits for one."""
        self._memory.hand_over(seed)

    def reply(self, limit_s: float) -> Reply:
        """Wait for a reply that needs no request: Ready. Raises as `ask` does."""
        deadline = time.monotonic() + limit_s
        length = message_length(self._read(HEADER_BYTES, deadline))
        return decode_reply(self._read(length, deadline))

    def take(self, sizes: Sequence[int]) -> list[memoryview]:
        """Copies of the bytes that belong to the last reply. Raises ChildError."""
        return self._memory.take(sizes)

    def pause(self, paused: bool) -> None:
        """Stop all that the child runs, or let it go on."""
        if self._watch is not None:
            self._watch.pause(paused)
        else:
            signal_all(self._processes, signal.SIGSTOP if paused else signal.SIGCONT)

    def seal_cache(self) -> None:
        """Keep what the child has compiled so far, and nothing that it writes from here on."""
        self.pause(True)
        try:
            self._save_cache()
        finally:
            self._keeps_cache = False
            self.pause(False)

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
        """End the child and all that it started at once; keep its cache, unless that was sealed;
        remove its folder."""
        if self._watch is not None:
            self._watch.stop()
        ended = True
        if self._process is not None:
            self._end_processes()
            try:
                self._process.wait(_KILL_WAIT_S)
            except subprocess.TimeoutExpired:  # the kernel waits for a device that hangs
                ended = False
            _live.discard(self._process.pid)
            # an earlier child may have made this process adopt bubblewrap's own too
            reap(self._orphans() | adopted_from(self._process.pid))
            self._channel.close()
            self._log_thread.join(_EXIT_WAIT_S)
        if self._memory is not None:
            self._memory.close()
        if not ended:
            return
        self._save_cache()
        remove(self._folder)
        if self._account is not None:
            for path in self._account.leftovers():
                remove(path)
            self._account.release()
            self._account = None

    def _save_cache(self) -> None:
        if self._keeps_cache and self._cache.is_dir():
            uid = self._account.uid if self._account else None
            save_submission_cache(self._digest, self._cache, uid)

    def _make_folder(self, submission: Submission, options: ChildOptions) -> Path:
        """Fill the child's folder; the folder of the judge's kernels in it."""
        kernels = self._folder / "judge_kernels"
        write_files(submission.files, self._folder / STUDENT_FOLDER)
        write_files(options.judge_kernels, kernels)
        load_submission_cache(self._digest, self._cache)
        (self._folder / "tmp").mkdir()
        if self._account is not None:
            give(self._folder, self._account.uid)
        return kernels

    def _prefix(self, options: ChildOptions, environment: dict[str, str]) -> list[str]:
        """Bubblewrap's command line, where it is the sandbox."""
        if self._sandbox.kind is not Kind.BUBBLEWRAP:
            return []
        devices, others_hidden = ([], False)
        if options.device != "cpu" and options.profile is None:
            devices, others_hidden = gpu_files(options.gpu)
        if others_hidden:  # an index would count the GPUs that are left
            environment["CUDA_VISIBLE_DEVICES"] = f"GPU-{options.gpu}"
        mounts = Mounts(self._folder, devices)
        return bubblewrap_command(self._sandbox.bwrap, mounts, self._sandbox.own_account)

    def _confinement(self, options: ChildOptions) -> Confinement:
        if not self._sandbox.confined:
            return Confinement(confined=False)
        limits = options.limits
        return Confinement(
            uid=self._account.uid if self._account else None,
            # a little above what the watch allows, so that the watch can say what was too much
            tasks=limits.for_threads(options.threads) + _TASK_MARGIN
            if counts_own_tasks(self._sandbox)
            else None,
            cpu_s=limits.cpu_s * options.threads,
            open_files=limits.open_files,
            file_bytes=limits.file_bytes,
        )

    def _processes(self) -> set[int]:
        return descendants([self._process.pid, *self._orphans()])

    def _orphans(self) -> set[int]:
        if not self._adopts:
            return set()
        return orphans(self._account.uid if self._account else None, _live)

    def _end_processes(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        if not isolated(self._sandbox):
            if self._account is not None:
                self._account.end_processes()
            signal_all(self._processes, signal.SIGKILL)

    def _read(self, count: int, deadline: float) -> memoryview:
        view = memoryview(bytearray(count))
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
        return view

    def _death(self) -> ChildDied:
        try:
            status = self._process.wait(_EXIT_WAIT_S)
        except subprocess.TimeoutExpired:
            status = None
        if self._watch is not None and self._watch.excess:
            return ChildDied(self._watch.excess)
        if status is None:
            return ChildDied("closed its channel to the judge")
        number = -status
        if self._sandbox.kind is Kind.BUBBLEWRAP:
            number = status - _SIGNALLED
        if number <= 0:
            return ChildDied(f"the process exited with status {status}")
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = str(number)
        return ChildDied(f"the process was ended by signal {name}")
