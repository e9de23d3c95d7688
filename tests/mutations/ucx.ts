/** The protective lines of messages between processes. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const ucxMutations: readonly Mutation[] = [
  ...law("ucx/ensureGpuContext", [
    ["    device.ensureCurrent();\n", "", "UCX makes progress in no context, and fails or crashes."],
    ["  } catch {\n", "  } finally {\n", "A lost context ends the process in a turn of the event loop."],
  ]),
  ...law("ucx/Progress.runUntilDone", [
    ["    ensureGpuContext();\n", "", "UCX makes progress without a current context, and fails or crashes."],
  ]),
  ...law("ucx/Progress.pollUntil", [
    ["    ensureGpuContext();\n", "", "UCX makes progress without a current context, and fails or crashes."],
  ]),
  ...law("ucx/Progress.spin", [
    ["      ensureGpuContext();\n", "", "UCX makes progress without a current context, and fails or crashes."],
  ]),
  ...law("ucx/KeepaliveTimer.stop", [
    ["    this.#stopped = stopped;\n", "", "UCX never checks again whether a peer is alive."],
  ]),
  ...law("ucx/KeepaliveTimer.restart", [
    ["    this.#stopped?.restart();\n", "", "UCX never checks again whether a peer is alive."],
  ]),
  ...law("ucx/isWithinMachine", [
    ["ends.local_sockaddr).host ===", "ends.local_sockaddr).host !==", "UCX checks no peers on other machines."],
  ]),
  ...law("ucx/Connections.rest", [
    [
      "(endpoint) => this.#peers.sees(endpoint)",
      "() => false",
      "Idle workers are woken once a second.",
    ],
  ]),
  ...law("ucx/closeWithin", [
    [
      "  if (signal?.aborted) force();",
      "  if (false) force();",
      "A close waits although its signal was aborted before.",
    ],
    [
      'signal?.addEventListener("abort", force, { once: true })',
      "signal?.throwIfAborted()",
      "A close waits although its signal is aborted.",
    ],
  ]),
  ...law("ucx/UnreportedPeers.areNone", [
    ["      if (sees(endpoint)) continue;\n", "", "Idle workers are woken once a second."],
    ["handle === 0n || ", "", "UCX is asked about an endpoint that it has freed."],
    ["|| !isWithinMachine(this.#ucp, handle)", "", "The death of an unknown peer goes undetected."],
    ["      this.#endpoints.delete(endpoint);", "", "UCX is asked about every peer whenever a worker has been idle."],
  ]),
  ...law("ucx/PeerProcess.find", [
    [
      "if (!isSame(0, 16) || isSame(16, identityBytes)) return null;",
      "",
      "A process of another machine is watched.",
    ],
    [" || isSame(16, identityBytes)", "", "A worker watches its own process."],
    [
      "return process.#runs() === true ? process : null;",
      "return process;",
      "A process that cannot be seen from here is reported as gone.",
    ],
    ["process.#runs() === true", "!process.isGone()", "The same, if it could not be told when it was found."],
  ]),
  ...law("ucx/PeerProcess.open", [
    ["descriptor === null || !this.isGone()", "true", "Another process, which now has the PID, is watched."],
  ]),
  ...law("ucx/Progress.checkIfDue", [
    [
      "    for (const { act } of this.#also) act();\n",
      "",
      "A blocking wait for a peer that is gone never ends.",
    ],
  ]),
  ...law("ucx/PeerProcess.isGone", [
    ['readStat("self") === null', "true", "A process that has ended counts as alive."],
    ['readStat("self") === null', "false", "Where no file can be opened, every process counts as dead."],
  ]),
  ...law("ucx/PeerProcess.runs", [
    ["stat.start === this.#start && ", "", "A process that gets the PID of another one is mistaken for it."],
    [' && !"ZXx".includes(stat.state)', "", "A process whose exit code is never collected counts as alive for ever."],
  ]),
  ...law("ucx/readStat", [
    ["\\(.*\\)", "\\(.*?\\)", "A program's name is read as the state of its process."],
  ]),
  ...law("ucx/PeerLiveness.watch", [
    [
      "    if (process === null) return;\n",
      "    if (process === null) throw 0;\n",
      "A peer that cannot be watched cannot be connected to.",
    ],
    ["if (known !== undefined) return void", "if (false) return void", "Each endpoint takes a descriptor."],
    [
      "    this.#lookLater();\n",
      "",
      "A peer without a descriptor is not watched.",
    ],
    [
      "      if (error instanceof SystemError || error instanceof FfiError) return null;",
      "",
      "An endpoint that has been made is lost to its caller because the system cannot tell when its peer ends.",
    ],
  ]),
  ...law("ucx/PeerLiveness.failed", [
    ["    this.#onUnseen();\n", "", "UCX is not made to check a peer that nothing else watches."],
    ["    this.#lookLater();\n", "", "Operations that UCX forgets on a failed connection wait for ever."],
  ]),
  ...law("ucx/PeerLiveness.forget", [
    ["else peer.descriptor.close();\n", "", "A closed endpoint's descriptor stays open."],
    ["    peer?.endpoints.delete(endpoint);\n", "", "A closed endpoint is reported as failed."],
  ]),
  ...law("ucx/PeerLiveness.poll", [
    ["endpoint.processEnded();", "void 0;", "A place that a process had stays taken for a second after its end."],
    ["        this.#onUnseen();\n", "", "UCX is not made to check a peer that nothing else watches."],
    [
      "peer.goneSince === Infinity && peer.isGone()",
      "peer.goneSince === Infinity",
      "Living peers are reported as dead.",
    ],
    ["      if (now - peer.goneSince < grace) continue;\n", "", "UCX does not get the time to report what it knows."],
    ["    if (this.#blind > 0) this.#lookLater();\n", "", "Dead peers are never reported."],
    [
      "if (peer.descriptor !== null) this.#blind++;",
      "",
      "A dead peer is not reported once the time that UCX has is over.",
    ],
    [
      "        peer.descriptor?.close(); // it stays readable from now on\n",
      "",
      "A worker never sleeps again after a peer's death.",
    ],
  ]),
  ...law("ucx/EndpointLifecycle.lose", [
    [
      "    if (own.handle === 0n) return;\n",
      "",
      "A closed endpoint is released twice.",
    ],
    ['      this.fail(gone("ucp_worker_progress"));\n', "", "The user is not notified that the peer is gone."],
    [
      "    own.abandon(({ call }) => gone(call)); // UCX may never complete them\n",
      "",
      "Sends to a dead peer wait for ever.",
    ],
  ]),
  ...law("ucx/RemoteKeys.close", [
    ["    for (const handle of this.#handles) this.free(handle);\n", "", "A key is destroyed after its worker."],
  ]),
  ...law("ucx/Completions.afterNews", [
    ["    this.#afterNews.push(act);\n", "    act();\n", "Messages that a peer sent before it exited are lost."],
  ]),
  ...law("ucx/TakenMemory.useList", [
    [
      "    this.#bytes = NaN; // differs from whatever is set next\n",
      "",
      "The size of a message is its number of pieces.",
    ],
  ]),
  ...law("ucx/takeList", [
    ["      piece.pack?.();\n", "", "A piece that is not contiguous is sent before its elements are packed."],
    [
      "      for (const piece of pieces) piece.release();\n",
      "",
      "Pieces stay pinned for ever.",
    ],
  ]),
  ...law("ucx/UcxActiveMessage.recv", [
    ["    operation.pack?.();\n", "", "Borrowed data is received although the list of pieces was not written."],
    [
      'if (this.#state === "taken") this.release(); // else that was done',
      'this.#state = "here", this.release();',
      "The data of a message that was released meanwhile are given back to UCX twice.",
    ],
  ]),
  ...law("ucx/UcxActiveMessage.copyTo", [
    ["        left -= count;\n", "", "Bytes past the end of a message are written."],
    [
      "if (streams.length > 0) {",
      "if (false) {",
      "A GPU copies from memory that UCX has used for other messages since.",
    ],
    [
      "streams.map((stream) => stream.completed())",
      "[]",
      "Data are not there yet for a stream that is not the memory's home.",
    ],
  ]),
  ...law("ucx/readArrayHeader", [
    ["  if (expected !== bytes) {", "  if (false) {", "An array extends past its message."],
    [" || !isShape(shape)", "", "Any shape that a peer sends is accepted."],
  ]),
  ...law("ucx/NewMemory.constructor", [
    ["    if (isDevices) this.#allocate(0).close();\n", "", "An array for which there can be no memory is lost."],
  ]),
  ...law("ucx/NewMemory.receive", [
    [
      "    array.copyFrom(staged",
      "    if (0) array.copyFrom(staged",
      "A small array for a GPU has no elements.",
    ],
    ["    await stream.completed();", "", "A small array is not there yet where it has no home stream."],
  ]),
  ...law("ucx/proofOf", [
    ["`${side}\\n`", '""', "A proof that is reflected is accepted."],
    ["update(withLength(part))", "update(part)", "The parts of a proof can be divided differently."],
  ]),
  ...law("ucx/acceptHandshake", [
    ['if (!isSame(proof, proofOf(secret, "client", said)))', "if (false)", "Every client is accepted."],
    ["const said = [challenge, answer, address];", "const said = [answer, address];", "A proof can be replayed."],
    ["  else sayFull(connection);\n", "", "A client that knows the secret is not told that the listener is full."],
  ]),
  ...law("ucx/connectHandshake", [
    [
      'if (!isSame(proof, proofOf(secret, "listener"',
      'if (false && !isSame(proof, proofOf(secret, "listener"',
      "Any listener is trusted.",
    ],
  ]),
  ...law("ucx/takeSecret", [
    [
      "new Uint8Array(secret); // slice()",
      "secret.slice(); // slice()",
      "A Buffer that is cleared becomes a secret of zeros.",
    ],
    [
      'if (!("secret" in given)) return null;',
      "if (given.secret === undefined) return null;",
      "A variable that is not set admits every client.",
    ],
    [
      "return new Uint8Array(secret); // slice() of a Buffer is no copy",
      "return secret;",
      "A secret that is cleared becomes one of zeros, which anyone can guess.",
    ],
    [
      'if (typeof secret === "string" && secret.length > 0)',
      'if (typeof secret === "string")',
      "An empty secret is accepted.",
    ],
  ]),
  ...law("ucx/listenWithSecret", [
    [
      "    if (asked.size >= handshakes) dropOldest();\n",
      "",
      "Any number of unknown clients are in a handshake at a time.",
    ],
    ["    if (!context.hasRoom()) {", "    if (false) {", "More clients are accepted than there is room for."],
    [
      'addEventListener("abort", () => connection.close())',
      'addEventListener("abort", () => {})',
      "The handshake of a silent client never ends.",
    ],
    [
      "    sayFull(oldest);\n",
      "",
      "A client that is dropped concludes that the secret is wrong.",
    ],
  ]),
  ...law("ucx/confirm", [
    ["  await stream.recvAll(byte, limits);\n", "", "A client that is gone keeps its place."],
  ]),
  ...law("ucx/TcpConnection.connect", [
    [
      'await untilReady(number, "writable", signal);',
      "",
      "A connection that is not established yet is treated as established.",
    ],
    ["if (failure.value !== 0) throw", "if (false) throw", "The error does not say that there is no listener."],
  ]),
  ...law("ucx/TcpConnection.receive", [
    [
      "if (received > 0) at += received;",
      "if (received > 0) return into.bytes.slice();",
      "Only some of the bytes are returned.",
    ],
    [
      "else if (received !== -errno.EAGAIN) return null;",
      "else if (received !== -errno.EAGAIN) throw 0;",
      "The end of a connection becomes an unexplained error.",
    ],
    [
      "else if (sent !== -errno.EAGAIN) return false;",
      "else if (sent < 0) return false;",
      "Bytes that the system does not accept immediately are lost.",
    ],
  ]),
  ...law("ucx/TcpConnection.finish", [
    ["    while (await this.receive(4096) !== null);", "    ", "Bytes that the other side has yet to read are lost."],
    ["    this.#closing.abort(", "    void (", "A wait for a connection that is closed never ends."],
  ]),
  ...law("ucx/listenTcp", [
    ["SO.REUSEADDR, yes.$address, 4)", "SO.ERROR, yes.$address, 4)", "A port stays in use for a minute."],
    ["      watch.start();\n    });", "    });", "Only the first connections are accepted."],
  ]),
  ...law("ucx/partHeaders", [
    ["start === 0 || ", "", "A message without parts is never sent."],
    [
      "start + maxPartsPerHeader < parts.length ? 1 : 0",
      "0",
      "Parts after the first hundred are mistaken for another message.",
    ],
  ]),
  ...law("ucx/readPartHeader", [
    [" || count > BigInt(maxPartsPerHeader)", "", "Other bytes are read as a header with more parts than it can hold."],
    [" || next > 1", "", "Other bytes are mistaken for a header."],
  ]),
  ...law("ucx/takePacked", [
    ["    pin?.[Symbol.dispose]();\n", "", "A buffer whose elements were copied stays pinned."],
    [
      "  memory.bytes = byteCount(view); // known before the elements are ready\n",
      "",
      "More bytes are put than the remote memory has, which overwrites other memory of that process.",
    ],
  ]),
  ...law("ucx/cudaFor", [
    ["cuda.knows(device) ? cuda : null", "true ? cuda : null", "UCX takes a simulated GPU's memory for a real one's."],
  ]),
  ...law("ucx/packedOn", [
    [
      "device === null || cudaFor(buffer, cuda) === null ? null",
      "device === null ? null",
      "Managed memory that is not contiguous is copied to memory that a UCX without CUDA cannot read.",
    ],
    ["pool: device.memory.pool,", "pool: null,", "A packed copy is said to go from GPU to GPU."],
  ]),
  ...law("ucx/TagSender.sendMany", [
    [
      "      for (const operation of operations) endpoint.putBack(operation);\n",
      "",
      "Parts of a message that cannot be sent stay pinned.",
    ],
    [
      "      operations.push(...data);\n",
      "      operations.unshift(...data);\n",
      "Parts arrive before their header.",
    ],
  ]),
  ...law("ucx/PartsReceiver.recv", [
    [
      "      if (before !== undefined) await abortable(before, signal);\n",
      "",
      "A part is mistaken for a header.",
    ],
    ["await abortable(before, signal)", "await before", "A receive that waits for another message ignores its limits."],
    [", options, ownerOf()?.over)", ", options)", "A receive that waits for another message outlives its endpoint."],
    [".then(() => discarded)", "", "What is left of a refused message is mistaken for a header."],
    ["pass(parts)", "pass(undefined)", "Parts that arrive after their receive was abandoned are mistaken for headers."],
  ]),
  ...law("ucx/ReceiveTurns.take", [
    [
      "Promise.allSettled([before, after])",
      "Promise.allSettled([after])",
      "A receive after an abandoned one mistakes a part of an earlier message for a header.",
    ],
    ["      ...this.#masked.values(),\n", "", "A part is mistaken for a header by a receive of any tag."],
    ["isExact ? [] : this.#exact.values()", "[]", "A receive of any tag mistakes a part for a header."],
    [
      "(other.tag ^ tag) & other.mask & mask",
      "(other.tag ^ tag) & mask",
      "A receive does not wait for one of any tag, and mistakes a part for a header.",
    ],
  ]),
  ...law("ucx/PartsReceiver.recvParts", [
    ["parts.length > maxParts(maxBytes)", "false", "Millions of empty parts fill the memory."],
    [
      "Math.min(maxBytes, Number.MAX_SAFE_INTEGER)",
      "maxBytes",
      "A part of an impossible size is an error about shapes.",
    ],
    [
      "      for (const view of views) view.close();\n      discarding(",
      "      discarding(",
      "Parts of a message that finds no memory keep theirs.",
    ],
    [
      "discarding(this.#discard(parts.length, read.hasNext, fromSender, owner));",
      "",
      "The parts of a message that is too long are taken for messages.",
    ],
    [
      "discarding(this.#discard(parts.length, false, fromSender, owner));",
      "",
      "The parts of a message that finds no memory are taken for messages.",
    ],
  ]),
  ...law("ucx/PartsReceiver.discard", [
    ["    while (hasNext) {", "    while (false) {", "Of a long message that is refused, only a part is discarded."],
    ["if (!isTooLong) throw", "if (true) throw", "Only the first part of a refused message is discarded."],
  ]),
  ...law("ucx/EndpointLifecycle.acknowledgeClose", [
    [
      "if (this.#standing !== null) await this.#standing;",
      "",
      "A connection that the other side used and closed at once fails before it is established.",
    ],
  ]),
  ...law("ucx/EndpointLifecycle.leave", [
    ["      this.#leaving.catch(() => {});", "", "A worker that is closed where there is no memory ends the program."],
  ]),
  ...law("ucx/Connections.stopListening", [
    [
      "listener.close().catch(() => {})",
      "void listener.close()",
      "A worker that listens and is closed where there is no memory ends the program.",
    ],
  ]),
  ...law("ucx/EndpointLifecycle.abort", [
    [
      "    void this.#closeNow?.(); // it may be letting UCX connect\n",
      "",
      "Closing a worker meanwhile destroys an endpoint that is being flushed.",
    ],
  ]),
  ...law("ucx/once", [
    ["return () => over ??= act();", "return act;", "Closing a worker meanwhile closes an endpoint twice."],
  ]),
  ...law("ucx/Completions.endBy", [
    [
      "if (signal.aborted) return abort();",
      "if (false) return abort();",
      "An operation that was aborted before it began never ends.",
    ],
  ]),
  ...law("ucx/EndpointOperations.flush", [
    [
      "operations.returnToPool(operation), signal }",
      "operations.returnToPool(operation) }",
      "A flush in a queue ignores its limits.",
    ],
  ]),
  ...law("ucx/EndpointOperations.takeReceive", [
    ["    operation.owner = this.receives;\n", "", "A receive outlives its endpoint, and waits for ever."],
  ]),
  ...law("ucx/RemoteAccess.fence", [
    ["    this.#fence = fence;\n", "", "A fence orders nothing."],
  ]),
  ...law("ucx/RemoteAccess.ordered", [
    ["return this.#fence ?? ready;", "return ready;", "A put is not ordered after the gets before a fence."],
    [
      "return Promise.all([this.#fence, ready]).then(() => {});",
      "return ready;",
      "A put that waits for a stream is not ordered after the gets before a fence.",
    ],
  ]),
  ...law("ucx/RawStream.send", [
    ["    if (operation.bytes === 0) return own.putBack(operation);", "", "An empty chunk ends the other process."],
  ]),
  ...law("ucx/RawStream.recvAll", [
    ["    checkLimits(limits);\n", "", "A misspelled limit is ignored."],
  ]),
  ...law("ucx/RawStream.receive", [
    ["UCP_STREAM_RECV_FLAG.WAITALL", "0", "A receive ends before its memory is full."],
    ["    operation.clearRequest();\n", "", "A receive ends with the status of another operation that has failed."],
  ]),
  ...law("ucx/plainTags", [
    [
      "    if (exact !== undefined) throw noHash();\n    if (tag",
      "    if (tag",
      "A tag that must be hashed is not hashed.",
    ],
    [
      "    if (exact !== undefined) throw noHash();\n    checkMatch",
      "    checkMatch",
      "A receive waits for a tag that no sender hashes.",
    ],
  ]),
  ...law("ucx/ucxxTag", [
    ["tag % hashModulus", "tag", "UCXX finds no message with a large tag."],
  ]),
  ...law("ucx/readGreeting", [
    [
      "view.getBigUint64(8, littleEndian) !== hash64(`(${messageTag},)`)",
      "false",
      "Any peer that sends 16 bytes is mistaken for UCXX.",
    ],
  ]),
  ...law("ucx/HashedTags", [
    ["this.#known.clear()", "{}", "A program that counts its messages in the tag takes more and more memory."],
  ]),
  ...law("ucx/UcxxTags", [
    ["mask !== everyBit && !exact", "false", "Bits of a hash are mistaken for bits of a tag."],
    [
      "    this.#send = new HashedTags(theirs);\n    this.#receive = new HashedTags(ours);\n",
      "    this.#send = new HashedTags(ours);\n    this.#receive = new HashedTags(theirs);\n",
      "Messages have the number of the sender's side, which UCXX does not look for.",
    ],
  ]),
  ...law("ucx/addressTags", [
    [
      "    if (!exact) throw notGreeted();\n    return",
      "    return",
      "A tag is sent unhashed to an endpoint that was created from an address.",
    ],
    [
      "    if (!exact) throw notGreeted();\n    checkMatch",
      "    checkMatch",
      "A tag of an endpoint that was created from an address is awaited unhashed.",
    ],
  ]),
  ...law("ucx/ucxxMessages.read", [
    ["    if (bytes.length < start) return null;\n", "", "A truncated header throws inside UCX."],
    ["length === BigInt(bytes.length - start) ?", "true ?", "Other bytes are mistaken for a program's header."],
    ["? callbackBytes : 0", "? 0 : 0", "A message for a callback of the receiver is lost."],
  ]),
  ...law("ucx/ucxxProtocol.greet", [
    ['side === "listener"', "false", "A listener that must speak first is silent."],
    ['side === "client"', "false", "A client never identifies itself."],
  ]),
  ...law("ucx/ucxxProtocol.checkExtra", [
    [
      "throw new TypeError(",
      "void (",
      "UCXX drops an array that was sent, and reads a stream's control bytes as data.",
    ],
  ]),
  ...law("ucx/checkListenerAddress", [
    [
      "  if (!(to instanceof UcxListener)) checkNames(to);\n",
      "",
      "A misspelled secret is none; the error does not name a misspelled host or port.",
    ],
    [
      '  if (typeof to !== "object" || to === null) {',
      "  if (to === null) {",
      'Connecting to a text reports a missing "secret", which was never mentioned.',
    ],
  ]),
  ...law("ucx/Connections.connect", [
    ["timeout: timeout ?? greetingLimit", "timeout: timeout ?? 9000", "A client waits for a greeting for ever."],
    ["      attempt.isGreeting = attempt.greets;\n", "", "The error doubts a listener that has accepted."],
    [
      "timeout: timeout ?? greetingLimit",
      "timeout: timeout ?? (greets ? greetingLimit : Infinity)",
      "A client waits for ever for a port that accepts and never answers.",
    ],
    [
      "    if (unchecked !== undefined) {",
      "    if (false) {",
      "An option that only applies to an address is ignored for a host.",
    ],
  ]),
  ...law("ucx/Connections.listen", [
    [
      '("ucp_stream_recv_nbx", { timeout })',
      '("ucp_stream_recv_nbx", { timeout: timeout + 2000 })',
      "A client that never greets is never rejected.",
    ],
    [
      "        if (hasToStand) await this.#stand(endpoint, hasToGreet, limit.signal);\n",
      "",
      "A large message that is sent immediately ends the process, with UCX 1.13, where errors are not handled.",
    ],
  ]),
  ...law("ucx/explainFailure", [
    [
      "return said(`UCX cannot use",
      "return error; said(`",
      "The error does not say that another version has answered.",
    ],
    [
      'if (secret !== "none") return error; // it says why',
      "return error;",
      "The error does not say that a listener may be full, or the versions differ.",
    ],
    [
      '&& error.code === "ECONNREFUSED"',
      "&& false",
      "With a secret, a different error says that there is no listener.",
    ],
    [
      "return said(\n        `Nobody listens",
      "return error; said(\n        `",
      "A program that was never there is reported as ended.",
    ],
    ["does not have {", "lacks {", "The error does not say that the two sides differ in errors."],
    ["Does it have { errors", "Is it { errors", "The error does not say that the two sides may differ in errors."],
    ["return said(`${at} has", "return error; said(`${at} has", "The error does not say who has not answered."],
    ["UCX? ${sameErrors} ${way}`);", "UCX? ${way}`);", "The error of a timeout blames the versions alone."],
    ["protocol? ${sameErrors}", "protocol?", "The error blames the protocol where the two sides differ in errors."],
    ["reach it. ${sameErrors}", "reach it.", "The error blames the versions where the two sides differ in errors."],
    [
      'if (secret === "proved") {',
      "if (false) {",
      "The error does not say which versions cannot reach each other.",
    ],
    [
      "    case ucs_status_t.UCS_ERR_ENDPOINT_TIMEOUT:\n",
      "    case ucs_status_t.UCS_ERR_ENDPOINT_TIMEOUT:\n      return error;\n",
      "The error does not say that a secret is required.",
    ],
    ["return said(`Nobody at", "return error; said(`", "The error does not say that no secret is required."],
  ]),
  ...law("ucx/PendingConnections.greet", [
    [
      "    this.#greeting.add(endpoint);\n",
      "",
      "Any number of connections that have not greeted may wait, and a close leaves them open.",
    ],
    [
      "if (this.#greeting.delete(endpoint)) this.#queue.push(endpoint);",
      "this.#queue.push(endpoint);",
      "A connection that was dropped while it greeted keeps a place in the queue for ever.",
    ],
  ]),
  ...law("ucx/PendingConnections.drop", [
    ["    void endpoint.close({ force: true });\n", "", "A rejected client is never notified, and stays connected."],
    ["    if (!this.#isOver) this.#refused++;\n", "", "A rejected client is not counted."],
    [
      "    this.#open.delete(endpoint); // at once, to make room for another\n",
      "",
      "A dropped connection keeps its place for a while.",
    ],
  ]),
  ...law("ucx/PendingConnections.makeRoom", [
    [
      "    if (!this.hasRoom && oldest !== undefined) this.#drop(oldest);\n",
      "",
      "A silent client keeps all others out.",
    ],
  ]),
  ...law("ucx/PendingConnections.hasRoom", [
    ["this.#queue.size + this.#greeting.size < backlog && ", "", "Any number of connections may wait."],
    [" && this.#open.size < connections", "", "Any number of connections may be open."],
  ]),
  ...law("ucx/PendingConnections.end", [
    ["    this.#queue.end();\n", "", "A wait for a connection never ends."],
  ]),
  ...law("ucx/checkListenOptions", [
    ["messages = worker.limits.messages", "messages = Infinity", "A listener ignores the limits of its worker."],
    ["  if (host === null) {", "  if (false) {", "A name is accepted as an address."],
  ]),
  ...law("ucx/checkLimitNumbers", [
    ['typeof value === "number" && value >= 1', "true", "Any value is accepted as a limit."],
  ]),
  ...law("ucx/UcxWorker.accept", [
    ["    this.#dropped++;\n", "", "Dropped messages are not counted."],
    [
      "if (excessOf(this.#limits, waiting, message.length) === null) ",
      "if (true) ",
      "Messages of unknown peers fill the memory.",
    ],
  ]),
  ...law("ucx/UcxActiveMessage.adoptData", [
    [
      'if (place === "sender") return false;',
      'if (place === "sender") return true;',
      "Data that is not here is reported as kept.",
    ],
    [
      '    this.#data = { place: "none", data: 0n, bytes: copyOf(data, this.length) };\n',
      "",
      "Kept data is read after UCX has taken it back.",
    ],
  ]),
  ...law("ucx/EndpointLifecycle.announceClose", [
    [
      'byteStream.notify("closed") || !isByHost) return null;',
      'byteStream.notify("closed") || true) return null;',
      "Messages sent by shared memory are dropped by the end that overtakes them.",
    ],
    ["    if (own.failure !== undefined ||", "    if (true ||", "An orderly end is mistaken for a lost connection."],
  ]),
  ...law("ucx/turnIfDue", [
    [
      "performance.now() - turned < turnEvery",
      "true",
      "A loop over messages that are here keeps the event loop from its timers.",
    ],
  ]),
  ...law("ucx/MessageQueue.takeFirst", [
    ["this.#here.slice(this.#first)", "[]", "Messages are lost once a thousand were taken."],
  ]),
  ...law("ucx/MessageQueue.iterate", [
    ["          if (turn !== null) await turn;", "", "A peer that floods keeps the event loop from its timers."],
    [
      "        returned.abort();\n        return Promise",
      "        return Promise",
      "A loop that has ended consumes a message.",
    ],
    [
      "        if (this.#failure !== null) throw this.#failure;\n",
      "",
      "A lost connection is mistaken for an orderly end.",
    ],
  ]),
  ...law("ucx/checkRemoteMemory", [
    ["  if (!hasRemoteMemory) throw", "  if (false) throw", "UCX is asked for a feature that was disabled."],
  ]),
  ...law("ucx/explain", [
    [
      "  return explainOwn(view, way);",
      "  return explainOwn(new Uint8Array(view.nbytes), way);",
      "Another library's array is reported as contiguous.",
    ],
    [
      "const given = isPacked && !isRefused ? packed : buffer;",
      "const given = buffer;",
      "Elements that are not contiguous are said to travel as the memory that they are copied from.",
    ],
    [
      "isStaged ? UCS_MEMORY_TYPE.CUDA : typeOf(given, cuda)",
      "typeOf(given, cuda)",
      "Staged memory is said to be sent in pieces.",
    ],
  ]),
  ...law("ucx/checkTransportSettings", [
    [
      "if (all.some((known) => known.startsWith(`${family}_`)) && !isAmong(all, name)) throw",
      "if (false) throw",
      "A misspelled setting is ignored.",
    ],
    ["isBefore(version, 17) && ignored", "ignored", "Settings that newer versions take are refused."],
    ["isBefore(version, 17) && ignored", "false && ignored", "A setting has no effect: IPv6 then ends the process."],
  ]),
  ...law("ucx/checkVersions", [
    [
      "  if (!fail(here, there) && !fail(there, here)) return;\n",
      "  if (here || there) return;\n",
      "UCX ends the process because of another version.",
    ],
    ["[[14, 21], [19, 22]]", "[[14, 21]]", "Messages to a version that does not understand them never arrive."],
    ["[[14, 21], [19, 22]]", "[[19, 22]]", "UCX 1.13 ends its process over what 1.21 sends."],
  ]),
  ...law("ucx/EndpointLifecycle.exceed", [
    [
      'if (this.#context.isPaired) byteStream.notify("closed"); // which',
      "// which",
      "A client whose message is too long for a listener with a secret waits for ever.",
    ],
    ["    void this.#leave(UCP_EP_CLOSE_FLAG.FORCE);\n", "", "A peer that sends too much continues to send."],
  ]),
  ...law("ucx/Connections.connectToAddress", [
    [
      "    if (isOurs && !unchecked && !isPaired) checkVersions(this.#context.version, versionOf(to));\n",
      "",
      "UCX 1.13 ends the process when it connects to the address of a worker of 1.22.",
    ],
  ]),
  ...law("ucx/Connections.connectWithSecret", [
    [
      '() => endpoint.greet("secret", "client", signal)',
      "() => Promise.resolve()",
      "It is not known whether the other side was reached.",
    ],
  ]),
  ...law("ucx/readControl", [
    ["  if (bytes.length !== controlBytes) return null;\n", "", "A message that is too short is read anyway."],
    [
      "  if (kind === undefined) return null;\n",
      "  if (kind === undefined) throw 0;\n",
      "A message of an unknown kind ends the process.",
    ],
  ]),
  ...law("ucx/StreamControlDelivery.closed", [
    [
      "    remember(this.#gone, endpoint, peer);\n",
      "",
      "A new endpoint cannot be written to: the other side of an earlier one had cancelled its stream.",
    ],
  ]),
  ...law("ucx/remember", [
    ["  if (oldest !== undefined) entries.delete(oldest);\n", "", "Peers that are gone are remembered for ever."],
    ["  entries.delete(endpoint);\n", "", "What was heard of lately is forgotten first."],
  ]),
  ...law("ucx/StreamControlDelivery.deliver", [
    ["this.#gone.get(from) === sender", "this.#gone.has(from)", "What another peer has cancelled is ignored."],
    [
      "    remember(this.#early, from, { sender, kinds: kinds.add(kind) });\n",
      "",
      "A peer that connects late waits for a reader that has cancelled.",
    ],
    [
      "early?.sender === sender ? early.kinds",
      "early !== undefined ? early.kinds",
      "A message of one peer counts for another one.",
    ],
    [
      '    if (kind === "closed") this.#early.delete(from);\n',
      "",
      "A message of a closed endpoint counts for the next one.",
    ],
  ]),
  ...law("ucx/StreamControlDelivery.made", [
    [
      "this.#context.deliver({ kind, taken: 0 }, endpoint)",
      "kind",
      "Messages that were sent early are never delivered.",
    ],
    [" || early.sender !== peer", "", "A message of a peer that is gone ends the stream to another one."],
  ]),
  ...law("ucx/ByteReader.nextChunk", [
    ["if (length === abortMark)", "if (length < 0n)", "An abort is mistaken for a length."],
    ["if (length > BigInt(streamWindow))", "if (length < 0n)", "A peer can make us allocate any amount of memory."],
  ]),
  ...law("ucx/ByteReader.take", [
    ["< streamWindow / 2", "< 2 * streamWindow", "A writer waits for ever for a reader that has taken everything."],
  ]),
  ...law("ucx/ByteStream.constructor", [
    ["=> this.end(error));", "=> void error);", "A stream waits for ever for what the other side was not told."],
  ]),
  ...law("ucx/ByteReader.stop", [
    ["    this.#over.abort();\n", "", "A program does not end after it has cancelled a stream that it was reading."],
  ]),
  ...law("ucx/ByteWriter.moreRoom", [
    ["if (this.#failure !== null)", "if (false)", "A write in flight waits for ever when its reader cancels."],
  ]),
  ...law("ucx/ByteWriter.write", [
    ["if (room === 0)", "if (room < 0)", "A writer that is a window ahead loops for ever."],
    ["bytes.subarray(at, at + room)", "bytes.subarray(at)", "A long chunk fills the other side's memory."],
  ]),
  ...law("ucx/ByteWriter.onControl", [
    ["this.#delivered.resolve();\n    else if", "void 0;\n    else if", "A close waits for ever."],
    ["!(taken >= this.#taken && taken <= this.#sent)", "false", "An invalid count moves the window."],
  ]),
  ...law("ucx/EndpointLifecycle.finish", [
    [
      "    progress.poll();",
      "   ",
      "A writer's close waits for a reader that has closed.",
    ],
  ]),
  ...law("ucx/ByteStream.onControl", [
    [
      "this.#over !== undefined && this.#reader === undefined",
      "false",
      "A write to an endpoint that is being closed never ends.",
    ],
  ]),
  ...law("ucx/ByteStream.closing", [
    ['else if (this.#hasWriter) this.#notify({ kind: "cancelled", taken: 0 });', "", "A writer is not notified."],
  ]),
  ...law("ucx/atNextTurn", [
    [
      "    serving = serveAll(turnWithSockets, hasNews ?? null)",
      "    void serveAll(turnWithSockets, hasNews ?? null)",
      "Turns continue while sockets are due, and the sockets are not served.",
    ],
    ["areDue(performance.now())", "false", "A server in the same thread rarely answers."],
    ["turnToEnd !== null &&", "false &&", "Messages keep a process of Bun's alive after an uncaught error."],
  ]),
  ...law("ucx/serveAll", [
    [" && hasNews?.()", "", "Each time that sockets are served takes four turns from messages."],
    ["--left > 0 && hasNews?.()", "false", "An answer to a request waits for the next time that sockets are served."],
    ["--left > 0 && ", "", "Events of another thread stop messages."],
  ]),
  ...law("ucx/areDue", [
    [
      "return since >= serveUnknownEvery",
      "return since >= 1000",
      "Where readiness is unknown, sockets are rarely served.",
    ],
    ["if (since >= serveAtLeastEvery) return true;", "", "Events that the system does not report are never served."],
    ["return hasNews();", "return false;", "A server in the same thread answers late."],
    ["return hasNews();", "return true;", "Sockets without any events take time from messages."],
  ]),
  ...law("ucx/checkTag", [
    [
      'typeof value !== "bigint"',
      "false",
      "An operation that FFI refuses is never returned to the pool, and close waits for ever.",
    ],
  ]),
  ...law("ucx/StartQueue.add", [
    [
      "if (ready === null && this.#waiting.length === 0) return begin();",
      "if (ready === null) return begin();",
      "A message overtakes one that waits for its memory.",
    ],
    [
      "if (ready === null && this.#waiting.length === 0) return begin();\n",
      "",
      "An operation that waits for nothing begins after its call has returned, or never.",
    ],
  ]),
  ...law("ucx/StartQueue.drop", [
    [
      "    start.drop(reason);\n    this.#advance();",
      "    start.drop(reason);",
      "An operation that only waits for its turn waits for ever when the one before it ends.",
    ],
    [
      "    if (at < 0) return;",
      "    if (at < 0) at;",
      "An operation that has begun is ended a second time by its signal.",
    ],
  ]),
  ...law("ucx/StartQueue.advance", [
    [
      "while (this.#waiting[0]?.isReady)",
      "if (this.#waiting[0]?.isReady)",
      "Only one of the operations that are ready begins.",
    ],
  ]),
  ...law("ucx/takeMemory", [
    [
      "  if (memoryType !== UCS_MEMORY_TYPE.HOST && buffer.device !== null) useGpu(buffer.device);\n",
      "",
      "UCX makes progress without a context, and crashes before 1.19.",
    ],
    [
      "  memory.memoryType = memoryType;\n  return buffer;\n",
      "  memory.memoryType = memoryType;\n  return null as unknown as MemoryBuffer;\n",
      "UCX gets memory before it is ready.",
    ],
    [
      "  memory.pin = pin;\n",
      "  pin[Symbol.dispose]();\n",
      "Memory of a queued message is freed when its buffer is closed.",
    ],
  ]),
  ...law("ucx/takeForeign", [
    ["        view.close();\n      },", "      },", "Another library's array is kept for ever."],
  ]),
  ...law("ucx/openUcp", [
    ["  if (library.path !== opened) {", "  if (false) {", "Two libucps share one libucs."],
  ]),
  ...law("ucx/writeSocketAddress", [
    ["(port & 255) << 8 | port >> 8", "port", "The bytes of a port are swapped."],
    ["at.sin6_scope_id = zoneOf(host);", "", "An address of one link is used on another."],
    ["index === 0 || index >= 2 ** 32", "index === 0", "An interface's number is another's, by 2 to the 32nd."],
  ]),
  ...law("ucx/checkFamily", [
    ["isIP(address) === family) return;", "isIP(address) > 0) return;", "UCX writes past the end of its memory."],
  ]),
  ...law("ucx/numericHost", [
    ['  if (host === "localhost") return localhost[family];\n', "", "The name localhost is looked up."],
  ]),
  ...law("ucx/UcxListener.close", [
    ["    if (this.#isClosed) return;\n", "", "A listener that is closed again replaces a descriptor of the program."],
    [
      "    try {\n      this.#acceptor.close();\n    } finally {",
      "    {\n      this.#acceptor.close();\n",
      "Where there is no memory to stop listening, a wait for a connection never ends.",
    ],
  ]),
  ...law("ucx/cannotListen", [
    ["ways[code]?.(at)", "undefined", "The error for a port in use does not suggest 0."],
  ]),
  ...law("ucx/whyNotBound", [
    [
      "-Math.min(0, attempt(",
      "0 * Math.min(0, attempt(",
      "An address of another machine causes an input/output error.",
    ],
  ]),
  ...law("ucx/listenNatively", [
    [
      "  failed.defer(() => listener.close());",
      "",
      "Peers connect to a listener that the program has never got.",
    ],
    ["queueMicrotask(() => this.#accept())", "void 0", "No connection is accepted."],
    ["isBusy ? busy : undefined", "undefined", "The error for a busy port does not say how to reuse it."],
    ["code === 0 ? cause", "code >= 0 ? cause", "Each listener has its own error for a port in use."],
    ["context?.refused();", "", "Rejected connections are not counted."],
    ["this.socket?.stop();", "", "A closed listener keeps its port."],
    ["    this.#context = null;\n", "", "A worker that was dropped is kept by a listener that was closed."],
  ]),
  ...law("ucx/Receiver.find", [
    ["    this.#progress.poll();\n", "", "A message that has arrived is not noticed."],
    ["remove ? 1 : 0", "0", "A message that was taken is also received by another caller."],
    ["(remove ? kept.take(tag, mask) : kept.find(tag, mask))", "kept.find(tag, mask)", "The same, with a limit."],
  ]),
  ...law("ucx/Receiver.claim", [
    [
      "    this.#resources.taken.delete(found.handle); // it is received\n",
      "",
      "A message that was received is received again when the worker closes.",
    ],
  ]),
  ...law("ucx/UnexpectedMessages.find", [
    ["((message.tag ^ tag) & mask) === 0n", "true", "Tags and masks are ignored."],
    [
      "this.#waiting.values().find(",
      "[...this.#waiting].findLast(",
      "A receive by a mask does not get the earliest message.",
    ],
    [
      "this.#byTag.get(tag)?.values().next().value",
      "[...this.#byTag.get(tag) ?? []].at(-1)",
      "A receive does not get the earliest message.",
    ],
    ["    this.#waiting.delete(found);\n", "", "A message is received twice."],
    ["    same?.delete(found);\n", "", "A message is received twice by its tag."],
  ]),
  ...law("ucx/UnexpectedMessages.collect", [
    ["    if (this.#isCollecting) return; // dropping", "    // dropping", "Many messages at once overflow the stack."],
    ["        taken.add(handle);\n", "", "Messages that wait when the worker closes are not discarded."],
    ["        this.#dropped++;\n", "", "Dropped messages are not counted."],
    ["        this.#resources.discard(this.#progress, handle);\n", "", "Dropped messages keep their memory."],
    ["    this.#isCollecting = false;\n", "", "Messages are taken from UCX once."],
  ]),
  ...law("ucx/WorkerResources.discard", [
    [
      "    if (receive.isDone) this.operations.returnToPool(receive);\n",
      "    if (receive.isDone);\n",
      "Each dropped message costs an operation.",
    ],
    ["    else progress.abandon(receive);\n", "", "The same, of large messages."],
  ]),
  ...law("ucx/Registration.close", [
    ["if (!regions.delete(this)) return;", "regions.delete(this);", "Memory is unregistered twice."],
    ["    refused.add(this);\n", "", "A context is freed with memory that UCX has refused to unregister."],
    [
      'checkStatus("ucp_mem_unmap", ucp.memory.ucp_mem_unmap(this.#context, this.#handle))',
      "ucp.memory.ucp_mem_unmap(this.#context, this.#handle)",
      "Peers write to memory that was freed.",
    ],
  ]),
  ...law("ucx/UcxRemoteKey.retainRange", [
    ["    this.#users++;\n", "", "UCX uses a freed key."],
    ["endpoint !== this.#endpoint", "false", "A key that was unpacked for another connection is used."],
    [" || offset + bytes > this.size", "", "Bytes past the end of the memory are overwritten."],
    ["this.address + BigInt(offset)", "this.address", "Everything is written to the beginning."],
  ]),
  ...law("ucx/handleMessages", [
    ["reference.deref()?.takeIncoming", "taker.takeIncoming", "A worker that was dropped is never collected."],
    [
      "? view.getBigUint64(field.reply_ep, littleEndian) : 0n",
      "? 0n : 0n",
      "Messages are delivered to the worker, not to its endpoint.",
    ],
  ]),
  ...law("ucx/ActiveMessages.take", [
    ['where === "call" || (where', "(where", "Data that is only valid during the call is read afterwards."],
  ]),
  ...law("ucx/timeLimit", [
    ["clear = () => clearTimeout(timer);", "", "A timer that is not awaited keeps the process alive."],
  ]),
  ...law("ucx/Operation.prepare", [
    ["    if (memoryType !== this.#writtenType) {", "    if (false) {", "GPU memory is mistaken for host memory."],
    ["    if (kind !== this.#kind) {", "    if (this.#kind === null) {", "A receive reports its result like a send."],
  ]),
  ...law("ucx/Operation.clearRequest", [
    ["this.#requestMemory.fill(0);", "", "A receive ends with the status of another operation that has failed."],
  ]),
  ...law("ucx/TakenMemory.address", [
    ["ArrayBuffer.isView(own) ? BigInt(ownOffset(own)) : 0n", "0n", "A part of an array is mistaken for its start."],
  ]),
  ...law("ucx/TakenMemory.isTransferred", [
    ["return this.lent.byteLength === 0;", "return false;", "Received data is read from the wrong memory."],
    [
      "this.pin?.pieces?.some(({ isTransferred }) => isTransferred) === true",
      "false",
      "A list is sent from memory that now belongs to another thread.",
    ],
  ]),
  ...law("ucx/TakenMemory.watch", [
    [
      "if (this.lent !== null) this.#watched ??= buffers.use(this.lent);",
      "if (this.own !== null && this.lent !== null) this.#watched ??= buffers.use(this.lent);",
      "A view is received into although its memory was transferred while the worker slept.",
    ],
    [
      "else this.pin?.pieces?.forEach((piece) => piece.watch(buffers));",
      "",
      "Nobody notices that a piece of a message was transferred while the worker slept.",
    ],
  ]),
  ...law("ucx/BuffersInUse.use", [
    ["      known.users++;\n", "", "Memory is forgotten as soon as the first of its operations has ended."],
    ["buffer.byteLength === 0 ? gone : ", "", "A transfer at an unexpected moment ends the process."],
  ]),
  ...law("ucx/BuffersInUse.free", [
    [" && used.at >= 0", "", "Memory of an operation in flight is forgotten in place of other memory."],
  ]),
  ...law("ucx/BuffersInUse.remove", [
    ["    this.#known.delete(used.buffer);\n", "", "A receive into the same memory is not watched."],
    ["    last.at = at;\n", "", "Memory of an operation in flight is forgotten in place of other memory."],
  ]),
  ...law("ucx/lastGone", [
    ["i >= 0", "i > 0", "UCX writes to memory that now belongs to another thread."],
  ]),
  ...law("ucx/TakenMemory.release", [
    ["    watched?.among.free(watched);\n", "", "Memory of a receive is kept, and asked at each wakeup, for ever."],
    ["    this.#own = null;\n", "", "Memory of a receive is kept as long as the worker."],
    ["    this.lent = null;\n", "", "A message fails because an earlier one's memory was transferred."],
  ]),
  ...law("ucx/takeLent", [
    ["  memory.pin = lender.pinned();\n", "", "UCX writes to memory of a buffer that was closed."],
    ["BigInt(ownOffset(what))", "0n", "A part of a buffer's bytes is mistaken for their start."],
    ["  noteOwner(memory, lender);\n", "", "A buffer's bytes are sent from memory of another thread."],
  ]),
  ...law("ucx/noteOwner", [
    ["memory.bytes > 0 && ", "", "An empty view cannot be sent."],
    [" && lenderOfBytes(owner) === null", "", "A message fails if the buffer whose bytes it has is closed."],
    ["memory.lent = owner;", "", "A view is sent from memory of another thread."],
  ]),
  ...law("ucx/takeBytes", [
    ["if (lender === null) memory.useOwn", "memory.useOwn", "UCX writes to memory of a buffer that was closed."],
    [
      "  if (buffer.resizable) throw resizableBufferError();\n",
      "",
      "UCX writes to memory that is no longer mapped.",
    ],
    [
      "if (buffer.byteLength === 0 && buffer.detached) {",
      "if (false) {",
      "Nothing is sent instead of the transferred memory.",
    ],
  ]),
  ...law("ucx/isUnambiguous", [
    ["low > 0n ||", "low >= 0n ||", "A request whose address ends in zeros is mistaken for one that is over."],
    [" || low < BigInt(ucs_status_t.UCS_ERR_LAST)", " || low < 0n", "An address is mistaken for an error."],
  ]),
  ...law("ucx/OperationPool.note", [
    ["    this.#begun.push(operation);\n", "", "UCX writes to memory that now belongs to another thread."],
  ]),
  ...law("ucx/watchBegun", [
    ["    one.isNoted = false;\n", "", "Only the first operation of several in the same native memory is watched."],
    ["if (one.isBegun && !one.isDone) one", "one", "Memory of an operation that does not begin is kept."],
  ]),
  ...law("ucx/OperationPool.transferred", [
    [
      "    if (!this.#buffers.takeTransferred()) return [];\n",
      "    this.#buffers.takeTransferred();\n",
      "A wakeup takes the longer the more operations are pending.",
    ],
    [" && one.isTransferred", "", "A worker that wakes up ends every operation."],
  ]),
  ...law("ucx/Completions.abandonTransferred", [
    [
      "this.cancel(operation, transferred());",
      "void operation;",
      "UCX writes to memory that now belongs to another thread.",
    ],
  ]),
  ...law("ucx/errorOf", [
    [
      "operation.isTransferred ? transferred() : operation.failure",
      "operation.failure",
      "Data that has arrived is read from the wrong memory.",
    ],
  ]),
  ...law("ucx/Receiver.begin", [
    [
      'operation.call = "ucp_tag_msg_recv_nbx";',
      "",
      "The error of a message that was taken names another function.",
    ],
    [
      "      if (mask === everyBit) operation.onlyTag = tag;\n",
      "",
      "Reading a known tag creates a bigint for each message.",
    ],
    [
      "if (mask === everyBit) operation",
      "operation",
      "A sender's tag is reported as the tag that the receiver requested.",
    ],
  ]),
  ...law("ucx/OperationPool.take", [
    ["    operation.isAbandoned = false;\n", "", "An operation is returned to the pool while it is still awaited."],
  ]),
  ...law("ucx/OperationPool.returnToPool", [
    ["    operation.failure = null;", "", "A worker is never collected once a copy to received memory has failed."],
    ["    operation.foreign = 0n;\n", "", "A UCX request is freed twice."],
  ]),
  ...law("ucx/OperationPool.next", [
    ["    this.#read = this.#read + 1 | 0;\n", "", "The same operation ends again and again."],
  ]),
  ...law("ucx/OperationPool.grow", [
    [
      "this.#widen(this.#all.length + operationsPerBlock); //",
      "if (this.#free.length === 0 && this.#all.length > 0) this.#widen(this.#all.length); //",
      "Operations complete for which the ring has no room, and their numbers are written anywhere.",
    ],
  ]),
  ...law("ucx/OperationPool.widen", [
    ["(n & count - 1) * 8, number", "(n & this.#mask) * 8, number", "A completion is lost when the ring grows."],
    ["    this.#mask = count - 1;\n", "", "The ring is read as if it had not grown."],
  ]),
  ...law("ucx/Completions.cancel", [
    [
      "if (operation.isWaitedFor) {",
      "if (false) {",
      "An operation is returned to the pool twice, and then shared by two users.",
    ],
    [" || operation.isAbandoned", "", "UCX is asked again and again to cancel an operation that it cannot cancel."],
    [
      "    this.drain();",
      "   ",
      "UCX still uses memory when its owner is notified that nothing was received.",
    ],
    [
      "    this.queueTurn(); // the process",
      "    // the process",
      "A cancelled receive keeps the process alive.",
    ],
  ]),
  ...law("ucx/Completions.cancelAllOf", [
    ["if (operation.owner === owner) ", "", "A lost endpoint cancels the operations of others."],
  ]),
  ...law("ucx/Progress.stop", [
    ["    this.#resources.watch?.close();\n", "", "A thread waits for a closed descriptor."],
  ]),
  ...law("ucx/Completions.end", [
    ["    owner?.ended(operation);\n", "", "A close waits for ever for sends that have ended."],
    ["if (operation.foreign !== 0n) ", "if (false) ", "UCX's requests are never freed."],
  ]),
  ...law("ucx/Progress.wake", [
    [
      "isSoon ? patienceAtFirst : 0",
      "patienceAtFirst",
      "An idle worker polls whenever UCX has checked its peers.",
    ],
  ]),
  ...law("ucx/Progress.turn", [
    ["now - this.#lastNews < this.#patience", "true", "An idle worker occupies a processor."],
    [
      "(this.pending > this.abandoned && this.#mode",
      "(this.#mode",
      "Workers fall asleep between two messages, and the event loop has no time for timers.",
    ],
    [
      "      this.#resources.watch?.keepAlive(false);",
      "     ",
      "A program does not end after a receive that was given up, if it still has the worker.",
    ],
  ]),
  ...law("ucx/closeAtUnload", [
    ["  ffiPort().atUnload(", "  void (", "A program that is loaded again finds its port taken."],
  ]),
  ...law("ucx/Progress.sleep", [
    [
      "    const isArmed = status === ucs_status_t.UCS_OK;",
      "    if (status !== ucs_status_t.UCS_OK) throw new TypeError();\n    const isArmed = true;",
      "An error that reaches nobody ends a program that could have gone on.",
    ],
    [
      "      alive.abandonTransferred(); // as after a sleep\n",
      "",
      "A worker that finds no descriptor to sleep with receives into memory that was transferred.",
    ],
    [
      "return this.#turnLater();",
      "return;",
      "A worker that finds no descriptor to sleep with never looks for messages again.",
    ],
    [
      "    keepFromChildren(); // from now on nothing happens\n",
      "",
      "A child holds connections that were accepted: nobody notices that this process has died.",
    ],
    [
      "    if (status === ucs_status_t.UCS_ERR_BUSY) return this.queueTurn();\n" +
      "    const isArmed = status === ucs_status_t.UCS_OK; //",
      "    const isArmed = true; //",
      "A worker sleeps although an event has just arrived.",
    ],
    [
      "watch.keepAlive(this.#isAwaited)",
      "watch.keepAlive(true)",
      "An idle worker keeps the process alive.",
    ],
    [
      "if (this.#isAwaited || this.#workerRetains > 0) awaited.add(this);",
      "if (false) void 0;",
      "A wait for a worker's message never ends.",
    ],
    [
      "this.#isAwaited || this.#workerRetains > 0) awaited",
      "this.#isAwaited) awaited",
      "A wait for the end of an endpoint never completes.",
    ],
    ["else awaited.delete(this);", "else awaited.add(this);", "A worker that has slept is never collected."],
    ["progress.deref()?.wake()", "this.wake()", "A sleeping worker is never collected."],
  ]),
  ...law("ucx/Progress.retainWorker", [
    [
      "    this.#workerRetains++;\n    this.queueTurn();",
      "    this.#workerRetains++;",
      "A wait for the end of a sleeping endpoint never completes.",
    ],
    ["if (isRetained) this.#workerRetains--;", "", "A worker is kept alive after a wait for an end."],
  ]),
  ...law("ucx/EndpointLifecycle.closed", [
    [
      "    this.#releaseWorker ??= this.#context.progress.retainWorker();\n",
      "",
      "A worker is collected while the end of its endpoint is awaited.",
    ],
  ]),
  ...law("ucx/EndpointLifecycle.settleClosed", [
    ["    this.#releaseWorker?.();\n", "", "A worker is kept alive for an end that has arrived since."],
    ["    this.#releaseWorker = () => {};\n", "", "A worker is kept alive for an end that has already arrived."],
  ]),
  ...law("ucx/ByteStream.streams", [
    [
      "this.#notify, this.#retainWorker());\n      if (this.#over !== undefined) this.#reader",
      "this.#notify, () => {});\n      if (this.#over !== undefined) this.#reader",
      "A wait for the end of a stream that is read never completes.",
    ],
    [
      "this.#waitsFor, this.#retainWorker()",
      "this.#waitsFor, () => {}",
      "A wait for the end of a stream that is written never completes.",
    ],
  ]),
  ...law("ucx/Completions.abandon", [
    ["    this.abandoned++;\n", "", "A worker is kept alive for operations that are no longer awaited."],
  ]),
  ...law("ucx/closeIfDropped", [
    ["  finalizer.register(object, state);\n", "", "A dropped worker keeps 15 descriptors for ever."],
  ]),
  ...law("ucx/closeDropped", [
    ["    state.close();\n", "", "A dropped worker is only reported."],
    ["if (wantsLeakReports()) {", "if (true) {", "Every program gets reports of what it has dropped."],
  ]),
  ...law("ucx/placeOfCall", [
    [
      "_here, _ours, ...callers",
      "_here, ...callers",
      "A report names this library, and not the code that dropped an object.",
    ],
  ]),
  ...law("ucx/CountingOwner.ended", [
    [
      "    if (--this.count === 0) this.forget();\n",
      "    this.count--;\n",
      "A close waits for ever for operations that have ended.",
    ],
  ]),
  ...law("ucx/ContextResources.close", [
    ["    if (this.#isClosed) return;\n", "", "A context is freed twice."],
    ["      reference.deref()?.abort();\n", "", "A wait for a worker whose context is closed never ends."],
    [
      "      if (!resources.closed) closeDropped(resources);",
      "      void closeDropped;",
      "A context is freed before one of its workers.",
    ],
    ["if (!this.#mustStay) ", "", "A context is freed while a worker that UCX cannot release uses it."],
    ["    throwFirst(failures);\n", "", "Nobody is told that there was no memory to close a worker."],
  ]),
  ...law("ucx/WorkerResources.closeEndpoint", [
    ["    this.endpoints.delete(handle);\n", "", "A closed endpoint is released twice."],
  ]),
  ...law("ucx/WorkerResources.releaseAll", [
    [
      "this.#abortEndpoint(progress, endpoint)",
      "void endpoint",
      "The endpoints of a worker that was dropped are never closed.",
    ],
    [
      "this.discard(progress, message)",
      "void message",
      "A message that was taken and dropped is never freed.",
    ],
    [
      "this.ucp.activeMessage.ucp_am_data_release(this.handle, data)",
      "void data",
      "Data of a message that was dropped are never freed.",
    ],
    ["      ...this.watched.map((one) => () => one.close()),\n", "", "A descriptor for each worker stays open."],
    ["      () => this.keys.close(),\n", "", "UCX frees a key that was freed with its worker."],
    [
      "    if (!isStuck) failures.push(...this.#destroy());\n    if (isStuck || this.refused.size > 0) stuck.add(this);\n",
      "    failures.push(...this.#destroy());\n",
      "A message arrives in freed memory.",
    ],
    ["    throwFirst(failures);\n", "", "Nobody is told of memory that UCX has refused to unregister."],
  ]),
  ...law("ucx/MessageQueue.putBack", [
    [
      "this.#here[--this.#first] = item",
      "this.#here.push(item)",
      "A message that was put back comes after later ones.",
    ],
    [
      "else this.#here.unshift(item)",
      "else this.#here.push(item)",
      "A message that was put back comes after later ones.",
    ],
    [
      "    if (this.#isOver) return false;\n",
      "",
      "A message that comes or is put back after the end is kept for ever.",
    ],
  ]),
  ...law("ucx/WorkerResources.endConnections", [
    ["count += listener.endConnections();", "count += 0;", "A client that only connects ends the process of a server."],
    ["this.#isConnected = count > 0;", "this.#isConnected = false;", "On a busy machine it does so all the same."],
  ]),
  ...law("ucx/WorkerResources.leavesRegistrations", [
    ["this.operations.hasGivenUp && ", "false && ", "A context is freed although UCX has forgotten a registration."],
    ["this.operations.hasGivenUp && ", "", "No context of newer versions is ever freed."],
    [" && !isBefore(this.#version, 14)", "", "A context of a version that forgets nothing is never freed."],
  ]),
  ...law("ucx/defaults", [
    ["    ...(hasFirstProtocols &&", "    ...(false &&", "The death of a peer ends this process, too, with UCX 1.16."],
  ]),
  ...law("ucx/familyOfTcp", [
    [" && !isBefore(version, 14)", "", "IPv6 is expected of a version that does not have it."],
  ]),
  ...law("ucx/WorkerResources.destroy", [
    ["    for (const one of this.#adopted) one.close();\n", "", "Callbacks for UCX are kept as long as the process."],
  ]),
  ...law("ucx/UcxMemoryRegion.constructor", [
    [
      "    this.worker = context.worker;\n",
      "    this.worker = {};\n",
      "Memory that others use is released with its worker.",
    ],
  ]),
  ...law("ucx/EndpointOperations.end", [
    [
      "    this.#starts.stop(reason);\n",
      "",
      "A message that waits for its memory is sent by an endpoint that is gone.",
    ],
  ]),
  ...law("ucx/EndpointOperations.fail", [
    ["    this.#stop(error);\n", "", "A failed endpoint sends messages that waited."],
  ]),
  ...law("ucx/WorkerResources.answer", [
    [
      "if (!isSending) this.#isAnswering",
      "if (false) this.#isAnswering",
      "A worker that is aborted while a client connects ends the client's process, before UCX 1.14.",
    ],
  ]),
  ...law("ucx/Connections.stand", [
    [
      "if (hasToGreet || signal?.aborted === true || !(error instanceof UcxError)) throw error;",
      "throw error;",
      "A connection whose other side has sent and left is dropped, and what it sent with it.",
    ],
  ]),
  ...law("ucx/UcxEndpoint.ownerOf", [
    [
      "failure !== undefined && this.#lifecycle.canReceiveArrived",
      "false && this.#lifecycle.canReceiveArrived",
      "A message that arrived before the other side closed cannot be received.",
    ],
  ]),
  ...law("ucx/EndpointLifecycle.beforeClose", [
    ["    this.#standing = begun.promise;\n", "", "The other side's close ends a connection that has yet to greet."],
  ]),
  ...law("ucx/WorkerResources.flushesLong", [
    [
      "return !flush.isDone;",
      "return false;",
      "A worker that is closed while it answers ends the process, before UCX 1.14.",
    ],
  ]),
  ...law("ucx/WorkerResources.canCloseInOrder", [
    [
      "!isBefore(this.#version, 14) || !this.#isReceiving",
      "true",
      "Closing while a large message arrives ends a process.",
    ],
  ]),
  ...law("ucx/EndpointLifecycle.close", [
    [
      "      return await this.#leaving; // nothing is drained any more\n",
      "",
      "A close after one by force never ends.",
    ],
  ]),
  ...law("ucx/EndpointOperations.identity", [
    ['Symbol("endpoint")', 'Symbol.for("endpoint")', "A key of an endpoint that is gone writes to another process."],
  ]),
  ...law("ucx/EndpointOperations.stillOpen", [
    [
      'this.openHandle(doing === "send" ? "send" : "receive");',
      "void doing;",
      "An array that closes its endpoint ends the process.",
    ],
  ]),
  ...law("ucx/Receiver.discardTaken", [
    ["    if (this.#isClosed) return;\n", "", "A message that is released late is received from no worker."],
    ["    this.#resources.taken.delete(message);\n", "", "A released message is discarded again with its worker."],
  ]),
  ...law("ucx/UcxMessage", [
    ["if (!this.#isAsked) this.#drop", "this.#drop", "A receive that waits for a stream loses a released message."],
    ["      if (this.#isReleased) this.#drop();", "", "The send of a message that was given up never ends."],
    ["    this.#isReleased = false;", "", "A message that was received is discarded, too, which ends the process."],
    ["if (this.#isReleased) throw", "if (false) throw", "A released message is said to have been received."],
  ]),
  ...law("ucx/Receiver.take", [
    ['        this.#open("receive");\n', "", "What an array that closes its worker is for is never settled."],
    ["        owner?.over?.throwIfAborted();\n", "", "A receive of an endpoint that is gone begins."],
  ]),
  ...law("ucx/UcxActiveMessage.isHere", [
    ['if (this.#state !== "here") throw', "if (false) throw", "A message is received twice."],
  ]),
  ...law("ucx/UcxWorker.close", [
    [
      ".then(() => this.#watchEnds())",
      "",
      "A thread that ends once its worker is closed leaves a descriptor, and in Bun a thread of its own.",
    ],
  ]),
  ...law("ucx/UcxWorker.finish", [
    [
      "    if (left > 0) await pause(left);\n",
      "",
      "A receiver that connects back to a worker that has just closed aborts its process, before UCX 1.14.",
    ],
  ]),
  ...law("ucx/UcxWorker.abort", [
    [
      "    runAll([",
      "    ((all: (() => void)[]) => all.forEach((one) => one()))([",
      "A worker that is closed where there is no memory is closed halfway.",
    ],
    [
      "      () => this.#receiver.close(reason),\n",
      "",
      "A receive that waits for its memory begins after its worker is gone.",
    ],
  ]),
  ...law("ucx/UcxWorker.constructor", [
    ["    failed.defer(() => resources.close());\n", "", "A worker that could not be made keeps its descriptors."],
  ]),
  ...law("ucx/createWorker", [
    [
      "    ucp.worker.ucp_worker_destroy(worker.value);\n",
      "",
      "A worker for which there is no memory is never destroyed, nor is its context.",
    ],
  ]),
  ...law("ucx/headerOf", [
    ["    own.putBack(operation);", "", "A close waits for ever for a message for whose header there was no memory."],
  ]),
  ...law("ucx/printInfo", [
    ["  if (file === 0n) throw", "  if (false) throw", "UCX prints into no file, which ends the process."],
    ["bytes.at(-2) === 0", "true", "A text that does not fit is cut."],
    ["bytes.at(-2)", "bytes.at(-1)", "A text that needs one byte more than there is room for is cut."],
  ]),
  ...law("native/watchReadable", [
    [
      "  const stop = attempt(() => files.eventfd(0, EFD.CLOEXEC));\n",
      "  const stop = attempt(() => files.eventfd(0, EFD.CLOEXEC));\n  arena.bytes(4096);\n",
      "A watch for which there is no memory leaves a descriptor open.",
    ],
    [
      "      if (isWaiting || isClosed) return;\n",
      "",
      "Each start calls back, even for a watch that is already running.",
    ],
    [
      "      if (isWaiting) files.eventfd_write(stop, 1n);\n      else free();",
      "      free();",
      "A thread polls a freed list.",
    ],
    [
      "    files.close(stop);\n    arena.close();\n    throw error;\n",
      "    throw error;\n",
      "A watch for which there is no thread or socket leaves a descriptor open.",
    ],
  ]),
  ...law("native/x8664Completion", [
    [
      "[0x48, 0x0f, 0xbe, 0xf6]",
      "[0x48, 0x89, 0xf6]",
      "The other bits of a status's register count as part of the status.",
    ],
    ["    ...[0x49, 0xff, 0xc0], // inc r8\n", "", "The second operation that ends overwrites the first."],
    ["    ...[0x4c, 0x23, 0x50, ringAt.mask], // and r10, [rax + mask]\n", "", "The ring is written past its end."],
  ]),
  ...law("native/aarch64Completion", [
    [
      "0x93401c21, // sxtb",
      "0xaa0103e1, // mov x1, x1: not sxtb",
      "On arm64 the other bits of a status's register count as part of the status.",
    ],
    ["    0x8a080129, // and x9, x9, x8\n", "", "On arm64 each operation overwrites the one before it."],
  ]),
  ...law("ucx/StagingPiece.isFree", [
    [
      "if (this.#copy !== null && this.#copy.outcome() !== null) return false;",
      "",
      "A message is written over another one that is still being copied.",
    ],
  ]),
  ...law("ucx/StagingWindow.reserve", [
    ["piece.bytes === size && ", "", "A message is written past the end of its piece."],
    ["if (other === undefined) return null;", "if (other === undefined) break;", "More memory is kept than allowed."],
    ["      this.#free(other);\n", "", "Pieces that make room for others are never freed."],
  ]),
  ...law("ucx/StagingWindow.make", [
    [
      "if (isOutOfMemory(error)) return null; // UCX manages without a piece\n",
      "",
      "A message fails because memory is short.",
    ],
  ]),
  ...law("ucx/StagingWindow.takeBack", [
    ["if (this.#isClosed) this.#free(piece);\n    else this", "this", "A piece that is returned late is never freed."],
  ]),
  ...law("ucx/PoolStaging.reserve", [
    ["this.#isClosed || ", "", "A closed context allocates memory."],
  ]),
  ...law("ucx/takeStaged", [
    ["      piece.release();\n", "", "A piece is used once, and new memory is allocated for each message."],
    ["      pin[Symbol.dispose]();\n", "", "A buffer that was sent stays allocated."],
    ["if (captureOf(stream) !== null) throw landsInCapture();", "", "A message becomes part of a graph."],
    [
      "memory.copy = piece.copy(stream, piece.ptr, ptr, memory.bytes);",
      "piece.copy(stream, piece.ptr, ptr, memory.bytes);",
      "A message is sent before it is copied.",
    ],
  ]),
  ...law("ucx/Completions.lands", [
    [" || operation.status !== ucs_status_t.UCS_OK", "", "Data that has not arrived overwrites the destination."],
    ["      this.pending++;\n", "", "A worker sleeps for ever while a message is being copied."],
    [
      "if (operation.lands === copy) this.landed(operation, failure); // else it was cancelled",
      "this.landed(operation, failure);",
      "An abandoned receive ends twice.",
    ],
    [
      "        consumerWaitsForEvent(copy.event, null);\n",
      "",
      "A blocking receive returns before the message is in its memory.",
    ],
  ]),
  ...law("ucx/PendingCopy.outcome", [
    ["this.#isDone ||= this.event.isDone;", "this.#isDone ||= true;", "A message is sent before its copy is done."],
    [
      "this.#isDone ||= this.event.isDone;",
      "this.#isDone = this.event.isDone;",
      "CUDA is queried again about a copy that is done.",
    ],
  ]),
  ...law("ucx/PendingCopies.look", [
    [
      "        if (failure === undefined) break; // later ones are pending, too\n",
      "",
      "A copy counts as done too early.",
    ],
    ["      else if (done > 0) queue.splice(0, done);\n", "", "A copy is settled twice."],
  ]),
  ...law("ucx/PendingCopies.wakeBy", [
    ["      if (this.#watched.has(stream)) continue;\n", "", "Each sleep waits once more for each stream."],
    ["        wake();\n", "", "A sleeping worker is never woken."],
  ]),
];
