/** The protective lines of the only room that knows the runtime. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const ffiMutations: readonly Mutation[] = [
  ...law("unix/UnixSocket.connect", [
    [
      "      signal?.throwIfAborted();\n      const descriptor",
      "      const descriptor",
      "A wait for a listener cannot be ended.",
    ],
    ["      descriptor.close();\n      // EAGAIN", "      // EAGAIN", "Every attempt to connect leaves a file open."],
  ]),
  ...law("unix/UnixSocket.send", [
    [
      "    const copy = data.slice();",
      "    const copy = data;",
      "What the caller writes while a message waits is sent.",
    ],
    [
      "before.then(() => resolve());",
      "resolve();",
      "A later message overtakes one that waits, when one is called back.",
    ],
  ]),
  ...law("unix/kind", [
    ["SOCK.NONBLOCK | SOCK.CLOEXEC;", "SOCK.NONBLOCK;", "Programs that are started inherit sockets."],
  ]),
  ...law("unix/UnixSocket.allowed", [
    [
      "    if (allow(peer)) return this;\n    this.close();",
      "    if (allow(peer)) return this;",
      "A connection to somebody else stays open.",
    ],
  ]),
  ...law("unix/UnixListener.accept", [
    ["        socket.close();\n", "", "Who may not connect stays connected."],
    ["SOCK.NONBLOCK | SOCK.CLOEXEC));", "SOCK.NONBLOCK));", "Programs that are started inherit connections."],
  ]),
  ...law("unix/UnixListener.listen", [
    [
      "    } catch (error) {\n      descriptor.close();",
      "    } catch (error) {",
      "A listener that cannot be leaves a file open.",
    ],
  ]),
  ...law("unix/receiveMessage", [
    ["MSG.CMSG_CLOEXEC", "0", "Programs that are started inherit files that came with messages."],
    [
      '    for (const descriptor of descriptors) descriptor.close();\n    return { kind: "cut"',
      '    return { kind: "cut"',
      "Files of a message that was cut stay open.",
    ],
  ]),
  ...law("unix/descriptorsIn", [
    ["level === SOL.SOCKET && type === SCM.RIGHTS", "level === SOL.SOCKET", "What is no file is closed as one."],
  ]),
  ...law("unix/untilReady", [
    [
      "    waits.delete(wait);\n    reject(",
      "    reject(",
      "A descriptor is polled after its wait was ended, when it may be another file.",
    ],
    ['    signal.removeEventListener("abort", stop);\n', "", "Every wait leaves a listener at the signal."],
  ]),
  ...law("unix/abortable", [
    ['    signal.removeEventListener("abort", stop);\n', "", "Every wait leaves a listener at the signal."],
  ]),
  ...law("ffi/readTextFile", [
    ["  fclose(file);\n", "", "Every file that is read stays open."],
  ]),
  ...law("ffi/NativeArena.grow", [
    [
      "Math.max(chunkBytes, size + alignment)",
      "Math.max(chunkBytes, size)",
      "What is aligned reaches beyond its chunk.",
    ],
  ]),
  ...law("ffi/alignedOffset", [
    ["Number(address % BigInt(alignment))", "0", "An address is not aligned by more than 16."],
  ]),
  ...law("ffi/readForeign", [
    [" || length > mostForeignBytes", "", "More is copied than there is room for."],
  ]),
  ...law("ffi/lowerStructs", [
    ["bytesOf(value).slice() : value", "bytesOf(value) : value", "The callee may change the caller's struct (arm64)."],
  ]),
  ...law("ffi/lowerToStack", [
    [
      "floats.length > floatRegisters",
      "floats.length > floatRegisters + 1",
      "A ninth number lies where the callee looks for the struct.",
    ],
  ]),
  ...law("ffi/openLibrary", [
    ["    if (tried.has(path)) continue;\n", "", "A place is tried, and told of, twice."],
  ]),
  ...law("ffi/candidates", [
    ["`${escaped(prefix)}/lib/python3*", "`${prefix}/lib/python3*", "A prefix with brackets is a pattern."],
  ]),
  ...law("ffi/register", [
    ["  opened.set(key, library);\n", "", "A library is bound anew each time that it is opened."],
  ]),
  ...law("ffi/attempt", [
    ["    if (code !== errno.EINTR) return -code;", "    return -code;", "A signal ends a call."],
  ]),
  ...law("ffi/scalarAccessors", [
    ["high > 0x1f_ffff", "high > 0x3f_ffff", "A size that is no exact number is read as one."],
  ]),
  ...law("ffi/decoder", [
    [", { ignoreBOM: true }", "", "A text that begins with U+FEFF loses it."],
  ]),
  ...law("native/ThreadTeam.begin", [
    ["underWay === rounds || ", "underWay > rounds || ", "A round is begun in the memory of one that is under way."],
  ]),
  ...law("native/mapExecutable", [
    ["roundUp(code.length, 16)", "code.length", "Functions are not aligned."],
  ]),
  ...law("unix/FileDescriptor.take", [
    ["    finalizer.unregister(this);\n", "", "What was given away is closed by the garbage collector."],
  ]),
  ...law("native/x8664Thunk", [
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
  ]),
  ...law("native/portOfMainThread", [
    ["  if (!port.isWorker) return port;\n", "  return port;\n", "A Worker lends with callbacks that end with it."],
  ]),
];
