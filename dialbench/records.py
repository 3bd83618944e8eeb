"""The few types that pass between packages, from a conversation to a row of a table."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal, overload

from dialbench.errors import InputError, UnknownName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def fingerprint_of(value: Any) -> str:
    """sha256 (64 hex digits) of a JSON-like value; the order of mapping keys does not matter."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One conversation, turns oldest first.

    `references` is empty where each turn is the only reference to what stands before it; else it
    holds all references of every turn from the second on.
    """

    id: str
    turns: tuple[str, ...]
    split: str
    references: tuple[tuple[str, ...], ...] = ()


class Context(tuple[str, ...]):
    """What a system responds to: the turns so far, oldest first.

    A plain tuple of strings that also knows the `id` that seeds everything random
    about this response: the `example`'s, followed by `#k` for the k-th further response (`draw`)
    to the same context. `references` is empty for every system but an oracle (an upper
    bound).
    """

    id: str
    references: tuple[str, ...]
    example: str
    draw: int

    def __new__(
        cls, turns: Sequence[str], id: str = "", references: Sequence[str] = (), draw: int = 0
    ) -> Context:
        """A context of these turns, oldest first, of the example called `id`."""
        self = super().__new__(cls, turns)
        self.id = f"{id}#{draw}" if draw else id
        self.references = tuple(references)
        self.example, self.draw = id, draw
        return self


@dataclass(frozen=True, slots=True)
class Example:
    """A context (oldest turn first) and the human responses that followed it."""

    id: str
    dialogue_id: str
    context: tuple[str, ...]
    references: tuple[str, ...]

    def as_context(self, draw: int = 0) -> Context:
        """The context alone, as a system sees it; see `Context` for `draw`."""
        return Context(self.context, self.id, draw=draw)

    def as_context_with_references(self, draw: int = 0) -> Context:
        """The context with its references, for oracles only."""
        return Context(self.context, self.id, self.references, draw)


ExampleResponses = tuple[Example, str, *tuple[str, ...]]
"""An example, the response to its context, and further ones if several were drawn."""


class Split(Sequence[Example]):
    """The examples of one split of a corpus, in corpus order; compared by identity."""

    def __init__(self, name: str, examples: Sequence[Example]) -> None:
        self.name = name
        self._examples = tuple(examples)

    def __len__(self) -> int:
        return len(self._examples)

    def __iter__(self) -> Iterator[Example]:
        return iter(self._examples)

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Split: ...
    def __getitem__(self, index: int | slice) -> Example | Split:
        if isinstance(index, slice):
            return Split(self.name, self._examples[index])
        return self._examples[index]

    def __repr__(self) -> str:
        return f"Split({self.name!r}, {len(self)} examples)"


DecodingMethod = Literal["greedy", "sample", "top-p", "top-k", "beam", "mmi"]
_FORMS = {
    "greedy": "greedy",
    "sample": "sample:t=0.75",
    "top-p": "top-p:0.9",
    "top-k": "top-k:40",
    "beam": "beam:5",
    "mmi": "mmi",
}
_MAX_BEAMS = 1000


@dataclass(frozen=True, slots=True)
class Decoding:
    """How words are chosen from a model's probabilities.

    `value` is the temperature (sample), the probability mass (top-p), the number of words kept
    (top-k) or of hypotheses (beam, mmi); 0 for greedy. Hypotheses are ranked by their log
    probability divided by their length to the power of `length`; no `no_repeat` words in a row
    occur twice in a response (0: they may).
    """

    method: DecodingMethod = "greedy"
    value: float = 0.0
    length: float = 1.0
    no_repeat: int = 0

    @classmethod
    def parse(cls, text: str, *, where: str = "--decoding") -> Decoding:
        """Reads `greedy`, `sample:t=0.75`, `top-p:0.9`, `top-k:40`, `beam:5` or `mmi`.

        Each may be followed by `+no-repeat:3`, and those with hypotheses by `+length:0.6`.

        Raises:
            InputError: method or option is unknown, or a value lies outside its range.
        """
        base, *options = text.strip().split("+")
        return replace(cls._parse_method(base, where), **_options(base, options, where))

    @classmethod
    def _parse_method(cls, text: str, where: str) -> Decoding:
        method, _, rest = text.partition(":")
        if method not in _FORMS:
            raise UnknownName.of("decoding", method, _FORMS, where=where)
        default = {"sample": 1.0, "mmi": 20.0}.get(method, 0.0)
        try:
            value = float(rest.removeprefix("t=")) if rest else default
        except ValueError:
            value = math.nan
        fits = {
            "greedy": value == 0.0,
            "sample": 0.0 < value < math.inf,
            "top-p": 0.0 < value <= 1.0,
            "top-k": value >= 1 and value.is_integer(),
        }.get(method, 1 <= value <= _MAX_BEAMS and value.is_integer())
        if not fits:
            raise InputError(
                f"decoding {text!r} has no usable value",
                where=where,
                hint=f"Write it like {_FORMS[method]!r}.",
            )
        return cls(method, value)  # type: ignore[arg-type]

    def __str__(self) -> str:
        length = "" if self.length == 1 else f"+length:{_number(self.length)}"
        repeat = f"+no-repeat:{self.no_repeat}" if self.no_repeat else ""
        return f"{self._method_text()}{length}{repeat}"

    def _method_text(self) -> str:
        if self.method == "greedy" or (self.method == "mmi" and self.value == 20.0):
            return self.method
        return f"{self.method}:{'t=' if self.method == 'sample' else ''}{_number(self.value)}"


def _number(value: float) -> str:
    # 1e+20 would begin an option at its plus.
    return repr(value).removesuffix(".0").replace("e+", "e")


def _options(method: str, texts: Sequence[str], where: str) -> dict[str, Any]:
    """The options of a decoding by field, from `length:0.6` and `no-repeat:3`."""
    options: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition(":")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if name.replace("-", "_") in options:
            raise InputError(f"option {name!r} is given twice", where=where, hint="Keep one.")
        if name == "length" and method.startswith(("beam", "mmi")) and 0 <= number < math.inf:
            options["length"] = number
        elif name == "no-repeat" and number >= 1 and number.is_integer():
            options["no_repeat"] = int(number)
        else:
            raise InputError(
                f"decoding {method!r} has no option {text!r}",
                where=where,
                hint="Write +no-repeat:3, and with beam or mmi +length:0.6.",
            )
    return options


@dataclass(frozen=True)
class Job:
    """One system, trained with one seed on one corpus, answering with one decoding.

    `training` and `answering` hold everything that can change the trained weights and the
    responses respectively (options, preset values, data checksum, limits, versions), as
    JSON-like values. Jobs with the same `training_fingerprint` share one training run.
    """

    system: str
    corpus: str
    seed: int
    decoding: Decoding
    preset: str
    training: Mapping[str, Any] = field(default_factory=dict)
    answering: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def training_fingerprint(self) -> str:
        """The name of the trained system: 64 hex digits."""
        return fingerprint_of(
            {
                "system": self.system,
                "corpus": self.corpus,
                "seed": self.seed,
                "training": dict(self.training),
            }
        )

    @cached_property
    def fingerprint(self) -> str:
        """The name of the responses: 64 hex digits."""
        return fingerprint_of(
            {
                "trained": self.training_fingerprint,
                "decoding": str(self.decoding),
                "answering": dict(self.answering),
            }
        )

    def __str__(self) -> str:
        return f"{self.system} on {self.corpus}, seed {self.seed}, {self.decoding}"


@dataclass(frozen=True)
class Responses:
    """The responses of one job, one text for each example, in corpus order.

    Attributes:
        seconds: what `texts` took.
        alternatives: (examples,) further texts for each, as many for every one; empty if none
            were drawn.
    """

    job: Job
    examples: Sequence[Example]
    texts: Sequence[str]
    seconds: float
    device: str
    alternatives: Sequence[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if len(self.examples) != len(self.texts):
            raise ValueError(f"{len(self.texts)} responses for {len(self.examples)} examples")
        if self.alternatives and len(self.examples) != len(self.alternatives):
            raise ValueError(f"alternatives for {len(self.alternatives)} of the examples only")

    def by_example(self) -> Iterator[ExampleResponses]:
        """Each example with its texts."""
        others = self.alternatives or repeat(())
        for example, text, further in zip(self.examples, self.texts, others, strict=False):
            yield example, text, *further


@dataclass(frozen=True)
class Tally:
    """Counts of a set of responses by dialogue, which give the value of any mixture of two sets.

    Attributes:
        formula: the name of the function of the summed counts that gives the value.
        sums: (dialogues, k) numbers that are added up.
        codes: for each kind of n-gram whose number of distinct ones matters: (n-grams,) those of
            each dialogue, once each; equal codes are equal n-grams, in any two tallies.
        owners: for each kind: (n-grams,) the number of the dialogue each stands in.
        parameters: further numbers that the formula takes.
    """

    formula: str
    sums: NDArray[np.float64]
    codes: tuple[NDArray[np.int64], ...] = ()
    owners: tuple[NDArray[np.int64], ...] = ()
    parameters: tuple[float, ...] = ()


@dataclass(frozen=True)
class Score:
    """The value of one metric over a set of responses.

    Attributes:
        value: a fraction, a length or an index as the metric defines; NaN = not available.
        n: how many responses the value rests on.
        signature: says which metric exactly; values of different signatures do not compare.
        per_response: (responses,) values that a paired test may use, NaN where an example was
            left out; None where the metric exists for a whole set only.
        dialogues: (responses,) number of the dialogue of each of these; None if not known.
        parts: (groups,) what each group of whole dialogues contributes, as if the value were a
            mean over groups (pseudo-values of the jackknife); NaN where it is undefined.
        shares: (groups,) share of all responses that lies in each group.
        joint: (pairs,) what pairs of groups contribute together beyond either alone.
        tally: counts by dialogue for swapping the responses of two systems; None where the
            metric cannot be computed from such counts.
        interval: 95 % confidence interval of the value.
        reason: why the value is not available.
    """

    value: float
    n: int
    signature: str
    per_response: NDArray[np.float64] | None = None
    dialogues: NDArray[np.float64] | None = None
    parts: NDArray[np.float64] | None = None
    shares: NDArray[np.float64] | None = None
    joint: NDArray[np.float64] | None = None
    tally: Tally | None = None
    interval: tuple[float, float] | None = None
    reason: str = ""

    @property
    def available(self) -> bool:
        """Whether there is a value to print."""
        return not math.isnan(self.value)


@dataclass(frozen=True)
class Profile:
    """How long the responses of a job are and how fast their n-grams repeat, for plots.

    Attributes:
        lengths: how many responses have 0, 1, 2, ... tokens.
        reference_lengths: the same of the references.
        rarefied: by length of n-grams: how many are drawn without replacement, and the Distinct-n
            to be expected of them; up to all n-grams, nothing where there are too few.
        tokenizer: name of the tokeniser.
    """

    lengths: Sequence[int]
    reference_lengths: Sequence[int]
    rarefied: Mapping[int, Sequence[tuple[int, float]]]
    tokenizer: str = "default"


@dataclass(frozen=True)
class Result:
    """The result of one job: its status and its scores.

    `ranked` is False for the sanity panel and its upper bound, which are shown but never compared.
    `notes` are warnings that belong under every table showing this result. `profile` is None where
    responses were not scored, or by a version that kept none.
    """

    job: Job
    status: Literal["done", "failed", "interrupted", "started"]
    scores: Mapping[str, Score] = field(default_factory=dict)
    label: str = ""
    ranked: bool = True
    reason: str = ""
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    curve: Sequence[Mapping[str, float]] = ()
    profile: Profile | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a table with everything a renderer may show of it."""

    value: float | None = None
    interval: tuple[float, float] | None = None
    deviation: float | None = None
    best: bool = False
    second: bool = False
    significant: bool = False
    reason: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: one metric under one signature.

    `unranked` says why nothing is marked in it although one direction is better; empty otherwise.
    """

    name: str
    title: str
    signature: str = ""
    digits: int = 3
    percent: bool = False
    direction: Literal["higher", "lower", "none"] = "higher"
    group: str = ""
    unranked: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row: one system under one decoding; `cells` by column name.

    A `summary` is of no system, but says something of the whole column.
    """

    label: str
    cells: Mapping[str, Cell]
    ranked: bool = True
    status: str = "done"
    summary: bool = False


Notes = Literal["full", "short", "none"]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is laid out.

    Attributes:
        transposed: whether metrics are rows and systems columns.
        wide: whether it spans both columns of a page even where one would do.
        notes: all, all but signatures, or none; None leaves that to the format.
    """

    transposed: bool = False
    wide: bool = False
    notes: Notes | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A finished table; every format is rendered from this and nothing else.

    `baseline` is the label of the row that stars compare with; empty: the best of each column.
    `corner` says what rows are. `tests` are those of the notes that say what stars mean and how
    each column was tested.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    baseline: str = ""
    layout: Layout = Layout()
    corner: str = "System"
    tests: tuple[str, ...] = ()
