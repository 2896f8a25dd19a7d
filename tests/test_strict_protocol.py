"""The protocol for hostile code: its schedule, its clocks, its floor, its digests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from trial import known_answers, put_on_trial, verdict_cases, write_submission

from judge.audit import Answer, Answers, AuditSeeds
from judge.case import Case
from judge.checking import Expected
from judge.digest import folded, tensor_digest
from judge.floor import Ceilings, floor_ms
from judge.repetitions import Repetitions
from judge.schedule import schedule
from judge.trial import Limits
from judge.verdict import Verdict
from judge.witness import Allowance, Pair, Repetition, unquiet, weigh

CHAIN_EQUAL = replace(
    verdict_cases()[0], batch=1, tokens=8192, qk_heads=4, v_heads=4, initial_state=None
)
NOTHING = Expected(torch.zeros(0), torch.zeros(0))


def answer(seed: int, gate: str | None = None) -> Answer:
    return Answer(seed, gate, NOTHING, 5e-3, {})


ANSWERS = Answers(answer(42), (answer(1), answer(2), answer(3)), answer(4, "no_decay"))


def timed_case() -> Case:
    return verdict_cases()[0]


def test_every_answer_is_asked_for_once_and_the_last_repetition_is_audited() -> None:
    steps = schedule(timed_case(), Repetitions(10, 100), ANSWERS)
    timed = [step for step in steps if step.timed]
    assert len(timed) == 100
    assert timed[-1].answer is ANSWERS.fresh[-1]
    audited = [step.answer.seed for step in steps if step.answer is not None]
    assert sorted(audited) == [1, 2, 3, 4, 42]
    assert all(step.answer is None or step.seed == step.answer.seed for step in steps)
    assert [step.timed for step in steps].count(False) == 11
    assert not any(step.timed for step in steps[:10])


def test_contents_never_come_twice_and_audits_move_from_run_to_run() -> None:
    first, second = (schedule(timed_case(), Repetitions(10, 100), ANSWERS) for _ in range(2))
    assert len({step.seed for step in first}) == len(first)
    shared = {step.seed for step in first} & {step.seed for step in second}
    assert shared == {1, 2, 3, 4, 42}

    def places(steps: list) -> list[int]:
        return [place for place, step in enumerate(steps) if step.answer is not None]

    # Two runs agree in all four free places once in some ten million times.
    assert places(first) != places(second)


@pytest.mark.parametrize("repetitions", [1, 2, 3])
def test_few_repetitions_are_still_audited_at_the_last(repetitions: int) -> None:
    steps = schedule(timed_case(), Repetitions(0, repetitions), ANSWERS)
    timed = [step for step in steps if step.timed]
    assert len(timed) == repetitions
    assert timed[-1].answer is ANSWERS.fresh[-1]
    assert sum(step.answer is not None for step in timed) == min(repetitions, 4)


def test_an_untimed_case_is_called_with_fresh_contents_and_again_with_the_first() -> None:
    case = replace(timed_case(), timed=False)
    fresh, again = schedule(case, Repetitions(10, 100), Answers(answer(42), (answer(7),)))
    assert fresh.answer.seed == fresh.seed == 7
    assert again.answer.seed == again.seed == 42


def test_submissions_of_a_run_share_their_audits_and_runs_do_not() -> None:
    run, other = AuditSeeds(), AuditSeeds()
    case = timed_case()
    assert run.of(case, 3) == run.of(case, 3)
    assert len({*run.of(case, 3), *other.of(case, 3)}) == 6
    assert run.of(case, 3) != run.of(replace(case, name="another"), 3)


ALLOWANCE = Allowance(
    pairs=12,
    rest_ms=0.05,
    rest_share=0.05,
    apart_ms=0.06,
    apart_share=0.1,
    busy_us=30.0,
    cold_ms=0.02,
    cold_share=0.1,
)
NULL = Repetition(0.01, 1.01, 5.0)  # a rest of 1 ms: 0.05 + 0.05 ms are let pass


def evidence_of(timed: Repetition, paired: Repetition | None = None) -> str:
    pairs = [Pair(paired or timed, NULL)] * 12
    return weigh([timed] * 100, pairs, ALLOWANCE, floor_ms=0.3)[1]


@pytest.mark.parametrize(
    ("one", "evidence"),
    [
        (Repetition(0.5, 1.5, 5.0), ""),
        (Repetition(0.5, 1.59, 5.0), ""),
        (Repetition(0.5, 1.61, 5.0), "claimed 0.5 ms a call; the judge's clock saw 0.11 ms more"),
        (Repetition(0.5, 1.5, 40.0), "claimed 0.5 ms a call; the device was busy for another 35"),
        (Repetition(100.0, 101.0, 130.0), ""),
        (Repetition(100.0, 101.0, 140.0), "claimed 100 ms a call; the device was busy for another"),
        (Repetition(0.2, 1.2, 5.0), "claimed 0.2 ms a call; this device needs at least 0.3 ms"),
        (Repetition(2.0, 1.5, 5.0), "claimed 2 ms for a call in a repetition that took 1.5 ms"),
    ],
)
def test_claims_are_held_against_the_judge_s_clock(one: Repetition, evidence: str) -> None:
    said = evidence_of(one)
    assert said.startswith(evidence)
    assert bool(said) == bool(evidence)


def test_calls_may_not_claim_much_less_than_those_beside_the_neighbour_s() -> None:
    paired = Repetition(0.5, 1.5, 5.0)
    assert evidence_of(Repetition(0.4, 1.4, 5.0), paired) == ""  # 0.06 + 0.05 ms are let pass
    said = evidence_of(Repetition(0.38, 1.38, 5.0), paired)
    assert said.startswith("claimed 0.38 ms a call, and 0.5 ms where a submission that does")


def test_time_that_is_denied_only_outside_of_pairs_is_seen() -> None:
    paired = Repetition(0.5, 1.5, 5.0)
    assert evidence_of(Repetition(0.45, 1.54, 5.0), paired) == ""  # 0.09 ms of 0.1
    said = evidence_of(Repetition(0.45, 1.56, 5.0), paired)
    assert said.startswith("claimed 0.45 ms a call; the judge's clock saw 0.11 ms more")


def test_forged_claims_beside_a_few_skipped_calls_are_seen_though_each_are_less_than_half() -> None:
    honest, forged = Repetition(1.0, 2.0, 5.0), Repetition(0.4, 2.0, 5.0)
    skipped = Repetition(0.4, 1.4, 5.0)
    pairs = [Pair(one, NULL) for one in [forged] * 5 + [skipped] * 2 + [honest] * 5]
    seen = [pair.submission for pair in pairs] + [forged] * 44 + [skipped] * 2 + [honest] * 42
    witness, said = weigh(seen, pairs, ALLOWANCE, floor_ms=0.3)
    assert witness.claimed_ms == pytest.approx(0.4)
    assert witness.unclaimed_ms == pytest.approx(0.6)
    assert "the judge's clock saw 0.6 ms more" in said


@pytest.mark.parametrize("share", [30, 49, 50, 51, 55, 70])
def test_times_of_two_kinds_are_no_contradiction(share: int) -> None:
    quick, slow = Repetition(1.0, 2.0, 5.0), Repetition(2.0, 3.0, 5.0)
    late = [Repetition(1.0, 4.0, 5.0)] * 5  # more than lies between the two kinds
    seen = [*late, *[quick] * (share - 5), *[slow] * (100 - share)]
    pairs = [Pair(quick, NULL)] * 6 + [Pair(slow, NULL)] * 6
    assert "judge's clock" not in weigh(seen, pairs, ALLOWANCE, floor_ms=0.3)[1]


def test_a_machine_that_is_busy_for_a_while_delays_both_of_a_pair() -> None:
    late = Pair(Repetition(0.5, 9.5, 5.0), Repetition(0.01, 9.01, 5.0))
    quiet = Pair(Repetition(0.5, 1.5, 5.0), NULL)
    seen = [late.submission] * 50 + [quiet.submission] * 50
    witness, said = weigh(seen, [late] * 6 + [quiet] * 6, ALLOWANCE, None)
    assert said == ""
    assert witness.unclaimed_ms == pytest.approx(0.0)


def test_a_machine_made_busy_excuses_nobody_and_accuses_nobody() -> None:
    slowed = [Repetition(0.01, 3.01, 5.0)] * 12
    assert unquiet(slowed, quiet_ms=1.0).startswith("the machine was not quiet")
    assert unquiet(slowed, quiet_ms=2.2) == ""  # 1.25 times 2.2 and 0.3 ms are 3.05
    assert unquiet(slowed, quiet_ms=None) == ""


def test_a_few_late_repetitions_are_no_evidence() -> None:
    honest, late = Repetition(0.5, 1.5, 5.0), Repetition(0.5, 9.0, 5.0)
    pairs = [Pair(honest, NULL)] * 7 + [Pair(late, NULL)] * 5
    assert weigh([honest] * 100, pairs, ALLOWANCE, None)[1] == ""
    assert weigh([honest] * 100, pairs[::-1][:11], ALLOWANCE, None)[1] == ""
    pairs = [Pair(honest, NULL)] * 5 + [Pair(late, NULL)] * 7
    assert weigh([honest] * 100, pairs, ALLOWANCE, None)[1] != ""
    # of three pairs on a busy CPU the least decides
    pairs = [Pair(late, NULL), Pair(honest, NULL), Pair(late, NULL)]
    assert weigh([honest] * 3, pairs, ALLOWANCE, None)[1] == ""


def test_floor_is_the_larger_of_moving_and_multiplying() -> None:
    # q and k, v and output, g and beta, half of A, final state
    moved = 2 * 8192 * 4 * 256 + 2 * 8192 * 4 * 256 + 2 * 8192 * 4 * 4 + 8192 * 4 * 64 + 4 * 65536
    # per token and head: three full products of 128 x 128, three half ones of 64 x 128
    flops = 8192 * 4 * (3 * 2 * 128 * 128 + 3 * 64 * 128)
    slow_memory = Ceilings(bytes_per_s=1e9, flops_per_s=1e18, cache_bytes=0)
    slow_products = Ceilings(bytes_per_s=1e18, flops_per_s=1e12, cache_bytes=0)
    assert floor_ms(CHAIN_EQUAL, slow_memory) == pytest.approx(0.75 * moved / 1e9 * 1e3)
    assert floor_ms(CHAIN_EQUAL, slow_products) == pytest.approx(0.75 * flops / 1e12 * 1e3)
    all_cached = Ceilings(bytes_per_s=1e9, flops_per_s=1e18, cache_bytes=moved)
    assert floor_ms(CHAIN_EQUAL, all_cached) < 1e-4
    with_state = replace(CHAIN_EQUAL, initial_state=1.0)
    more = floor_ms(with_state, slow_memory) - floor_ms(CHAIN_EQUAL, slow_memory)
    assert more == pytest.approx(0.75 * 4 * 65536 / 1e9 * 1e3)


def test_folded_words_depend_on_every_bit_and_on_the_order() -> None:
    words = torch.arange(1, 3_000_001)
    original = folded(words)
    assert 0 < original.numel() <= 1 << 16
    for place in (0, 1, 1_234_567, 2_999_999):
        for bit in (0, 40, 63):
            changed = words.clone()
            changed[place] ^= torch.tensor(1).bitwise_left_shift(bit)
            assert not torch.equal(folded(changed), original)
    swapped = words.clone()
    swapped[[1, 2]] = words[[2, 1]]
    assert not torch.equal(folded(swapped), original)
    far = words.clone()
    far[[0, 2_000_000]] = words[[2_000_000, 0]]
    assert not torch.equal(folded(far), original)


def test_folding_follows_its_definition() -> None:
    # one lane of sixteen words: state = (state ^ word) * mix, then state ^= state >> 30, mod 2^64
    state = 0x9E3779B97F4A7C15
    for word in range(16):
        state = ((state ^ word) * 0xBF58476D1CE4E5B9) % 2**64
        signed = state - 2**64 if state >= 2**63 else state
        state = (state ^ ((signed >> 30) % 2**64)) % 2**64
    assert int(folded(torch.arange(16))[0]) % 2**64 == state


def test_digest_is_of_the_elements_in_order_not_of_the_storage() -> None:
    tensor = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)
    assert tensor_digest(tensor.T.contiguous().T) == tensor_digest(tensor)
    assert tensor_digest(tensor[:, 1:]) == tensor_digest(tensor[:, 1:].clone())
    assert tensor_digest(tensor) != tensor_digest(tensor.T)


def test_contents_are_new_at_every_call_in_the_same_tensors(tmp_path: Path) -> None:
    body = """
        seen = {}

        def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):
            for name, tensor in dict(q=q, k=k, v=v, g=g_cumsum, beta=beta, A=A).items():
                contents = seen.setdefault((q.shape, name), [])
                if contents and contents[0][0] != tensor.data_ptr():
                    raise RuntimeError(f"{name} moved")
                if any(torch.equal(tensor, old) for _, old in contents[1:]):
                    raise RuntimeError(f"{name} came twice, call {len(contents)}")
                contents.append((tensor.data_ptr(), tensor.clone()))
            return right(q, k, v, g_cumsum, beta, A, initial_state)
    """
    path = write_submission(tmp_path / "s", body)
    results, _, _ = put_on_trial(path, tmp_path, strict=True)
    assert [result.detail for result in results] == ["", ""]
    for result in results:
        assert [audit.gate for audit in result.audits].count("no_decay") == 1
        assert result.witness is not None


def test_returned_buffers_are_poisoned_before_the_next_call(tmp_path: Path) -> None:
    body = """
        last = []

        def gdn_prefill_forward(*arguments):
            for tensor in last:
                if not tensor.isnan().all():
                    raise RuntimeError("a returned tensor still holds its result")
            last[:] = right(*arguments)
            return tuple(last)
    """
    path = write_submission(tmp_path / "s", body)
    results, _, _ = put_on_trial(path, tmp_path, strict=True)
    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.PASS]


def test_run_limit_covers_all_repetitions_together(tmp_path: Path) -> None:
    body = """
        import time

        def gdn_prefill_forward(*arguments):
            time.sleep(0.4)
            return right(*arguments)
    """
    path = write_submission(tmp_path / "s", body)
    limits = Limits(run=1.0)
    count = Repetitions(1, 4)
    (result,), _, _ = put_on_trial(
        path, tmp_path, verdict_cases()[:1], limits=limits, count=count, strict=True
    )
    assert result.verdict is Verdict.TIMEOUT
    assert result.detail == "run: no answer within 1 s"


def test_answers_of_the_verdict_cases_hold_all_kinds() -> None:
    known = known_answers(timed_case(), True, "cpu")
    assert (len(known.fresh), known.surprise.gate) == (1, "no_decay")
    assert set(known.fixed.input_digests) >= {"q", "k", "v"}


def test_pairs_are_timed_repetitions_anywhere_and_two_of_them_are_audited() -> None:
    places: set[int] = set()
    answers = replace(ANSWERS, quick=3, paired=2)
    for _ in range(200):
        steps = schedule(timed_case(), Repetitions(10, 100), answers, ALLOWANCE)
        paired = [step for step in steps if step.paired]
        assert len(paired) == 12
        assert all(step.timed for step in paired)
        assert sum(step.late for step in paired) >= 2
        assert sum(step.late for step in steps) == 5
        assert len({step.seed for step in steps}) == len(steps)
        places |= {int(step.label.split()[1]) for step in paired}
    assert places == set(range(1, 101))  # one is missed once in 10^9 times


def test_what_is_trusted_is_compared_at_its_own_seed_alone() -> None:
    steps = schedule(timed_case(), Repetitions(10, 100), Answers(answer(42)), ALLOWANCE)
    assert not any(step.late for step in steps)
    assert [step.answer.seed for step in steps if step.answer is not None] == [42]
