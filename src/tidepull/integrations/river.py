"""tidepull's policies as river's: `bandit.base.Policy`, and `ContextualPolicy` where features are
dictionaries.

    from river import bandit
    from tidepull.integrations.river import TidepullPolicy

    policy = TidepullPolicy("tide", seed=1)
    arm = policy.pull(["red", "blue"])
    policy.update(arm, 1.0)

Arms are those of the first pull (or `arms`); a later pull from fewer of them chooses among these.
`update` finishes the latest pull; after a second `update`, or one without a pull, it is a round of
its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidepull._internal.extras import needs
from tidepull.errors import ArmError, ContextError
from tidepull.policies import build_policy
from tidepull.policies.guard import Guarded
from tidepull.types import Context, Event, FloatArray, ProblemShape

with needs("tidepull.integrations.river", "integrations"):
    from river import bandit

__all__ = ["TidepullContextualPolicy", "TidepullPolicy"]


class _Ours:
    """A tidepull policy with names for its arms, built when the first pull says how many there
    are."""

    def __init__(
        self,
        policy: str,
        parameters: Mapping[str, Any] | None,
        arms: Sequence[Any] | None,
        seed: int,
    ) -> None:
        self._named = (policy, dict(parameters or {}))
        self._names = None if arms is None else list(arms)
        self._seed = seed
        self._learner: Guarded | None = None

    def meet(self, arms: Sequence[Any]) -> None:
        """The arms of a pull; the first one says which there are."""
        if self._names is None:
            self._names = list(arms)

    def choose(self, arms: Sequence[Any], observation: FloatArray | None) -> Any:
        """One of these arms, by name."""
        names = self._known()
        offered, available = {self._index(name) for name in arms}, None
        if len(offered) < len(names):
            available = np.array([k in offered for k in range(len(names))])
        return names[self._policy(observation).choose(Context(observation, available=available))]

    def learn(self, name: Any, observation: FloatArray | None, reward: float) -> None:
        """A reward, and whatever work it leads to."""
        index, policy = self._index(name), self._policy(observation)
        policy.learn(Event(Context(observation), index, float(reward)))
        while policy.upkeep():
            pass

    def _known(self) -> list[Any]:
        if self._names is None:
            raise ArmError("arms are not known before the first pull; name them with arms=[...]")
        return self._names

    def _index(self, name: Any) -> int:
        try:
            return self._known().index(name)
        except ValueError:
            raise ArmError(
                f"there is no arm {name!r} among those of the first pull; name all of them with "
                "arms=[...]"
            ) from None

    def _policy(self, observation: FloatArray | None) -> Guarded:
        if self._learner is None:
            shape = ProblemShape(len(self._known()), 0 if observation is None else len(observation))
            self._learner = build_policy(self._named, shape, seed=self._seed)
        return self._learner


class TidepullPolicy(bandit.base.Policy):
    """A tidepull policy as a river policy without contexts.

    Equal seeds lead to the arms of `tidepull.run_trial`.

    Parameters
    ----------
    policy : str, default: "tide"
        The policy's id.
    parameters : mapping, optional
        The policy's parameters.
    arms : sequence of hashable, optional
        All arms. By default these are the arms of the first pull.
    reward_obj : metric, statistic or distribution of river, optional
        The object by which river measures arms. By default it is `river.stats.Mean()`.
    reward_scaler : river.compose.TargetTransformRegressor, optional
        The transformation of rewards, as in river's own policies. By default there is none.
    burn_in : int, default: 0
        The number of steps of the burn-in phase, as in river's own policies.
    seed : int, default: 0
        The seed of the policy.

    Examples
    --------
    >>> policy = TidepullPolicy("ucb", seed=1)
    >>> arm = policy.pull(["red", "blue"])
    >>> policy.update(arm, 1.0)
    """

    def __init__(
        self,
        policy: str = "tide",
        parameters: Mapping[str, Any] | None = None,
        arms: Sequence[Any] | None = None,
        reward_obj: Any = None,
        reward_scaler: Any = None,
        burn_in: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(reward_obj=reward_obj, reward_scaler=reward_scaler, burn_in=burn_in)
        self.policy = policy
        self.parameters = parameters
        self.arms = arms
        self.seed = seed
        self._ours = _Ours(policy, parameters, arms, seed)

    def pull(self, arm_ids: Sequence[Any]) -> Any:
        """Return an arm.

        Parameters
        ----------
        arm_ids : sequence of hashable
            The arms among which to choose.

        Returns
        -------
        hashable
            One of the arms.

        Raises
        ------
        ArmError
            If an arm is not among those of the first pull.
        """
        self._ours.meet(arm_ids)
        return super().pull(arm_ids)

    def _pull(self, arm_ids: Sequence[Any]) -> Any:
        return self._ours.choose(arm_ids, None)

    def update(self, arm_id: Any, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn from the reward of an arm.

        Parameters
        ----------
        arm_id : hashable
            The arm.
        *reward_args
            The reward, as the first argument.
        **reward_kwargs
            Keyword arguments for `reward_obj`.

        Raises
        ------
        ArmError
            If an arm is not among those of the first pull.
        """
        super().update(arm_id, *reward_args, **reward_kwargs)
        self._ours.learn(arm_id, None, _scaled(self.reward_scaler, reward_args[0]))


class TidepullContextualPolicy(bandit.base.ContextualPolicy):
    """A tidepull policy as a river policy with contexts: dictionaries of numbers.

    Parameters
    ----------
    policy : str, default: "tide"
        The policy's id.
    parameters : mapping, optional
        The policy's parameters.
    arms : sequence of hashable, optional
        All arms. By default these are the arms of the first pull.
    features : sequence of hashable, optional
        All features. By default these are the features of the first context. A missing feature is
        0, as in river.
    reward_obj : metric, statistic or distribution of river, optional
        The object by which river measures arms. By default it is `river.stats.Mean()`.
    reward_scaler : river.compose.TargetTransformRegressor, optional
        The transformation of rewards, as in river's own policies. By default there is none.
    burn_in : int, default: 0
        The number of steps of the burn-in phase, as in river's own policies.
    seed : int, default: 0
        The seed of the policy.

    Examples
    --------
    >>> policy = TidepullContextualPolicy("lin-ucb", seed=1)
    >>> arm = policy.pull(["red", "blue"], {"age": 31})
    >>> policy.update(arm, {"age": 31}, 1.0)
    """

    def __init__(
        self,
        policy: str = "tide",
        parameters: Mapping[str, Any] | None = None,
        arms: Sequence[Any] | None = None,
        features: Sequence[Any] | None = None,
        reward_obj: Any = None,
        reward_scaler: Any = None,
        burn_in: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(reward_obj=reward_obj, reward_scaler=reward_scaler, burn_in=burn_in)
        self.policy = policy
        self.parameters = parameters
        self.arms = arms
        self.features = features
        self.seed = seed
        self._columns = None if features is None else list(features)
        self._ours = _Ours(policy, parameters, arms, seed)

    def pull(self, arm_ids: Sequence[Any], context: Mapping[Any, Any] | None = None) -> Any:
        """Return an arm in a context.

        Parameters
        ----------
        arm_ids : sequence of hashable
            The arms among which to choose.
        context : mapping of hashable to float, optional
            The features of the round.

        Returns
        -------
        hashable
            One of the arms.

        Raises
        ------
        ArmError
            If an arm is not among those of the first pull.
        ContextError
            If a feature is unknown, or is not a number.
        """
        self._ours.meet(arm_ids)
        return super().pull(arm_ids, context=context)

    def _pull(self, arm_ids: Sequence[Any], context: Mapping[Any, Any]) -> Any:
        return self._ours.choose(arm_ids, self._vector(context))

    def update(
        self, arm_id: Any, context: Mapping[Any, Any], *reward_args: Any, **reward_kwargs: Any
    ) -> None:
        """Learn from the reward of an arm in a context.

        Parameters
        ----------
        arm_id : hashable
            The arm.
        context : mapping of hashable to float
            The features of the round.
        *reward_args
            The reward, as the first argument.
        **reward_kwargs
            Keyword arguments for `reward_obj`.

        Raises
        ------
        ArmError
            If an arm is not among those of the first pull.
        ContextError
            If a feature is unknown, or is not a number.
        """
        observation = self._vector(context)
        super().update(arm_id, context, *reward_args, **reward_kwargs)
        self._ours.learn(arm_id, observation, _scaled(self.reward_scaler, reward_args[0]))

    def _vector(self, context: Mapping[Any, Any] | None) -> FloatArray | None:
        context = context or {}
        if self._columns is None:
            self._columns = list(context)
        if unknown := [name for name in context if name not in self._columns]:
            raise ContextError(
                f"the first context had no feature {unknown[0]!r}; name all of them with "
                "features=[...]"
            )
        if wrong := [
            name
            for name, value in context.items()
            if not isinstance(value, int | float | np.number)
        ]:
            raise ContextError(
                f"feature {wrong[0]!r} must be a number, got {context[wrong[0]]!r}; encode it "
                "before"
            )
        if not self._columns:
            return None
        return np.array([float(context.get(name, 0.0)) for name in self._columns])


def _scaled(scaler: Any, reward: float) -> float:
    return float(reward if scaler is None else scaler.func(reward))
