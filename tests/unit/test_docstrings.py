"""Every public callable has a complete numpydoc docstring.

The rule:

- every class, function, method and property has a summary of one line that ends with a period;
- parameters are documented in the order of the signature, each with its type, its default
  (`default: 0.05`, or `optional` where the default is None) and a sentence;
- a function or method with parameters that returns a value has a section `Returns`, a generator
  `Yields`. A property, and a method without parameters, may say what it returns in its summary;
- every class and function in `tidepull.__all__` has a section `Examples` with a doctest;
- an exception needs a summary only;
- no line is longer than 100 columns.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import tidepull
from tidepull.agent.client import AsyncRemoteAgent, RemoteAgent

numpydoc = pytest.importorskip("numpydoc.docscrape")
validation = pytest.importorskip("numpydoc.validate")

MOST_COLUMNS = 100
INTEGRATIONS = ("gymnasium", "mabwiser", "river")
RETURNS = frozenset(["RT01", "YD01"])
EXCEPTIONS = frozenset(["GL08", "SS01", "SS02", "SS03"])
UNCHECKED = frozenset(["ES01", "EX01", "SA01"])
"""An extended summary and `See Also` are optional; `Examples` are checked by `wrong`."""


def callables_of(owner: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A class or function, and the public members of a class that tidepull itself defines."""
    yield path, owner
    if not inspect.isclass(owner) or issubclass(owner, BaseException):
        return
    for name in sorted(set(dir(owner))):
        home = (
            next(cls for cls in owner.__mro__ if name in vars(cls))
            if not name.startswith("_")
            else object
        )
        if not home.__module__.startswith("tidepull"):
            continue
        member = vars(home)[name]
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        if isinstance(member, property) or inspect.isfunction(member):
            yield f"{path}.{name}", member


def public_callables() -> dict[str, Any]:
    """Every public callable by its path."""
    owners: dict[str, Any] = {
        f"tidepull.{name}": getattr(tidepull, name) for name in tidepull.__all__
    }
    owners |= {
        f"tidepull.agent.client.{cls.__name__}": cls for cls in (RemoteAgent, AsyncRemoteAgent)
    }
    for module in (tidepull.fields, tidepull.logs):
        owners |= {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
    owners |= {
        f"tidepull.errors.{name}": error
        for name, error in vars(tidepull.errors).items()
        if _is_error(error)
    }
    for name in INTEGRATIONS:
        try:
            module = importlib.import_module(f"tidepull.integrations.{name}")
        except tidepull.errors.MissingExtraError:
            continue
        owners |= {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
    found: dict[str, Any] = {}
    for path, owner in owners.items():
        if inspect.isclass(owner) or inspect.isfunction(owner):
            found |= callables_of(owner, path)
    return found


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, tidepull.TidepullError)


def _stars(parameter: inspect.Parameter) -> str:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return "*"
    return "**" if parameter.kind is inspect.Parameter.VAR_KEYWORD else ""


class Docstring(validation.Validator):  # type: ignore[name-defined, misc]
    """Parameters as a caller gives them; those of protocols and exceptions are not documented."""

    def __init__(self, obj_name: str, value: Any) -> None:
        super().__init__(numpydoc.get_doc_object(value))

    @property
    def signature(self) -> dict[str, inspect.Parameter]:
        if (
            isinstance(self.obj, property)
            or getattr(self.obj, "_is_protocol", False)
            or _is_error(self.obj)
        ):
            return {}
        listed = inspect.signature(self.obj).parameters.values()
        return {_stars(one) + one.name: one for one in listed if one.name not in ("self", "cls")}

    @property
    def signature_parameters(self) -> tuple[str, ...]:
        return tuple(self.signature)


def wrong(path: str, value: Any) -> list[str]:
    """What is wrong with the docstring of a public callable."""
    found = validation.validate(path, Docstring, value=value)["errors"]
    in_all = path.removeprefix("tidepull.") in tidepull.__all__
    doc = Docstring(path, value)
    sentences = []
    if in_all and not any(">>> " in line for line in doc.examples):
        sentences.append("EX01 no section Examples with a doctest")
    sentences += long_lines(value)
    if _is_error(value):
        return [f"{code} {text}" for code, text in found if code in EXCEPTIONS] + sentences
    sentences += wrong_defaults(doc)
    optional = UNCHECKED if doc.signature else UNCHECKED | RETURNS
    if doc.signature and returns_a_value(value) and not doc.returns and not doc.yields:
        sentences.append("RT01 no section Returns")
    return [f"{code} {text}" for code, text in found if code not in optional | {"RT01"}] + sentences


def wrong_defaults(doc: Docstring) -> list[str]:
    """Parameters whose type does not name the default of the signature."""
    sentences = []
    for name, parameter in doc.signature.items():
        if name not in doc.doc_all_parameters or name.startswith("*"):
            continue
        kind = doc.parameter_type(name)
        named = re.search(r", default: (.+)$", kind)
        if parameter.default is inspect.Parameter.empty:
            if named or kind.endswith(", optional"):
                sentences.append(f"'{name}' is required, and documented as '{kind}'")
        elif parameter.default is None or not _is_literal(parameter.default):
            if not named and not kind.endswith(", optional"):
                sentences.append(f"'{name}' is optional, and documented as '{kind}'")
        elif named is None or _literal(named[1]) != parameter.default:
            sentences.append(
                f"'{name}' has the default {parameter.default!r}, and is documented as '{kind}'"
            )
    return sentences


def _is_literal(value: Any) -> bool:
    return (
        isinstance(value, bool | int | float | str | tuple) and type(value).__module__ == "builtins"
    )


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None


def returns_a_value(value: Any) -> bool:
    """Whether the annotation of a function names anything but None, or a request whose answer is
    None."""
    if not inspect.isfunction(value):
        return False
    annotation = inspect.signature(value).return_annotation
    return annotation not in (None, "None", "HttpRequest[None]", inspect.Signature.empty)


def long_lines(value: Any) -> list[str]:
    """Lines of a docstring that are too long where they stand in the source."""
    function: Any = value.fget if isinstance(value, property) else inspect.unwrap(value)
    depth = 4 * (1 + function.__qualname__.count("."))
    lines = (inspect.getdoc(value) or "").splitlines()
    widths = [depth + len(line) + (3 if n == 0 else 0) for n, line in enumerate(lines)]
    return [
        f"line of {width} columns: {line}"
        for width, line in zip(widths, lines, strict=True)
        if width > MOST_COLUMNS
    ]


CALLABLES = public_callables()


@pytest.mark.parametrize("path", CALLABLES)
def test_docstring_is_complete(path: str) -> None:
    found = wrong(path, CALLABLES[path])
    assert not found, "\n".join([path, *found])


def test_every_kind_of_public_callable_is_found() -> None:
    expected = {
        "tidepull.run_trial",
        "tidepull.Agent.choose",
        "tidepull.Agent.memory",
        "tidepull.Agent.arms",
        "tidepull.TorchEncoder.refit",
        "tidepull.agent.client.AsyncRemoteAgent.choose",
        "tidepull.agent.fields.Category",
        "tidepull.errors.ServiceError",
        "tidepull.integrations.mabwiser.TidepullMAB.fit",
        "tidepull.logs.Log.where",
    }
    assert expected <= set(CALLABLES)
    assert not [path for path in CALLABLES if path.rpartition(".")[2].startswith("_")]


def _complete(x: int, y: float = 0.5, *, z: str | None = None) -> str:
    """Add numbers.

    Parameters
    ----------
    x : int
        The first number.
    y : float, default: 0.5
        The second number.
    z : str, optional
        Text before the sum.

    Returns
    -------
    str
        The sum.
    """
    return f"{z or ''}{x + y}"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("", "", None),
        ("Add numbers.", "Add numbers", "SS03"),
        ("x : int\n    The first number.\n", "", "PR01"),
        ("x : int", "w : int", "PR02"),
        ("x : int", "x", "PR04"),
        ("The first number.", "", "PR07"),
        ("default: 0.5", "default: 0.25", "'y' has the default 0.5"),
        ("float, default: 0.5", "float", "'y' has the default 0.5"),
        ("str, optional", "str", "'z' is optional"),
        ("x : int", "x : int, optional", "'x' is required"),
        ("Returns\n-------\nstr\n    The sum.\n", "", "RT01"),
        ("The sum.", "The sum " + "of both numbers " * 6 + ".", "line of"),
    ],
)
def test_incomplete_docstring_is_noticed(
    old: str, new: str, complaint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    doc = inspect.cleandoc(_complete.__doc__ or "") + "\n"
    assert old in doc
    monkeypatch.setattr(_complete, "__doc__", doc.replace(old, new) if old else doc)
    found = wrong("tests.test_docstrings._complete", _complete)
    assert found == [] if complaint is None else any(one.startswith(complaint) for one in found), (
        found
    )


def test_names_in_all_need_an_example() -> None:
    assert "EX01 no section Examples with a doctest" in wrong("tidepull.play", _complete)


def test_example_of_the_torch_encoder_comes_out_as_written() -> None:
    """Other examples are run by `test_doctests.py`, which does not need torch."""
    pytest.importorskip("torch")
    runner, report = doctest.DocTestRunner(verbose=False), list[str]()
    for test in doctest.DocTestFinder(recurse=False).find(tidepull.TorchEncoder, "TorchEncoder"):
        runner.run(test, out=report.append)
    assert runner.tries
    assert not runner.failures, "".join(report)
