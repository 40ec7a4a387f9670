"""The inputs of both networks written down plainly from a list of what happened, in the order it
happened."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.types import Context, FloatArray, ProblemShape


@dataclass(frozen=True)
class Decided:
    """A round was opened, and an arm chosen in it."""

    context: Context
    arm: int


@dataclass(frozen=True)
class Paid:
    """The reward of a round arrived."""

    number: int
    reward: float


Story = list[Decided | Paid]


def vectors(shape: ProblemShape, made: Decided) -> FloatArray:
    """Observation and arm, one after the other."""
    observation = np.zeros(0) if made.context.observation is None else made.context.observation
    rows = np.eye(shape.n_arms) if made.context.arm_features is None else made.context.arm_features
    return np.concatenate([observation, rows[made.arm]])


def rewards(story: Story) -> FloatArray:
    """One for each round, in the order of decisions; NaN where it did not come."""
    came = {step.number: step.reward for step in story if isinstance(step, Paid)}
    n = sum(isinstance(step, Decided) for step in story)
    return np.array([came.get(number, np.nan) for number in range(n)])


def recurrent_inputs(shape: ProblemShape, story: Story) -> FloatArray:
    """[latest reward that has arrived, observation, arm] of every round."""
    rows, latest = [], 0.0
    for step in story:
        if isinstance(step, Paid):
            latest = step.reward
        else:
            rows.append(np.concatenate([[latest], vectors(shape, step)]))
    return np.array(rows)


def feedforward_inputs(shape: ProblemShape, story: Story, order: int) -> FloatArray:
    """[observation, arm, the last triplets that have arrived, the newest first] of every round."""
    rows: list[FloatArray] = []
    arrived: list[FloatArray] = []
    decided: list[FloatArray] = []
    width = shape.observation_dim + (shape.arm_dim or shape.n_arms)
    for step in story:
        if isinstance(step, Paid):
            arrived.append(np.concatenate([decided[step.number], [step.reward]]))
        else:
            decided.append(vectors(shape, step))
            past = arrived[-order:][::-1] if order else []
            missing = np.zeros((order - len(past)) * (width + 1))
            rows.append(np.concatenate([decided[-1], *past, missing]))
    return np.array(rows)


def late_story(shape: ProblemShape, rounds: int, *, delay: int, seed: int = 0) -> Story:
    """Rounds whose rewards come up to `delay` rounds late, out of order; one in eight never
    does."""
    rng = np.random.default_rng(seed)
    story: Story = []
    on_the_way: list[tuple[int, int]] = []
    for t in range(rounds):
        context = Context(
            observation=rng.normal(size=shape.observation_dim) if shape.observation_dim else None,
            arm_features=rng.normal(size=(shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
        )
        story.append(Decided(context, int(rng.integers(shape.n_arms))))
        if rng.random() > 0.125:
            on_the_way.append((t + int(rng.integers(delay + 1)), t))
        for due in sorted(item for item in on_the_way if item[0] <= t):
            on_the_way.remove(due)
            story.append(Paid(due[1], float(rng.normal())))
    return story
