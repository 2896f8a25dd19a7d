"""What the judge and a child say to each other over their socket.

A message is a 4-byte big-endian length and that many bytes of JSON, one of the types below. Seeds
of repetitions, and the bytes that belong to `Ran` and `Collected`, lie in memory that both see
(shared_memory.py). Nothing that comes from a child is ever unpickled.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time

import msgspec

from judge.case import Case

MAX_MESSAGE_BYTES = 64 * 1024
_LENGTH = struct.Struct(">I")


class Load(msgspec.Struct, tag=True, frozen=True):
    """Import the submission. Answer: Loaded or Failed."""


class Prepare(msgspec.Struct, tag=True, frozen=True):
    """Make the inputs of a case and preprocess them. Answer: Prepared or Failed."""

    case: Case
    seed: int


class Call(msgspec.Struct, tag=True, frozen=True):
    """Call the submission once, untimed; kernels are compiled here. Answer: Called or Failed."""


class Run(msgspec.Struct, tag=True, frozen=True):
    """Warm up, then time calls. Answer: Ran with `repetitions` float64 milliseconds, or Failed."""

    warmup: int
    repetitions: int


class Repeat(msgspec.Struct, tag=True, frozen=True):
    """Give the inputs new contents in place, then time one call. Answer: Repeated or Failed.

    The contents follow from a seed, which the child finds in its slot when it asks there for it.
    gate: in place of the case's own, None to keep that. rehearsed: whether the call is made once
    with the old contents before the seed is asked for. awake: whether the child stays awake for the
    next request.
    """

    gate: str | None
    rehearsed: bool
    awake: bool


class Collect(msgspec.Struct, tag=True, frozen=True):
    """Hand over what a call returned: the untimed `call`, the `first` or the `last` other one.

    Answer: Collected; where its `problem` is empty, the bytes of output and final_state with it.
    """

    which: str


class Profile(msgspec.Struct, tag=True, frozen=True):
    """Call again under PyTorch's profiler. Answer: Profiled or Failed."""

    calls: int


class Gauge(msgspec.Struct, tag=True, frozen=True):
    """Measure a call without what it costs the host. Answer: Gauged or Failed."""


class Check(msgspec.Struct, tag=True, frozen=True):
    """Call the submission with stand-in tensors of a case; nothing runs. Answer: Checked."""

    case: Case


class Compile(msgspec.Struct, tag=True, frozen=True):
    """Compile a kernel that a checked call launched. Answer: Compiled.

    beside: kernels whose compilation starts now too, as far as there are cores.
    """

    kernel: str
    beside: list[str]


class Close(msgspec.Struct, tag=True, frozen=True):
    """End the process. No answer."""


class Ready(msgspec.Struct, tag=True, frozen=True):
    """The child has started and holds the judge's own kernels."""


class Loaded(msgspec.Struct, tag=True, frozen=True):
    """The submission is imported and exports the function."""


class Prepared(msgspec.Struct, tag=True, frozen=True):
    """The inputs exist on the child's device; digests of their contents by argument name."""

    digests: dict[str, str]


class Called(msgspec.Struct, tag=True, frozen=True):
    """A call returned. tilelang_launches: TileLang kernels that untimed calls launched so far.

    forbidden: modules loaded by now that the rules forbid.
    """

    tilelang_launches: int
    forbidden: list[str]


class Ran(msgspec.Struct, tag=True, frozen=True):
    """All calls returned; the samples lie in the result area."""


class Repeated(msgspec.Struct, tag=True, frozen=True):
    """One call as the child saw it, answered before it can know whether the result is looked at.

    milliseconds: of the call, by CUDA events or the host's clock. busy_us: what the device still
    took from the stop event until it was idle, in microseconds, the copies of the result included.
    problem: why the returned object is no result, else empty. digest: of output and final_state.
    """

    milliseconds: float
    busy_us: float
    problem: str
    digest: str


class Collected(msgspec.Struct, tag=True, frozen=True):
    """What a call returned: `problem` says in one line why it is no result, else it is empty.

    digests: of the inputs as they are now. replaced: what the judge relies on and found replaced.
    forbidden: modules loaded by now that the rules forbid.
    """

    problem: str
    digests: dict[str, str]
    replaced: list[str]
    forbidden: list[str]


class ProfiledRow(msgspec.Struct, frozen=True):
    """What one kernel or operator took in all profiled calls together.

    kind: "cuda" for what ran on the device, "cpu" for what the host did, itself, without what it
    called. times: how often it ran. total_us: microseconds, summed.
    """

    name: str
    kind: str
    times: int
    total_us: float


class Profiled(msgspec.Struct, tag=True, frozen=True):
    """All profiled calls returned; the rows that took longest."""

    rows: list[ProfiledRow]


class Gauged(msgspec.Struct, tag=True, frozen=True):
    """Milliseconds of a call on the device, and how they were found: graph or profiler.

    spoilt: CUDA broke a capture off, after which PyTorch in this process is not to be relied on.
    """

    milliseconds: float
    method: str
    spoilt: bool = False


class Launch(msgspec.Struct, frozen=True):
    """A TileLang kernel that a dry call would have launched.

    kernel: names it in Compile. grids: blocks in x, y and z, of each CUDA kernel it consists of.
    """

    kernel: str
    name: str
    grids: list[list[int]]


class TensorForm(msgspec.Struct, frozen=True):
    """Shape and dtype of a returned tensor."""

    shape: list[int]
    dtype: str


class Checked(msgspec.Struct, tag=True, frozen=True):
    """What a dry call did.

    problem: one line, empty where all is well; kind says of what sort it is: signature, compile,
    crash, result, or not_checked, where the call did what no dry call can.
    outputs: what was returned. forbidden: modules loaded by now that the rules forbid.
    unchecked: other things that would have been launched.
    """

    problem: str
    kind: str
    launches: list[Launch]
    outputs: list[TensorForm]
    forbidden: list[str]
    unchecked: list[str]


class KernelFigures(msgspec.Struct, frozen=True):
    """What the compiler says of one CUDA kernel; sizes are bytes, registers are of a thread.

    threads: of a block. code: where units (wgmma, tma, mbarrier) were read from, SASS or PTX,
    empty where from neither. remarks: ptxas's own, about performance lost.
    """

    symbol: str
    threads: int
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    static_shared: int
    dynamic_shared: int
    units: list[str]
    code: str
    remarks: list[str]


class Compiled(msgspec.Struct, tag=True, frozen=True):
    """A compiled kernel, or in one line why it does not compile.

    seconds: of the compilation, whenever it was. cached: it was done before.
    """

    kernel: str
    error: str
    figures: list[KernelFigures]
    seconds: float
    cached: bool


class Failed(msgspec.Struct, tag=True, frozen=True):
    """An exception ended the request. error: its type and last line.

    compiling: raised while TileLang, TVM or nvcc compiled. needs_cuda: raised for want of CUDA.
    """

    error: str
    compiling: bool
    needs_cuda: bool


Request = Load | Prepare | Call | Run | Repeat | Collect | Profile | Gauge | Check | Compile | Close
Reply = (
    Ready
    | Loaded
    | Prepared
    | Called
    | Ran
    | Repeated
    | Collected
    | Profiled
    | Gauged
    | Checked
    | Compiled
    | Failed
)

_ENCODER = msgspec.json.Encoder()
_REQUESTS = msgspec.json.Decoder(Request)
_REPLIES = msgspec.json.Decoder(Reply)


class ProtocolError(Exception):
    """The other side sent something that is no message."""


def encode(message: Request | Reply) -> bytes:
    """Length and JSON of a message."""
    body = _ENCODER.encode(message)
    return _LENGTH.pack(len(body)) + body


def message_length(header: bytes) -> int:
    """Number of JSON bytes that follow a 4-byte header; ProtocolError where it is too large."""
    (length,) = _LENGTH.unpack(header)
    if length > MAX_MESSAGE_BYTES:
        raise ProtocolError(f"a message of {length} bytes; at most {MAX_MESSAGE_BYTES} are read")
    return length


def decode_reply(body: bytes) -> Reply:
    """The reply in a message's JSON bytes; ProtocolError where it is none."""
    try:
        return _REPLIES.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ProtocolError(f"not a reply: {error}") from None


def receive_request(channel: socket.socket, awake_s: float = 0.0) -> Request:
    """The next request, waited for; EOFError where the judge has gone.

    awake_s: for so long the wait keeps the core busy, so that it is neither put to sleep nor given
    away.
    """
    _stay_awake(channel, awake_s)
    length = message_length(_receive_exactly(channel, _LENGTH.size))
    return _REQUESTS.decode(_receive_exactly(channel, length))


HEADER_BYTES = _LENGTH.size


def _stay_awake(channel: socket.socket, awake_s: float) -> None:
    until = time.monotonic() + awake_s
    while time.monotonic() < until:
        with contextlib.suppress(BlockingIOError):
            channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            return


def _receive_exactly(channel: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = channel.recv(count - len(data))
        if not part:
            raise EOFError("the judge closed the channel")
        data += part
    return bytes(data)
