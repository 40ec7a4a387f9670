"""The torch bridge; skipped by name where torch is not installed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.encoders.replay import Paid, Story, late_story, recurrent_inputs, rewards
from tidepull.encoders.torch import TorchEncoder, input_width
from tidepull.errors import ParameterError, TrainingError
from tidepull.policies.neural_linear import NeuralLinear
from tidepull.posteriors.linear_gaussian import LinearGaussian
from tidepull.state import dump, load
from tidepull.types import Context, Event, FloatArray, ProblemShape

torch: Any = pytest.importorskip("torch", reason="the extra 'torch' is not installed")

SHAPES = {
    "plain": ProblemShape(n_arms=4),
    "observation": ProblemShape(n_arms=3, observation_dim=5),
    "vectors": ProblemShape(n_arms=6, arm_dim=3),
}
MODULES = ["lstm", "gru", "perceptron", "convolution", "dropout"]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
every_module = pytest.mark.parametrize("name", MODULES)


class CausalConvolution(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv1d(inputs, 7, kernel_size=3)

    def forward(self, x: Any) -> Any:
        padded = torch.nn.functional.pad(x.transpose(1, 2), (2, 0))
        return torch.tanh(self.convolution(padded)).transpose(1, 2)


def _module(name: str, inputs: int) -> Any:
    torch.manual_seed(3)
    if name == "lstm":
        return torch.nn.LSTM(inputs, 8, batch_first=True)
    if name == "gru":
        return torch.nn.GRU(inputs, 6, num_layers=2, batch_first=True)
    if name == "convolution":
        return CausalConvolution(inputs)
    drop = [torch.nn.Dropout(0.3)] if name == "dropout" else []
    return torch.nn.Sequential(torch.nn.Linear(inputs, 9), *drop, torch.nn.Tanh())


def _encoder(name: str, shape: ProblemShape, **settings: Any) -> TorchEncoder:
    given = {"learning_rate": 0.01, **settings}
    return TorchEncoder(
        _module(name, input_width(shape)), shape=shape, rng=np.random.default_rng(1), **given
    )


def _events(shape: ProblemShape, n: int) -> list[Event]:
    rng = np.random.default_rng(2)
    made = []
    for _ in range(n):
        context = Context(
            observation=rng.normal(size=shape.observation_dim) if shape.observation_dim else None,
            arm_features=rng.normal(size=(shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
        )
        made.append(Event(context, int(rng.integers(shape.n_arms)), float(rng.normal())))
    return made


def _inputs(shape: ProblemShape, events: list[Event]) -> FloatArray:
    rows, previous = [], 0.0
    for event in events:
        context = event.context
        arm = (
            np.eye(shape.n_arms)[event.arm]
            if context.arm_features is None
            else context.arm_features[event.arm]
        )
        observation = [] if context.observation is None else list(context.observation)
        rows.append([previous, *observation, *arm])
        previous = event.reward
    return np.array(rows, np.float32)


@every_shape
@every_module
def test_incremental_features_equal_one_pass_over_the_sequence(
    name: str, shape: ProblemShape
) -> None:
    encoder, events = _encoder(name, shape), _events(shape, 30)
    seen = np.array([encoder.append(event) for event in events])
    module = _module(name, input_width(shape)).eval()
    with torch.no_grad():
        expected = module(torch.tensor(_inputs(shape, events))[None])
    expected = expected[0] if isinstance(expected, tuple) else expected
    np.testing.assert_allclose(seen, expected[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_history()[0], seen, atol=1e-6)


@every_shape
@every_module
def test_features_of_all_arms_equal_what_appending_each_would_give(
    name: str, shape: ProblemShape
) -> None:
    encoder, events = _encoder(name, shape), _events(shape, 25)
    for event in events[:20]:
        encoder.append(event)
    encoder.refit(2)
    for event in events[20:]:
        features = encoder.features(event.context)
        assert features.shape == (shape.n_arms, encoder.dim)
        np.testing.assert_allclose(features[event.arm], encoder.append(event), atol=1e-6)


def test_history_is_encoded_anew_after_training() -> None:
    encoder, events = _encoder("lstm", SHAPES["plain"]), _events(SHAPES["plain"], 20)
    seen = np.array([encoder.append(event) for event in events])
    encoder.refit(3)
    assert encoder.version == 1
    features, rewards = encoder.encode_history()
    assert np.abs(features - seen).max() > 1e-3
    np.testing.assert_allclose(rewards, [event.reward for event in events], rtol=1e-6)


def test_receptive_field_changes_nothing_when_it_is_true() -> None:
    shape = SHAPES["observation"]
    whole, short = _encoder("convolution", shape), _encoder("convolution", shape, receptive_field=3)
    for event in _events(shape, 12):
        np.testing.assert_allclose(
            whole.features(event.context), short.features(event.context), atol=1e-6
        )
        np.testing.assert_allclose(whole.append(event), short.append(event), atol=1e-6)


def test_training_equals_adam_on_the_penalised_mean_squared_error() -> None:
    shape = SHAPES["plain"]
    encoder, events = _encoder("lstm", shape, l2=0.1), _events(shape, 15)
    for event in events:
        encoder.append(event)
    module = _module("lstm", input_width(shape))
    dim = encoder.dim
    head = torch.nn.Parameter(
        torch.tensor(
            np.random.default_rng(1).normal(scale=dim**-0.5, size=dim), dtype=torch.float32
        )
    )
    matrices = [p for p in module.parameters() if p.dim() == 2]
    optimiser = torch.optim.Adam([*module.parameters(), head], lr=0.01)
    x = torch.tensor(_inputs(shape, events))[None]
    y = torch.tensor([event.reward for event in events])

    def loss() -> Any:
        errors = module(x)[0][0] @ head - y
        squares = sum((w**2).sum() for w in [*matrices, head])
        return (errors**2).mean() + 0.1 * squares / 2

    for _ in range(10):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()
    assert encoder.refit(10) == pytest.approx(loss().item(), rel=1e-5)


@every_module
def test_restored_encoder_continues_bit_for_bit(name: str) -> None:
    shape = SHAPES["observation"]
    original, copy = _encoder(name, shape), _encoder(name, shape)
    events = _events(shape, 60)
    for event in events[:40]:
        original.append(event)
    original.refit(3)
    original.append(events[40])
    copy.restore(load(dump(original.snapshot())))
    for encoder in (original, copy):
        for event in events[41:]:
            encoder.append(event)
    assert original.refit(3) == copy.refit(3)
    assert dump(original.snapshot()) == dump(copy.snapshot())


def test_diverging_training_leaves_the_encoder_as_it_was() -> None:
    shape = SHAPES["plain"]
    encoder = _encoder("perceptron", shape, learning_rate=1e30)
    for event in _events(shape, 10):
        encoder.append(event)
    before = encoder.snapshot()
    with pytest.raises(TrainingError, match="diverged"):
        encoder.refit(20)
    assert dump(encoder.snapshot()) == dump(before)


@every_shape
@pytest.mark.parametrize("name", ["lstm", "convolution"])
def test_features_equal_one_pass_over_the_sequence_when_rewards_are_late(
    name: str, shape: ProblemShape
) -> None:
    encoder, story = _encoder(name, shape), late_story(shape, 40, delay=9)
    seen = np.array(_tell(encoder, story))
    module = _module(name, input_width(shape)).eval()
    with torch.no_grad():
        expected = module(torch.tensor(recurrent_inputs(shape, story), dtype=torch.float32)[None])
    expected = expected[0] if isinstance(expected, tuple) else expected
    np.testing.assert_allclose(seen, expected[0].numpy(), atol=1e-6)


def _tell(encoder: TorchEncoder, story: Story) -> list[FloatArray]:
    seen = []
    for step in story:
        if isinstance(step, Paid):
            encoder.pay(step.number, step.reward)
        else:
            encoder.features(step.context)
            seen.append(encoder.decide(step.context, step.arm))
    return seen


def test_pending_rewards_have_no_part_in_the_loss() -> None:
    shape, story = SHAPES["plain"], late_story(SHAPES["plain"], 40, delay=9)
    encoder = _encoder("perceptron", shape, l2=0.0)
    _tell(encoder, story)
    loss = encoder.refit(3)
    features, paid = encoder.encode_history()
    known = np.flatnonzero(~np.isnan(rewards(story)))
    np.testing.assert_array_equal(encoder.known_rounds(), known)
    head = encoder.snapshot()["network"]["head"]
    assert loss == pytest.approx(np.mean((features @ head - paid) ** 2), rel=1e-5)
    assert 0 < len(paid) < 40


@every_module
def test_training_in_slices_equals_training_at_once_and_can_be_closed(name: str) -> None:
    shape = SHAPES["observation"]
    whole, sliced = _encoder(name, shape), _encoder(name, shape)
    for encoder in (whole, sliced):
        _tell(encoder, late_story(shape, 40, delay=9))
        encoder.refit(2)
    before = dump(sliced.snapshot())
    closed = sliced.refitting(3)
    next(closed)
    next(closed)
    context = _events(shape, 1)[0].context
    np.testing.assert_array_equal(sliced.features(context), whole.features(context))
    assert dump({**sliced.snapshot(), "opened": None}) == dump({**load(before), "opened": None})
    with pytest.raises(TrainingError, match="close it"):
        sliced.restore(load(before))
    closed.close()
    whole.refit(3)
    assert len([None for _ in sliced.refitting(3)]) == 3
    assert dump(sliced.snapshot()) == dump(whole.snapshot())


def test_amended_round_is_read_as_if_its_arm_had_been_decided() -> None:
    shape = SHAPES["plain"]
    amended, twin = _encoder("lstm", shape), _encoder("lstm", shape)
    for t in range(10):
        amended.decide(Context(), 0)
        twin.decide(Context(), 2 if t == 4 else 0)
    amended.amend(4, Context(), 2)
    np.testing.assert_allclose(amended.features(Context()), twin.features(Context()), atol=1e-6)
    np.testing.assert_allclose(amended.pay(6, 1.0), twin.pay(6, 1.0), atol=1e-6)


def test_memory_bounds_what_is_trained_on() -> None:
    shape = SHAPES["plain"]
    encoder = _encoder("lstm", shape, memory=64)
    for event in _events(shape, 100):
        encoder.append(event)
    encoder.refit(1)
    assert (encoder.oldest, len(encoder.encode_history()[1])) == (36, 64)


def test_global_generator_of_torch_is_left_alone() -> None:
    shape = SHAPES["plain"]
    encoder = _encoder("dropout", shape)
    for event in _events(shape, 10):
        encoder.append(event)
    before = torch.get_rng_state()
    encoder.refit(3)
    assert torch.equal(before, torch.get_rng_state())


def test_module_with_another_layout_is_refused() -> None:
    shape = SHAPES["plain"]
    with pytest.raises(ParameterError, match="features of shape"):
        TorchEncoder(
            torch.nn.Flatten(), shape=shape, learning_rate=0.1, rng=np.random.default_rng(0)
        )


def test_torch_network_learns_to_alternate_through_the_policy() -> None:
    shape = ProblemShape(n_arms=2)
    encoder = _encoder("lstm", shape, learning_rate=0.02)
    policy = NeuralLinear(
        encoder,
        LinearGaussian(encoder.dim, prior_std=1.0, noise_std=0.3),
        n_arms=2,
        epochs=20,
        train_every=16,
        forced_rounds=2,
        rng=np.random.default_rng(4),
    )
    total = 0.0
    for t in range(200):
        arm = policy.choose(Context())
        reward = float(arm == t % 2)
        total += reward if t >= 100 else 0.0
        policy.learn(Event(Context(), arm, reward))
        while policy.upkeep():
            pass
    assert total / 100 > 0.8  # what ignores time, or stays after a win, earns 0.5


def test_example_of_an_own_network_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(
        str(Path(__file__).parents[3] / "examples" / "own_network.py"), run_name="__main__"
    )
    assert "regret after 512 rounds" in capsys.readouterr().out
