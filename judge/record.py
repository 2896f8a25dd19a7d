"""One graded run as data: everything that a view, a store or a leaderboard needs, versioned."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from judge.case import Case
from judge.verdict import Rules, Verdict

SCHEMA_VERSION = 3
READABLE_VERSIONS = (1, 2, 3)
"""What later versions added has defaults, so that older records still load."""


@dataclass
class TensorError:
    """How one returned tensor differs from the float64 reference.

    max_abs: largest |actual − expected|.
    max_ratio: largest |actual − expected| / (tolerance · (1 + |expected|)); above 1 is wrong.
    place: index of that largest ratio. share_wrong: share of elements whose ratio is above 1.
    """

    tensor: str
    max_abs: float
    max_ratio: float
    place: list[int]
    share_wrong: float


@dataclass
class Timing:
    """Timed calls of one case, in milliseconds, in the order in which they ran.

    spread: (p90 − p10) / median.
    """

    samples_ms: list[float]
    median_ms: float
    min_ms: float
    p10_ms: float
    p90_ms: float
    spread: float


@dataclass
class Audit:
    """A repetition whose result was compared with the reference for its own contents.

    call: which one. gate: in place of the case's own, None where that was kept.
    errors: in units of this audit's tolerance.
    """

    call: str
    seed: int
    gate: str | None
    tolerance: float
    errors: list[TensorError]


@dataclass
class Witness:
    """What the judge's own clock says of the claimed times; milliseconds, medians of repetitions.

    claimed_ms: a timed call. paired_ms: a call beside which the null submission, which does
    nothing, was asked for one; seen_ms, null_ms: those repetitions by the judge's clock.
    unclaimed_ms: what a repetition took beside its call, less the same of the null submission;
    allowed_ms: how much of that is let pass. busy_us: microseconds from the stop event until the
    device was idle, less the same of the null submission. floor_ms: the least that a call can take
    on this device, None where unknown. loop_ms: a call in the lab's loop that followed, None where
    none did; charged_ms: what was added to that loop's times, because calls with new contents took
    that much longer than cold caches explain.
    """

    claimed_ms: float
    paired_ms: float
    seen_ms: float
    null_ms: float
    unclaimed_ms: float
    allowed_ms: float
    busy_us: float
    floor_ms: float | None
    loop_ms: float | None = None
    charged_ms: float = 0.0


@dataclass
class Conditions:
    """What NVML said of the GPU at one moment: MHz, degrees Celsius, watts.

    throttled: why its clocks were held down, empty where they were not. other_processes: process
    ids of what else had work on it.
    """

    sm_mhz: int
    memory_mhz: int
    temperature_c: int
    power_w: float
    throttled: list[str]
    other_processes: list[int]


@dataclass
class CaseResult:
    """Verdict, errors, timing and score of one case.

    detail: one line of plain text that says what happened, empty on PASS.
    errors: of output and final_state, the worst of the judged calls, each in units of its own
        tolerance; None where not compared.
    score: None where the case is not timed, has no baseline, or the verdict earns none yet; 0.0
        where a timed case failed.
    seconds: wall time by phase (prepare, first_call, run, collect, reference, null, baseline, …).
    audits, witness: of the strict protocol; empty and None under the lab's.
    gpu_ms: a call without its host cost, for information: the score knows the events' median
        alone; gpu_ms_by: graph, queue or profiler.
    conditions: of the GPU before and after the timed calls, where NVML tells. noisy: why these
        times are, empty where nothing says so. repeated: whether they are of a second attempt,
        made because the first one's were noisy or the judge's clock contradicted them.
    """

    suite: str
    case: Case
    verdict: Verdict
    detail: str
    errors: list[TensorError] | None
    timing: Timing | None
    score: float | None
    seconds: dict[str, float]
    audits: list[Audit] = field(default_factory=list)
    witness: Witness | None = None
    gpu_ms: float | None = None
    gpu_ms_by: str = ""
    conditions: list[Conditions | None] = field(default_factory=list)
    noisy: str = ""
    repeated: bool = False


@dataclass
class SuiteScore:
    """Plain mean over the timed cases of one suite that ran.

    score: None without a baseline. cases_run, cases_total: timed cases, or all cases of a suite
        that has no timed ones. complete: whether all of these ran, of the suite's whole file.
    """

    suite: str
    weight: float | None
    score: float | None
    cases_run: int
    cases_total: int
    complete: bool
    digest: str


@dataclass
class Score:
    """Suite means and the total.

    total: weighted mean of the weighted suites, None unless all of them ran in full.
    graded: whether the total counts; why_not: the reason where it does not, else empty.
    gate: passed, failed or not_run (the correctness suite did not run in full) or off (--no-gate).
    """

    suites: list[SuiteScore]
    total: float | None
    graded: bool
    why_not: str
    gate: str


@dataclass
class Baseline:
    """Where t100 and t60 come from; one source for all cases of a total.

    source: checkpoints, live, reference or none. name: the file or implementations used.
    t100_ms, t60_ms: by case name; t60 is never below 1.25 · t100.
    """

    source: str
    name: str
    t100_ms: dict[str, float]
    t60_ms: dict[str, float]
    timings: dict[str, Timing]


@dataclass
class RivalResult:
    """Another implementation on a case of the run, in a child of its own.

    scope: core (from prepared inputs, as the submission) or full_forward (from raw ones). verdict:
    PASS too where it was right on this case beside an earlier submission of the run. role: t100 or
    t60 where its time is that, else empty. timing: None where it is not right or was not
    timed. in_turns: whether its calls came in blocks in turns with the submission's; else before.
    gpu_ms, gpu_ms_by: as of a case's result.
    """

    case: str
    implementation: str
    scope: str
    version: str
    verdict: Verdict
    detail: str
    role: str
    timing: Timing | None
    in_turns: bool
    gpu_ms: float | None = None
    gpu_ms_by: str = ""


@dataclass
class PredictedTime:
    """What one implementation would take elsewhere on a case; score: the submission's, if known."""

    case: str
    implementation: str
    scope: str
    milliseconds: float
    score: float | None


@dataclass
class Prediction:
    """Times that another device, a slice of a GPU, would show: measured ones times a factor."""

    slice: str
    clock_factor: float
    times: list[PredictedTime]


@dataclass
class Protocol:
    """How the cases were run.

    name: strict or lab. clock: cuda_events or host_clock; official is False on the host's clock.
    sandbox: bubblewrap, unprivileged user or none; empty in records that did not say.
    """

    warmup: int
    repetitions: int
    seed: int
    clock: str
    official: bool
    timeout_s: float
    name: str = "lab"
    sandbox: str = ""


@dataclass
class Environment:
    """The machine and the versions that decide the numbers; None where there is no such thing.

    sms_of: SMs of the whole device, where the run was held to `sms` of them; its memory bandwidth
    and L2 were whole.
    """

    device: str
    device_name: str
    sms: int | None
    memory_gib: float | None
    driver: str | None
    cuda: str | None
    torch: str
    tilelang: str | None
    python: str
    platform: str
    threads: int
    sms_of: int | None = None


@dataclass
class SubmissionInfo:
    """What was graded.

    digest: SHA-256 over the names and bytes of its files. log: path of its captured output.
    """

    name: str
    path: str
    digest: str
    rules: Rules
    rules_detail: str
    log: str
    log_cut: bool


@dataclass
class Record:
    """One graded run. `created` is UTC in ISO 8601; `notes` are lines a reader must not miss.

    rivals: what was timed beside the submission, other than the reference. prediction: for a slice
    of another GPU, where that was asked for.
    """

    schema_version: int
    judge_version: str
    created: str
    interrupted: bool
    submission: SubmissionInfo
    environment: Environment
    protocol: Protocol
    baseline: Baseline
    results: list[CaseResult]
    score: Score
    notes: list[str]
    seconds: float
    rivals: list[RivalResult] = field(default_factory=list)
    prediction: Prediction | None = None


def to_json(record: Record) -> str:
    """The record as indented JSON text."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode()


def from_json(text: str | bytes) -> Record:
    """The record that `to_json` wrote.

    Raises msgspec.ValidationError where a field is missing or of another type, and ValueError
    where the record was written under a schema version that is not among READABLE_VERSIONS.
    """
    record = msgspec.json.decode(text, type=Record)
    if record.schema_version not in READABLE_VERSIONS:
        versions = " and ".join(map(str, READABLE_VERSIONS))
        raise ValueError(
            f"record has schema version {record.schema_version}, this judge reads {versions}"
        )
    return record
