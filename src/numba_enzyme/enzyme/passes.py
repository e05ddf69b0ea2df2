"""The passes of one opt run: LLVM 15's `default<O2>` spelled out, with what must not stand before Enzyme left out, and Enzyme.

Left out: moving what may be computed anywhere out of guarded code in loops (`no-allowspeculation`), since a derivative where the guard is
false may be 0 * inf; the vectorisers, which would stand in the way of Numba's; and what is about coroutines, OpenMP, profiles and remarks.
"""

from __future__ import annotations


def _simplify_cfg(
    *, lookup: str = "no-switch-to-lookup", forward: str = "no-", ranges: str = "", loops: str = "", common: str = "no-"
) -> str:
    options = (
        "bonus-inst-threshold=1",
        f"{forward}forward-switch-cond",
        f"{ranges}switch-range-to-icmp",
        lookup,
        f"{loops}keep-loops",
        f"{common}hoist-common-insts",
        f"{common}sink-common-insts",
    )
    return f"simplifycfg<{';'.join(options)}>"


_EARLY = ("lower-expect", _simplify_cfg(ranges="no-"), "sroa", "early-cse<>")

_LOOPS = (
    "loop-instsimplify",
    "loop-simplifycfg",
    "licm<no-allowspeculation>",
    "loop-rotate",
    "licm<no-allowspeculation>",
    "simple-loop-unswitch<no-nontrivial;trivial>",
)

_SCALAR = (
    *("sroa", "early-cse<memssa>", "jump-threading", "correlated-propagation", _simplify_cfg(), "instcombine", "libcalls-shrinkwrap"),
    *("tailcallelim", _simplify_cfg(), "reassociate", f"loop-mssa({','.join(_LOOPS)})", _simplify_cfg(), "instcombine"),
    *("loop(loop-idiom,indvars,loop-deletion,loop-unroll-full)", "sroa", "mldst-motion<no-split-footer-bb>", "gvn<>", "sccp", "bdce"),
    *("instcombine", "jump-threading", "correlated-propagation", "adce", "memcpyopt", "dse", "loop-mssa(licm<no-allowspeculation>)"),
    *(_simplify_cfg(common=""), "instcombine"),
)

_LATE = (
    *("float2int", "lower-constant-intrinsics", "loop(loop-rotate,loop-deletion)", "loop-load-elim", "instcombine"),
    *(_simplify_cfg(lookup="switch-to-lookup", forward="", loops="no-", common=""), "instcombine", "loop-unroll<O2>", "instcombine"),
    *("loop-mssa(licm<no-allowspeculation>)", "alignment-from-assumptions", "loop-sink", "instsimplify", "div-rem-pairs", "tailcallelim"),
    _simplify_cfg(),
)

_SIMPLIFIED = (
    *("forceattrs", "inferattrs", f"function<eager-inv>({','.join(_EARLY)})", "ipsccp", "called-value-propagation", "globalopt"),
    *("function(mem2reg)", "deadargelim", f"function<eager-inv>(instcombine,{_simplify_cfg()})", "require<globals-aa>"),
    "function(invalidate<aa>)",
    f"cgscc(devirt<4>(inline<only-mandatory>,inline,function-attrs,function<eager-inv>({','.join(_SCALAR)})))",
    *("globalopt", "globaldce", "elim-avail-extern", "rpo-function-attrs", "recompute-globalsaa"),
    *(f"function<eager-inv>({','.join(_LATE)})", "globaldce", "constmerge"),
)

# Registrations (custom rules, allocators) are read by `preserve-nvvm`. Inlining everything and simplifying first is what makes the code
# that Enzyme writes fast, and differentiable at all; simplifying afterwards is left to Numba, whose optimiser is newer.
PASSES = ",".join(("preserve-nvvm", "always-inline", *_SIMPLIFIED, "enzyme", "internalize", "globaldce"))
