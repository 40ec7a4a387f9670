"""The errors that tidepull raises on purpose; each message is one sentence that names the fix.

TidepullError
├── InputError                the caller's mistake (exit code 2)
│   ├── UnknownIdError
│   ├── ParameterError
│   ├── ContextError
│   ├── RewardError
│   │   └── OtherRewardError
│   ├── ArmError
│   ├── EventError
│   ├── ProblemError
│   ├── DataError
│   ├── SnapshotError
│   ├── DecisionError
│   │   └── ExpiredError
│   ├── ConflictError
│   └── SuiteError
├── BusyError
├── NumericalError
├── TrainingError
├── StoreError
│   ├── WrongStoreError       (exit code 2)
│   │   └── NewerStoreError
│   └── LedgerError
│       ├── HeldError         (exit code 2)
│       └── UnreachableError
├── ServiceError
└── MissingExtraError         (exit code 2)
"""

from __future__ import annotations


class TidepullError(Exception):
    """Base class of all errors that tidepull raises on purpose.

    Examples
    --------
    >>> import tidepull
    >>> try:
    ...     tidepull.run_trial("no-such-problem", "ucb")
    ... except tidepull.TidepullError as error:
    ...     print(type(error).__name__)
    UnknownIdError
    """

    exit_code = 1


class InputError(TidepullError):
    """The caller made a mistake."""

    exit_code = 2


class UnknownIdError(InputError):
    """There is no problem, policy or suite of that id."""


class ParameterError(InputError):
    """A parameter does not exist, or its value is out of range."""


class ContextError(InputError):
    """A context does not fit the policy."""


class RewardError(InputError):
    """A reward is not finite, too large, or not of the kind that a policy accepts."""


class OtherRewardError(RewardError):
    """A decision has another reward already."""


class ArmError(InputError):
    """An arm does not exist, or is not available."""


class EventError(InputError):
    """An event is missing, or its round has not begun or is finished already."""


class ProblemError(InputError):
    """A problem object breaks its contract."""


class DataError(InputError):
    """A data file is missing, truncated or altered."""


class SnapshotError(InputError):
    """A snapshot belongs to something else, or is damaged."""


class DecisionError(InputError):
    """An agent has no decision with that id."""


class ExpiredError(DecisionError):
    """A reward came after the time for it was over."""


class ConflictError(InputError):
    """A name is already used for something else."""


class SuiteError(InputError):
    """A suite file is not valid."""


class BusyError(TidepullError):
    """Another thread is using the policy at this moment."""


class NumericalError(TidepullError):
    """Numbers are too large, too small or not finite for exact linear algebra."""


class TrainingError(TidepullError):
    """The training of a network diverged, or there was nothing to learn from."""


class StoreError(TidepullError):
    """Results could not be written or read."""


class WrongStoreError(StoreError):
    """There is no store, or it does not contain what was asked for."""

    exit_code = 2


class NewerStoreError(WrongStoreError):
    """A newer release of tidepull wrote the store."""


class LedgerError(StoreError):
    """An agent's ledger could not be written or read, or is damaged."""


class HeldError(LedgerError):
    """Another process has the agent open for writing."""

    exit_code = 2


class UnreachableError(LedgerError):
    """The server of an agent's database cannot be reached; the next call tries again."""


class ServiceError(TidepullError):
    """A service refused a request, or cannot be reached.

    `status` is that of HTTP, or 0 if the service cannot be reached. `request` is the id of the
    request in the logs of the service.
    """

    def __init__(self, status: int, detail: str, request: str | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.request = status, detail, request
        self.exit_code = 2 if 400 <= status < 500 else 1


class MissingExtraError(TidepullError):
    """An optional dependency is not installed."""

    exit_code = 2

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{feature} needs the extra '{extra}': pip install 'tidepull[{extra}]'")
