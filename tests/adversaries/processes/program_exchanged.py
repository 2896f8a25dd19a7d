"""The process exchanged for another program, which speaks the protocol and has its own clock.

The import never ends: exec replaces the program, the channel stays open. The new program does
what the worker does, honestly but for the times.

Caught as: CHEAT
Needs: CPU or GPU
"""

import os
import sys
from pathlib import Path

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
server = worker.Worker(settings, worker.SeedSlot(int(sys.argv[3])))
sys.path[:0] = [str(Path(settings.folder) / "student"), settings.folder]
channel.sendall(encode(server._load()))
while not isinstance(request := receive_request(channel), Close):
    reply, payloads = server.answer(request)
    if isinstance(reply, Repeated):
        reply = msgspec.structs.replace(reply, milliseconds=reply.milliseconds / 10)
    channel.sendall(encode(reply))
    for payload in payloads:
        channel.sendall(payload)
"""


def _slot() -> str:
    """The file descriptor of the page in which seeds are handed over, kept open for exec."""
    for entry in Path("/proc/self/fd").iterdir():
        if entry.is_symlink() and "memfd:seed" in str(entry.readlink()):
            os.set_inheritable(int(entry.name), True)
            return entry.name
    raise OSError("found no page of seeds")


if _MARK not in os.environ:
    os.environ[_MARK] = "1"
    program = f"import sys; sys.path[:] = {sys.path!r}\n{_PROGRAM}"
    os.execv(
        sys.executable,
        [sys.executable, "-P", "-c", program, *sys.argv[1:3], _slot(), *sys.argv[4:]],
    )


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result."""
    return right(*arguments)
