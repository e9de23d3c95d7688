"""Calls functions on an emulated processor (Unicorn), and reports what they did.

Reads a JSON list of cases from standard input and prints a JSON list of reports. A case:

  arch      "x86_64" or "aarch64"
  code      the machine code, in hexadecimal
  memory    bytes, in hexadecimal, that lie at the address BASE below
  arguments up to four integers

A report: the memory afterwards, the 64-bit result, and whether the function returned to its caller with the stack and
the registers that it must preserve as they were.
"""

import json
import struct
import sys

import unicorn
from unicorn import arm64_const as arm
from unicorn import x86_const as x86

from emulate_thunk import ARM_PRESERVED, X86_PRESERVED

CODE, STACK, BASE, CALLER, PAGE = 0x10_0000, 0x20_0000, 0x30_0000, 0x50_0000, 0x1_0000


def emulate(case):
    wide = case["arch"] == "x86_64"
    uc = (
        unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
        if wide
        else unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
    )
    for at in (CODE, STACK, BASE, CALLER):
        uc.mem_map(at, PAGE)
    memory = bytes.fromhex(case["memory"])
    uc.mem_write(CODE, bytes.fromhex(case["code"]))
    uc.mem_write(BASE, memory)
    preserved, stack = (X86_PRESERVED, x86.UC_X86_REG_RSP) if wide else (ARM_PRESERVED, arm.UC_ARM64_REG_SP)
    for n, register in enumerate(preserved):
        uc.reg_write(register, 0x1234_5678_0000_0000 + n)
    top = STACK + 0x8000 - (8 if wide else 0)  # before a call the stack is aligned to 16 bytes
    uc.reg_write(stack, top)
    if wide:
        uc.mem_write(top, struct.pack("<Q", CALLER))
    else:
        uc.reg_write(arm.UC_ARM64_REG_LR, CALLER)
    registers = (
        [x86.UC_X86_REG_RDI, x86.UC_X86_REG_RSI, x86.UC_X86_REG_RDX, x86.UC_X86_REG_RCX]
        if wide
        else [arm.UC_ARM64_REG_X0, arm.UC_ARM64_REG_X1, arm.UC_ARM64_REG_X2, arm.UC_ARM64_REG_X3]
    )
    for register, value in zip(registers, case["arguments"]):
        uc.reg_write(register, value)
    uc.emu_start(CODE, CALLER, count=100_000)
    kept = all(uc.reg_read(r) == 0x1234_5678_0000_0000 + n for n, r in enumerate(preserved))
    return {
        "memory": bytes(uc.mem_read(BASE, len(memory))).hex(),
        "result": str(uc.reg_read(x86.UC_X86_REG_RAX if wide else arm.UC_ARM64_REG_X0)),
        "returned": uc.reg_read(x86.UC_X86_REG_RIP if wide else arm.UC_ARM64_REG_PC) == CALLER,
        "preserved": kept and uc.reg_read(stack) == STACK + 0x8000,
    }


if __name__ == "__main__":
    json.dump([emulate(case) for case in json.load(sys.stdin)], sys.stdout)
