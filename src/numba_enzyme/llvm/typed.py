"""A small view of a module in text with typed pointers, LLVM 7's dialect and LLVM 15's alike: its parts, merged and renamed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

SYMBOL = r'@(?:"[^"]*"|[-\w$.]+)'

_DEFINITION = re.compile(r"^define [^\n]*\{\n.*?^\}\n?", re.MULTILINE | re.DOTALL)
_DECLARATION = re.compile(rf"^declare [^\n]*?({SYMBOL})\([^\n]*$", re.MULTILINE)
_GLOBAL = re.compile(rf"^({SYMBOL}) = [^\n]*$", re.MULTILINE)
_DEFINED = re.compile(rf"^define [^\n]*?({SYMBOL})\(", re.MULTILINE)


@dataclass(frozen=True)
class Parameter:
    type: str
    name: str


@dataclass(frozen=True)
class Signature:
    """The head of a definition."""

    returns: str
    symbol: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Parts:
    """The definitions, declarations and globals of a module, by symbol and in their order."""

    definitions: dict[str, str]
    declarations: dict[str, str]
    globals: dict[str, str]


def bare(symbol: str) -> str:
    """A symbol without its sign and quotes."""
    return symbol.lstrip("@%").strip('"')


def split_list(text: str) -> list[str]:
    """The items of a list, at the commas that no bracket encloses."""
    items, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
        elif character == "," and depth == 0:
            items.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    return [*items, last] if last else items


def parts(ir: str) -> Parts:
    definitions = {}
    for match in _DEFINITION.finditer(ir):
        head = _DEFINED.match(match[0])
        if head is not None:
            definitions[bare(head[1])] = match[0].rstrip("\n")
    rest = _DEFINITION.sub("", ir)
    declarations = {bare(match[1]): match[0] for match in _DECLARATION.finditer(rest)}
    return Parts(definitions, declarations, {bare(match[1]): match[0] for match in _GLOBAL.finditer(rest)})


def merged(modules: Iterable[Parts]) -> Parts:
    """One module of all. What is defined in one of them is not declared, and what several define or declare is there once."""
    definitions: dict[str, str] = {}
    declarations: dict[str, str] = {}
    variables: dict[str, str] = {}
    for module in modules:
        definitions |= module.definitions
        declarations |= module.declarations
        variables |= module.globals
    return Parts(definitions, {name: text for name, text in declarations.items() if name not in definitions}, variables)


def joined(head: str, modules: Iterable[Parts]) -> str:
    """The text of a module."""
    module = merged(modules)
    return "\n".join([head, *module.globals.values(), *module.declarations.values(), *module.definitions.values(), ""])


def extracted(ir: str, symbol: str) -> str:
    """The module of `symbol` and all that it needs, out of a larger one: in an order and under names that do not depend on the rest."""
    module = parts(ir)
    texts = module.definitions | module.declarations | module.globals
    needed: list[str] = []
    ahead = [symbol]
    while ahead:
        name = ahead.pop()
        if name in texts and name not in needed:
            needed.append(name)
            ahead += reversed([bare(found) for found in re.findall(SYMBOL, texts[name])])
    own = [name for name in needed if name in module.definitions and name != symbol]
    names = {name: f"{symbol}_{n}" for n, name in enumerate(own)}

    def kept(table: dict[str, str]) -> dict[str, str]:
        return {names.get(n, n): renamed(table[n], lambda found: names.get(found, found)) for n in needed if n in table}

    head = "\n".join(re.findall(r"^target [^\n]*$", ir, re.MULTILINE))
    tail = "\n".join(re.findall(r"^(?:attributes|!)[^\n]*$", ir, re.MULTILINE))
    return f"{joined(head, [Parts(kept(module.definitions), kept(module.declarations), kept(module.globals))])}\n{tail}\n"


def without_visibility(module: Parts, symbol: str) -> Parts:
    """`module` with the definition of `symbol` for itself alone, so that it can go into another."""
    definition = re.sub(r"^define (?!internal)", "define internal ", module.definitions[symbol])
    return Parts(module.definitions | {symbol: definition}, module.declarations, module.globals)


def signature(definition: str) -> Signature:
    """The head of one definition, without attributes."""
    match = re.match(rf"define (?:internal |dso_local |linkonce_odr )*(.+?) ({SYMBOL})\((.*)\)[^()\n]*\{{", definition)
    if match is None:
        raise AssertionError(definition.split("\n", 1)[0])
    items = [re.match(r"(\{.*\}\**|\[.*\]\**|\S+).*?(%\S+)?$", item) for item in split_list(match[3])]
    return Signature(match[1], bare(match[2]), tuple(Parameter(item[1], item[2] or "") for item in items if item))


def renamed(ir: str, names: Callable[[str], str]) -> str:
    """`ir` with the name of each symbol replaced."""
    return re.sub(SYMBOL, lambda match: f"@{names(bare(match[0]))}", ir)


def named_values(ir: str) -> str:
    """Gives numbered values and blocks names: numbers have to follow each other, so no line could be taken away or moved."""
    return _DEFINITION.sub(lambda match: _named_definition(match[0]), ir)


def _named_definition(definition: str) -> str:
    head, body = definition.split("\n", 1)
    before, _, after = head.partition("(")
    inside, _, behind = after.rpartition(")")
    given = [item if re.search(r" %\S+$", item) else f"{item} %{n}" for n, item in enumerate(split_list(inside))]
    head = f"{before}({', '.join(given)}){behind}"
    if not re.match(r"[-\w$.\"]+:|; <label>:", body):
        # The first block is numbered too.
        body = f"v{len(given)}:\n{body}"
    body = re.sub(r"^(?:; <label>:)?(\d+):", r"v\1:", body, flags=re.MULTILINE)
    return re.sub(r"%(\d+)\b", r"%v\1", f"{head}\n{body}")


def allocas_first(ir: str) -> str:
    """Moves memory of a constant size to the entry of its function, the only place where LLVM turns it into registers."""
    return _DEFINITION.sub(lambda match: _allocas_first(match[0]), ir)


_ALLOCA = re.compile(r"^  %\S+ = alloca [^%\n]*\n", re.MULTILINE)


def _allocas_first(definition: str) -> str:
    found = "".join(_ALLOCA.findall(definition))
    head, label, body = _ALLOCA.sub("", definition).split("\n", 2)
    return f"{head}\n{label}\n{found}{body}"


def calls(definition: str) -> set[str]:
    """The symbols that a definition mentions."""
    return {bare(symbol) for symbol in re.findall(SYMBOL, definition.split("\n", 1)[1])}
