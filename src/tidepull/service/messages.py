"""What goes over the wire, as typed structures: bodies are checked against them, and the OpenAPI is
made of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

MOST_FIELDS, MOST_TEXT, MOST_TAGS, MOST_NAME = 256, 1000, 256, 256
"""Of one context: fields, characters of a string, entries of a list; characters of a name."""

NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$(?!\n)"
"""Names of agents: they are names of files too, also where capitals do not count."""

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


class Strict(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A body in which nothing unknown is overlooked."""


class PolicyChoice(Strict):
    """A policy and its parameters."""

    id: Text
    parameters: Annotated[dict[Label, Value], Meta(max_length=50)] = {}


class NewAgent(Strict):
    """An agent to make. `context` names its fields: "number", "text", "boolean", "moment", "tags",
    a list of texts, or an object such as {"kind": "Cyclic", "period": 24}; without it they are
    guessed from the first 16 decisions."""

    name: AgentName
    arms: (
        Annotated[list[Label], Meta(min_length=1, max_length=4096)]
        | Annotated[dict[Label, Values], Meta(min_length=1, max_length=4096)]
    )
    context: (
        Annotated[
            dict[
                Label,
                Literal["number", "text", "boolean", "moment", "tags"]
                | Annotated[list[Text], Meta(min_length=1, max_length=MOST_TAGS)]
                | dict[str, Any],
            ],
            Meta(max_length=MOST_FIELDS),
        ]
        | None
    ) = None
    policy: Text | PolicyChoice | None = None
    seed: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    timezone: Text | None = None
    time_features: bool | None = None
    capacity: Annotated[int, Meta(ge=1, le=8192)] | None = None
    propensity_draws: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    control: Chance | None = None
    control_arm: Label | None = None
    min_share: Chance | None = None
    share_bounds: Annotated[dict[Label, tuple[Chance, Chance]], Meta(max_length=4096)] | None = None
    reward_within: Seconds | None = None
    default_reward: Number | None = None
    on_duplicate: Literal["refuse", "add", "replace"] | None = None
    retention: Seconds | None = None


class ChooseBody(Strict):
    """A decision to make. The same `id` (or `Idempotency-Key`) with the same body is the same
    decision again."""

    context: Values | None = None
    arms: Annotated[list[Label], Meta(min_length=1, max_length=4096)] | None = None
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
    """What a decision was worth. `key` names a reward that must count once, where rewards add
    up."""

    id: DecisionId
    reward: Number
    at: Moment | None = None
    key: Annotated[str, Meta(min_length=1, max_length=100)] | None = None


class RewardBatch(Strict):
    """Rewards of many decisions; each is taken or refused for itself."""

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
    """The agents that a token is for."""

    agents: list[AgentShown]


class StateShown(Struct, kw_only=True):
    """Where an agent stands. Times are seconds since 1970; `records` and `saved` count lines of its
    ledger."""

    name: str
    policy: str
    parameters: dict[str, Any]
    timezone: str
    control: float
    control_arm: str | None
    min_share: float | None
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


class LiftPoint(Struct, kw_only=True):
    """The gain over the control by all decisions until then."""

    until: float
    gain: float | None
    low: float | None
    high: float | None
    relative: float | None
    relative_low: float | None
    relative_high: float | None


class LiftShown(Struct, kw_only=True):
    """The gain over the control; null where it cannot be told yet. `words` says it in a
    sentence."""

    words: str
    known: bool
    level: float
    gain: float | None
    low: float | None
    high: float | None
    relative: float | None
    relative_low: float | None
    relative_high: float | None
    policy: float | None
    control: float | None
    n_policy: int
    n_control: int
    blocks: int
    has_control: bool
    history: list[LiftPoint] = []


class ReportShown(Struct, kw_only=True):
    """What an agent believes, in plain words; `words` is all of it."""

    words: str
    status: str
    chances: dict[str, float]
    when: list[str]
    next: str | None
    beliefs: list[str]
    changes: list[str]
    lift: LiftShown
    alarms: list[str]


class Health(Struct, kw_only=True):
    """Whether the service is well."""

    status: Literal["ok", "starting", "stopping"]


class ArmChange(Strict):
    """Add an arm (or a retired one again), retire one, rename one `to` something else, or replace
    one by a new arm `to`."""

    op: Literal["add", "retire", "rename", "replace"]
    label: Label
    to: Label | None = None
    features: Values | None = None


class ArmsShown(Struct, kw_only=True):
    """All arms that ever were."""

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
    """Whether nothing is learnt now."""

    frozen: bool


class Deleted(Struct, kw_only=True):
    """The agent that is gone."""

    name: str


class Line(Struct, kw_only=True):
    """For each bin: decisions, those with a reward, its mean and the ends of the mean's 95%
    interval."""

    decisions: list[int]
    rewarded: list[int]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


class Change(Struct, kw_only=True):
    """Something that changed, and when."""

    at: float
    words: str


class HistoryShown(Struct, kw_only=True):
    """Decisions and rewards in bins of `seconds`, by arm and by group; bins begin at
    `starts`."""

    since: float
    until: float
    seconds: float
    starts: list[float]
    arms: dict[str, Line]
    groups: dict[str, Line]
    changes: list[Change]


class WaitingShown(Struct, kw_only=True):
    """How rewards come. `delay_median` and `delay_late` (95%) are in seconds; `alarms` are
    sentences."""

    decisions: int
    rewarded: int
    pending: int
    expired: int
    delay_median: float | None
    delay_late: float | None
    last_decision: float | None
    last_reward: float | None
    alarms: list[str]


class HeatmapShown(Struct, kw_only=True):
    """For every weekday (from Monday) and hour over four weeks: the best arm, its share of the
    policy's draws, and by how much it leads; null where nothing was decided."""

    weekdays: list[str]
    arms: list[str]
    best: list[list[str | None]]
    share: list[list[float | None]]
    margin: list[list[float | None]]


class Speed(Struct, kw_only=True, frozen=True):
    """How often, and how long in milliseconds (upper ends of bins)."""

    count: int
    p50: float | None
    p99: float | None


class ShardShown(Struct, kw_only=True):
    """A process that shares the database: where it is, for how many seconds, and the agents that it
    has."""

    url: str
    seconds: float
    agents: list[str]


class ServiceShown(Struct, kw_only=True):
    """How the service is doing since it was started. `shards` are all that share its database, with
    the agents that the token is for; `here` is the one that answers (empty where agents are
    files). All but `status` is told to tokens that may read all agents."""

    status: str
    version: str = ""
    seconds: float = 0.0
    open_agents: int = 0
    upkeep_slices: int = 0
    snapshots: int = 0
    commits: Speed = Speed(count=0, p50=None, p99=None)
    slices: Speed = Speed(count=0, p50=None, p99=None)
    operations: dict[str, Speed] = {}
    here: str = ""
    shards: list[ShardShown] = []
