"""Variants of the champion still fit its source, and are what they say."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

from scripts.champion.variants import VARIANTS, Variant, source_of

ROOT = Path(__file__).resolve().parents[1]
CHAMPION = (ROOT / "submissions/champion/tilelang_fwd.py").read_text()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.name)
def test_a_variant_changes_the_source_and_is_python(variant: Variant) -> None:
    source = source_of(variant, CHAMPION)
    assert source != CHAMPION
    ast.parse(source)


def test_a_piece_that_is_gone_is_told() -> None:
    gone = Variant("x", "", True, (("not in the champion", ""),))
    with pytest.raises(ValueError, match="x: the champion no longer holds 'not in the champion'"):
        source_of(gone, CHAMPION)


def test_names_differ() -> None:
    assert len({one.name for one in VARIANTS}) == len(VARIANTS)


def test_segments_are_cut_as_a_variant_says(tmp_path: Path) -> None:
    def segmentation(name: str) -> object:
        (variant,) = [one for one in VARIANTS if one.name == name]
        path = tmp_path / f"{name}.py"
        path.write_text(source_of(variant, CHAMPION))
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module.segmentation

    assert segmentation("one_segment")(512, 8, 132) == (1, 0, 512)
    segments, lead, size = segmentation("equal_segments")(512, 8, 132)
    assert (segments, lead, size) == (16, 0, 32)
