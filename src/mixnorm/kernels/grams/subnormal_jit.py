"""The register of x86 processors that says how subnormal numbers are taken."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_cgutils: Any = cgutils

# Operands, and results.
AS_ZERO = 0x8040
_BITS = types.uint32(AS_ZERO)


def _instruction(builder: Any, name: str, slot: Any) -> None:
    pointer = ir.PointerType(ir.IntType(8))
    kind = ir.FunctionType(ir.VoidType(), [pointer])
    called = _cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
    builder.call(called, [builder.bitcast(slot, pointer)])


@intrinsic
def _read_register(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        slot = _cgutils.alloca_once(builder, ir.IntType(32))
        _instruction(builder, "stmxcsr", slot)
        return builder.load(slot)

    return types.uint32(), generate


@intrinsic
def _write_register(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        slot = _cgutils.alloca_once_value(builder, args[0])
        _instruction(builder, "ldmxcsr", slot)
        return context.get_dummy_value()

    return types.void(types.uint32), generate


@njit("uint32(uint32)", cache=True)
def exchange(bits: Any) -> Any:
    """Set or clear the bits; return what of them was set before."""
    before: Any = _read_register()  # type: ignore[call-arg]
    _write_register((before & ~_BITS) | bits)
    return before & _BITS
