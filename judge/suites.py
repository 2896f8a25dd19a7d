"""Suite files: YAML in, `Suite` out, and the choice of cases; anything wrong is one line.

The files' form is described at the head of cases/public.yaml.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from judge.case import HIDDEN_SUITE, Case, Suite
from judge.hints import shown, suggestion
from judge.yamlfile import CaseFileError, YamlFile

GATES = ("random_decay", "mixed", "no_decay", "hard_forget")
SUITE_KEYS = ("suite", "weight", "tolerance", "tilelang", "cases")
SHAPE_KEYS = ("batch", "tokens", "qk_heads", "v_heads")
OVERRIDE_KEYS = ("initial_state", "gate", "beta", "equal_keys", "zero_values", "timed", "tolerance")
MAX_SIZE = 10_000_000
MAX_CHAIN_TOKENS = 2**25  # 8 GiB of values in bfloat16, 64 times the largest public case
# Far below where exp(raw_g) is 0; a chunk's prefix sum stays exact enough in float32.
MIN_GATE = -1000.0

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VERSION = re.compile(r"\d{1,9}(\.\w{1,20}){1,9}", re.ASCII)


def load_suite(path: Path | str) -> Suite:
    """The suite that the file states. Raises CaseFileError."""
    return load_suites([path])[0]


def load_suites(paths: Iterable[Path | str]) -> list[Suite]:
    """The suites of several files, in their order.

    Raises CaseFileError, also where two suites or two cases among all files share a name.
    """
    suites: list[Suite] = []
    places: dict[tuple[str, str], str] = {}
    for path in paths:
        suites.append(_SuiteFile(Path(path)).suite(places))
    return suites


def select_cases(
    suites: Sequence[Suite], suite_names: Sequence[str] = (), case_names: Sequence[str] = ()
) -> list[tuple[Suite, Case]]:
    """The cases asked for, with their suites; every one where none is named.

    They are in the files' order, but for hidden ones, which come last, since a child that has seen
    one could tell of it in any later case, and in the order of their names: so h1 is the same case
    whatever the order of the file.
    Suites and cases add up: a case is chosen where it or its suite is named. Raises CaseFileError
    for a name that no suite or case has; it proposes no hidden case, since participants read it.
    """
    every_suite = [suite.name for suite in suites]
    every_case = {case.name for suite in suites for case in suite.cases}
    told = [
        case.name
        for suite in public_first(suites)
        if suite.name != HIDDEN_SUITE
        for case in suite.cases
    ]
    for option, asked, known, proposed in (
        ("--suite", suite_names, every_suite, every_suite),
        ("--case", case_names, every_case, told),
    ):
        for name in asked:
            if name not in known:
                message = f"{shown(name)} is not there; {suggestion(name, proposed)}"
                raise CaseFileError(option, None, "", message)
    everything = not suite_names and not case_names
    return [
        (suite, case)
        for suite in sorted(suites, key=lambda suite: suite.name == HIDDEN_SUITE)
        for case in _in_order(suite)
        if everything or suite.name in suite_names or case.name in case_names
    ]


def public_first(suites: Iterable[Suite]) -> list[Suite]:
    """The suites in the order of interest to a reader: public first, hidden last."""
    return sorted(suites, key=lambda suite: (suite.name != "public", suite.name == HIDDEN_SUITE))


def _in_order(suite: Suite) -> Sequence[Case]:
    if suite.name != HIDDEN_SUITE:
        return suite.cases
    return sorted(suite.cases, key=lambda case: case.name)


class _SuiteFile(YamlFile):
    """The readers of a suite file's own fields."""

    def suite(self, places: dict[tuple[str, str], str]) -> Suite:
        """The file's suite. `places` says which names are taken where, and gains this file's."""
        keys = self.mapping(self.root, "", SUITE_KEYS, required=("suite", "tolerance", "cases"))
        name = self.name(keys["suite"], "suite", "suite", places)
        tolerance = self.tolerance(keys["tolerance"], "tolerance")
        weight = self.optional(keys, "weight", "", self.share, None)
        tilelang = self.optional(keys, "tilelang", "", self.version, None)
        listed = keys["cases"]
        if not isinstance(listed, yaml.SequenceNode) or not listed.value:
            raise self.fail(listed, "cases", "must be a list of at least one case")
        cases = [
            self.case(node, f"cases[{index}]", tolerance, places)
            for index, node in enumerate(listed.value)
        ]
        digest = hashlib.sha256(self.content).hexdigest()
        return Suite(name, weight, tilelang, tuple(cases), str(self.path), digest)

    def case(
        self,
        node: yaml.Node,
        field: str,
        suite_tolerance: float,
        places: dict[tuple[str, str], str],
    ) -> Case:
        """One case of the list."""
        required = ("name", *SHAPE_KEYS)
        keys = self.mapping(node, field, (*required, *OVERRIDE_KEYS), required)
        name = self.name(keys["name"], f"{field}.name", "case", places)
        batch, tokens, qk_heads, v_heads = (
            self.whole(keys[key], f"{field}.{key}", 1, MAX_SIZE) for key in SHAPE_KEYS
        )
        if v_heads % qk_heads:
            fitting = ", ".join(str(qk_heads * group) for group in (1, 2, 3))
            message = f"{v_heads} is not a multiple of qk_heads {qk_heads}; use {fitting}, …"
            raise self.fail(keys["v_heads"], f"{field}.v_heads", message)
        if batch * tokens * v_heads > MAX_CHAIN_TOKENS:
            message = (
                f"{batch} · {tokens} · {v_heads} tokens of batch · tokens · v_heads; "
                f"at most {MAX_CHAIN_TOKENS} in all"
            )
            raise self.fail(keys["tokens"], f"{field}.tokens", message)
        gate, gate_value = self.optional(keys, "gate", field, self.gate, ("random_decay", None))
        return Case(
            name=name,
            batch=batch,
            tokens=tokens,
            qk_heads=qk_heads,
            v_heads=v_heads,
            initial_state=self.optional(keys, "initial_state", field, self.state, None),
            gate=gate,
            gate_value=gate_value,
            beta=self.optional(keys, "beta", field, self.share, None),
            equal_keys=self.optional(keys, "equal_keys", field, self.truth, False),
            zero_values=self.optional(keys, "zero_values", field, self.truth, False),
            timed=self.optional(keys, "timed", field, self.truth, True),
            tolerance=self.optional(keys, "tolerance", field, self.tolerance, suite_tolerance),
        )

    def name(
        self, node: yaml.Node, field: str, kind: str, places: dict[tuple[str, str], str]
    ) -> str:
        """A name that no other suite or case has; its place is entered."""
        wanted = 'a name of at most 64 letters, digits, ".", "_" and "-"'
        name = self.text(node, field, _NAME, wanted)
        if (kind, name) in places:
            message = f"{name} stands already at {places[kind, name]}; give it another name"
            raise self.fail(node, field, message)
        places[kind, name] = f"{self.path}:{node.start_mark.line + 1}"
        return name

    def version(self, node: yaml.Node, field: str) -> str:
        return self.text(node, field, _VERSION, "a version such as 0.1.9")

    def share(self, node: yaml.Node, field: str) -> float:
        return self.number(node, field, "a number from 0 to 1", 0.0, 1.0)

    def tolerance(self, node: yaml.Node, field: str) -> float:
        wanted = "a number above 0 and at most 1, such as 5e-3"
        return self.number(node, field, wanted, math.ulp(0.0), 1.0)

    def state(self, node: yaml.Node, field: str) -> float | None:
        wanted = "none, or a factor from 0 to 1e6"
        if self.plain(node, field, wanted) == "none":
            return None
        return self.number(node, field, wanted, 0.0, 1e6)

    def gate(self, node: yaml.Node, field: str) -> tuple[str, float | None]:
        """The gate's name and, of a constant one, its raw_g."""
        if isinstance(node, yaml.MappingNode):
            keys = self.mapping(node, field, ("constant",), ("constant",))
            wanted = f"a log decay from {MIN_GATE:g} to 0"
            value = self.number(keys["constant"], f"{field}.constant", wanted, MIN_GATE, 0.0)
            return "constant", value
        name = self.plain(node, field, "a gate")
        if name not in GATES:
            hint = suggestion(name, (*GATES, "{constant: VALUE}"))
            raise self.fail(node, field, f"{shown(name)} is no gate; {hint}")
        return name, None
