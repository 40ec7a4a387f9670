"""A policy of your own: two methods are enough."""

import numpy as np

import tidepull


class RepeatWinner:
    def __init__(self, n_arms: int) -> None:
        self.rng = np.random.default_rng(0)
        self.n_arms, self.last, self.won = n_arms, 0, False

    def choose(self, context: tidepull.Context) -> int:
        return self.last if self.won else int(self.rng.integers(self.n_arms))

    def learn(self, event: tidepull.Event) -> None:
        self.last, self.won = event.arm, event.reward > 0.5


if __name__ == "__main__":
    trial = tidepull.run_trial("flipping-bernoulli", RepeatWinner(8), horizon=1000, seed=0)
    print(f"regret after 1,000 rounds: {trial.regret[-1]:.0f}")
