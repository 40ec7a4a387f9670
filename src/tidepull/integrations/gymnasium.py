"""Gymnasium in both directions: every problem as an environment, and a bandit environment as a
problem.

    import gymnasium, tidepull.integrations.gymnasium

    env = gymnasium.make("tidepull/flipping-gaussian-v0", half_period=20)
    observation, info = env.reset(seed=3)                  # the world of `run_trial(..., seed=3)`
    observation, reward, terminated, truncated, info = env.step(0)

Importing this module registers the ids. An action is an arm; an episode is a trial of the problem's
usual length, `horizon`, and ends truncated. The observation is the context of the coming round: its
vector where that is all, a dictionary of its parts where there are more (`arm_features`,
`available`, `time`), 0 where there is nothing to see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tidepull._internal.extras import needs
from tidepull.errors import ArmError, ParameterError, ProblemError
from tidepull.policies.checks import LARGEST, LATEST
from tidepull.problems import build_problem, problems
from tidepull.types import Context, FloatArray

with needs("tidepull.integrations.gymnasium", "integrations"):
    import gymnasium
    from gymnasium import spaces

__all__ = ["BanditEnv", "GymnasiumProblem", "register"]

PARTS = ("observation", "arm_features", "available", "time")
UNKNOWN = "unknown"


class BanditEnv(gymnasium.Env[Any, Any]):
    """A problem as an environment.

    The `info` of a step has `regret` (the best available arm's expected reward minus that of the
    chosen arm) and `optimal` (the former). They are for measurements, not for the agent.

    Parameters
    ----------
    problem : str
        The problem's id.
    horizon : int, optional
        The number of rounds of an episode. By default it is the problem's usual length.
    **parameters
        The problem's own parameters.

    Raises
    ------
    ParameterError
        If `horizon` or a parameter is out of range.

    Examples
    --------
    >>> env = BanditEnv("stationary-bernoulli", horizon=1)
    >>> observation, info = env.reset(seed=3)
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> truncated
    True
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, problem: str, *, horizon: int | None = None, **parameters: Any) -> None:
        entry = problems.entry(problem)
        if horizon is not None and (not isinstance(horizon, int) or horizon < 1):
            raise ParameterError(f"horizon must be a whole number of at least 1, got {horizon!r}")
        self.horizon = entry.horizon if horizon is None else horizon
        self.render_mode = None
        self._named = (problem, parameters)
        self._world = build_problem(self._named, seed=0)
        self._round = 0
        self.action_space = spaces.Discrete(self._world.n_arms)
        self.observation_space = _space(self._world.context(), self._world.n_arms)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a new world: that of a trial with this seed, or a random one.

        Parameters
        ----------
        seed : int, optional
            The seed of the trial. By default it is random.
        options : dict, optional
            Not used.

        Returns
        -------
        observation : object
            The context of the first round.
        info : dict
            An empty dictionary.
        """
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**31)) if seed is None else seed
        self._world = build_problem(self._named, seed=drawn)
        self._round = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play an arm.

        Parameters
        ----------
        action : int
            The arm.

        Returns
        -------
        observation : object
            The context of the next round.
        reward : float
            The reward of the arm.
        terminated : bool
            Always False.
        truncated : bool
            Whether the episode is over.
        info : dict
            `regret` and `optimal` of the round.

        Raises
        ------
        ArmError
            If the arm does not exist or is not available.
        """
        arm, means, available = int(action), self.means(), self._world.context().available
        if not self.action_space.contains(np.int64(arm)) or (
            available is not None and not available[arm]
        ):
            raise ArmError(
                f"action must be one of {self.action_space.n} arms that is available, got "
                f"{action!r}"
            )
        best = float(means.max() if available is None else means[available].max())
        reward = float(self._world.step(arm))
        self._round += 1
        info = {"regret": best - float(means[arm]), "optimal": best}
        return self._seen(), reward, False, self._round >= self.horizon, info

    def means(self) -> FloatArray:
        """Return the true expected reward of every arm in the coming round; not for the agent."""
        return np.asarray(self._world.means(), dtype=float)

    def _seen(self) -> Any:
        return _observation(self._world.context())


class GymnasiumProblem:
    """A bandit environment as a tidepull problem.

    A discrete action is an arm, and episodes follow each other. Dictionaries with the parts of a
    context are read as such; any other observation is flattened into one vector. A mask in
    `info["action_mask"]` says which arms are available.

    Parameters
    ----------
    env : gymnasium.Env
        An environment with `Discrete` actions.
    seed : int, optional
        The seed of the first `reset`.
    means : callable or "unknown", optional
        Function from the environment to every arm's expected reward in the coming round, which
        regret is computed from. tidepull's own environments do not need it. With "unknown", regret
        is 0 throughout, and only rewards count.

    Raises
    ------
    ProblemError
        If actions are not discrete, or expected rewards are not known.

    Examples
    --------
    >>> problem = GymnasiumProblem(BanditEnv("stationary-bernoulli"), seed=0)
    >>> problem.n_arms == len(problem.means())
    True
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        seed: int | None = None,
        means: Callable[[Any], Any] | str | None = None,
    ) -> None:
        if not isinstance(env.action_space, spaces.Discrete):
            raise ProblemError(
                f"the environment's actions must be Discrete, got {env.action_space}"
            )
        if means is None and not hasattr(env.unwrapped, "means"):
            raise ProblemError(
                "regret needs every arm's expected reward: give means=lambda env: ..., or "
                "means='unknown' to play for rewards only"
            )
        if isinstance(means, str) and means != UNKNOWN:
            raise ProblemError(
                f"means must be a function of the environment or 'unknown', got {means!r}"
            )
        self._env = env
        self._means = means
        self._first = int(env.action_space.start)
        self.n_arms = int(env.action_space.n)
        self._now = self._context(*env.reset(seed=seed))

    @property
    def remark(self) -> str:
        """A remark about the results if expected rewards are unknown, else an empty text."""
        return "true means unknown: regret is 0, rewards count" if self._means == UNKNOWN else ""

    def context(self) -> Context:
        """Return the observation of the environment as a context."""
        return self._now

    def means(self) -> FloatArray:
        """Return the true expected rewards; zeros if they are unknown."""
        if self._means == UNKNOWN:
            return np.zeros(self.n_arms)
        own: Any = self._env.unwrapped
        means = self._means(self._env) if callable(self._means) else own.means()
        return np.asarray(means, dtype=float)

    def step(self, arm: int) -> float:
        """Play an arm; when an episode ends, the next one begins.

        Parameters
        ----------
        arm : int
            The arm, counted from 0.

        Returns
        -------
        float
            Its reward.
        """
        seen, reward, terminated, truncated, info = self._env.step(self._first + arm)
        self._now = self._context(*(self._env.reset() if terminated or truncated else (seen, info)))
        return float(reward)

    def _context(self, seen: Any, info: dict[str, Any]) -> Context:
        space, mask = self._env.observation_space, info.get("action_mask")
        parts: dict[str, Any] = {
            "available": None if mask is None else np.asarray(mask, dtype=bool)
        }
        if isinstance(space, spaces.Dict) and set(space.spaces) <= set(PARTS):
            parts |= {name: np.asarray(value) for name, value in seen.items()}
            if parts["available"] is not None:
                parts["available"] = parts["available"].astype(bool)
            if "time" in parts:
                parts["time"] = float(parts["time"].item())
        elif not (isinstance(space, spaces.Discrete) and space.n == 1):
            parts["observation"] = np.asarray(spaces.flatten(space, seen), dtype=float)
        return Context(**parts)


def register() -> None:
    """Register an environment `tidepull/ID-v0` for every problem that has none.

    The module calls it when it is imported. Call it again after `tidepull.add_problem`.
    """
    for entry in problems:
        id = f"tidepull/{entry.id}-v0"
        if id not in gymnasium.registry:
            gymnasium.register(id, entry_point=BanditEnv, kwargs={"problem": entry.id})


def _space(context: Context, n_arms: int) -> spaces.Space[Any]:
    parts: dict[str, spaces.Space[Any]] = {}
    if context.observation is not None:
        parts["observation"] = _box(LARGEST, np.shape(context.observation))
    if context.arm_features is not None:
        parts["arm_features"] = _box(LARGEST, np.shape(context.arm_features))
    if context.available is not None:
        parts["available"] = spaces.MultiBinary(n_arms)
    if context.time is not None:
        parts["time"] = _box(LATEST, (1,))
    if not parts:
        return spaces.Discrete(1)
    return parts["observation"] if set(parts) == {"observation"} else spaces.Dict(parts)


def _box(limit: float, shape: tuple[int, ...]) -> spaces.Box:
    return spaces.Box(-limit, limit, shape, np.float64)


def _observation(context: Context) -> Any:
    parts: dict[str, Any] = {}
    for name in ("observation", "arm_features"):
        if (values := getattr(context, name)) is not None:
            parts[name] = np.array(values, dtype=np.float64)
    if context.available is not None:
        parts["available"] = np.array(context.available, dtype=np.int8)
    if context.time is not None:
        parts["time"] = np.array([context.time], dtype=np.float64)
    if not parts:
        return 0
    return parts["observation"] if set(parts) == {"observation"} else parts


register()
