/** The protective lines of sockets and descriptors. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const unixMutations: readonly Mutation[] = [
  ...law("unix/isOfKind", [
    [")) === name;", ')) !== "";', "Sockets and files are mistaken for timers."],
  ]),
  ...law("unix/ListeningSocket.find", [
    [" && isListening(fd)", "", "A connection is taken for the socket that listens."],
    [" && isIt(address)", "", "Another listener loses its port."],
  ]),
  ...law("unix/ListeningSocket.constructor", [
    ["isEveryHosts ? address.subarray(0, hostAt) : address", "address", "A socket at all addresses ends none."],
    [
      "isEveryHosts ? address.subarray(0, hostAt) : address",
      "address.subarray(0, hostAt)",
      "Connections to the same port of another address end.",
    ],
  ]),
  ...law("unix/ListeningSocket.stop", [
    ["    dup3(inert, this.#fd, EPOLL.CLOEXEC);\n", "", "The port stays taken."],
    ["epoll_ctl(set, EPOLL_CTL.ADD, this.#fd, address);", "void set;", "Its owner cannot remove it from its set."],
  ]),
  ...law("unix/ListeningSocket.endConnections", [
    [" || isListening(fd)", "", "The socket that listens is shut down."],
    [" || !this.#common.every((byte, i) => byte === address[i])", "", "Connections of others end."],
    ["this.#last.get(fd) !== peer", "false", "Connections of the next socket on the port end."],
    ["    libc().sockets.shutdown(fd, SHUT.RDWR);\n", "", "Its owner does not learn of the end."],
  ]),
  ...law("unix/stopTimers", [
    [" || timing.seconds + timing.nanoseconds === 0n", "", "A one-shot timer never fires."],
    ["= stopped.get(timer);", "= [...stopped.values()][0];", "A timer that was not stopped is started."],
    ["    setTiming(timer, never);\n", "", "A worker is woken needlessly."],
    [
      "of timersIn(set)) {\n        const",
      "of stopped.keys()) {\n        const",
      "A timer of another owner is started.",
    ],
  ]),
  ...law("unix/abortable", [
    ['    signal.removeEventListener("abort", stop);\n', "", "Every wait leaves a listener on the signal."],
  ]),
  ...law("unix/newsOf", [
    ["isThere = true", "isThere = false", "Data that has arrived is not noticed."],
    [
      "(entry.revents & poll_events.POLLIN) !== 0",
      "entry.revents !== 0",
      "A closed descriptor is reported as ready for ever.",
    ],
  ]),
  ...law("unix/FileDescriptor.take", [
    ["    finalizer.unregister(this);\n", "", "A descriptor that was handed over is closed by the garbage collector."],
  ]),
  ...law("unix/UnixListener.listen", [
    [
      "    } catch (error) {\n      descriptor.close();",
      "    } catch (error) {",
      "A listener that cannot be created leaves a file open.",
    ],
  ]),
  ...law("unix/UnixListener.accept", [
    ["refused.use(UnixSocket.over(", "(UnixSocket.over(", "A client that is not allowed stays connected."],
    ["SOCK.NONBLOCK | SOCK.CLOEXEC));", "SOCK.NONBLOCK));", "Child processes inherit connections."],
  ]),
  ...law("unix/receiveMessage", [
    ["MSG.CMSG_CLOEXEC", "0", "Child processes inherit files that arrived with messages."],
    [
      '    for (const descriptor of descriptors) descriptor.close();\n    return { kind: "cut"',
      '    return { kind: "cut"',
      "Files of a truncated message stay open.",
    ],
  ]),
  ...law("unix/descriptorsIn", [
    [
      "level === SOL.SOCKET && type === SCM.RIGHTS",
      "level === SOL.SOCKET",
      "A value that is not a file is closed as one.",
    ],
  ]),
  ...law("unix/untilReady", [
    [
      "    waits.delete(wait);\n    reject(",
      "    reject(",
      "A descriptor is polled after its wait has ended, when it may be another file.",
    ],
    ['    signal.removeEventListener("abort", stop);\n', "", "Every wait leaves a listener on the signal."],
  ]),
  ...law("unix/schedulePoll", [
    ["turnToEnd !== null &&", "false &&", "Messages keep a process of Bun's alive after an uncaught error."],
  ]),
  ...law("unix/pollAll", [
    ["    for (const { fail } of asked) fail(error);\n", "", "A wait for which there is no memory is not told."],
  ]),
  ...law("unix/kind", [
    ["SOCK.NONBLOCK | SOCK.CLOEXEC;", "SOCK.NONBLOCK;", "Child processes inherit sockets."],
  ]),
  ...law("unix/UnixSocket.connect", [
    [
      "      signal?.throwIfAborted();\n      const connected",
      "      const connected",
      "A wait for a listener cannot be aborted.",
    ],
  ]),
  ...law("unix/connectOnce", [
    [
      "failed.use(newSocket(`connect to ${path}`))",
      "newSocket(`connect to ${path}`)",
      "Every attempt leaves a file open.",
    ],
  ]),
  ...law("unix/UnixSocket.send", [
    [
      "[new Uint8Array(data), ",
      "[data, ",
      "Bytes that the caller writes while a message waits are sent.",
    ],
    [
      "[...descriptors]];",
      "descriptors];",
      "Files that the caller takes out of the array while a message waits are lost.",
    ],
    [
      "before.then(() => resolve());",
      "resolve();",
      "A later message overtakes one that waits, if one between them is aborted.",
    ],
  ]),
  ...law("unix/checkMessage", [
    ["  if (!(data instanceof Uint8Array)) {\n", "  if (false) {\n", "Text is sent as zeros."],
    ["  if (!Array.isArray(descriptors)) {\n", "  if (false) {\n", "Text for an array of descriptors fails obscurely."],
    [
      "    if (!(descriptor instanceof FileDescriptor)) {\n",
      "    if (false) {\n",
      "A number in place of a descriptor sends the standard input.",
    ],
  ]),
  ...law("unix/UnixSocket.allowed", [
    [
      "    refused.use(this);\n",
      "",
      "A connection to the wrong peer stays open.",
    ],
  ]),
  ...law("unix/rememberInherited", [
    [
      "  inherited ??= ",
      "  inherited ??= []; if (false) ",
      "Children of a program that make has started cannot use its jobs.",
    ],
  ]),
  ...law("unix/keepFromChildren", [
    ["  closeRange(start, last, CLOSE_RANGE_CLOEXEC);\n", "", "Children hold the ports and connections of UCX."],
    ["    start = fd + 1;\n", "", "What children should inherit is kept from them."],
  ]),
  ...law("unix/createWakeup", [
    ["    files.close(listening);\n", "", "Every wait leaves a file open."],
    ["cancel: () => void files.close(closing)", "cancel: () => {}", "A cancelled wait never settles."],
    [
      "if (isListening) sockets.shutdown(listening, SHUT.RDWR);",
      "files.close(closing);",
      "A file descriptor of the program is closed.",
    ],
  ]),
  ...law("unix/DescriptorSet.add", [
    ["EPOLL_CTL.ADD, fd", "EPOLL_CTL.ADD, this.fd", "Nothing is waited for."],
    ["= epoll_events.EPOLLIN;", "= 0;", "A readable descriptor wakes no worker."],
  ]),
  ...law("unix/checkDescriptorsLeft", [
    [
      "opened.length < count",
      "opened.length + 1 < count",
      "A library that needs one more descriptor than are left is called, and ends the process.",
    ],
    [
      "    for (const fd of opened) close(fd);\n",
      "",
      "The descriptors that were opened to count them stay open.",
    ],
  ]),
  ...law("unix/openProcess", [
    [
      "fd < 0 ? null",
      "fd < -1 ? null",
      "A process that does not exist, or a system without such descriptors, gives an invalid descriptor.",
    ],
  ]),
];
