"""A network of your own: any torch module that maps a sequence of rounds to features (needs
tidepull[torch])."""

import numpy as np
import torch

import tidepull

shape = tidepull.ProblemShape(n_arms=5)


class GatedNetwork(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        self.gru = torch.nn.GRU(tidepull.input_width(shape), 16, batch_first=True)

    def forward(
        self, x: torch.Tensor, state: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        out, state = self.gru(x, state)
        return torch.tanh(out), state


if __name__ == "__main__":
    torch.manual_seed(0)
    encoder = tidepull.TorchEncoder(
        GatedNetwork(), shape=shape, learning_rate=0.1, rng=np.random.default_rng(0)
    )
    policy = tidepull.NeuralLinear(
        encoder,
        tidepull.LinearGaussian(encoder.dim, prior_std=0.5, noise_std=0.3),
        n_arms=shape.n_arms,
        epochs=16,
        train_every=32,
        forced_rounds=shape.n_arms,
        rng=np.random.default_rng(1),
    )
    trial = tidepull.run_trial("sinusoidal-bernoulli", policy, horizon=512, seed=0)
    print(f"regret after 512 rounds: {trial.regret[-1]:.0f} (random arms: {512 * 0.4677:.0f})")
