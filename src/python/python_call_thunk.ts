/**
 * A Python function as a C function that any thread holding the interpreter's lock may call: machine code, because
 * JavaScript cannot run there, and an exception raised in a ctypes callback does not reach its caller.
 *
 * @module
 */
import { littleEndian } from "../ffi/mod.ts";

/** What the code calls: addresses of interpreter functions, and the object. */
interface CallParts {
  /** `PyObject *PyLong_FromVoidPtr(void *)`. */
  readonly PyLong_FromVoidPtr: bigint;
  /** `PyObject *PyObject_CallFunctionObjArgs(PyObject *, ..., NULL)`. */
  readonly PyObject_CallFunctionObjArgs: bigint;
  /** `void *PyLong_AsVoidPtr(PyObject *)`. */
  readonly PyLong_AsVoidPtr: bigint;
  /** `void Py_DecRef(PyObject *)`. */
  readonly Py_DecRef: bigint;
  /** Called with the first argument as an int; returns an int. Never released. */
  readonly callable: bigint;
}

// law python/x8664Call: python/thunks
/**
 * The code of `int (*)(void *given, void **out)`: calls the object with the address `given`, and writes the address
 * that it returns to `*out`. Returns 0, or -1 with the exception set that the object raised.
 *
 * x86-64, System V.
 */
export function x8664Call(parts: CallParts): Uint8Array<ArrayBuffer> {
  const word = (value: bigint) => [...new Uint8Array(BigUint64Array.of(value).buffer)];
  const call = (address: bigint) => [0x48, 0xb8, ...word(address), 0xff, 0xd0]; // movabs rax, address; call rax
  const end = [0x41, 0x5c, 0x5d, 0x5b, 0xc3]; // pop r12; pop rbp; pop rbx; ret
  const fail = [0xb8, 0xff, 0xff, 0xff, 0xff, ...end]; // mov eax, -1
  const succeeded = [
    ...[0x4c, 0x89, 0xe7], // mov rdi, r12
    ...call(parts.PyLong_AsVoidPtr),
    ...[0x48, 0x89, 0x03], // mov [rbx], rax
    ...[0x4c, 0x89, 0xe7], // mov rdi, r12
    ...call(parts.Py_DecRef),
    ...[0x31, 0xc0], // xor eax, eax
    ...end,
  ];
  const called = [
    ...[0x48, 0x89, 0xc5], // mov rbp, rax
    ...[0x48, 0xbf, ...word(parts.callable)], // movabs rdi, callable
    ...[0x48, 0x89, 0xee], // mov rsi, rbp
    ...[0x31, 0xd2], // xor edx, edx: the end of the arguments
    ...[0x49, 0xbb, ...word(parts.PyObject_CallFunctionObjArgs)], // movabs r11, address
    ...[0x31, 0xc0], // xor eax, eax: the variadic call has no floating-point argument
    ...[0x41, 0xff, 0xd3], // call r11
    ...[0x49, 0x89, 0xc4], // mov r12, rax
    ...[0x48, 0x89, 0xef], // mov rdi, rbp
    ...call(parts.Py_DecRef),
    ...[0x4d, 0x85, 0xe4], // test r12, r12
    ...[0x74, succeeded.length], // jz fail
  ];
  return new Uint8Array([
    ...[0x53, 0x55, 0x41, 0x54], // push rbx; push rbp; push r12: aligns the stack for calls
    ...[0x48, 0x89, 0xf3], // mov rbx, rsi
    ...call(parts.PyLong_FromVoidPtr), // of rdi
    ...[0x48, 0x85, 0xc0], // test rax, rax
    ...[0x74, called.length + succeeded.length], // jz fail
    ...called,
    ...succeeded,
    ...fail,
  ]);
}

// law python/aarch64Call: python/thunks
/** The same code for arm64, AAPCS64, on Linux, where variadic functions take their arguments like all others. */
export function aarch64Call(parts: CallParts): Uint8Array<ArrayBuffer> {
  const literals = [
    parts.PyLong_FromVoidPtr,
    parts.PyObject_CallFunctionObjArgs,
    parts.PyLong_AsVoidPtr,
    parts.Py_DecRef,
    parts.callable,
  ];
  /** An instruction, or one that depends on its own position, in words. */
  type Instruction = number | ((at: number) => number);
  const load = (literal: number, register: number): Instruction => (at) =>
    0x58000000 | (pool + 2 * literal - at) << 5 | register; // ldr register, literal
  const call = (literal: number): Instruction[] => [load(literal, 16), 0xd63f0200]; // ldr x16, literal; blr x16
  const failIfZero = (register: number): Instruction => (at) => 0xb4000000 | (fail - at) << 5 | register; // cbz
  const code: Instruction[] = [
    0xa9bd7bfd, // stp x29, x30, [sp, #-48]!
    0x910003fd, // mov x29, sp
    0xa90153f3, // stp x19, x20, [sp, #16]
    0xf90013f5, // str x21, [sp, #32]
    0xaa0103f3, // mov x19, x1
    ...call(0), // PyLong_FromVoidPtr, of x0
    failIfZero(0),
    0xaa0003f4, // mov x20, x0
    load(4, 0), // ldr x0, callable
    0xaa1403e1, // mov x1, x20
    0xd2800002, // mov x2, #0: the end of the arguments
    ...call(1), // PyObject_CallFunctionObjArgs
    0xaa0003f5, // mov x21, x0
    0xaa1403e0, // mov x0, x20
    ...call(3), // Py_DecRef
    failIfZero(21),
    0xaa1503e0, // mov x0, x21
    ...call(2), // PyLong_AsVoidPtr
    0xf9000260, // str x0, [x19]
    0xaa1503e0, // mov x0, x21
    ...call(3), // Py_DecRef
    0x52800000, // mov w0, #0
    0x14000002, // b end
    failure,
    0xf94013f5, // end: ldr x21, [sp, #32]
    0xa94153f3, // ldp x19, x20, [sp, #16]
    0xa8c37bfd, // ldp x29, x30, [sp], #48
    0xd65f03c0, // ret
  ];
  const fail = code.indexOf(failure);
  const pool = code.length + code.length % 2; // literals lie at multiples of 8 bytes
  const bytes = new DataView(new ArrayBuffer(4 * pool + 8 * literals.length));
  code.forEach((one, at) => bytes.setUint32(4 * at, typeof one === "number" ? one : one(at), littleEndian));
  literals.forEach((value, i) => bytes.setBigUint64(4 * pool + 8 * i, value, littleEndian));
  return new Uint8Array(bytes.buffer);
}

/** mov w0, #-1: the only failure path. */
const failure = 0x12800000;
