"""The process exchanged for another program, which speaks the protocol and has its own clock.

The import never ends: exec replaces the program, the channel stays open. The new program does
what the worker does, honestly but for the times.

Caught as: CHEAT
Needs: CPU or GPU
"""

import os
import sys

from right import gdn_prefill_forward as right
from tools import Argument, Result

_MARK = "GDN_IMPOSTOR"
_PROGRAM = """
import os, socket, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import msgspec, torch
from judge.child import worker
from judge.child.protocol import Close, Repeated, encode, receive_request

settings = msgspec.json.decode(sys.argv[4], type=worker.Settings)
channel = socket.socket(fileno=int(sys.argv[2]))
torch.set_num_threads(settings.threads)
server = worker.Worker(settings, int(sys.argv[3]))
sys.path[:0] = [str(Path(settings.folder) / "student"), settings.folder]
channel.sendall(encode(server._load()))
while not isinstance(request := receive_request(channel), Close):
    reply = server.answer(request)
    if isinstance(reply, Repeated):
        reply = msgspec.structs.replace(reply, milliseconds=reply.milliseconds / 10)
    channel.sendall(encode(reply))
"""

if _MARK not in os.environ:
    os.environ[_MARK] = "1"
    program = f"import sys; sys.path[:] = {sys.path!r}\n{_PROGRAM}"
    os.execv(
        sys.executable,
        [sys.executable, "-P", "-c", program, *sys.argv[1:]],
    )


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result."""
    return right(*arguments)
