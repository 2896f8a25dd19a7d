"""The workers of a cluster that can keep a lane: who is there, and whether they fit the run."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from judge.engines.cluster_file import ClusterError
from judge.engines.clusters import Cluster
from judge.engines.dask_worker import RESOURCE, Facts, describe, versions
from judge.host import Host, Wish
from judge.text import plain

if TYPE_CHECKING:
    from distributed import Client

_POLL_S = 0.25
_ANSWER_S = 20.0
_LOOK_S = 180.0
_SAID_AGAIN_S = 30.0


@dataclass(frozen=True)
class Found:
    """A worker.

    given_name: Dask's. facts: None where it could not say any, for the reason in `problem`.
    """

    address: str
    given_name: str
    facts: Facts | None
    problem: str = ""

    @property
    def name(self) -> str:
        """For people: its host and name."""
        if self.facts is None or self.facts.looked is None:
            return self.given_name
        port = self.address.rpartition(":")[2]
        own = port if self.given_name == self.address else self.given_name
        return plain(f"{self.facts.host_name}/{own}", 60)

    @property
    def host(self) -> Host | None:
        """What its machine has, if that was asked and it has what is wanted."""
        return self.facts.looked.host if self.facts and self.facts.looked else None


class Workers:
    """Those of one cluster for one run.

    wish: what their machines must have; None where they are this machine's own. first: the workers
    to begin with, which `wait_for_first` finds. patience_s: how long to wait for one to come.
    """

    def __init__(self, cluster: Cluster, wish: Wish | None) -> None:
        self.first: list[Found] = []
        self.patience_s = cluster.wait_s
        self._cluster = cluster
        self._client = cluster.client
        self._wish = msgspec.msgpack.encode(wish) if wish is not None else None

    def wait_for_first(self, message: Callable[[str], None]) -> None:
        """Wait until there is a worker, and take all that are there. Raises ClusterError.

        message: told what is waited for. All must fit: a run never begins with mixed versions or
        devices.
        """
        name, limit = self._cluster.name, self._cluster.wait_s
        start = said = time.monotonic()
        message(f"waiting for workers of {name}, for {limit:.0f} s at most")
        while not (addresses := self.present() or {}):
            now = time.monotonic()
            if now - start > limit:
                raise ClusterError(self._nobody(limit))
            if now - said > _SAID_AGAIN_S:
                said = now
                message(f"still waiting for workers of {name}")
            time.sleep(_POLL_S)
        looked = self.look(list(addresses))
        for found in looked:
            problem = self.problem(found, self.first)
            if problem:
                raise ClusterError(f"worker {found.name}: {problem}")
            self.first.append(found)
        if not self.first:
            raise ClusterError(f"the workers of {name} are gone again")

    @property
    def host(self) -> Host | None:
        """What all of their machines have, once the first are found; None where not asked."""
        return self.first[0].host if self.first else None

    def present(self) -> dict[str, str] | None:
        """Names by address of the workers that have the resource; None without an answer."""
        workers = self._identity()
        if workers is None:
            return None
        return {
            address: str(worker["name"])
            for address, worker in workers.items()
            if worker["resources"].get(RESOURCE)
        }

    def look(self, addresses: Sequence[str]) -> list[Found]:
        """What workers say of themselves; those that are gone meanwhile are left out."""
        names = self.present() or {}
        there = [address for address in addresses if address in names]
        if not there:
            return []
        try:
            answers = ask(self._client, there, _LOOK_S, describe, self._wish)
        except (OSError, TimeoutError) as error:
            answers = dict.fromkeys(there, error)
        return [_found(address, names[address], answers.get(address)) for address in there]

    def problem(self, found: Found, beside: Iterable[Found]) -> str:
        """One line: why a worker cannot be used beside others; empty where it can."""
        if found.facts is None:
            return found.problem
        for what, own in versions().items():
            theirs = found.facts.versions.get(what, "none")
            if theirs != own:
                return f"{what} {theirs} there, {own} here; all workers must run this judge's"
        if found.facts.looked is not None and found.facts.looked.host is None:
            return found.facts.looked.problem
        for other in beside:
            clash = _clash(found, other)
            if clash:
                return clash
        return ""

    def _identity(self) -> dict[str, dict] | None:
        try:
            scheduler = self._client.scheduler
            if scheduler is None or self._client.status != "running":
                return None
            found = self._client.sync(scheduler.identity, n_workers=-1, callback_timeout=_ANSWER_S)
        except (OSError, TimeoutError, AttributeError):
            return None
        return found["workers"]

    def _nobody(self, limit: float) -> str:
        workers = self._identity()
        name = self._cluster.name
        if workers is None:
            return f"{name} answers no more"
        if workers:
            wanted = f'start them with --resources "{RESOURCE}=1"'
            return f"none of the {len(workers)} workers of {name} has the resource GPU; {wanted}"
        return f"no worker of {name} has come within {limit:.0f} s"


def ask(
    client: Client,
    addresses: Sequence[str],
    limit_s: float,
    function: Callable[..., object],
    *values: object,
) -> dict[str, object]:
    """What a function returns, or raises, in each of some workers, beside what they are at.

    Raises TimeoutError where not all have answered in time, and OSError.
    """
    answers: queue.SimpleQueue[dict[str, object] | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put(client.run(function, *values, workers=addresses, on_error="return"))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        answer = answers.get(timeout=limit_s)
    except queue.Empty:
        raise TimeoutError(f"no answer within {limit_s:.0f} s") from None
    if isinstance(answer, Exception):
        raise OSError(str(answer))
    return answer


def _found(address: str, name: str, answer: object) -> Found:
    if isinstance(answer, bytes):
        return Found(address, name, msgspec.msgpack.decode(answer, type=Facts))
    if "ModuleNotFoundError" in repr(answer):  # Dask hands it on inside another exception
        problem = "cannot import this judge; put its folder on PYTHONPATH there"
        return Found(address, name, None, problem)
    return Found(address, name, None, plain(f"does not say what it is: {answer!r}"))


def _clash(found: Found, other: Found) -> str:
    """Why two workers do not fit into one run."""
    if found.host is None or other.host is None:
        return ""
    a, b = found.host, other.host
    for what, theirs, others in (
        ("device", a.environment.device_name, b.environment.device_name),
        ("SMs", a.environment.sms, b.environment.sms),
        ("sandbox", str(a.sandbox.kind), str(b.sandbox.kind)),
    ):
        if theirs != others:
            return f"{what} {theirs} there, {others} at {other.name}; a run needs them alike"
    if a.gpu and a.gpu == b.gpu:
        return f"the same GPU as {other.name} ({a.gpu}); give each its own CUDA_VISIBLE_DEVICES"
    return ""
