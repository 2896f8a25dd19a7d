"""What several tables show of a case in the same words."""

from __future__ import annotations

from rich.text import Text

from judge.case import Case
from judge.text import plain


def state_text(case: Case) -> Text:
    """Whether it has an initial state, and the state's scale where that is not 1."""
    scale = case.initial_state
    if scale is None:
        return Text("no", style="dim")
    return Text("yes" if scale == 1 else f"{scale:g}×")


def gate_text(case: Case) -> Text:
    """The gate's name, and the value of a constant one."""
    value = case.gate_value
    return Text(plain(case.gate, 20) + (f" {value:g}" if value is not None else ""))
