"""`tidepull serve` and `tidepull token`: the decision service and who may ask it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Option, Typer

from tidepull.cli.console import print_table, say
from tidepull.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from tidepull.service.auth import Token

token_app = Typer(help="Tokens for `tidepull serve`: make, list, revoke.", no_args_is_help=True)
_TOKENS = Option(
    Path("agents/tokens.json"), "--tokens", metavar="FILE", help="The tokens file; it holds hashes."
)


def serve(
    db: str = Option(
        "agents",
        "--db",
        metavar="DIR|URL",
        help="The directory of the agents' files, or a postgresql:// URL.",
    ),
    host: str = Option(
        None,
        "--host",
        help="The address to listen on (default: 127.0.0.1; on Ray, each machine's own).",
    ),
    port: int = Option(8000, "--port", min=0, max=65535, help="The port (0: any that is free)."),
    tokens: Path = Option(
        None,
        "--tokens",
        metavar="FILE",
        help="Hashed tokens (default: tokens.json in the directory).",
    ),
    insecure: bool = Option(False, "--insecure", help="Let anybody in; on loopback only."),
    quiet: bool = Option(False, "--quiet", help="No access log."),
    log: Path = Option(
        None, "--log", metavar="FILE", help="The access log, JSON lines (default: stderr)."
    ),
    audit: Path = Option(
        None,
        "--audit",
        metavar="FILE",
        help="What admins did, JSON lines (default: audit.jsonl in the directory).",
    ),
    here: str = Option(
        "",
        "--here",
        metavar="URL",
        help="Where other services that share the database reach this one.",
    ),
    personalizer: str = Option(
        None,
        "--personalizer",
        metavar="NAME",
        help="Take calls of Azure Personalizer's clients for this agent; it is made when the first one comes.",
    ),
    requests: float = Option(
        10_000.0, "--requests", min=1, help="Requests a second that one token may make."
    ),
    agents: int = Option(1000, "--agents", min=1, help="Agents that may be made."),
    on: str = Option(
        "here", "--on", help="here, or ray: shards on a Ray cluster (docs/cluster.md)."
    ),
    address: str = Option(
        None, "--address", help="The Ray cluster (default: the one of this machine)."
    ),
    shards: int = Option(
        None, "--shards", min=1, help="Shards on the cluster (default: one for each machine)."
    ),
) -> None:
    """Serve decisions over HTTP: many named agents, tokens, metrics (extra `serve`)."""
    try:
        from tidepull.service.auth import Limits
        from tidepull.service.server import ServerConfig, prepare
        from tidepull.service.server import serve as run
    except ModuleNotFoundError:
        raise MissingExtraError("tidepull serve", "serve") from None
    limits = Limits(requests=requests, agents=agents)
    host = host or ("" if on == "ray" else "127.0.0.1")
    config = ServerConfig(
        db, host, port, tokens, insecure, quiet, log, audit, here, personalizer, limits
    )
    if on == "ray":
        from tidepull.service.cluster import serve_on_ray

        serve_on_ray(config, address or "auto", shards, say)
        return
    if on != "here" or address is not None or shards is not None:
        raise InputError("--on must be here or ray; --address and --shards are for --on ray")
    where = db.rpartition("@")[2] if "://" in db else db  # a URL may have a password in it
    run(prepare(config), host, port, lambda url: say(f"listening on {url}; agents in {where}"))


@token_app.command()
def new(
    agent: list[str] = Option(
        ..., "--agent", help="The agent that it is for ('*': all); may be repeated."
    ),
    scope: list[str] = Option(
        ..., "--scope", help="read, decide or admin (everything); may be repeated."
    ),
    days: float = Option(None, "--days", min=0, help="Valid for so many days (default: for ever)."),
    note: str = Option("", "--note", help="What it is for."),
    tokens: Path = _TOKENS,
) -> None:
    """Make a token: it is printed once, and only its hash is kept."""
    from tidepull.service.auth import Scope, new_token, write_tokens

    for given in scope:
        if given not in set(Scope):
            raise InputError(f"--scope must be read, decide or admin, got {given!r}")
    known = _read(tokens) if tokens.exists() else {}
    clear, token = new_token(tuple(agent), tuple(scope), days=days, note=note)
    write_tokens(tokens, {**known, token.id: token})
    say(f"token {token.id} written to {tokens}; this is the only time that it is shown:")
    print(clear)


@token_app.command("list")
def list_tokens(tokens: Path = _TOKENS) -> None:
    """The tokens of a file: ids, agents, scopes, and until when they are valid."""
    rows = [
        [
            token.id,
            ", ".join(token.agents),
            ", ".join(token.scopes),
            token.made,
            _expiry(token),
            token.note,
        ]
        for token in _read(tokens).values()
    ]
    print_table(str(tokens), ["id", "agents", "scopes", "made", "expires", "note"], rows)


@token_app.command()
def revoke(id: str = Argument(help="The token's id."), tokens: Path = _TOKENS) -> None:
    """Make a token invalid, at once, also for services that run."""
    from tidepull.service.auth import write_tokens

    known = _read(tokens)
    if known.pop(id, None) is None:
        raise InputError(f"there is no token {id!r} in {tokens}; `tidepull token list` shows them")
    write_tokens(tokens, known)
    say(f"token {id} revoked")


def _expiry(token: Token) -> str:
    if token.expires is None:
        return "never"
    moment = datetime.fromtimestamp(token.expires, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") + (", expired" * (moment < datetime.now(UTC)))


def _read(path: Path) -> dict[str, Token]:
    from tidepull.service.auth import read_tokens

    return read_tokens(path)
