"""Runs release thunks on an emulated processor (Unicorn), and reports what they did.

Reads a JSON list of cases from standard input and prints a JSON list of reports. A case:

  arch     "x86_64" or "aarch64"
  code     the machine code, in hexadecimal
  struct   the struct's bytes, in hexadecimal; where its pointer to the counter lies is
  context  this offset
  counter  the counter before
  meanwhile  values that another processor writes to the counter, each while the thunk is about to store its own

A report: the struct's bytes and the counter afterwards, where memory was written, whether the thunk returned to its
caller with the stack and the registers that it must preserve as they were, how often it stored to the counter, and the
struct's bytes when it did so last.
"""

import json
import struct
import sys

import unicorn
from unicorn import arm64_const as arm
from unicorn import x86_const as x86

CODE, STACK, STRUCT, COUNTER, CALLER = 0x10_0000, 0x20_0000, 0x30_0040, 0x7F00_0040_0084, 0x50_0000
PAGE = 0x1_0000

X86_PRESERVED = [
    x86.UC_X86_REG_RBX,
    x86.UC_X86_REG_RBP,
    x86.UC_X86_REG_R12,
    x86.UC_X86_REG_R13,
    x86.UC_X86_REG_R14,
    x86.UC_X86_REG_R15,
]
ARM_PRESERVED = [
    *(getattr(arm, f"UC_ARM64_REG_X{n}") for n in range(18, 30)),
    *(getattr(arm, f"UC_ARM64_REG_D{n}") for n in range(8, 16)),  # the lower halves of vectors
]


def is_exclusive_store(word):
    return word & 0xFFE0_FC00 == 0x8800_FC00  # stlxr, 32 bits


def emulate(case):
    wide = case["arch"] == "x86_64"
    uc = (
        unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
        if wide
        else unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
    )
    for at in (CODE, STACK, STRUCT, COUNTER, CALLER):
        uc.mem_map(at & ~(PAGE - 1), PAGE)
    code = bytes.fromhex(case["code"])
    body = bytearray.fromhex(case["struct"])
    body[case["context"] : case["context"] + 8] = struct.pack("<Q", COUNTER)
    uc.mem_write(CODE, code)
    uc.mem_write(STRUCT, bytes(body))
    uc.mem_write(COUNTER, struct.pack("<I", case["counter"]))

    preserved, stack = (X86_PRESERVED, x86.UC_X86_REG_RSP) if wide else (ARM_PRESERVED, arm.UC_ARM64_REG_SP)
    for n, register in enumerate(preserved):
        uc.reg_write(register, 0x1234_5678_0000_0000 + n)
    if wide:
        uc.mem_write(STACK + 0x8000, struct.pack("<Q", CALLER))
        uc.reg_write(stack, STACK + 0x8000)
        uc.reg_write(x86.UC_X86_REG_RDI, STRUCT)
    else:
        uc.reg_write(stack, STACK + 0x8000)
        uc.reg_write(arm.UC_ARM64_REG_LR, CALLER)
        uc.reg_write(arm.UC_ARM64_REG_X0, STRUCT)

    writes, stores, meanwhile, counted = set(), 0, list(case["meanwhile"]), b""

    def on_write(_uc, _access, address, size, _value, _data):
        nonlocal counted
        writes.update(range(address, address + size))
        if address == COUNTER:
            counted = bytes(uc.mem_read(STRUCT, len(body)))

    def on_instruction(_uc, address, _size, _data):
        nonlocal stores
        if wide or not is_exclusive_store(struct.unpack("<I", uc.mem_read(address, 4))[0]):
            return
        stores += 1
        if meanwhile:
            uc.mem_write(COUNTER, struct.pack("<I", meanwhile.pop(0)))

    uc.hook_add(unicorn.UC_HOOK_MEM_WRITE, on_write)
    uc.hook_add(unicorn.UC_HOOK_CODE, on_instruction)
    uc.emu_start(CODE, CALLER, count=1000)

    pc = uc.reg_read(x86.UC_X86_REG_RIP if wide else arm.UC_ARM64_REG_PC)
    kept = all(uc.reg_read(r) == 0x1234_5678_0000_0000 + n for n, r in enumerate(preserved))
    return {
        "struct": bytes(uc.mem_read(STRUCT, len(body))).hex(),
        "before": bytes(body).hex(),
        "counter": struct.unpack("<I", uc.mem_read(COUNTER, 4))[0],
        "written": sorted(
            f"struct+{at - STRUCT}"
            if STRUCT <= at < STRUCT + len(body)
            else f"counter+{at - COUNTER}"
            if COUNTER <= at < COUNTER + 4
            else hex(at)
            for at in writes
        ),
        "returned": pc == CALLER,
        "preserved": kept and uc.reg_read(stack) == STACK + 0x8000 + (8 if wide else 0),
        "stores": stores,
        "counted": counted.hex(),
    }


if __name__ == "__main__":
    json.dump([emulate(case) for case in json.load(sys.stdin)], sys.stdout)
