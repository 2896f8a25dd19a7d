"""Make this machine a Slurm cluster of one node, to try the judge on: no systemd, no database.

    sudo python3 scripts/install_slurm.py [--gpus N] [--folder DIR]
    sudo python3 scripts/install_slurm.py --stop

Debian or Ubuntu, as root. Installs Slurm and MUNGE from the distribution where they are missing,
and starts munged, slurmctld and slurmd with files of their own in one folder: nothing in /etc is
written, and a Slurm that is configured there is left alone. Started twice, it starts what does not
run. --stop ends the daemons and removes the folder; the packages stay. A folder that holds anything
but such a cluster is left alone. Exit status: 0, also where --stop finds no folder; 1 something
failed; 2 wrong usage, with one line that says what to change. A cluster for a lab needs more than
this: docs/cluster.md.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

PACKAGES = ("munge", "slurm-client", "slurm-wlm-basic-plugins", "slurmctld", "slurmd")
DAEMONS = ("munged", "slurmctld", "slurmd")
FOLDER = Path("/run/gdn-judge-slurm")
SLURMCTLD_PORT, SLURMD_PORT = 16817, 16818  # not Slurm's own: another one may run here
READY_S = 30.0
PARTITION = "gdn"
MARKER = ".gdn-judge-slurm"


@dataclass(frozen=True)
class Files:
    """Where everything of this cluster lies."""

    folder: Path

    @property
    def marker(self) -> Path:
        """What tells the folder from one of somebody else, which is never written to."""
        return self.folder / MARKER

    @property
    def conf(self) -> Path:
        """What SLURM_CONF must name."""
        return self.folder / "slurm.conf"

    @property
    def key(self) -> Path:
        """The secret by which MUNGE knows its own."""
        return self.folder / "munge.key"

    @property
    def munge_socket(self) -> Path:
        """Where munged listens, for every user of the machine."""
        return self.folder / "munge" / "socket"

    def pid(self, daemon: str) -> Path:
        """The file in which a daemon keeps its process id."""
        return self.folder / f"{daemon}.pid"

    def log(self, daemon: str) -> Path:
        """Where a daemon says what it does."""
        return self.folder / f"{daemon}.log"


def main() -> None:
    """Start or stop; exit with one line where something is missing or does not come up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"default: {FOLDER}")
    parser.add_argument(
        "--gpus",
        type=int,
        metavar="N",
        help="GPUs that Slurm knows of; default: those there are, or two stand-ins",
    )
    parser.add_argument("--stop", action="store_true", help="end the daemons, remove the folder")
    options = parser.parse_args()
    if os.geteuid() != 0:
        wrong_usage("root is needed: Slurm's daemons start jobs under other accounts")
    files = Files(options.folder.resolve())
    if options.stop:
        stop(files)
        return
    check_folder(files)
    install()
    configure(files, options.gpus)
    start(files)
    print(f"ready: export SLURM_CONF={files.conf}")


def wrong_usage(text: str) -> NoReturn:
    """One line, exit status 2."""
    print(text, file=sys.stderr)
    sys.exit(2)


def check_folder(files: Files) -> None:
    """Exit with one line where the folder is there and is neither empty nor this script's."""
    here = files.folder
    if here.exists() and not files.marker.is_file() and not (here.is_dir() and empty(here)):
        wrong_usage(f"{here} holds no cluster of this script; name another folder (--folder)")


def empty(folder: Path) -> bool:
    """Whether nothing is in a folder."""
    return next(folder.iterdir(), None) is None


def install() -> None:
    """The packages that are missing, from the distribution."""
    if all(shutil.which(daemon) for daemon in (*DAEMONS, "sbatch")):
        return
    if shutil.which("apt-get") is None:
        sys.exit(f"apt-get is not here; install {', '.join(PACKAGES)} by hand")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(["apt-get", "--quiet", *command], env=environment, check=False)
        if done.returncode != 0:
            sys.exit(f"apt-get {command[0]} failed")


def configure(files: Files, gpus: int | None) -> None:
    """Write the key and the configuration; a cluster that runs keeps the ones it has."""
    check_folder(files)
    if all(running(files, daemon) for daemon in DAEMONS):
        return
    files.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    files.marker.write_text("Written by install_slurm.py; --stop removes this folder.\n")
    files.munge_socket.parent.mkdir(mode=0o755, exist_ok=True)
    for name in ("state", "spool"):
        (files.folder / name).mkdir(mode=0o700, exist_ok=True)
    if not files.key.exists():
        files.key.touch(mode=0o400)
        files.key.write_bytes(secrets.token_bytes(64))
    devices = gpu_devices(files.folder, gpus)
    files.conf.write_text(slurm_conf(files, len(devices)))
    lines = [f"Name=gpu File={device}\n" for device in devices]
    (files.folder / "gres.conf").write_text("".join(lines))
    # Read by slurmd even where no cgroup plugin is configured; the defaults ask systemd.
    (files.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nConstrainDevices=no\n")


def gpu_devices(folder: Path, count: int | None) -> list[Path]:
    """Device files of GRES gpu: the real ones, then stand-ins that no program can compute on."""
    real = [one for one in sorted(Path("/dev").glob("nvidia[0-9]*")) if one.name[6:].isdecimal()]
    wanted = (len(real) or 2) if count is None else count
    devices = real[:wanted]
    for number in range(len(devices), wanted):
        stand_in = folder / f"gpu{number}"
        if not stand_in.exists():  # Slurm takes character devices alone: another /dev/null
            os.mknod(stand_in, 0o600 | stat.S_IFCHR, Path(os.devnull).stat().st_rdev)
        devices.append(stand_in)
    return devices


def slurm_conf(files: Files, gpus: int) -> str:
    """The configuration of one node: no accounting, no cgroups, one job a core."""
    host = socket.gethostname().split(".")[0]
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory_mib = int(pages / 2**20 * 0.9)
    cores = len(os.sched_getaffinity(0))
    gres = f" Gres=gpu:{gpus}" if gpus else ""
    return f"""ClusterName=gdn
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={SLURMCTLD_PORT}
SlurmdPort={SLURMD_PORT}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={files.munge_socket}
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
MailProg=/bin/true
ReturnToService=2
KillWait=10
StateSaveLocation={files.folder}/state
SlurmdSpoolDir={files.folder}/spool
SlurmctldPidFile={files.pid("slurmctld")}
SlurmdPidFile={files.pid("slurmd")}
SlurmctldLogFile={files.log("slurmctld")}
SlurmdLogFile={files.log("slurmd")}
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={memory_mib}{gres} State=UNKNOWN
PartitionName={PARTITION} Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def start(files: Files) -> None:
    """Start what does not run, and wait for the node."""
    munge = [
        *("munged", f"--key-file={files.key}", f"--socket={files.munge_socket}"),
        *(f"--pid-file={files.pid('munged')}", f"--log-file={files.log('munged')}"),
        f"--seed-file={files.folder}/munge.seed",
    ]
    launch(files, "munged", munge, munge=True)
    for daemon in ("slurmctld", "slurmd"):
        launch(files, daemon, [daemon, "-f", str(files.conf)])
    state = ""

    def idle() -> bool:
        nonlocal state
        state = node_state(files)
        return state in ("idle", "mixed", "allocated")

    if not wait_for(idle):
        said = last_lines(files.log(name) for name in DAEMONS)
        sys.exit(f"the node does not come up: {state or 'no answer'}\n{said}")


def launch(files: Files, daemon: str, command: list[str], *, munge: bool = False) -> None:
    """Start a daemon that does not run; it leaves this process by itself."""
    if running(files, daemon):
        return
    files.pid(daemon).unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    ready = files.munge_socket.exists if munge else lambda: running(files, daemon) is not None
    if done.returncode != 0 or not wait_for(ready):
        said = (done.stderr + done.stdout).strip() or last_lines([files.log(daemon)])
        sys.exit(f"{daemon} does not start: {said}")


def node_state(files: Files) -> str:
    """What sinfo calls the node; empty where it has no answer."""
    return ask(files, "sinfo", "--noheader", "--format=%T") or ""


def ask(files: Files, *command: str) -> str | None:
    """What a command of Slurm prints; None where it fails or does not end in time."""
    environment = {**os.environ, "SLURM_CONF": str(files.conf)}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=READY_S
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def stop(files: Files) -> None:
    """End the daemons, the jobs' first, and remove what they left; nothing to do is no failure."""
    if not files.folder.exists():
        print(f"nothing to stop: {files.folder} is not there")
        return
    if not files.marker.is_file():
        wrong_usage(f"{files.folder} holds no cluster of this script; name its own (--folder)")
    if running(files, "slurmctld"):
        cancel_jobs(files)
    for daemon in reversed(DAEMONS):
        pid = running(files, daemon)
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            if not wait_for(lambda daemon=daemon: running(files, daemon) is None):
                sys.exit(f"{daemon} does not end (process {pid})")
    shutil.rmtree(files.folder)
    print(f"stopped; {files.folder} is removed, the packages stay: {' '.join(PACKAGES)}")


def cancel_jobs(files: Files) -> None:
    """End the jobs, as far as Slurm answers; say so where it does not."""
    for state in ("PENDING", "RUNNING"):
        if ask(files, "scancel", "--partition", PARTITION, "--state", state) is None:
            print("scancel does not answer: jobs may go on", file=sys.stderr)
            return
    wait_for(lambda: not ask(files, "squeue", "--noheader"))


def running(files: Files, daemon: str) -> int | None:
    """The process id of a daemon of this cluster; None where it does not run."""
    try:
        pid = int(files.pid(daemon).read_text())
        command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]  # empty once it is dead
    except (OSError, ValueError):
        return None
    return pid if Path(command).name == daemon else None


def wait_for(ready: Callable[[], bool]) -> bool:
    """Whether something came true in time."""
    end = time.monotonic() + READY_S
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def last_lines(logs: Iterable[Path], count: int = 5) -> str:
    """The end of each log that there is."""
    return "\n".join(
        line for log in logs if log.exists() for line in log.read_text().splitlines()[-count:]
    )


if __name__ == "__main__":
    main()
