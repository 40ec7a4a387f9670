"""Networks that turn a history into features."""

from __future__ import annotations

from tidepull.encoders.feedforward import FeedforwardEncoder
from tidepull.encoders.recurrent import RecurrentEncoder

__all__ = ["FeedforwardEncoder", "RecurrentEncoder"]
