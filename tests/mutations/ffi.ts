/** The protective lines of the only room that knows the runtime. */
import { inFile, type Mutation } from "./mutation.ts";

const sockets = ["tests/unix/descriptors_test.ts", "tests/unix/socket_test.ts"];

/** What can be broken there. */
export const ffiMutations: readonly Mutation[] = [
  ...inFile("src/unix/socket.ts", sockets, [
    [
      "      signal?.throwIfAborted();\n      const descriptor",
      "      const descriptor",
      "A wait for a listener cannot be ended.",
    ],
    ["      descriptor.close();\n      // EAGAIN", "      // EAGAIN", "Every attempt to connect leaves a file open."],
    [
      "    const copy = data.slice();",
      "    const copy = data;",
      "What the caller writes while a message waits is sent.",
    ],
    ["SOCK.NONBLOCK | SOCK.CLOEXEC;", "SOCK.NONBLOCK;", "Programs that are started inherit sockets."],
    [
      "before.then(() => resolve());",
      "resolve();",
      "A later message overtakes one that waits, when one is called back.",
    ],
    [
      "    if (allow(peer)) return this;\n    this.close();",
      "    if (allow(peer)) return this;",
      "A connection to somebody else stays open.",
    ],
  ]),
  ...inFile("src/unix/listener.ts", sockets, [
    ["        socket.close();\n", "", "Who may not connect stays connected."],
    ["SOCK.NONBLOCK | SOCK.CLOEXEC));", "SOCK.NONBLOCK));", "Programs that are started inherit connections."],
    [
      "    } catch (error) {\n      descriptor.close();",
      "    } catch (error) {",
      "A listener that cannot be leaves a file open.",
    ],
  ]),
  ...inFile("src/unix/message.ts", sockets, [
    ["MSG.CMSG_CLOEXEC", "0", "Programs that are started inherit files that came with messages."],
    [
      '    for (const descriptor of descriptors) descriptor.close();\n    return { kind: "cut"',
      '    return { kind: "cut"',
      "Files of a message that was cut stay open.",
    ],
    ["level === SOL.SOCKET && type === SCM.RIGHTS", "level === SOL.SOCKET", "What is no file is closed as one."],
  ]),
  ...inFile("src/unix/poll.ts", sockets, [
    [
      "    waits.delete(wait);\n    reject(",
      "    reject(",
      "A descriptor is polled after its wait was ended, when it may be another file.",
    ],
    ['    signal.removeEventListener("abort", stop);\n', "", "Every wait leaves a listener at the signal."],
  ]),
  ...inFile("src/unix/abortable.ts", sockets, [
    ['    signal.removeEventListener("abort", stop);\n', "", "Every wait leaves a listener at the signal."],
  ]),
  ...inFile("src/ffi/text_file.ts", sockets, [
    ["  fclose(file);\n", "", "Every file that is read stays open."],
  ]),
  ...inFile("src/ffi/arena.ts", ["tests/ffi/arena_test.ts"], [
    [
      "Math.max(chunkBytes, size + alignment)",
      "Math.max(chunkBytes, size)",
      "What is aligned reaches beyond its chunk.",
    ],
    ["Number(address % BigInt(alignment))", "0", "An address is not aligned by more than 16."],
  ]),
  ...inFile("src/ffi/read_foreign.ts", ["tests/ffi/read_foreign_test.ts"], [
    [" || length > mostForeignBytes", "", "More is copied than there is room for."],
  ]),
  ...inFile("src/ffi/struct_by_value.ts", ["tests/ffi/struct_by_value_test.ts"], [
    ["bytesOf(value).slice() : value", "bytesOf(value) : value", "The callee may change the caller's struct (arm64)."],
    [
      "floats.length > floatRegisters",
      "floats.length > floatRegisters + 1",
      "A ninth number lies where the callee looks for the struct.",
    ],
  ]),
  ...inFile("src/ffi/library.ts", ["tests/ffi/library_test.ts"], [
    ["    if (tried.has(path)) continue;\n", "", "A place is tried, and told of, twice."],
    ["`${escaped(prefix)}/lib/python3*", "`${prefix}/lib/python3*", "A prefix with brackets is a pattern."],
    ["  opened.set(key, library);\n", "", "A library is bound anew each time that it is opened."],
  ]),
  ...inFile("src/ffi/system_error.ts", sockets, [
    ["    if (code !== errno.EINTR) return -code;", "    return -code;", "A signal ends a call."],
  ]),
  ...inFile("src/ffi/struct.ts", ["tests/ffi/struct_test.ts"], [
    ["high > 0x1f_ffff", "high > 0x3f_ffff", "A size that is no exact number is read as one."],
  ]),
  ...inFile("src/ffi/c_string.ts", ["tests/ffi/c_string_test.ts"], [
    [", { ignoreBOM: true }", "", "A text that begins with U+FEFF loses it."],
  ]),
  ...inFile("src/native/thread_team.ts", ["tests/native/thread_team_test.ts"], [
    ["underWay === rounds || ", "underWay > rounds || ", "A round is begun in the memory of one that is under way."],
  ]),
  ...inFile("src/native/machine_code.ts", ["tests/native/release_thunk_test.ts"], [
    ["roundUp(code.length, 16)", "code.length", "Functions are not aligned."],
  ]),
  ...inFile("src/unix/file_descriptor.ts", ["tests/unix/file_descriptor_test.ts"], [
    ["    finalizer.unregister(this);\n", "", "What was given away is closed by the garbage collector."],
  ]),
  ...inFile("src/native/release_thunk.ts", ["tests/native/release_thunk_test.ts"], [
    [
      "[0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0\n    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]\n",
      "[0xf0, 0xff, 0x00, 0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]),\n    ...(clear === undefined ? [0xf0, 0xff, 0x00] : []),\n",
      "A struct is written after its end was told, when it may be freed.",
    ],
    [
      "    ...[0xf0, 0xff, 0x00], // lock",
      "    ...[0xff, 0x00], // lock",
      "Two threads that release at once are counted as one.",
    ],
    [
      "  if (!port.isWorker) return port;\n",
      "  return port;\n",
      "A Worker lends with callbacks that end with it.",
    ],
  ]),
];
