/** The protective lines of the room `unix`: sockets and descriptors. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const unixMutations: readonly Mutation[] = [
  ...law("unix/isOfKind", [
    [")) === name;", ')) !== "";', "Sockets and files are taken for timers."],
  ]),
  ...law("unix/stopTimers", [
    [" || timing.seconds + timing.nanoseconds === 0n", "", "A timer that fires once never fires."],
    ["= stopped.get(timer);", "= [...stopped.values()][0];", "A timer runs that was not stopped."],
    ["    setTiming(timer, never);\n", "", "A worker is woken for nothing."],
    ["of timersIn(set)) {\n        const", "of stopped.keys()) {\n        const", "Somebody else's timer is started."],
  ]),
  ...law("unix/abortable", [
    ['    signal.removeEventListener("abort", stop);\n', "", "Every wait leaves a listener at the signal."],
  ]),
  ...law("unix/newsOf", [
    ["isThere = true", "isThere = false", "What has come is not seen."],
    ["(entry.revents & poll_events.POLLIN) !== 0", "entry.revents !== 0", "What is closed has news for ever."],
  ]),
  ...law("unix/FileDescriptor.take", [
    ["    finalizer.unregister(this);\n", "", "What was given away is closed by the garbage collector."],
  ]),
  ...law("unix/UnixListener.listen", [
    [
      "    } catch (error) {\n      descriptor.close();",
      "    } catch (error) {",
      "A listener that cannot be leaves a file open.",
    ],
  ]),
  ...law("unix/UnixListener.accept", [
    ["        socket.close();\n", "", "Who may not connect stays connected."],
    ["SOCK.NONBLOCK | SOCK.CLOEXEC));", "SOCK.NONBLOCK));", "Programs that are started inherit connections."],
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
  ...law("unix/kind", [
    ["SOCK.NONBLOCK | SOCK.CLOEXEC;", "SOCK.NONBLOCK;", "Programs that are started inherit sockets."],
  ]),
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
  ...law("unix/UnixSocket.allowed", [
    [
      "    if (allow(peer)) return this;\n    this.close();",
      "    if (allow(peer)) return this;",
      "A connection to somebody else stays open.",
    ],
  ]),
  ...law("unix/createWakeup", [
    ["    files.close(listening);\n", "", "Every wait leaves a file open."],
    ["cancel: () => void files.close(closing)", "cancel: () => {}", "What is cancelled never settles."],
    [
      "if (isListening) sockets.shutdown(listening, SHUT_RDWR);",
      "files.close(closing);",
      "A file of the program is closed.",
    ],
  ]),
  ...law("unix/DescriptorSet.add", [
    ["EPOLL_CTL.ADD, fd", "EPOLL_CTL.ADD, this.fd", "Nothing is waited for."],
    ["= epoll_events.EPOLLIN;", "= 0;", "A descriptor that can be read wakes nobody."],
  ]),
  ...law("unix/openProcess", [
    ["fd < 0 ? null", "fd < -1 ? null", "Where there is no process, or no such descriptors, nothing can be watched."],
  ]),
];
