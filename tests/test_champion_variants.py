"""Variants of the champion still fit its source, and are what they say."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

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
    # one wave of 512 chunks and two for a CTA's start; of 32, two and a warm-up
    assert loaded("one_segment", tmp_path).segmentation(512, 8, 132) == (514, (1, 0, 512))
    assert loaded("equal_segments", tmp_path).segmentation(512, 8, 132) == (37, (16, 0, 32))


def test_columns_are_what_a_variant_says(tmp_path: Path) -> None:
    """long_low_gva in the halves that short_tail_state takes, and the other way round."""
    assert loaded("64_columns_only", tmp_path).division(512, 8, 132) == (64, (8, 3, 64))
    assert loaded("128_columns_only", tmp_path).division(17, 8, 132) == (128, (14, 3, 1))


def loaded(name: str, folder: Path) -> ModuleType:
    (variant,) = [one for one in VARIANTS if one.name == name]
    path = folder / f"{name}.py"
    path.write_text(source_of(variant, CHAMPION))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
