"""The champion's page says what its raw files say, what is missing, and what does not hold."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from judge.submission import find_submission
from judge.verdict import Verdict
from tests.champion_files import (
    CEILINGS,
    HOST_MS,
    asked,
    failing,
    few_record,
    gpu_time,
    outcomes,
    public_record,
    ratio,
    read_all,
    suites_record,
    variant_factor,
    write,
    write_all,
    write_sweep,
    write_table,
)
from tests.ladder_records import CASES
from tests.make_record import make_case
from tests.page_tables import row

pytest.importorskip("matplotlib")

from scripts.champion.goals import AIMS_MS
from scripts.champion.material import Material
from scripts.champion.page import BLOCKS
from scripts.champion.raw import read_raw
from scripts.champion.variants import VARIANTS
from scripts.markdown import link
from scripts.sweep_shapes import shapes
from scripts.work import H200, work_of
from scripts.write_champion import (
    BASELINES,
    FOLDER,
    LADDER,
    PAGE,
    SUBMISSION,
    main,
    with_blocks,
)

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    write_all(folder)
    return folder


def block(folder: Path, name: str, submission: Path = SUBMISSION) -> str:
    """A block of the page made from a folder, without its markers."""
    pictures = folder.parent / "pictures"
    pictures.mkdir(exist_ok=True)
    material = Material(read_all(folder), submission, folder.parent / "p.md", pictures)
    written = with_blocks(f"<!-- champion: {name} -->\n<!-- champion: end -->", material)
    return written.removesuffix("<!-- champion: end -->").partition("\n")[2].strip()


# Megabytes, GFLOP and ms of the floor at 4.2 TB/s and 790 TFLOP/s, worked out by hand.
@pytest.mark.parametrize(
    ("case", "megabytes", "gflop", "floor"),
    [
        ("short_tail_state", 7.4, 1.3, 0.002),
        ("chain_equal", 38, 4.8, 0.009),
        ("parallel_equal", 39, 4.8, 0.009),
        ("parallel_gva", 26.5, 4.8, 0.006),
        ("long_low_gva", 204, 38.7, 0.049),
        ("batch_split_gva", 205.5, 38.7, 0.049),
        ("wide_gva_state", 415, 77.3, 0.099),
        ("deep_gva_state", 411, 77.3, 0.098),
    ],
)
def test_work_of_the_public_cases(case: str, megabytes: float, gflop: float, floor: float) -> None:
    work = work_of(CASES[case])
    assert work.bytes / 1e6 == pytest.approx(megabytes, abs=0.5)
    assert work.flops / 1e9 == pytest.approx(gflop, abs=0.05)
    assert work.floor_ms(H200) == pytest.approx(floor, abs=0.0005)


def test_work_is_the_longer_of_both() -> None:
    # One chunk, one head: 64 tokens of 2 x 256 bytes of q and k, 2 x 256 of v and output, 128 of A
    # and 8 of gates, and a state of 64 KB.
    work = work_of(make_case("x", (1, 64, 1, 1)))
    assert work.bytes == 64 * (512 + 512 + 128 + 8) + 65536
    assert work.flops == 2 * 64 * 128 * (3 * 128 + 3 * 64)
    assert work.floor_ms(replace(H200, bytes_per_s=1.0)) == 1e3 * work.bytes
    assert work.floor_ms(replace(H200, flops_per_s=1.0)) == 1e3 * work.flops


@pytest.mark.parametrize("case", list(CASES))
def test_times_are_those_of_the_record(raw: Path, case: str) -> None:
    gpu = gpu_time("champion", CASES[case])
    work = work_of(CASES[case])
    floor = 1e3 * max(work.bytes / CEILINGS.bytes_per_s, work.flops / CEILINGS.flops_per_s)
    core = gpu_time("flash_qla core", CASES[case])
    assert row(block(raw, "times"), case) == [
        *(f"{gpu + HOST_MS:.4f}", f"{gpu:.4f}", f"{HOST_MS:.4f}", f"{floor:.4f}"),
        *(f"{gpu / floor:.1f}", f"{AIMS_MS[case]:.3f}", "yes"),
        *(f"{core:.4f}", f"{gpu / core:.2f}"),
    ]


def test_noisy_and_wrong_cases_are_marked(raw: Path) -> None:
    record = public_record()
    record.results[0].noisy = "spread 12 %"
    record.results[1].verdict, record.results[1].timing = Verdict.WRONG, None
    write(raw, "public.json", record)
    text = block(raw, "times")
    assert row(text, "short_tail_state")[0].startswith("~0.0")
    assert "marked ~: short_tail_state (spread 12 %)." in text
    assert row(text, "chain_equal")[:3] == ["WRONG", "–", "–"]
    assert "Geometric mean of the ratios: – " in text
    assert failing(raw) == []
    assert "faster than FlashQLA's core on every public case" in asked(raw, None)


def test_the_mean_is_geometric(raw: Path) -> None:
    mean = math.prod(ratio(case) for case in CASES) ** (1 / 8)
    assert f"Geometric mean of the ratios: {mean:.3f} " in block(raw, "times")


def test_conditions_tell_what_was_measured_where(raw: Path) -> None:
    text = block(raw, "conditions")
    assert "- the score: 2026-01-02, NVIDIA H200, 16 of 132 SMs, driver 570.86.15" in text
    assert "- public kernels: flash_qla 1.0, flashinfer 1.0, fla 1.0" in text
    assert "All are of one source, whose digest begins with cdcdcdcdcdcd." in text
    record = few_record()
    other = replace(record.submission, digest="ef" * 32)
    write(raw, "public_16_sms.json", replace(record, submission=other))
    assert "These files are not of one champion" in block(raw, "conditions")


def test_conditions_name_the_files_that_were_read(raw: Path) -> None:
    table = write_table(raw, "aa", "all", public_record())
    (raw / "public.json").unlink()
    (raw / "variants.json").unlink()
    text = block(raw, "conditions")
    assert text.splitlines()[-1].startswith("Raw files: [table-all.json](baselines/aa/table-all.js")
    # The page lies beside both folders.
    names = re.findall(r"\[([\w.-]+)\]\(([\w/.-]+)\)", text)
    assert dict(names) == {table.name: "baselines/aa/table-all.json"} | {
        name: f"raw/{name}"
        for name in (
            *("public_16_sms.json", "all_suites.json", "sweep.csv", "ceilings.json"),
            *("v01_gemm.json", "v02_tma.json", "v07_gva_dv.json", "v14_cuda_graph.json"),
        )
    }
    assert "\n- not measured yet: variants\n" in text


def test_the_lab_s_own_kernel_is_no_public_one(raw: Path) -> None:
    record = public_record()
    own = replace(record.rivals[0], implementation="simple", version="0.3.0")
    write(raw, "public.json", replace(record, rivals=[own, *record.rivals]))
    told = "- public kernels: flash_qla 1.0, flashinfer 1.0, fla 1.0\n"
    assert told in block(raw, "conditions")


def test_ceilings_have_a_source(raw: Path) -> None:
    told = "4.00 TB/s and 750 TFLOP/s, as the judge measured them on this device"
    assert told in block(raw, "times")
    assert told in block(raw, "roofline")
    (raw / "ceilings.json").unlink()
    told = "4.20 TB/s and 790 TFLOP/s, what copies and bfloat16 products reached on an H200 before"
    assert told in block(raw, "times")


def test_cuts_are_those_of_the_champion_that_was_measured(raw: Path) -> None:
    pytest.importorskip("tilelang")
    assert "The champion has changed since" in block(raw, "binds")
    record = public_record()
    digest = find_submission(SUBMISSION).digest
    changed = replace(record, submission=replace(record.submission, digest=digest))
    write(raw, "public.json", changed)
    gpu = gpu_time("champion", CASES["long_low_gva"])
    # 16 segments of 32 chunks, and a warm-up that counts as three (tests/test_champion.py)
    cells = row(block(raw, "binds"), "long_low_gva")
    assert cells[:6] == ["8 × 512", "128", "128", "1", "35", f"{1e3 * gpu / 35:.2f}"]
    of_tensor = 38.65e9 / (gpu / 1e3) / CEILINGS.flops_per_s
    assert cells[6] == f"{100 * of_tensor:.0f} %"
    # Seven segments of two chunks, two CTAs a chain
    gpu = gpu_time("champion", CASES["short_tail_state"])
    cells = row(block(raw, "binds"), "short_tail_state")
    assert cells[:6] == ["8 × 17", "64", "112", "1", "5", f"{1e3 * gpu / 5:.2f}"]


def test_the_score_is_the_record_s(raw: Path) -> None:
    write(raw, "public_16_sms.json", few_record(1.1))
    record = few_record(1.1)
    (suite,) = record.score.suites
    text = block(raw, "score")
    assert f"Public score: {suite.score:.2f} " in text
    result = record.results[0]
    cells = row(text, result.case.name)
    assert cells[0] == f"{result.timing.median_ms:.4f}"
    assert cells[2] == f"{record.baseline.t100_ms[result.case.name]:.4f}"
    assert cells[4] == f"{result.score:.2f}"


@pytest.mark.parametrize("variant", [one.name for one in VARIANTS])
def test_variants_are_relative_to_the_champion(raw: Path, variant: str) -> None:
    (off,) = [one.off for one in VARIANTS if one.name == variant]
    cells = row(block(raw, "ablation" if off else "trials"), variant)
    factor = variant_factor(variant)
    assert cells[:-1] == [f"{factor:.3f}"] * 9
    assert (
        cells[-1]
        == {
            (True, True): f"worth {100 * (factor - 1):.1f} %",
            (True, False): "the champion is better without",
            (False, True): f"{100 * (factor - 1):.1f} % slower",
        }[off, factor > 1]
    )


def test_a_wrong_variant_has_no_ratio(raw: Path) -> None:
    record = outcomes()
    for one in record.outcomes:
        if (one.variant, one.case) == ("two_stages", "chain_equal"):
            one.verdict = Verdict.WRONG
        if one.variant == "forgets_later":
            one.median_ms *= 1.005 / variant_factor("forgets_later")
    gone = ("scaled_always", "chain_equal")
    left = [one for one in record.outcomes if (one.variant, one.case) != gone]
    (raw / "variants.json").write_bytes(msgspec.json.encode(replace(record, outcomes=left)))
    text = block(raw, "ablation")
    place = list(CASES).index("chain_equal")
    assert row(text, "two_stages")[place] == "WRONG"
    assert row(text, "two_stages")[-2:] == ["–", "wrong"]
    assert row(text, "scaled_always")[-2:] == ["–", "not timed everywhere"]
    assert row(text, "forgets_later")[-2:] == ["1.005", "no difference"]


def test_the_worst_shapes_are_told(raw: Path) -> None:
    text = block(raw, "sweep")
    assert text.count("| random_decay |") == 10
    assert row(text, "1", "64", "1", "1")[1:] == ["1.0800", "1.0000", "1.5000", "1.080", "0.250"]
    everything = len(list(shapes(("random_decay",))))
    assert f"{everything} shapes;" in text
    write_sweep(raw, keep=lambda case: case.tokens < 4096)
    some = len([case for case in shapes(("random_decay",)) if case.tokens < 4096])
    assert f"{some} shapes, {everything - some} not measured yet;" in block(raw, "sweep")


def test_several_sweeps_are_one(raw: Path) -> None:
    write_sweep(raw, keep=lambda case: case.tokens >= 4096)
    for kind in ("csv", "json"):
        (raw / f"sweep.{kind}").rename(raw / f"sweep_long.{kind}")
    write_sweep(raw, keep=lambda case: case.tokens < 4096)
    assert f"{len(list(shapes(('random_decay',))))} shapes;" in block(raw, "sweep")


def test_correctness_counts_cases_and_names_the_worst(raw: Path) -> None:
    record = suites_record()
    place = [one.case.name for one in record.results].index("wide_gva_state")
    record.results[place].errors[1].max_ratio = 0.9876
    record.results[-1].verdict = Verdict.WRONG
    record.results[-1].detail = "output: 3 of 9 elements"
    write(raw, "all_suites.json", record)
    text = block(raw, "correctness")
    assert row(text, "public")[0] == "8 of 8"
    assert row(text, "public")[2] == "0.99 (wide_gva_state)"
    total = len([one for one in record.results if one.suite == "correctness"])
    assert row(text, "correctness")[0] == f"{total - 1} of {total}"
    assert f"- {record.results[-1].case.name}: WRONG: output: 3 of 9 elements" in text


def test_pictures_hold_every_kernel(raw: Path) -> None:
    named = []
    for name in ("roofline", "sweep"):
        named += re.findall(r"\]\((pictures/[\w-]+\.(?:png|svg))\)", block(raw, name))
    assert len(named) == 4
    for name in named:
        content = (raw.parent / name).read_bytes()
        assert content.startswith(PNG) if name.endswith("png") else b"<svg" in content
    svg = (raw.parent / "pictures" / "champion-roofline.svg").read_text()
    kernels = ("champion", "v14", "v01", "other versions")
    public = ("FlashQLA, core", "FlashQLA, whole", "FlashInfer, whole", "FLA, whole")
    for text in (*kernels, *public, "750 TFLOP/s", "4.0 TB/s"):
        assert f">{text}</text>" in svg
    assert "Dots: v02, v07." in block(raw, "roofline")


def test_what_has_no_gpu_time_is_not_in_the_roofline(raw: Path) -> None:
    record = public_record()
    rivals = [one for one in record.rivals if one.implementation != "flashinfer"]
    write(raw, "public.json", replace(record, rivals=rivals))
    (raw / "v01_gemm.json").unlink()
    assert "Without GPU times here: v01, FlashInfer, whole." in block(raw, "roofline")


def test_without_files_every_block_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "nothing"
    folder.mkdir()
    for name in BLOCKS.keys() - {"held"}:
        assert block(folder, name) == "Not measured yet."
    assert asked(folder, True) == asked(folder, False) == []


def test_a_missing_file_is_told_by_its_own_blocks_alone(raw: Path) -> None:
    (raw / "variants.json").unlink()
    missing = {name for name in BLOCKS if block(raw, name) == "Not measured yet."}
    assert missing == {"ablation", "trials"}


def test_exit_status_and_what_is_printed(raw: Path, tmp_path: Path) -> None:
    page = tmp_path / "p.md"
    page.write_text("Before\n<!-- champion: held -->\n<!-- champion: end -->\nafter\n")
    words = [str(raw), *options(page)]
    empty = [str(tmp_path / "nothing"), *options(page)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0
    measured = raw / "public.json"
    assert done.output == f"the champion is no longer what {measured} measured\n"
    assert re.fullmatch(r"Before\n<!-- champion: held -->\n.*\nafter\n", page.read_text(), re.S)
    write(raw, "public_16_sms.json", few_record(1.1))
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert "not met: a public score of 118 or more on 16 SMs, baselines live: 1" in done.output
    done = CliRunner().invoke(main, empty)
    assert done.exit_code == 1
    assert "not known: a public score of 118" in done.output
    assert done.output.splitlines()[:2] == [
        f"{tmp_path / 'nothing'}: no such folder",
        "not measured yet: times beside the public kernels, the score, correctness, variants, "
        "other shapes, the device's ceilings, other versions",
    ]
    (raw / "public.json").write_text("{")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert re.fullmatch(rf"Error: {raw / 'public.json'}: no record: .*\n", done.output)


def test_the_command_takes_what_other_pages_have(tmp_path: Path) -> None:
    folder, page = tmp_path / "raw", tmp_path / "p.md"
    write_table(folder, "aa", "16", few_record())
    words = [str(folder), *options(page)]
    write(tmp_path / "ladder", "champion-all.json", suites_record())
    page.write_text("<!-- champion: score -->\n<!-- champion: end -->\n")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert "not known: right" not in done.output
    assert "not known: a public score" not in done.output
    # Ratios of 2.4 are worth more than the 120 points that there are at most.
    assert "Public score: 120.00 " in page.read_text()


@pytest.mark.parametrize("option", ["--ladder", "--baselines"])
def test_a_misspelt_folder_costs_the_page_nothing(raw: Path, tmp_path: Path, option: str) -> None:
    page = tmp_path / "p.md"
    page.write_text("<!-- champion: score -->\nmeasured\n<!-- champion: end -->\n")
    words = [str(raw), *options(page), option, str(tmp_path / "nothing")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert f"'{tmp_path / 'nothing'}' does not exist" in done.output
    assert "measured" in page.read_text()


def options(page: Path) -> list[str]:
    """Of the command, so that nothing outside the page's folder is read or written."""
    folder = page.parent
    for name in ("ladder", "baselines"):
        (folder / name).mkdir(exist_ok=True)
    words = ["--ladder", str(folder / "ladder"), "--baselines", str(folder / "baselines")]
    return [*words, "--page", str(page), "--pictures", str(folder / "pictures")]


def test_an_aim_that_is_missed_is_told_and_is_no_failure(raw: Path, tmp_path: Path) -> None:
    record = public_record()
    result = record.results[0]
    assert result.case.name == "short_tail_state"
    result.gpu_ms, result.timing.median_ms = 0.0201, 0.0231
    for one in record.rivals:
        if one.case == result.case.name:
            one.gpu_ms = 0.04
    write(raw, "public.json", record)
    page = tmp_path / "p.md"
    page.write_text("")
    done = CliRunner().invoke(main, [str(raw), *options(page)])
    assert done.exit_code == 0
    assert "aim missed: short_tail_state in 0.020 ms of GPU time: 0.0201 ms" in done.output


def test_the_page_s_budget_and_barriers_are_the_kernel_s() -> None:
    source = (SUBMISSION / "tilelang_fwd.py").read_text()
    tiles = re.findall(r"T\.alloc_shared\((\([\w, ]+\)), \"(\w+)\"", source)
    barriers = re.findall(r"(\w+) = T\.alloc_barrier\((.+)\)\n", source)
    page = PAGE.read_text()
    for place, columns in enumerate((128, 64)):
        names = {"CHUNK": 64, "HEAD_DIM": 128, "GROUP": 128, "STAGES": 3, "LOOK_BACK": 128}
        names |= {"columns": columns, "state_threads": 2 * columns}
        size = sum(
            math.prod(eval(sizes, names)) * {"bfloat16": 2, "float32": 4}[kind]
            for sizes, kind in tiles
        )
        counts = {name: eval(count, names) for name, count in barriers}
        every = sum(len(count) if isinstance(count, list) else 1 for count in counts.values())
        assert row(page, f"{every} barriers")[place] == "0.1"
        assert row(page, "together, of 227")[place] == f"{(size + 8 * every) / 1024:.1f}"
        for name, count in counts.items():
            (line,) = [line for line in page.splitlines() if re.match(rf"\| {name}[ ,]", line)]
            arrivals = count[0] if isinstance(count, list) else count
            assert line.split(" | ")[2 + place] == str(arrivals)
    assert source.count("T.set_max_nreg(") == 3
    registers = [int(number) for number in re.findall(r"set_max_nreg\((\d+)", source)]
    assert registers == [208, 64, 32]
    assert 256 * 208 + 128 * 64 + 128 * 32 == 512 * 128
    assert 128 * 208 + 128 * 64 + 128 * 32 == 38_912 <= 384 * 168


def test_the_committed_page_is_what_the_script_writes(tmp_path: Path) -> None:
    material = Material(read_raw(FOLDER, LADDER, BASELINES), SUBMISSION, PAGE, tmp_path)
    document = PAGE.read_text()
    assert set(re.findall(r"<!-- champion: (?!end)([a-z-]+) -->", document)) == set(BLOCKS)
    written = with_blocks(document, material)
    assert written.replace(f"{link(tmp_path, PAGE)}/", "pictures/") == document
    for name in re.findall(r"\((pictures/[\w.-]+)\)", document):
        assert (PAGE.parent / name).is_file()
