"""What goes over the wire, as typed structures: bodies are checked against them, and the OpenAPI is
made of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

MOST_FIELDS, MOST_TEXT, MOST_TAGS, MOST_NAME = 256, 1000, 256, 256
"""Of one context: fields, characters of a string, entries of a list; characters of a name."""

NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$(?!\n)"
"""Names of agents: they are names of files too, also where capitals do not count."""
PATTERNS = {NAME: "1 to 63 of a-z, 0-9, '_' and '-', the first a letter or a digit"}
"""What patterns allow, in words."""

AgentName = Annotated[str, Meta(pattern=NAME, examples=["shop"])]
Label = Annotated[str, Meta(min_length=1, max_length=MOST_NAME)]
Text = Annotated[str, Meta(max_length=MOST_TEXT)]
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]
Whole = Annotated[int, Meta(ge=-(10**15), le=10**15)]
Chance = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(gt=0, lt=1e12, description="seconds")]
Moment = Annotated[
    Annotated[float, Meta(gt=-62_135_596_800, lt=253_402_300_800)]
    | Annotated[str, Meta(max_length=40)],
    Meta(
        description="seconds since 1970, or ISO text such as 2026-07-01T12:00",
        examples=["2026-07-01T12:00"],
    ),
]
Value = (
    Text
    | Whole
    | Number
    | bool
    | None
    | Annotated[list[Text | Whole | Number | bool], Meta(max_length=MOST_TAGS)]
)
Values = Annotated[dict[Label, Value], Meta(max_length=MOST_FIELDS)]
DecisionId = Annotated[
    str, Meta(min_length=1, max_length=MOST_NAME, examples=["17-5f0c2d1e", "order 17"])
]


T = TypeVar("T", bound=Struct)


def shown(kind: type[T], one: object, **others: Any) -> T:
    """An answer with an object's attributes of the names of its fields, and others. What is not
    finite is null in JSON."""
    names = kind.__struct_fields__
    attributes = {name: getattr(one, name) for name in names if hasattr(one, name)}
    return kind(**attributes | others)


class Strict(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A body in which nothing unknown is overlooked."""


Fields = Annotated[
    dict[
        Label,
        Literal["number", "text", "boolean", "moment", "tags"]
        | Annotated[list[Text], Meta(min_length=1, max_length=MOST_TAGS)]
        | dict[str, Any],
    ],
    Meta(max_length=MOST_FIELDS),
]


class PolicyChoice(Strict):
    """A policy and its parameters."""

    id: Text
    parameters: Annotated[dict[Label, Value], Meta(max_length=50)] = {}


class _Changeable(Strict, kw_only=True):
    control: Chance | None = None
    control_arm: Label | None = None
    min_share: Chance | None = None
    share_bounds: Annotated[dict[Label, tuple[Chance, Chance]], Meta(max_length=4096)] | None = None
    reward_within: Seconds | None = None
    default_reward: Number | None = None
    retention: Seconds | None = None
    sticky: Seconds | None = None
    shadow: Annotated[list[Text | PolicyChoice], Meta(max_length=8)] | None = None
    context: Fields | None = None


class NewAgent(_Changeable, kw_only=True):
    """An agent to make. `context` names its fields: "number", "text", "boolean", "moment", "tags",
    a list of texts, or an object such as {"kind": "Cyclic", "period": 24}; without it they are
    guessed from the first 16 decisions."""

    name: AgentName
    arms: (
        Annotated[list[Label], Meta(min_length=1, max_length=4096)]
        | Annotated[dict[Label, Values], Meta(min_length=1, max_length=4096)]
    )
    policy: Text | PolicyChoice | None = None
    seed: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    timezone: Text | None = None
    time_features: bool | None = None
    capacity: Annotated[int, Meta(ge=1, le=8192)] | None = None
    propensity_draws: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    on_duplicate: Literal["refuse", "add", "replace"] | None = None


class SettingsBody(_Changeable, kw_only=True):
    """Settings to change; what is left out stays. `context` has all fields: those that it does not
    have are dropped. `unset` takes settings back."""

    unset: list[
        Literal[
            "control_arm", "min_share", "reward_within", "default_reward", "retention", "sticky"
        ]
    ] = []


class SettingsChanged(Struct, kw_only=True):
    """What changed: the values before and after."""

    changes: dict[str, list[Any]]


class PromoteBody(Strict):
    """A candidate (of the setting `shadow`, or the agent's own policy) and the share of decisions
    that it gets: 0 takes all back, 1 puts it in the policy's place, null is the next safe step."""

    shadow: Text | PolicyChoice
    share: Chance | None = None


class PromotionShown(Struct, kw_only=True):
    """A candidate's share of the decisions, before and after a step, and why."""

    words: str
    policy: str
    before: float
    share: float
    why: str


class CandidateShown(Struct, kw_only=True):
    """A candidate that has a share of the decisions."""

    policy: str
    parameters: dict[str, Any]
    share: float


class ChooseBody(Strict):
    """A decision to make. The same `id` (or `Idempotency-Key`) with the same body is the same
    decision again. `baseline` is the arm that your present rule takes; the control group gets
    it."""

    context: Values | None = None
    arms: Annotated[list[Label], Meta(min_length=1, max_length=4096)] | None = None
    subject: Annotated[str, Meta(max_length=MOST_TEXT)] | None = None
    at: Moment | None = None
    id: DecisionId | None = None
    baseline: Label | None = None


class RecordBody(Strict):
    """A decision that was made elsewhere, to learn from; `propensity` null: it was not random."""

    arm: Label
    context: Values | None = None
    reward: Number | None = None
    propensity: Annotated[float, Meta(gt=0, le=1)] | None = None
    subject: Annotated[str, Meta(max_length=MOST_TEXT)] | None = None
    at: Moment | None = None
    id: DecisionId | None = None


class ChooseBatch(Strict):
    """Decisions to make, all or none."""

    decisions: Annotated[list[ChooseBody], Meta(min_length=1)]


class DecisionMade(Struct, kw_only=True):
    """The arm to play, and the exact chance that it had; `at` in seconds since 1970."""

    id: str
    arm: str
    propensity: float
    group: Literal["policy", "control", "warmup", "imported"]
    at: float


class DecisionsMade(Struct, kw_only=True):
    """In the order in which they were asked for."""

    decisions: list[DecisionMade]


class RewardBody(Strict):
    """Reward of a decision. `key` names a reward that must count once, where rewards add
    up. `also` has further outcomes by name, such as {"cost": 0.2}: not learnt, but compared."""

    id: DecisionId
    reward: Number
    at: Moment | None = None
    key: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    also: (
        Annotated[
            dict[Annotated[str, Meta(min_length=1, max_length=64)], Number], Meta(max_length=16)
        ]
        | None
    ) = None


class RewardBatch(Strict):
    """Rewards of many decisions; each is accepted or refused on its own."""

    rewards: Annotated[list[RewardBody], Meta(min_length=1)]


class RewardTaken(Struct, kw_only=True):
    """`duplicate` is true if it was known already."""

    id: str
    duplicate: bool


class RewardAnswer(Struct, kw_only=True, omit_defaults=True):
    """`status` is 200, or what this reward alone would have been answered; then `detail` says why,
    and there is no `duplicate`."""

    id: str
    status: int
    duplicate: bool | UnsetType = UNSET
    detail: str | None = None


class RewardsTaken(Struct, kw_only=True):
    """One answer for each reward, in order."""

    taken: int
    refused: int
    rewards: list[RewardAnswer]


class ArmShown(Struct, kw_only=True):
    """An arm and whether it can be chosen."""

    label: str
    retired: bool


class AgentShown(Struct, kw_only=True):
    """An agent by name."""

    name: str
    open: bool


class AgentsShown(Struct, kw_only=True):
    """The agents that a token is for, and what it may do."""

    agents: list[AgentShown]
    scopes: list[str]


class StateShown(Struct, kw_only=True):
    """State of an agent. Times are seconds since 1970; `records` and `saved` count lines of its
    ledger."""

    name: str
    policy: str
    parameters: dict[str, Any]
    timezone: str
    control: float
    control_arm: str | None
    min_share: float | None
    share_bounds: dict[str, list[float]]
    retention: float | None
    sticky: float | None
    shadow: list[Any]
    promotion: CandidateShown | None
    reward_within: float | None
    default_reward: float | None
    on_duplicate: str
    arms: list[ArmShown]
    context: dict[str, Any] | None
    frozen: bool
    warmup: bool
    decisions: int
    rewards: int
    latest: float | None
    records: int
    saved: int
    upkeep_pending: bool
    learning_window: float | None
    late_rewards: int


class ArmChange(Strict):
    """Add an arm (or a retired one again), retire one, rename one `to` something else, or replace
    one by a new arm `to`."""

    op: Literal["add", "retire", "rename", "replace"]
    label: Label
    to: Label | None = None
    features: Values | None = None


class ArmsShown(Struct, kw_only=True):
    """All arms, also retired ones."""

    arms: list[ArmShown]


class RollbackBody(Strict):
    """Forget what was learnt after a moment, or after the decision of that id."""

    to: Annotated[float, Meta(gt=-62_135_596_800, lt=253_402_300_800)] | DecisionId


class ForgetBody(Strict):
    """Whose decisions to delete: the `subject` as decisions were asked for."""

    subject: Annotated[str, Meta(min_length=1, max_length=MOST_TEXT)]


class Forgotten(Struct, kw_only=True):
    """How many decisions were deleted."""

    deleted: int


class CompactBody(Strict):
    """Delete decisions that were made before a moment. `decisions` is how many an export of them
    (`export?before=...`) has, so that nothing is deleted that was not saved."""

    before: Moment
    decisions: Annotated[int, Meta(ge=0)]


class Held(Struct, kw_only=True):
    """Whether learning is paused."""

    frozen: bool


class Deleted(Struct, kw_only=True):
    """The deleted agent."""

    name: str
