"""Networks that turn a history into features."""

from __future__ import annotations

from tidepull.encoders.feedforward import FeedforwardEncoder
from tidepull.encoders.recurrent import RecurrentEncoder
from tidepull.encoders.warm_up import compiling, warm_up

__all__ = ["FeedforwardEncoder", "RecurrentEncoder", "compiling", "warm_up"]
