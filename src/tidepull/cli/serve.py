"""`tidepull serve` and `tidepull token`: the decision service and its access tokens."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Argument, Option, Typer

from tidepull._internal.extras import needs
from tidepull.cli.console import print_table, say
from tidepull.errors import InputError

if TYPE_CHECKING:
    from tidepull.service.auth import Token

token_app = Typer(
    help="Create, list and revoke tokens of `tidepull serve`.",
    no_args_is_help=True,
    add_completion=False,
)
_TOKENS = Option(
    Path("agents/tokens.json"), "--tokens", metavar="FILE", help="File of hashed tokens."
)


def _option(default: Any, name: str, **others: Any) -> Any:
    """An option that an environment variable can give too: `--db` is `TIDEPULL_DB`."""
    variable = "TIDEPULL_" + name.removeprefix("--").replace("-", "_").upper()
    return Option(default, name, envvar=variable, **others)


def serve(
    db: str = _option(
        None,
        "--db",
        metavar="DIR|URL",
        show_default="agents",
        help="Directory of agents, or a postgresql:// URL. TIDEPULL_DB_FILE names a file that contains it.",
    ),
    host: str = _option(
        None,
        "--host",
        help="Address to listen on. Default: 127.0.0.1; on Ray, the address of each machine.",
    ),
    port: int = _option(8000, "--port", min=0, max=65535, help="Port; 0 takes any free one."),
    tokens: Path = _option(
        None,
        "--tokens",
        metavar="FILE",
        help="File of hashed tokens. Default: tokens.json in the directory.",
    ),
    insecure: bool = _option(
        False, "--insecure", help="Accept requests without a token; on loopback only."
    ),
    quiet: bool = _option(False, "--quiet", help="Write no access log."),
    log: Path = _option(
        None, "--log", metavar="FILE", help="Access log, as JSON lines. Default: stderr."
    ),
    audit: Path = _option(
        None,
        "--audit",
        metavar="FILE",
        help="Audit trail of admin requests, as JSON lines. Default: audit.jsonl in the directory.",
    ),
    here: str = _option(
        "",
        "--here",
        metavar="URL",
        help="URL at which other services of the same database reach this one.",
    ),
    shard_secret: Path = Option(
        None,
        "--shard-secret",
        metavar="FILE",
        envvar="TIDEPULL_SHARD_SECRET_FILE",
        help="File of the secret with which services of one database sign what they forward, the same for all. "
        "TIDEPULL_SHARD_SECRET is the secret itself. Default: shard.secret beside the tokens, created if missing.",
    ),
    personalizer: str = _option(
        None,
        "--personalizer",
        metavar="NAME",
        help="Accept clients of Azure Personalizer for this agent, which the first call creates.",
    ),
    requests: float = _option(
        10_000.0,
        "--requests",
        min=1,
        help="Requests per second allowed for a token; each decision and reward of a batch counts.",
    ),
    address_requests: float = _option(
        20_000.0, "--address-requests", min=1, help="Requests per second allowed for an address."
    ),
    under_way: int = _option(
        2000, "--under-way", min=1, help="Largest number of concurrent requests."
    ),
    agents: int = _option(1000, "--agents", min=1, help="Largest number of agents."),
    drain: float = _option(
        3.0,
        "--drain",
        min=0,
        help="Seconds after SIGTERM during which /readyz answers 503 and the port stays open.",
    ),
    no_wait: bool = _option(
        False,
        "--no-wait",
        help="Be ready before kernels are compiled; until then decisions take milliseconds.",
    ),
    workers: int = _option(
        1,
        "--workers",
        min=1,
        help="Number of processes behind the port; each agent belongs to one of them.",
    ),
    webhook: str = _option(
        "",
        "--webhook",
        metavar="URL",
        help="URL that alarms are sent to, as JSON. TIDEPULL_WEBHOOK_FILE names a file that contains it.",
    ),
    webhook_secret: Path = Option(
        None,
        "--webhook-secret",
        metavar="FILE",
        envvar="TIDEPULL_WEBHOOK_SECRET_FILE",
        help="File of the secret that signs webhook messages (docs/operations.md).",
    ),
    on: str = _option(
        "here", "--on", help="Run here, or as shards on a Ray cluster: ray (docs/service.md)."
    ),
    address: str = _option(
        None, "--address", help="Ray cluster address. Default: the local cluster."
    ),
    shards: int = _option(
        None,
        "--shards",
        min=1,
        help="Number of shards on the cluster. Default: one for each machine.",
    ),
) -> None:
    """Serve decisions over HTTP: many named agents, tokens, metrics (extra `serve`)."""
    with needs("tidepull serve", "serve"):
        from tidepull.service.auth import Limits
        from tidepull.service.logs import message
        from tidepull.service.server import ServerConfig, prepare
        from tidepull.service.server import serve as run
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
        ..., "--agent", help="Agent that the token is for, or '*' for all; may be repeated."
    ),
    scope: list[str] = Option(
        ..., "--scope", help="Scope: read, decide or admin (everything); may be repeated."
    ),
    days: float = Option(
        None, "--days", min=0, help="Days until the token expires. Default: never."
    ),
    note: str = Option("", "--note", help="Note, such as the program that uses it."),
    tokens: Path = _TOKENS,
) -> None:
    """Create a token, which is printed once; the file stores only its hash."""
    from tidepull.service.auth import Scope, new_token, write_tokens

    for name in scope:
        if name not in set(Scope):
            raise InputError(f"--scope must be read, decide or admin, got {name!r}")
    if not all(agent):
        raise InputError("--agent must be the name of an agent, or '*' for all; got ''")
    known = _read(tokens) if tokens.exists() else {}
    clear, token = new_token(tuple(agent), tuple(scope), days=days, note=note)
    write_tokens(tokens, {**known, token.id: token})
    say(f"token {token.id} written to {tokens}; this is the only time that it is shown:")
    print(clear)


@token_app.command("list")
def list_tokens(tokens: Path = _TOKENS) -> None:
    """List tokens with their agents, scopes and expiry."""
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
    """Revoke a token; running services refuse it within a second."""
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
