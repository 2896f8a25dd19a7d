"""What can be checked of the site's accessibility without a browser, on every kind of page."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from judge.site.build import private_folder, write_site
from judge.site.render import STYLE
from judge.store.store import Store
from tests.site_pages import Page, fill, read

TEXT = 4.5
"""Least contrast of text, and of what is no text, by WCAG 2.2 AA (1.4.3 and 1.4.11)."""
GRAPHIC = 3.0
PAIRS = (
    *((name, ground, TEXT) for name in ("ink", "soft", "link", "good", "bad", "warn")
      for ground in ("paper", "band")),
    ("ink", "line", TEXT),
    *(("bar", ground, GRAPHIC) for ground in ("paper", "band")),
)  # fmt: skip


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """Every page of a site and of those to hand out."""
    folder = tmp_path_factory.mktemp("site")
    fill(folder / "store.sqlite")
    with Store(folder / "store.sqlite") as store:
        write_site(store, folder / "site", None, False, private=True)
    found = [*(folder / "site").rglob("*.html"), *private_folder(folder / "site").rglob("*.html")]
    return {path: read(path) for path in found}


def test_language_title_viewport_and_one_heading(every: dict[Path, Page]) -> None:
    for path, page in every.items():
        (html,) = page.all("html")
        assert html["lang"] == ("zh-Hans" if path.parts[-2] == "zh" or "zh" in path.parts else "en")
        assert len(page.all("title")) == len(page.all("h1")) == len(page.all("main")) == 1
        assert [m for m in page.all("meta") if m.get("name") == "viewport"]


def test_headings_skip_no_level(every: dict[Path, Page]) -> None:
    for path, page in every.items():
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert all(b <= a + 1 for a, b in pairwise(levels)), path


def test_tables_have_captions_and_scoped_headers(every: dict[Path, Page]) -> None:
    tables = 0
    for path, page in every.items():
        assert len(page.all("caption")) == len(page.all("table"))
        assert all(head.get("scope") in ("col", "row") for head in page.all("th")), path
        tables += len(page.all("table"))
    assert tables > 40


def test_what_scrolls_can_be_reached_and_has_a_name(every: dict[Path, Page]) -> None:
    for page in every.values():
        for region in page.all("div"):
            if region.get("class") == "scroll":
                assert region["tabindex"] == "0"
                assert region["role"] == "region"
                assert region["aria-label"]
        assert all(nav.get("aria-label") for nav in page.all("nav"))


def test_pictures_say_what_they_show(every: dict[Path, Page]) -> None:
    pictures = [svg for page in every.values() for svg in page.all("svg")]
    assert len(pictures) > 80
    assert all(svg["role"] == "img" and len(svg["aria-label"]) > 20 for svg in pictures)


def test_identifiers_are_unique_and_controls_named(every: dict[Path, Page]) -> None:
    for page in every.values():
        names = [a["id"] for _, a in page.elements if "id" in a]
        assert len(names) == len(set(names))
        assert not page.all("input", "select", "textarea")  # none, so none without a label


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_contrast_of_every_pair_of_colours(mode: str) -> None:
    colours = palettes()[mode]
    for name, ground, least in PAIRS:
        ratio = contrast(colours[name], colours[ground])
        assert ratio >= least, f"{mode}: {name} on {ground} is {ratio:.2f}"


def test_every_colour_is_one_of_the_checked_ones() -> None:
    light, dark = palettes()["light"], palettes()["dark"]
    assert light.keys() == dark.keys() == {name for name, *_ in PAIRS} | {"paper", "band", "line"}
    outside = re.sub(r"--[a-z]+: #[0-9a-f]{6};", "", STYLE)
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(", outside)


def test_contrast_formula() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # WCAG's known failure


def palettes() -> dict[str, dict[str, str]]:
    """The variables of the style sheet, by mode."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)
    assert "prefers-color-scheme: dark" in STYLE[: STYLE.index(dark)]
    return {
        mode: dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", block))
        for mode, block in (("light", light), ("dark", dark))
    }


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.2, 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour, #rrggbb."""
    values = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
