"""Processes that serve agents of one shared database: each says where it takes requests, for as long as it lives."""

from __future__ import annotations

from dataclasses import dataclass

from tidepull.agent.database import Database

LENGTH = 5.0
"""Seconds after which a shard that says nothing counts as gone."""

_HERE = """
INSERT INTO tidepull_shards (url, since, expires)
VALUES (%(url)s, clock_timestamp(), clock_timestamp() + make_interval(secs => %(length)s))
ON CONFLICT (url) DO UPDATE SET expires = EXCLUDED.expires,
  since = CASE WHEN %(new)s THEN EXCLUDED.since ELSE tidepull_shards.since END
"""
_ALIVE = """
SELECT s.url, extract(epoch FROM clock_timestamp() - s.since)::float8,
  array_remove(array_agg(a.name ORDER BY a.name), NULL)
FROM tidepull_shards AS s LEFT JOIN tidepull_agents AS a ON a.url = s.url AND a.expires > clock_timestamp()
WHERE s.expires > clock_timestamp() GROUP BY s.url, s.since ORDER BY s.url
"""


@dataclass(frozen=True, slots=True)
class Shard:
    """A process that lives: where it takes requests, for how many seconds, and the agents that it holds."""

    url: str
    seconds: float
    agents: tuple[str, ...]


class Shards:
    """The list of them, in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._said = ""

    def announce(self, url: str) -> None:
        """This process takes requests at a URL; to be said again every second or so."""
        told = {"url": url, "length": LENGTH, "new": self._said != url}
        with self._database.connection("write to") as connection:
            connection.execute(_HERE, told)
            if self._said != url:
                connection.execute(
                    "DELETE FROM tidepull_shards WHERE expires < clock_timestamp() - interval '1 day'"
                )
        self._said = url

    def leave(self) -> None:
        """This process takes no requests any more."""
        if self._said:
            with self._database.connection("write to") as connection:
                connection.execute("DELETE FROM tidepull_shards WHERE url = %s", (self._said,))
            self._said = ""

    def alive(self) -> list[Shard]:
        """All that were heard of lately."""
        return [Shard(url, seconds, tuple(agents)) for url, seconds, agents in self._database.rows(_ALIVE)]
