"""A host function in the stream that wakes a thread, which launches the work elsewhere.

The events see a host function of no length; the thread's stream does the work meanwhile.

Caught as: CHEAT or WRONG or BAD_RESULT
Needs: GPU
Limit: run 60
"""

import ctypes
import queue
import threading
from pathlib import Path

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_planned: queue.SimpleQueue[tuple[tuple[Argument, ...], Result]] = queue.SimpleQueue()
_wake = threading.Semaphore(0)
_calls = 0


def _launch() -> None:
    stream = torch.cuda.Stream()
    while True:
        _wake.acquire()
        arguments, (output, state) = _planned.get()
        with torch.cuda.stream(stream):
            late_output, late_state = right(*arguments)
            output.copy_(late_output)
            state.copy_(late_state)


@_HOST_FUNCTION
def _signal(_: int | None) -> None:
    _wake.release()


threading.Thread(target=_launch, daemon=True).start()
torch.cuda.init()
_lines = Path("/proc/self/maps").read_text().splitlines()
_library = ctypes.CDLL(next(line.split()[-1] for line in _lines if "libcudart" in line))


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Empty tensors and a host function; the first call is right."""
    global _calls
    _calls += 1
    if _calls == 1:
        return right(*arguments)
    v = arguments[2]
    batch, _, heads, size = v.shape
    result = torch.empty_like(v), torch.empty((batch, heads, size, size), device=v.device)
    _planned.put((arguments, result))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    _library.cudaLaunchHostFunc(stream, _signal, None)
    return result
