"""What is told where an extra is not installed."""

from __future__ import annotations

import pytest

from scripts.extras import require


def test_a_missing_module_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    require("sys", "profile")
    with pytest.raises(SystemExit) as ended:
        require("no_such_module", "profile")
    assert ended.value.code == 2
    told = "Error: needs no_such_module: pip install -e '.[profile]'\n"
    assert capsys.readouterr().err == told
