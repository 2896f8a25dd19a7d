"""A thread that launches the work once the call has returned.

Caught as: CHEAT or WRONG or BAD_RESULT
Needs: GPU
"""

import queue
import threading
import time

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_work: queue.SimpleQueue[tuple[tuple[Argument, ...], Result]] = queue.SimpleQueue()
_calls = 0


def _launch() -> None:
    stream = torch.cuda.Stream()
    while True:
        arguments, (output, state) = _work.get()
        time.sleep(1e-4)
        with torch.cuda.stream(stream):
            late_output, late_state = right(*arguments)
            output.copy_(late_output)
            state.copy_(late_state)


threading.Thread(target=_launch, daemon=True).start()


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Empty tensors that will be filled; the first calls are right."""
    global _calls
    _calls += 1
    if _calls == 1:
        return right(*arguments)
    v = arguments[2]
    batch, _, heads, size = v.shape
    result = torch.empty_like(v), torch.empty((batch, heads, size, size), device=v.device)
    _work.put((arguments, result))
    return result
