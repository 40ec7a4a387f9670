# ruff: noqa: E501
"""Attacks and mistakes, and the answer that each gets. `python -m
tests.integration.service.attacks` writes the table into research/lab/service.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "research" / "lab" / "service.md"
BEGIN, END = "<!-- attacks -->\n", "<!-- /attacks -->\n"
CHOOSE, REWARD, AGENTS = "/v1/agents/shop/choose", "/v1/agents/shop/reward", "/v1/agents"
SOME: dict[str, Any] = {"context": {"age": 31}}


@dataclass(frozen=True)
class Attack:
    """A request and what it must get. `token`: "admin", "decide", "read", "other" (of another
    agent), "expired", "revoked", None, or itself."""

    what: str
    status: int
    says: str
    path: str = CHOOSE
    body: Any = field(default_factory=lambda: dict(SOME))
    method: str = "POST"
    token: str | None = "admin"
    headers: dict[str, str] = field(default_factory=dict)
    before: tuple[str, Any] | None = None


def deep(levels: int) -> bytes:
    return b'{"context": ' + b'{"a": ' * levels + b"1" + b"}" * levels + b"}"


def raw(text: str) -> bytes:
    return text.encode()


def agent(**given: Any) -> dict[str, Any]:
    return {"name": "other", "arms": ["a", "b"], **given}


def any_deep(levels: int) -> bytes:
    """A new agent whose context is nested where any value may be."""
    nested = b'{"a": ' * levels + b"1" + b"}" * levels
    return (
        b'{"name": "other", "arms": ["a", "b"], "context": {"x": {"kind": "Number", "y": '
        + nested
        + b"}}}"
    )


SQL = "x'; DROP TABLE records; --"
FORWARDED = {"x-tidepull-forwarded": "http://127.0.0.1:1"}


ATTACKS = [
    # who is there?
    Attack("no token", 401, "A token is needed", token=None),
    Attack("a token that was never made", 401, "not valid", token="tp_00000000_" + "x" * 43),
    Attack("the right id with another secret", 401, "not valid", token="same id"),
    Attack("a token that was revoked", 401, "not valid", token="revoked"),
    Attack("a token that has expired", 401, "expired", token="expired"),
    Attack("an empty token", 401, "not valid", token="_"),
    Attack("the token as a password (Basic)", 401, "Bearer", token=None, headers={"authorization": "Basic dHA6dHA="}),
    Attack("a token in the query", 401, "A token is needed", path=CHOOSE + "?token=tp_x", token=None),
    Attack("another agent's token", 403, "not for agent 'shop'", token="other"),
    Attack("another agent's token for an agent that is not there", 403, "not for agent", path="/v1/agents/none/choose", token="other"),
    Attack("deciding with a token that may only look", 403, "scope 'decide'", token="read"),
    Attack("looking with a token that may only decide", 403, "scope 'read'", "/v1/agents/shop/explain", None, "GET", "decide"),
    Attack("exporting contexts with a token that may only look", 403, "scope 'admin'", "/v1/agents/shop/export", None, "GET", "read"),
    Attack("deleting with a token that may only decide", 403, "scope 'admin'", "/v1/agents/shop", None, "DELETE", "decide"),
    Attack("making an agent with a token for another one", 403, "not for agent 'new'", AGENTS, agent(name="new"), token="shop admin"),
    Attack("metrics of all with a token for one agent", 403, "not for all agents", "/metrics", None, "GET", "read"),
    Attack("a forged mark of another shard, without a token", 401, "A token is needed", token=None, headers=FORWARDED),
    Attack("a forged mark of another shard, with another agent's token", 403, "not for agent 'shop'", token="other", headers=FORWARDED),
    Attack("a method in a header, with a token that may only look", 403, "scope 'decide'", token="read", headers={"x-http-method-override": "GET"}),
    # forms
    Attack("a path that is not there", 404, "nothing at this path", "/v1/nothing", None, "GET"),
    Attack("an agent that is not there", 404, "no agent", "/v1/agents/nobody/choose"),
    Attack("a name that climbs out of the directory", 404, "nothing at this path", "/v1/agents/..%2f..%2fetc%2fpasswd/choose"),
    Attack("a name with a dot", 404, "no agent", "/v1/agents/shop.db/choose"),
    Attack("a name in capitals", 404, "no agent", "/v1/agents/SHOP/choose"),
    Attack("a name with a zero byte", 404, "no agent", "/v1/agents/shop%00/choose"),
    Attack("two dots as a name", 404, "no agent '..'", "/v1/agents/%2e%2e/choose"),
    Attack("two dots as a name, escaped twice", 404, "no agent '%2e%2e%2fetc'", "/v1/agents/%252e%252e%252fetc/choose"),
    Attack("a name that climbs out by backslashes", 404, "no agent", "/v1/agents/..%5c..%5cetc/choose"),
    Attack("SQL as the name in a path", 404, "no agent", "/v1/agents/shop'%20OR%20'1'='1/choose"),
    Attack("a slash at the end", 404, "nothing at this path", CHOOSE + "/"),
    Attack("the wrong method", 405, "use POST", method="PUT"),
    Attack("a method nobody knows", 405, "use POST", method="BREW"),
    Attack("a browser's question whether another site may ask (CORS)", 403, "page of another site", body=None, method="OPTIONS", headers={"origin": "https://evil.example", "access-control-request-method": "POST"}),
    Attack("a page of another site that freezes an agent", 403, "page of another site", "/v1/agents/shop/freeze", None, headers={"sec-fetch-site": "cross-site"}),
    Attack("a page of another site, by an older browser", 403, "page of another site", headers={"origin": "https://evil.example"}),
    Attack("a page without an origin", 403, "page of another site", headers={"origin": "null"}),
    Attack("a slash in a name, escaped, past the rules of a proxy", 404, "escaped slash", "/v1/agents/shop%2Fchoose"),
    Attack("a body as a form", 415, "application/json", body=b"a=1", headers={"content-type": "application/x-www-form-urlencoded"}),
    Attack("a body as plain text (what a page of another site may send)", 415, "application/json", headers={"content-type": "text/plain"}),
    Attack("a compressed body", 415, "compressed", headers={"content-encoding": "gzip"}),
    Attack("a body compressed by Brotli", 415, "compressed", headers={"content-encoding": "br"}),
    Attack("a compressed body in capitals", 415, "compressed", headers={"content-encoding": "DEFLATE"}),
    Attack("a body that is compressed twice", 415, "compressed", headers={"content-encoding": "gzip, identity"}),
    Attack("a body of 10 MB", 413, "larger than 1,000,000 bytes", body=b" " * 10_000_000),
    Attack("no body", 400, "not JSON", body=b""),
    Attack("half a body", 400, "not JSON", body=b'{"context": {"age": 3'),
    Attack("JSON nested 100,000 deep", 422, "does not fit", body=deep(100_000)),
    Attack("JSON nested three deep", 422, "does not fit", body=deep(3)),
    Attack("JSON nested 900 deep where any value may be", 422, "cannot be made of", AGENTS, any_deep(900)),
    Attack("JSON nested 3,000 deep where any value may be", 400, "nested too deeply", AGENTS, any_deep(3000)),
    Attack("a body that begins with a byte order mark", 400, "not JSON", body=b"\xef\xbb\xbf{}"),
    Attack("a lone surrogate in an id", 400, "not JSON", body=raw('{"id": "\\ud800"}')),
    Attack("a lone surrogate in a text", 400, "not JSON", body=raw('{"context": {"device": "\\udfff"}}')),
    Attack("a body that is not UTF-8", 400, "not JSON", body=b'{"id": "\xff\xfe"}'),
    Attack("a list instead of an object", 422, "does not fit", body=[1, 2]),
    Attack("a field that is not there", 422, "it has no field 'contxt'", body={"contxt": {}}),
    Attack("two Authorization headers", 400, "more than once", headers={"x-twice": "authorization"}),
    Attack("a decision id of 10,000 characters", 422, "id must be", body={"id": "x" * 10_000}),
    Attack("300 fields in a context", 422, "does not fit", body={"context": {f"f{n}": 1 for n in range(300)}}),
    Attack("a list of 200,000 entries in a context", 422, "context[...] must be a list of length at most 256", body=raw('{"context": {"device": [' + "1," * 199_999 + "1]}}")),
    Attack("200,000 arms", 422, "arms must be a list of length at most 4096", body=raw('{"arms": [' + '"a",' * 199_999 + '"a"]}')),
    Attack("a batch of 200,000", 422, "this one has 200,000", CHOOSE + "/batch", raw('{"decisions": [' + "{}," * 199_999 + "{}]}")),
    Attack("a text of 100,000 characters", 422, "does not fit", body={"context": {"device": "x" * 100_000}}),
    Attack("a batch of 1,001", 422, "at most 1,000", CHOOSE + "/batch", {"decisions": [{}] * 1001}),
    Attack("an empty batch", 422, "decisions must be", CHOOSE + "/batch", {"decisions": []}),
    Attack("an idempotency key for a batch", 422, "its own `id`", CHOOSE + "/batch", {"decisions": [{}]}, headers={"idempotency-key": "k"}),
    # values
    Attack("NaN as a reward", 400, "not JSON", REWARD, raw('{"id": "x", "reward": NaN}')),
    Attack("infinity as a reward", 422, "does not fit", REWARD, raw('{"id": "x", "reward": 1e999}')),
    Attack("a reward of 1e300", 422, "reward must be", REWARD, {"id": "x", "reward": 1e300}),
    Attack("text as a reward", 422, "reward must be", REWARD, {"id": "x", "reward": "1"}),
    Attack("a number of 1,000 digits in a context", 422, "does not fit", body=raw('{"context": {"age": ' + "9" * 1000 + "}}")),
    Attack("a number of 400 digits in a context", 422, "context[...] must be a whole number of at most ", body=raw('{"context": {"age": ' + "9" * 400 + "}}")),
    Attack("a number of 5,000 digits in a context", 422, "context[...] is out of range", body=raw('{"context": {"age": ' + "9" * 5000 + "}}")),
    Attack("a reward of 5,000 digits", 422, "reward is out of range", REWARD, raw('{"id": "x", "reward": ' + "9" * 5000 + "}")),
    Attack("a seed of 400 digits", 422, "seed must be", AGENTS, raw('{"name": "other", "arms": ["a"], "seed": ' + "9" * 400 + "}")),
    Attack("1e400 in a context", 422, "context[...] is out of range", body=raw('{"context": {"age": 1e400}}')),
    Attack("1e999 where any value may be", 422, "is out of range", AGENTS, raw('{"name": "other", "arms": ["a"], "context": {"x": {"kind": "Cyclic", "period": 1e999}}}')),
    Attack("an unknown context field", 422, "no field 'shoe'", body={"context": {"shoe": 44}}),
    Attack("text where a number belongs", 422, "field 'age' must be a number", body={"context": {"age": "old"}}),
    Attack("an unknown arm", 422, "no arm 'pink'", body={"arms": ["pink"]}),
    Attack("no arm at all", 422, "arms must be", body={"arms": []}),
    Attack("a moment in the year 300,000", 422, "at must be", body={"at": 1e13}),
    Attack("a moment that is no moment", 422, "at must be", body={"at": "tomorrow"}),
    Attack("the reward of a decision that was never made", 404, "no decision", REWARD, {"id": "17-deadbeef", "reward": 1}),
    Attack("another agent's decision id", 404, "no decision", REWARD, {"id": "1-00000000", "reward": 1}),
    Attack("a second, different reward", 409, "has the reward 1 already", REWARD, {"id": "rewarded", "reward": 0}, before=(REWARD, {"id": "rewarded", "reward": 1})),
    Attack("a replayed key with another body", 409, "another context", body={"context": {"age": 99}, "id": "rewarded"}),
    Attack("one key in the header, another in the body", 422, "differ", body={"id": "a"}, headers={"idempotency-key": "b"}),
    Attack("one id twice in a batch, with different bodies", 409, "twice", CHOOSE + "/batch", {"decisions": [{"id": "q"}, {"id": "q", "context": {"age": 1}}]}),
    Attack("a reward of 0.5 for a policy of zeros and ones", 422, "reward", REWARD, {"id": "rewarded too", "reward": 0.5}),
    Attack("a control character in an id", 404, "no decision", REWARD, {"id": "a\u0000b\n", "reward": 1}),
    Attack("an id with the prefix of the agent's own names", 404, "an id must be text", body={"id": "\u001f1/x"}),
    Attack("SQL as the id of a reward", 404, "no decision", REWARD, {"id": SQL, "reward": 1}),
    Attack("SQL as a context field", 422, "no field", body={"context": {SQL: 1}}),
    Attack("SQL as an arm", 422, "no arm", body={"arms": [SQL]}),
    # making agents
    Attack("SQL as a name", 422, "name must be", AGENTS, agent(name="x'; DROP TABLE records;--")),
    Attack("HTML as a name", 422, "name must be", AGENTS, agent(name="<script>alert(1)</script>")),
    Attack("a path as a name", 422, "name must be", AGENTS, agent(name="../../etc/cron.d/x")),
    Attack("a name that is taken", 409, "already", AGENTS, agent(name="shop")),
    Attack("no arms", 422, "arms must be", AGENTS, agent(arms=[])),
    Attack("one arm twice", 422, "arms", AGENTS, agent(arms=["a", "a"])),
    Attack("a policy that is not there", 422, "no policy", AGENTS, agent(policy="magic")),
    Attack("the policy that knows the truth", 422, "oracle", AGENTS, agent(policy="oracle")),
    Attack("a parameter that is not there", 422, "magic", AGENTS, agent(policy={"id": "ucb", "parameters": {"magic": 1}})),
    Attack("a window for a billion years", 422, "window", AGENTS, agent(policy={"id": "tide", "parameters": {"window": 10**14}})),
    Attack("a kind of field that is not there", 422, "context", AGENTS, agent(context={"age": {"kind": "Eval"}})),
    Attack("`__class__` as a kind of field", 422, "field 'age' must be", AGENTS, agent(context={"age": {"kind": "__class__"}})),
    Attack("an object as a kind of field", 422, "field 'age' must be", AGENTS, agent(context={"age": {"kind": {"a": 1}}})),
    Attack("a period of 400 digits", 422, "period", AGENTS, agent(context={"x": {"kind": "Cyclic", "period": 10**400}})),
    Attack("a name with a line break behind it", 422, "name", AGENTS, {**agent(), "name": "other\n"}),
    Attack("`__class__` as an argument of a field", 422, "cannot be made of", AGENTS, agent(context={"age": {"kind": "Number", "__class__": "x"}})),
    Attack("`__class__` as a policy", 422, "no policy", AGENTS, agent(policy="__class__")),
    Attack("a billion columns", 422, "columns must be a whole number from 1 to 1024", AGENTS, agent(context={"x": {"kind": "Hashed", "columns": 10**9}})),
    Attack("a field with an argument that is not there", 422, "context", AGENTS, agent(context={"age": {"kind": "Number", "x": 1}})),
    Attack("a time zone that is a path", 422, "time zone", AGENTS, agent(timezone="../../etc/passwd")),
    Attack("shares that cannot be", 422, "share_bounds", AGENTS, agent(share_bounds={"a": [0.9, 1.0], "b": [0.9, 1.0]})),
    Attack("retiring an arm that is not there", 422, "no arm 'nobody'", "/v1/agents/shop/arms", {"op": "retire", "label": "nobody"}),
    Attack("going back to no moment at all", 422, "to must be a decision of this agent", "/v1/agents/shop/rollback", {"to": "yesterday"}),
    Attack("SQL as the moment to go back to", 422, "to must be a decision of this agent", "/v1/agents/shop/rollback", {"to": SQL}),
    Attack("SQL as the beginning of a chart", 422, "since must be", "/v1/agents/shop/history?since=0;DROP%20TABLE%20records", None, "GET"),
    Attack("SQL as a number of bins", 422, "bins must be", "/v1/agents/shop/history?bins=1;DROP%20TABLE%20records", None, "GET"),
    Attack("SQL as the beginning of a gain", 422, "since must be", "/v1/agents/shop/lift?since=0;DROP%20TABLE%20records", None, "GET"),
    Attack("a chart of a million bins", 422, "bins must be", "/v1/agents/shop/history?bins=1000000", None, "GET"),
    Attack("a chart that ends before it begins", 422, "later", "/v1/agents/shop/history?since=2026-01-02&until=2026-01-01", None, "GET"),
]  # fmt: skip

SMUGGLED = b"GET /v1/agents HTTP/1.1\r\nhost: x\r\nauthorization: Bearer TOKEN\r\n\r\n"

WIRE: list[tuple[str, bytes, int, str]] = [
    (
        "not HTTP at all",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 50 + b"\r\n\r\n",
        400,
        "not a request",
    ),
    (
        "a token behind the body (a trailer)",
        b"POST /v1/agents/shop/choose HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nauthorization: Bearer TOKEN\r\n\r\n",
        400,
        "trailers",
    ),
    ("a head of 100,000 bytes", b"GET / HTTP/1.1\r\nx: " + b"y" * 100_000, 431, "longer than"),
    (
        "a head that never ends",
        b"GET /healthz HTTP/1.1\r\nx: y\r\n",
        408,
        "did not come to its end",
    ),
    (
        "a body that never ends",
        b"POST /v1/agents/shop/choose HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"authorization: Bearer TOKEN\r\ncontent-length: 100\r\n\r\n{",
        408,
        "did not come to its end",
    ),
    (
        "a negative length",
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        400,
        "not a request",
    ),
    (
        "two lengths (request smuggling)",
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        400,
        "not a request",
    ),
    (
        "a length and chunks (request smuggling)",
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "not a request",
    ),
    (
        "a path that climbs out",
        b"GET /../../etc/passwd HTTP/1.1\r\nhost: x\r\n\r\n",
        404,
        "nothing at this path",
    ),
    (
        "a length and chunks the other way round (request smuggling)",
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
        400,
        "not a request",
    ),
    (
        "an encoding that is nearly chunked (request smuggling)",
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        400,
        "not a request",
    ),
    (
        "a space before the colon (request smuggling)",
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length : 1\r\n\r\na",
        400,
        "not a request",
    ),
    ("a target that is no path", b"GET foo HTTP/1.1\r\nhost: x\r\n\r\n", 400, "not a request"),
    (
        "a line break in a header",
        b"GET /healthz HTTP/1.1\r\nx: a\x00b\r\n\r\n",
        400,
        "not a request",
    ),
    (
        "two encodings (request smuggling)",
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n"
        b"0\r\n\r\n" + SMUGGLED,
        400,
        "not a request",
    ),
    (
        "chunks twice (request smuggling)",
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n"
        b"0\r\n\r\n" + SMUGGLED,
        400,
        "not a request",
    ),
    (
        "a chunk of negative size (request smuggling)",
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n\r\n"
        + SMUGGLED,
        400,
        "not a request",
    ),
    (
        "chunks that end in bare line feeds (request smuggling)",
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\n\n" + SMUGGLED,
        400,
        "not a request",
    ),
    (
        "lines that end in bare line feeds",
        b"GET /healthz HTTP/1.1\nhost: x\n\n",
        400,
        "not a request",
    ),
    (
        "a bare line feed in a header (request smuggling)",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\nx: a\nauthorization: Bearer TOKEN\r\n\r\n",
        400,
        "not a request",
    ),
    (
        "a header that goes on in the next line",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\nx: a\r\n b\r\n\r\n",
        400,
        "not a request",
    ),
    (
        "an encoding in the next line (request smuggling)",
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n"
        + SMUGGLED,
        400,
        "not a request",
    ),
    (
        "a tunnel to another server (CONNECT)",
        b"CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example:443\r\n\r\n",
        400,
        "not a request",
    ),
    ("the beginning of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "not a request"),
    (
        "a version that is not there",
        b"GET /healthz HTTP/9.9\r\nhost: x\r\n\r\n",
        400,
        "not a request",
    ),
    ("one line, as in HTTP/0.9", b"GET /healthz\r\n", 408, "did not come to its end"),
    (
        "a zero byte behind a token",
        b"GET /v1/agents HTTP/1.1\r\nhost: x\r\nauthorization: Bearer TOKEN\x00\r\n\r\n",
        400,
        "not a request",
    ),
    *(
        (
            f"a file beside the page: {path}",
            f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode(),
            404,
            "nothing at this path",
        )
        for path in (
            "/dashboard/../tokens.json",
            "/dashboard/%2e%2e/%2e%2e/tokens.json",
            "/dashboard/..%5ctokens.json",
            "/dashboard//etc/passwd",
            "/dashboard/index.html%00.js",
        )
    ),
]


def table() -> str:
    """All of them, as in research/lab/service.md."""
    rows = [(attack.what, attack.status, attack.says) for attack in ATTACKS]
    rows += [(what, status, says) for what, _, status, says in WIRE]
    lines = [f"| {what} | {status} | {says} |" for what, status, says in rows]
    head = "| what comes | answer | its sentence says |\n|---|---|---|\n"
    return head + "\n".join(lines) + "\n"


def written(text: str, made: Callable[[], str] = table) -> str:
    """A page with the table in its place."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + made() + END + after


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
    print(f"{len(ATTACKS) + len(WIRE)} rows written to {PAGE}")
