"""`tidepull serve` and `tidepull token`: the decision service and its access tokens."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Argument, Option, Typer

from tidepull.cli.console import print_table, say
from tidepull.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from tidepull.service.auth import Token

token_app = Typer(help="Tokens for `tidepull serve`: make, list, revoke.", no_args_is_help=True)
_TOKENS = Option(
    Path("agents/tokens.json"), "--tokens", metavar="FILE", help="The tokens file; it holds hashes."
)


def _option(default: Any, name: str, **given: Any) -> Any:
    """An option that an environment variable can give too: `--db` is `TIDEPULL_DB`."""
    variable = "TIDEPULL_" + name.removeprefix("--").replace("-", "_").upper()
    return Option(default, name, envvar=variable, **given)


def serve(
    db: str = _option(
        None,
        "--db",
        metavar="DIR|URL",
        show_default="agents",
        help="The directory of the agents' files, or a postgresql:// URL (TIDEPULL_DB_FILE: a file that holds it).",
    ),
    host: str = _option(
        None,
        "--host",
        help="The address to listen on (default: 127.0.0.1; on Ray, each machine's own).",
    ),
    port: int = _option(8000, "--port", min=0, max=65535, help="The port (0: any that is free)."),
    tokens: Path = _option(
        None,
        "--tokens",
        metavar="FILE",
        help="Hashed tokens (default: tokens.json in the directory).",
    ),
    insecure: bool = _option(
        False, "--insecure", help="Accept requests without a token; on loopback only."
    ),
    quiet: bool = _option(False, "--quiet", help="No access log."),
    log: Path = _option(
        None, "--log", metavar="FILE", help="The access log, JSON lines (default: stderr)."
    ),
    audit: Path = _option(
        None,
        "--audit",
        metavar="FILE",
        help="What admins did, JSON lines (default: audit.jsonl in the directory).",
    ),
    here: str = _option(
        "",
        "--here",
        metavar="URL",
        help="Where other services that share the database reach this one.",
    ),
    shard_secret: Path = Option(
        None,
        "--shard-secret",
        metavar="FILE",
        envvar="TIDEPULL_SHARD_SECRET_FILE",
        help="What services that share a database prove themselves with, the same for all; TIDEPULL_SHARD_SECRET is "
        "the secret itself (default: shard.secret beside the tokens, made if there is none).",
    ),
    personalizer: str = _option(
        None,
        "--personalizer",
        metavar="NAME",
        help="Take calls of Azure Personalizer's clients for this agent; it is made when the first one comes.",
    ),
    requests: float = _option(
        10_000.0,
        "--requests",
        min=1,
        help="Requests a second that one token may make; every decision and reward of a batch counts.",
    ),
    address_requests: float = _option(
        20_000.0, "--address-requests", min=1, help="Requests a second that one address may make."
    ),
    under_way: int = _option(
        2000, "--under-way", min=1, help="Requests that may be under way at a time."
    ),
    agents: int = _option(1000, "--agents", min=1, help="Agents that may be made."),
    drain: float = _option(
        3.0,
        "--drain",
        min=0,
        help="Seconds after SIGTERM in which /readyz is 503 and the port is still open.",
    ),
    no_wait: bool = _option(
        False,
        "--no-wait",
        help="Be ready before kernels are compiled: until then decisions take milliseconds.",
    ),
    workers: int = _option(
        1,
        "--workers",
        min=1,
        help="Processes that share the port and the agents, each agent in one of them.",
    ),
    webhook: str = _option(
        "",
        "--webhook",
        metavar="URL",
        help="Where alarms are sent to, as JSON (TIDEPULL_WEBHOOK_FILE: a file that holds it).",
    ),
    webhook_secret: Path = Option(
        None,
        "--webhook-secret",
        metavar="FILE",
        envvar="TIDEPULL_WEBHOOK_SECRET_FILE",
        help="The secret that signs what is sent to the webhook (docs/operations.md).",
    ),
    on: str = _option(
        "here", "--on", help="here, or ray: shards on a Ray cluster (docs/service.md)."
    ),
    address: str = _option(
        None, "--address", help="The Ray cluster (default: the one of this machine)."
    ),
    shards: int = _option(
        None, "--shards", min=1, help="Shards on the cluster (default: one for each machine)."
    ),
) -> None:
    """Serve decisions over HTTP: many named agents, tokens, metrics (extra `serve`)."""
    try:
        from tidepull.service.auth import Limits
        from tidepull.service.logs import message
        from tidepull.service.server import ServerConfig, prepare
        from tidepull.service.server import serve as run
    except ModuleNotFoundError:
        raise MissingExtraError("tidepull serve", "serve") from None
    db = db or _from_file("TIDEPULL_DB_FILE") or "agents"
    limits = Limits(
        requests=requests, agents=agents, address_requests=address_requests, under_way=under_way
    )
    host = host or ("" if on == "ray" else "127.0.0.1")
    config = ServerConfig(
        db, host, port, tokens, insecure, quiet, log, audit, here, personalizer, limits,
        shard_secret=shard_secret, drain=drain, warm=not no_wait,
        webhook=webhook or _from_file("TIDEPULL_WEBHOOK_FILE") or "",
        webhook_secret="" if webhook_secret is None else _secret(webhook_secret),
    )  # fmt: skip
    if on == "ray":
        from tidepull.service.cluster import serve_on_ray

        if workers > 1:
            raise InputError("--workers is for one machine: on Ray, say --shards")
        serve_on_ray(config, address or "auto", shards, say)
        return
    if on != "here" or address is not None or shards is not None:
        raise InputError("--on must be here or ray; --address and --shards are for --on ray")
    where = db.rpartition("@")[2] if "://" in db else db  # a URL may have a password in it

    def listening(url: str) -> None:
        print(message(f"listening on {url}; agents in {where}").decode(), file=sys.stderr)

    if workers > 1:
        from tidepull.service.workers import serve_workers

        serve_workers(config, workers, listening)
        return
    run(prepare(config), host, port, listening)


def _from_file(variable: str) -> str | None:
    """What is in the file that an environment variable names."""
    named = os.environ.get(variable)
    return _text(variable, Path(named)) if named else None


def _text(name: str, path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise InputError(f"{name}: cannot read {path} ({error.strerror})") from None


def _secret(path: Path) -> str:
    text = _text("--webhook-secret", path)
    if len(text) < 16:
        raise InputError(f"--webhook-secret: {path} must hold a secret of at least 16 characters")
    return text


@token_app.command()
def new(
    agent: list[str] = Option(
        ..., "--agent", help="The agent that it is for ('*': all); may be repeated."
    ),
    scope: list[str] = Option(
        ..., "--scope", help="read, decide or admin (everything); may be repeated."
    ),
    days: float = Option(
        None, "--days", min=0, help="Days until the token expires. Default: never."
    ),
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
