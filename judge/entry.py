"""Where the command line starts: what only reads a store starts without torch."""

from __future__ import annotations

import sys
from importlib import import_module

from judge.commands.lines import print_line
from judge.commands.output import OutputError, watched_output

LIGHT = {
    "leaderboard": ("judge.commands.leaderboard", "leaderboard_command"),
    "export": ("judge.commands.export", "export_command"),
    "void": ("judge.commands.decide", "void_command"),
    "override": ("judge.commands.decide", "override_command"),
    "decisions": ("judge.commands.decide", "decisions_command"),
}
"""Commands that import no torch, which takes seconds, by name: module and object."""


def start() -> None:
    """Run the command that the arguments name."""
    try:
        with watched_output():
            _run(sys.argv[1] if len(sys.argv) > 1 else "")
    except OutputError as error:
        print_line(f"Error: standard output: {error.strerror}", err=True)
        sys.exit(1)


def _run(name: str) -> None:
    if name in LIGHT:
        module, command = LIGHT[name]
        getattr(import_module(module), command)(args=sys.argv[2:], prog_name=f"run.py {name}")
    else:
        import_module("judge.cli").main()
