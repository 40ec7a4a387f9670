"""A problem of your own: four members are enough."""

import numpy as np

import tidepull


class DayAndNight:
    n_arms = 2

    def __init__(self) -> None:
        self.rng, self.hour = np.random.default_rng(0), 0

    def context(self) -> tidepull.Context:
        return tidepull.Context()

    def means(self) -> np.ndarray:
        return np.array([0.8, 0.2] if self.hour % 24 < 12 else [0.2, 0.8])

    def step(self, arm: int) -> float:
        rewards = self.rng.random(2) < self.means()
        self.hour += 1
        return float(rewards[arm])


if __name__ == "__main__":
    trial = tidepull.run_trial(DayAndNight(), ("sw-ucb", {"window": 12}), horizon=1000, seed=0)
    print(f"regret after 1,000 rounds: {trial.regret[-1]:.0f}")
