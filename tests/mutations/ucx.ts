/** The protective lines of messages between processes. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const ucxMutations: readonly Mutation[] = [
  ...law("ucx/ensureGpuContext", [
    ["  else device.ensureCurrent();\n", "", "UCX makes progress in no context, and fails or crashes."],
  ]),
  ...law("ucx/Progress.runUntilDone", [
    ["    ensureGpuContext();\n", "", "UCX makes progress in no context, and fails or crashes."],
  ]),
  ...law("ucx/Progress.pollUntil", [
    ["    ensureGpuContext();\n", "", "UCX makes progress in no context, and fails or crashes."],
  ]),
  ...law("ucx/Progress.spin", [
    ["      ensureGpuContext();\n", "", "UCX makes progress in no context, and fails or crashes."],
  ]),
  ...law("ucx/KeepaliveTimer.stop", [
    ["    this.#stopped = stopped;\n", "", "UCX never checks again whether a peer lives."],
  ]),
  ...law("ucx/KeepaliveTimer.restart", [
    ["    this.#stopped?.restart();\n", "", "UCX never checks again whether a peer lives."],
  ]),
  ...law("ucx/isWithinMachine", [
    ["ends.local_sockaddr).host ===", "ends.local_sockaddr).host !==", "UCX checks no peers on other machines."],
  ]),
  ...law("ucx/Connections.rest", [
    ["      if (this.#peers.sees(endpoint)) continue;\n", "", "Idle workers are woken once a second."],
    [
      "      if (!isWithinMachine(ucp, handle)) return;\n",
      "",
      "The death of a peer of whom nothing is known goes undetected.",
    ],
  ]),
  ...law("ucx/PeerProcess.find", [
    [
      "if (!isSame(0, 16) || isSame(16, identityBytes)) return null;",
      "",
      "A process of another machine is looked after.",
    ],
    [" || isSame(16, identityBytes)", "", "A worker looks after its own process."],
    [
      "return process.isGone() ? null : process;",
      "return process;",
      "What cannot be seen from here is taken for gone.",
    ],
  ]),
  ...law("ucx/PeerProcess.open", [
    ["descriptor === null || !this.isGone()", "true", "Another process, which has the number now, is watched."],
  ]),
  ...law("ucx/Progress.lookSometimes", [
    [
      "    for (const { act } of this.#also) act();\n",
      "",
      "Who waits in place for a peer that is gone waits for ever.",
    ],
  ]),
  ...law("ucx/PeerProcess.isGone", [
    [
      'if (stat === null) return readStat("self") !== null;',
      "if (stat === null) return false;",
      "A process that has ended is taken for alive.",
    ],
    ['return readStat("self") !== null;', "return true;", "Where no file can be opened everybody is taken for dead."],
    ["stat.start !== this.#start || ", "", "Whoever gets the number of a process is taken for it."],
    [' || "ZXx".includes(stat.state)', "", "A process that nobody asks for its exit code is alive for ever."],
  ]),
  ...law("ucx/readStat", [
    ["\\(.*\\)", "\\(.*?\\)", "A program's name is read as the state of its process."],
  ]),
  ...law("ucx/PeerLiveness.watch", [
    [
      "    if (process === null) return;\n",
      "    if (process === null) throw 0;\n",
      "Who cannot be seen cannot be connected to.",
    ],
    ["if (known !== undefined) return void", "if (false) return void", "Each endpoint takes a descriptor."],
    [
      "if (descriptor === null) this.#lookLater();",
      "if (descriptor === null) void 0;",
      "Nobody looks after who has no descriptor.",
    ],
  ]),
  ...law("ucx/PeerLiveness.failed", [
    ["    this.#onUnseen();\n", "", "UCX is not made to check on a peer that nothing else watches."],
    ["    this.#lookLater();\n", "", "What UCX forgets of a connection that has failed waits for ever."],
  ]),
  ...law("ucx/PeerLiveness.forget", [
    ["    peer.descriptor?.close();\n", "", "A closed endpoint's descriptor stays open."],
    ["    peer?.endpoints.delete(endpoint);\n", "", "A closed endpoint is reported."],
  ]),
  ...law("ucx/PeerLiveness.poll", [
    ["        this.#onUnseen();\n", "", "UCX is not made to check on a peer that nothing else watches."],
    ["peer.goneSince === Infinity && peer.isGone()", "peer.goneSince === Infinity", "The living are reported dead."],
    ["      if (now - peer.goneSince < grace) continue;\n", "", "UCX is not given the time to say what it knows."],
    ["    if (isBlind()) this.#lookLater();\n", "", "The dead are never reported."],
    [
      "        peer.descriptor?.close(); // it stays readable from now on\n",
      "",
      "A worker never sleeps again after a peer's death.",
    ],
  ]),
  ...law("ucx/UcxEndpoint.lose", [
    [
      "    if (own.handle === 0n) return;\n",
      "",
      "An endpoint that is closed is given back twice.",
    ],
    ['      this.fail(gone("ucp_worker_progress"));\n', "", "Nobody is told that the peer is gone."],
    [
      "    own.abandon(({ call }) => gone(call)); // UCX may never complete them\n",
      "",
      "Sends to the dead wait for ever.",
    ],
  ]),
  ...law("ucx/RemoteKeys.close", [
    ["    for (const handle of this.#handles) this.free(handle);\n", "", "A key is destroyed after its worker."],
  ]),
  ...law("ucx/Progress.afterNews", [
    ["    this.#afterNews.push(act);\n", "    act();\n", "What a peer has sent before it went is lost."],
  ]),
  ...law("ucx/TakenMemory.useList", [
    [
      "    this.#bytes = NaN; // differs from whatever is set next\n",
      "",
      "A message has as many bytes as pieces.",
    ],
  ]),
  ...law("ucx/takeList", [
    ["      piece.pack?.();\n", "", "A piece that is not contiguous is sent as what lies before it."],
    [
      "      for (const piece of pieces) piece.release();\n",
      "",
      "Pieces stay pinned for ever.",
    ],
  ]),
  ...law("ucx/UcxActiveMessage.recv", [
    ["    operation.pack?.();\n", "", "What was lent comes to where nothing was written down."],
    ["      left -= count;\n", "", "Bytes behind a message are written."],
  ]),
  ...law("ucx/readArrayHeader", [
    ["  if (expected !== bytes) {", "  if (false) {", "An array reaches beyond its message."],
    [" || !isShape(shape)", "", "A shape is whatever somebody has sent."],
  ]),
  ...law("ucx/recvArray", [
    [
      "        array.copyFrom(staged",
      "        if (0) array.copyFrom(staged",
      "A small array for a GPU has no elements.",
    ],
  ]),
  ...law("ucx/proofOf", [
    ["`${side}\\n`", '""', "A proof that is sent back proves something."],
    ["update(withLength(part))", "update(part)", "What was said can be cut elsewhere."],
  ]),
  ...law("ucx/acceptHandshake", [
    ['if (!isSame(proof, proofOf(secret, "client", said)))', "if (false)", "Everybody comes in."],
    ["const said = [challenge, answer, address];", "const said = [answer, address];", "A proof holds at any time."],
    ["  else sayFull(connection);\n", "", "Who knows the secret is told nothing of a listener that is full."],
  ]),
  ...law("ucx/connectHandshake", [
    [
      'if (!isSame(proof, proofOf(secret, "listener"',
      'if (false && !isSame(proof, proofOf(secret, "listener"',
      "Any listener is believed.",
    ],
  ]),
  ...law("ucx/takeSecret", [
    [
      'if (!("secret" in given)) return null;',
      "if (given.secret === undefined) return null;",
      "A variable that is not set lets everybody in.",
    ],
    ["return secret.slice();", "return secret;", "A secret that is cleared is one of zeros, which everybody knows."],
    [
      'if (typeof secret === "string" && secret.length > 0)',
      'if (typeof secret === "string")',
      "No secret is taken for one.",
    ],
  ]),
  ...law("ucx/listenWithSecret", [
    ["    if (asked.size >= handshakes) dropOldest();\n", "", "Any number of strangers is asked at a time."],
    ["    if (!context.hasRoom()) {", "    if (false) {", "More come in than there is room for."],
    [
      "setTimeout(() => connection.close(), patience)",
      "setTimeout(() => {}, patience)",
      "Who says nothing is asked for ever.",
    ],
    [
      "    sayFull(oldest);\n",
      "",
      "Who is dropped thinks that the secret is wrong.",
    ],
  ]),
  ...law("ucx/confirm", [
    ["  await stream.recvAll(byte, limits);\n", "", "Who has gone keeps a place."],
  ]),
  ...law("ucx/TcpConnection.connect", [
    ['await untilReady(number, "writable", signal);', "", "A connection that is not there yet is taken for one."],
    ["if (failure.value !== 0) throw", "if (false) throw", "Nobody is told that nobody listens."],
  ]),
  ...law("ucx/TcpConnection.receive", [
    [
      "if (received > 0) at += received;",
      "if (received > 0) return into.bytes.slice();",
      "A part of the bytes is taken for all.",
    ],
    [
      "else if (received !== -errno.EAGAIN) return null;",
      "else if (received !== -errno.EAGAIN) throw 0;",
      "An end is an error of nobody's.",
    ],
    [
      "else if (sent !== -errno.EAGAIN) return false;",
      "else if (sent < 0) return false;",
      "What the system does not take at once is lost.",
    ],
  ]),
  ...law("ucx/TcpConnection.finish", [
    ["    while (await this.receive(4096) !== null);", "    ", "What the other side has yet to read is lost."],
    ["    this.#closing.abort(", "    void (", "Who waits for a connection that is closed waits for ever."],
  ]),
  ...law("ucx/listenTcp", [
    ["SO.REUSEADDR, yes.$address, 4)", "SO.ERROR, yes.$address, 4)", "A port stays taken for a minute."],
    ["      watch.start();\n    });", "    });", "Only those who come first are accepted."],
  ]),
  ...law("ucx/partHeaders", [
    ["start === 0 || ", "", "A message of no parts is never sent."],
    ["start + most < parts.length ? 1 : 0", "0", "Parts beyond a hundred are taken for another message."],
  ]),
  ...law("ucx/readPartHeader", [
    [" || count > BigInt(most)", "", "Other bytes are read as a header that says more than it can hold."],
    [" || next > 1", "", "Other bytes are taken for a header."],
  ]),
  ...law("ucx/takePacked", [
    ["    held?.[Symbol.dispose]();\n", "", "A buffer whose elements were copied stays pinned."],
    [
      "  if (buffer.device !== null && cuda !== null) {",
      "  if (buffer.device !== null) {",
      "Managed memory that is not contiguous is copied to where a UCX without CUDA cannot read it.",
    ],
    [
      "  memory.bytes = byteCount(view); // known before the elements are ready\n",
      "",
      "More is put than the remote memory has: memory of another process is overwritten.",
    ],
  ]),
  ...law("ucx/TagSender.sendMany", [
    ["      refuse();\n", "", "Parts of a message that cannot be sent stay pinned."],
    [
      "      operations.push(...data);\n",
      "      operations.unshift(...data);\n",
      "Parts come before what describes them.",
    ],
  ]),
  ...law("ucx/Receiver.recvMany", [
    [
      "      if (before !== undefined) await abortable(before, signal);\n",
      "",
      "A part is taken for a header.",
    ],
    ["await abortable(before, signal)", "await before", "What waits for another message knows no limit."],
    [", options, owner?.over)", ", options)", "What waits for another message outlives its endpoint."],
    [
      "Promise.allSettled([before, parts])",
      "Promise.allSettled([parts])",
      "Who comes after one that gave up takes a part of an earlier message for a header.",
    ],
    [
      "Promise.allSettled([before, parts])",
      "Promise.allSettled([before])",
      "Parts that come after their receive was given up are taken for headers.",
    ],
  ]),
  ...law("ucx/Receiver.recvParts", [
    ["parts.length > mostParts(most)", "false", "Millions of parts of no bytes fill the memory."],
  ]),
  ...law("ucx/UcxEndpoint.letConnect", [
    ["    this.#leaving = handle;\n", "", "A worker that is closed meanwhile destroys an endpoint that flushes."],
  ]),
  ...law("ucx/Progress.endBy", [
    [
      "if (signal.aborted) return abort();",
      "if (false) return abort();",
      "What was aborted before it began never ends.",
    ],
  ]),
  ...law("ucx/EndpointOperations.flush", [
    ["operations.give(operation), signal }", "operations.give(operation) }", "A flush in a queue knows no limit."],
  ]),
  ...law("ucx/EndpointOperations.takeReceive", [
    ["    operation.owner = this.receives;\n", "", "A receive outlives its endpoint, and waits for ever."],
  ]),
  ...law("ucx/RawStream.send", [
    ["    if (operation.bytes === 0) return own.refuse(operation);", "", "A chunk of nothing ends the other process."],
  ]),
  ...law("ucx/RawStream.recvAll", [
    ["    checkLimits(limits);\n", "", "A misspelled limit is none."],
  ]),
  ...law("ucx/RawStream.receive", [
    ["UCP_STREAM_RECV_FLAG.WAITALL", "0", "A receive ends before its memory is full."],
  ]),
  ...law("ucx/plainTags", [
    ["    if (exact !== undefined) throw noHash();\n    if (tag", "    if (tag", "A tag that is to be hashed is not."],
    [
      "    if (exact !== undefined) throw noHash();\n    checkMatch",
      "    checkMatch",
      "A receive waits for a tag that nobody hashes.",
    ],
  ]),
  ...law("ucx/ucxxTag", [
    ["tag % hashModulus", "tag", "UCXX finds no message with a large tag."],
  ]),
  ...law("ucx/readGreeting", [
    [
      "view.getBigUint64(8, littleEndian) !== hash64(`(${messageTag},)`)",
      "false",
      "Whoever sends 16 bytes is taken for UCXX.",
    ],
  ]),
  ...law("ucx/HashedTags", [
    ["this.#known.clear()", "{}", "A program that counts its messages in the tag takes more and more memory."],
  ]),
  ...law("ucx/UcxxTags", [
    ["mask !== everyBit && !exact", "false", "Bits of a hash are taken for bits of a tag."],
    [
      "    this.#send = new HashedTags(theirs);\n    this.#receive = new HashedTags(ours);\n",
      "    this.#send = new HashedTags(ours);\n    this.#receive = new HashedTags(theirs);\n",
      "Messages have the number of their sender's side, which UCXX does not look for.",
    ],
  ]),
  ...law("ucx/addressTags", [
    ["    if (!exact) throw notGreeted();\n    return", "    return", "A tag goes to an endpoint by address unhashed."],
    [
      "    if (!exact) throw notGreeted();\n    checkMatch",
      "    checkMatch",
      "A tag of an endpoint by address is awaited unhashed.",
    ],
  ]),
  ...law("ucx/ucxxMessages.read", [
    ["    if (bytes.length < start) return null;\n", "", "A header that is cut short throws inside UCX."],
    ["length === BigInt(bytes.length - start) ?", "true ?", "Other bytes are taken for a program's header."],
    ["? callbackBytes : 0", "? 0 : 0", "A message for a callback of the receiver's is lost."],
  ]),
  ...law("ucx/ucxxProtocol.greet", [
    ['side === "listener"', "false", "A listener that is to speak first is silent."],
    ['side === "client"', "false", "A client never says who it is."],
  ]),
  ...law("ucx/Connections.connect", [
    [
      "      checkOptions(to, listenerAddressNames);\n",
      "",
      "A misspelled host or port is not named.",
    ],
    [
      '    if (typeof to !== "object" || to === null) {',
      "    if (to === null) {",
      'Who connects to a text reads of "secret", which nobody has spoken of.',
    ],
    ["timeout: timeout ?? greetingLimit", "timeout: timeout ?? 9000", "A client waits for a greeting for ever."],
    [" || greets || secret !== null ?", " || greets ?", "Who knows a secret waits for ever to be asked for it."],
    [
      "    if (options.unchecked !== undefined) {",
      "    if (false) {",
      "What is said of an address is ignored for a host.",
    ],
  ]),
  ...law("ucx/Connections.listen", [
    [
      '("ucp_stream_recv_nbx", { timeout })',
      '("ucp_stream_recv_nbx", { timeout: timeout + 2000 })',
      "Who never greets is never rejected.",
    ],
    [
      "        if (hasToStand) await endpoint.established(limit.signal);\n",
      "",
      "A large message that is sent at once ends the process, with UCX 1.13, where errors are not handled.",
    ],
  ]),
  ...law("ucx/explainFailure", [
    ["return said(`UCX cannot use", "return error; said(`", "Nobody is told that another version has answered."],
    ["return said(`The listener has refused", "return error; said(`", "Nobody is told that versions differ."],
    ['&& error.code === "ECONNREFUSED"', "&& false", "With a secret another error says that nobody listens."],
    ["return said(`Nobody listens", "return error; said(`", "A program that was never there has ended, it is said."],
    ["return said(`The listener at", "return error; said(`", "Nobody is told which versions do not reach each other."],
    [
      "    case ucs_status_t.UCS_ERR_ENDPOINT_TIMEOUT:\n",
      "    case ucs_status_t.UCS_ERR_ENDPOINT_TIMEOUT:\n      return error;\n",
      "Nobody is told that a secret is asked for.",
    ],
    ["return said(`Nobody at", "return error; said(`", "Nobody is told that no secret is asked for."],
  ]),
  ...law("ucx/PendingConnections.greet", [
    ["    this.#greeting.add(endpoint);\n", "", "Any number may wait that has not greeted, and a close leaves them."],
    [
      "if (this.#greeting.delete(endpoint)) this.#queue.push(endpoint);",
      "this.#queue.push(endpoint);",
      "Who has greeted takes the place of one that waits for ever.",
    ],
  ]),
  ...law("ucx/PendingConnections.drop", [
    ["    void endpoint.close({ force: true });\n", "", "Who was rejected is never told, and stays."],
    ["    if (!this.#isOver) this.#refused++;\n", "", "Who was rejected is not counted."],
    [
      "    this.#open.delete(endpoint); // at once, to make room for another\n",
      "",
      "Who was dropped keeps its place for a while.",
    ],
  ]),
  ...law("ucx/PendingConnections.makeRoom", [
    [
      "    if (!this.hasRoom && oldest !== undefined) this.#drop(oldest);\n",
      "",
      "Who says nothing keeps all others out.",
    ],
  ]),
  ...law("ucx/PendingConnections.hasRoom", [
    ["this.#queue.waiting.length + this.#greeting.size < backlog && ", "", "Any number of connections waits."],
    [" && this.#open.size < connections", "", "Any number of connections is open."],
  ]),
  ...law("ucx/PendingConnections.end", [
    ["    this.#queue.end();\n", "", "Who waits for a connection waits for ever."],
  ]),
  ...law("ucx/checkListenOptions", [
    ["    ...worker.limits,\n", "", "A listener forgets the limits of its worker."],
    ["  if (host === null) {", "  if (false) {", "A name is taken for an address."],
  ]),
  ...law("ucx/checkLimitNumbers", [
    ["    if (!(value >= 1)) throw", "    if (false) throw", "A limit is whatever somebody has typed."],
  ]),
  ...law("ucx/UcxWorker.keep", [
    ["    this.#dropped++;\n", "", "What was dropped is not counted."],
    ["if (excessOf(this.#limits, waiting, message.length) === null) ", "if (true) ", "Strangers fill the memory."],
  ]),
  ...law("ucx/UcxActiveMessage.keep", [
    ['if (place === "sender") return false;', 'if (place === "sender") return true;', "What is not here is promised."],
    [
      '    this.#data = { place: "none", data: 0n, bytes: copyOf(data, this.length) };\n',
      "",
      "What was kept is read when UCX has it back.",
    ],
  ]),
  ...law("ucx/UcxEndpoint.notifyClosed", [
    [
      'this.#byteStream.notify("closed") || !isByHost) return null;',
      'this.#byteStream.notify("closed") || true) return null;',
      "What was sent by shared memory is dropped by the end that overtakes it.",
    ],
    ["    if (own.failure !== undefined ||", "    if (true ||", "An end in order is taken for a loss."],
  ]),
  ...law("ucx/MessageQueue.iterate", [
    [
      "        returned.abort();\n        return Promise",
      "        return Promise",
      "A loop that has ended takes a message with it.",
    ],
    ["        if (this.#failure !== null) throw this.#failure;\n", "", "A loss is taken for an end."],
  ]),
  ...law("ucx/checkRemoteMemory", [
    ["  if (!hasRemoteMemory) throw", "  if (false) throw", "UCX is asked for what it was told to leave off."],
  ]),
  ...law("ucx/explain", [
    [
      "  return explainOwn(view, way);",
      "  return explainOwn(new Uint8Array(view.nbytes), way);",
      "Another library's array is said to be contiguous.",
    ],
  ]),
  ...law("ucx/checkTransportSettings", [
    [
      "if (all.some((known) => known.startsWith(`${family}_`)) && !isAmong(all, name)) throw",
      "if (false) throw",
      "A misspelled setting is none.",
    ],
  ]),
  ...law("ucx/checkVersions", [
    [
      "  if (!(isOld(here) && isNew(there)) && !(isNew(here) && isOld(there))) return;\n",
      "  if (here || there) return;\n",
      "UCX ends the process over another version.",
    ],
  ]),
  ...law("ucx/UcxEndpoint.exceed", [
    ["    void this.#end(UCP_EP_CLOSE_FLAG.FORCE);\n", "", "Who sends too much goes on sending."],
  ]),
  ...law("ucx/Connections.connectWithSecret", [
    [
      '() => endpoint.greet("secret", "client", signal)',
      "() => Promise.resolve()",
      "Nobody knows whether the other side is reached.",
    ],
  ]),
  ...law("ucx/readControl", [
    ["  if (bytes.length !== controlBytes) return null;\n", "", "What is too short is read all the same."],
    [
      "  if (kind === undefined) return null;\n",
      "  if (kind === undefined) throw 0;\n",
      "What is of no kind ends the process.",
    ],
  ]),
  ...law("ucx/StreamControlDelivery.deliver", [
    [
      "    this.#early.set(from, { sender, kinds: kinds.add(kind) });\n",
      "",
      "Who connects late waits for a reader that has cancelled.",
    ],
    [
      "early?.sender === sender ? early.kinds",
      "early !== undefined ? early.kinds",
      "What one peer has said counts for another one.",
    ],
    [
      "    if (oldest !== undefined) this.#early.delete(oldest);\n",
      "",
      "Peers that come and go are remembered for ever.",
    ],
    [
      '    if (kind === "closed") this.#early.delete(from);\n',
      "",
      "What a closed endpoint has said counts for the next one.",
    ],
  ]),
  ...law("ucx/StreamControlDelivery.made", [
    ["this.#context.deliver({ kind, taken: 0 }, endpoint)", "kind", "What was said early never comes."],
    [" || early.sender !== peer", "", "What a peer that has gone has said ends the stream to another one."],
  ]),
  ...law("ucx/ByteReader.nextChunk", [
    ["if (length === abortMark)", "if (length < 0n)", "An abort is read as a length."],
    ["if (length > BigInt(streamWindow))", "if (length < 0n)", "Whoever connects has us allocate what they like."],
  ]),
  ...law("ucx/ByteReader.take", [
    ["< streamWindow / 2", "< 2 * streamWindow", "A writer waits for ever for a reader who has taken everything."],
  ]),
  ...law("ucx/ByteWriter.moreRoom", [
    ["if (this.#failure !== null)", "if (false)", "A write that is under way when its reader cancels waits for ever."],
  ]),
  ...law("ucx/ByteWriter.write", [
    ["if (room === 0)", "if (room < 0)", "A writer that is a window ahead turns for ever."],
    ["bytes.subarray(at, at + room)", "bytes.subarray(at)", "A long chunk fills the other side's memory."],
  ]),
  ...law("ucx/ByteWriter.told", [
    ["this.#delivered.resolve();\n    else if", "void 0;\n    else if", "A close waits for ever."],
    ["!(taken >= this.#taken && taken <= this.#sent)", "false", "Nonsense moves the window."],
  ]),
  ...law("ucx/UcxEndpoint.finish", [
    [
      "    this.#context.progress.poll();",
      "   ",
      "A writer's close waits for one who has closed.",
    ],
  ]),
  ...law("ucx/ByteStream.onControl", [
    [
      "this.#over !== undefined && this.#reader === undefined",
      "false",
      "Who writes to an endpoint that is being closed waits for ever.",
    ],
  ]),
  ...law("ucx/ByteStream.closing", [
    ['else if (this.#hasWriter) this.#notify({ kind: "cancelled", taken: 0 });', "", "Nobody tells a writer."],
  ]),
  ...law("ucx/atNextTurn", [
    [
      "    serving = turnWithSockets()",
      "    void turnWithSockets()",
      "Turns go on while sockets are to be served, and they are not.",
    ],
    ["areDue(performance.now())", "false", "A server in the same thread answers seldom."],
  ]),
  ...law("ucx/areDue", [
    ["return since >= serveUnknownEvery", "return since >= 1000", "Where news is unknown sockets are served seldom."],
    ["if (since >= serveAtLeastEvery) return true;", "", "What the system does not tell of is never served."],
    ["return hasNews();", "return false;", "A server in the same thread answers late."],
    ["return hasNews();", "return true;", "Sockets for which nothing comes take time from messages."],
  ]),
  ...law("ucx/checkTag", [
    ['typeof value !== "bigint"', "false", "An operation that FFI refuses is never given back: close waits for ever."],
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
      "What waits for nothing begins after the call has returned, or never.",
    ],
  ]),
  ...law("ucx/StartQueue.drop", [
    [
      "    start.drop(reason);\n    this.#advance();",
      "    start.drop(reason);",
      "Who waited only for its turn waits for ever when the one before it ends.",
    ],
    ["    if (at < 0) return;", "    if (at < 0) at;", "What has begun is ended a second time by its signal."],
  ]),
  ...law("ucx/StartQueue.advance", [
    [
      "while (this.#waiting[0]?.isReady)",
      "if (this.#waiting[0]?.isReady)",
      "Only one of those whose turn it is begins.",
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
      "UCX has memory before it is there.",
    ],
    [
      "  memory.held = pin;\n",
      "  pin[Symbol.dispose]();\n",
      "Memory of a message that waits is freed when its buffer is closed.",
    ],
  ]),
  ...law("ucx/takeForeign", [
    ["        view.close();\n      },", "      },", "Another library's array is kept for ever."],
  ]),
  ...law("ucx/openUcp", [
    ["  if (library.path !== opened) {", "  if (false) {", "Two libucps share one libucs."],
  ]),
  ...law("ucx/writeSocketAddress", [
    ["(port & 255) << 8 | port >> 8", "port", "A port is read from its other end."],
    ["at.sin6_scope_id = zoneOf(host);", "", "An address of one link is looked for on another."],
  ]),
  ...law("ucx/checkFamily", [
    ["isIP(address) === family) return;", "isIP(address) > 0) return;", "UCX writes past the end of its memory."],
  ]),
  ...law("ucx/numericHost", [
    ['  if (host === "localhost") return localhost[family];\n', "", "This machine's own name is looked up."],
  ]),
  ...law("ucx/UcxListener.close", [
    ["    if (this.#isClosed) return;\n", "", "A listener is destroyed twice."],
  ]),
  ...law("ucx/cannotListen", [
    ["ways[code]?.(at)", "undefined", "Whose port is taken is not told that 0 is one."],
  ]),
  ...law("ucx/whyNotBound", [
    ["-Math.min(0, attempt(", "0 * Math.min(0, attempt(", "An address of another machine is an input/output error."],
  ]),
  ...law("ucx/listenNatively", [
    ["queueMicrotask(accept)", "void 0", "Nobody is let in."],
    ["isBusy ? busy : undefined", "undefined", "Whose port is busy is not told how to have it again."],
    ["code === 0 ? cause", "code >= 0 ? cause", "A port that is taken is an error of its own in each listener."],
    ["        context.refused();\n        reject", "        reject", "Nobody counts who was rejected."],
  ]),
  ...law("ucx/Receiver.probe", [
    ["    this.#progress.poll();\n", "", "A message that has come is not seen."],
    ["tag, mask, remove,", "tag, mask, 0,", "A message that was taken is received by somebody else."],
  ]),
  ...law("ucx/Registration.close", [
    ["if (!this.#all.delete(this)) return;", "this.#all.delete(this);", "Memory is unregistered twice."],
  ]),
  ...law("ucx/UcxRemoteKey.retainRange", [
    ["    this.#users++;\n", "", "UCX uses a key that was freed."],
    ["endpoint !== this.#endpoint", "false", "A key is used that was unpacked for another connection."],
    [" || offset + bytes > this.size", "", "What lies behind the memory is overwritten."],
    ["this.address + BigInt(offset)", "this.address", "Everything is written to the beginning."],
  ]),
  ...law("ucx/handleMessages", [
    ["reference.deref()?.takeIncoming", "taker.takeIncoming", "A worker that was dropped is never collected."],
    [
      "? view.getBigUint64(field.reply_ep, littleEndian) : 0n",
      "? 0n : 0n",
      "Messages come to the worker, not to its endpoint.",
    ],
  ]),
  ...law("ucx/ActiveMessages.take", [
    ['where === "call" || (where', "(where", "Data of the call alone are read when they are gone."],
  ]),
  ...law("ucx/timeLimit", [
    ["clear = () => clearTimeout(timer);", "", "A timer keeps the process alive that nobody waits for."],
  ]),
  ...law("ucx/Operation.prepare", [
    ["    if (memoryType !== this.#writtenType) {", "    if (false) {", "A GPU's memory is taken for the host's."],
    ["    if (kind !== this.#kind) {", "    if (this.#kind === null) {", "A receive reports as a send did."],
  ]),
  ...law("ucx/TakenMemory.address", [
    [" + BigInt(own.byteOffset)", "", "A part of an array is its beginning."],
  ]),
  ...law("ucx/TakenMemory.isTransferred", [
    ["return buffer.byteLength === 0;", "return false;", "What was received is looked for where it is not."],
    ["this.held?.isTransferred?.() === true", "false", "A list is sent from memory that is another's by now."],
  ]),
  ...law("ucx/TakenMemory.release", [
    ["    this.#own = null;\n", "", "What was received into is kept for as long as the worker."],
  ]),
  ...law("ucx/takeBytes", [
    [
      "  if (buffer.resizable) throw resizableBufferError();\n",
      "",
      "UCX writes to memory that is not mapped any more.",
    ],
    [
      "if (buffer.byteLength === 0 && buffer.detached) {",
      "if (false) {",
      "Nothing is sent instead of what was transferred.",
    ],
  ]),
  ...law("ucx/isTellable", [
    ["low > 0n ||", "low >= 0n ||", "A request whose address ends in zeros is taken for one that is over."],
    [" || low < BigInt(ucs_status_t.UCS_ERR_LAST)", " || low < 0n", "An address is taken for an error."],
  ]),
  ...law("ucx/OperationPool.transferred", [
    [" && one.isTransferred", "", "A worker that wakes up ends everything."],
  ]),
  ...law("ucx/Progress.giveUpTransferred", [
    ["this.cancel(operation, transferred());", "void operation;", "UCX writes to memory that is another's by now."],
  ]),
  ...law("ucx/errorOf", [
    [
      "operation.isTransferred ? transferred() : operation.failure",
      "operation.failure",
      "What has come is looked for where it is not.",
    ],
  ]),
  ...law("ucx/Receiver.begin", [
    [
      "      if (mask === everyBit) operation.onlyTag = tag;\n",
      "",
      "A message takes a bigint for a tag that is known.",
    ],
    ["if (mask === everyBit) operation", "operation", "A sender's tag is what the receiver has asked for."],
  ]),
  ...law("ucx/OperationPool.take", [
    ["    operation.isAbandoned = false;\n", "", "An operation is given back while somebody waits for it."],
  ]),
  ...law("ucx/OperationPool.give", [
    ["    operation.foreign = 0n;\n", "", "A request of UCX's is freed twice."],
  ]),
  ...law("ucx/OperationPool.next", [
    ["    this.#read = this.#read + 1 | 0;\n", "", "The same operation ends for ever."],
  ]),
  ...law("ucx/OperationPool.widen", [
    ["(n & count - 1) * 8, number", "(n & this.#mask) * 8, number", "What has ended is lost when the ring grows."],
    ["    this.#mask = count - 1;\n", "", "The ring is read as if it had not grown."],
  ]),
  ...law("ucx/Progress.cancel", [
    ["if (operation.isWaitedFor) {", "if (false) {", "An operation is given back twice, and two share it then."],
    [" || operation.isAbandoned", "", "UCX is asked again and again to give up what it cannot."],
    [
      "    this.#drain();",
      "   ",
      "Memory is still UCX's when its owner hears that nothing was received.",
    ],
    [
      "    this.#queueTurn(); // the process",
      "    // the process",
      "A receive that was cancelled keeps the process alive.",
    ],
  ]),
  ...law("ucx/Progress.cancelAllOf", [
    ["if (operation.owner === owner) ", "", "Who is lost takes others with it."],
  ]),
  ...law("ucx/Progress.stop", [
    ["    this.#resources.watch?.close();\n", "", "A thread waits for a descriptor that is closed."],
  ]),
  ...law("ucx/Progress.end", [
    ["    owner?.ended(operation);\n", "", "A close waits for ever for sends that are over."],
    ["if (operation.foreign !== 0n) ", "if (false) ", "UCX's requests are never freed."],
  ]),
  ...law("ucx/Progress.wake", [
    [
      "isSoon ? patienceAtFirst : 0",
      "patienceAtFirst",
      "An idle worker polls whenever UCX has looked for its peers.",
    ],
  ]),
  ...law("ucx/Progress.turn", [
    ["now - this.#lastNews < this.#patience", "true", "A worker that has nothing to do takes a processor."],
    [
      "(this.#pending > this.#abandoned && this.#mode",
      "(this.#mode",
      "Workers fall asleep between two messages, and the event loop has no time for timers.",
    ],
  ]),
  ...law("ucx/Progress.sleep", [
    [
      '    if (status === ucs_status_t.UCS_ERR_BUSY) return this.#queueTurn();\n    checkStatus("ucp_worker_arm", status);\n',
      "",
      "What came last is slept through.",
    ],
    [
      "watch.keepAlive(this.#isAwaited)",
      "watch.keepAlive(true)",
      "An idle worker keeps the process alive.",
    ],
    [
      "if (this.#isAwaited || this.#keeps > 0) awaited.add(this);",
      "if (false) void 0;",
      "Who waits for a worker's message waits for ever.",
    ],
    ["this.#isAwaited || this.#keeps > 0) awaited", "this.#isAwaited) awaited", "Who waits for an end waits for ever."],
    ["else awaited.delete(this);", "else awaited.add(this);", "A worker that has slept is never collected."],
    ["progress.deref()?.wake()", "this.wake()", "A worker that sleeps is never collected."],
  ]),
  ...law("ucx/Progress.keep", [
    [
      "    this.#keeps++;\n    this.#queueTurn();",
      "    this.#keeps++;",
      "Who waits for the end of what sleeps waits for ever.",
    ],
    ["if (isKept) this.#keeps--;", "", "A worker is kept by who has waited for an end."],
  ]),
  ...law("ucx/UcxEndpoint.closed", [
    ["if (!this.#isClosed) ", "if (false) ", "A worker of whose endpoint somebody awaits the end is collected."],
    ["if (!this.#isClosed) ", "", "A worker is kept for an end that has come."],
  ]),
  ...law("ucx/UcxEndpoint.settleClosed", [
    ["    this.#forgetClosed?.();\n", "", "A worker is kept for an end that has come."],
  ]),
  ...law("ucx/ByteStream.streams", [
    [
      "this.#notify, this.#keep());\n      if (this.#over !== undefined) this.#reader",
      "this.#notify, () => {});\n      if (this.#over !== undefined) this.#reader",
      "Who waits for the end of a stream that is read waits for ever.",
    ],
    [
      "this.#waitsFor, this.#keep()",
      "this.#waitsFor, () => {}",
      "Who waits for the end of a stream that is written waits for ever.",
    ],
  ]),
  ...law("ucx/Progress.abandon", [
    ["    this.#abandoned++;\n", "", "A worker is kept for what nobody waits for any more."],
  ]),
  ...law("ucx/closeIfDropped", [
    ["  finalizer.register(object, state);\n", "", "A worker that is dropped takes 15 descriptors for ever."],
  ]),
  ...law("ucx/closeDropped", [
    ["    state.close();\n", "", "A worker that is dropped is only reported."],
    ["if (wantsLeakReports()) {", "if (true) {", "Every program is told what it has dropped."],
  ]),
  ...law("ucx/placeOfCall", [
    ["_here, _ours, ...callers", "_here, ...callers", "A report names us, and not who has dropped something."],
  ]),
  ...law("ucx/CountingOwner.ended", [
    [
      "    if (--this.count === 0) this.forget();\n",
      "    this.count--;\n",
      "A close waits for ever for what has ended.",
    ],
  ]),
  ...law("ucx/ContextResources.close", [
    ["    if (this.#isClosed) return;\n", "", "A context is freed twice."],
    ["      reference.deref()?.abort();\n", "", "Who waits for a worker that its context closes waits for ever."],
    [
      "      if (!resources.closed) closeDropped(resources);",
      "      void closeDropped;",
      "A context is freed before a worker of it.",
    ],
    ["if (!this.#hasStuckWorker) ", "", "A context is freed under a worker that UCX cannot give back."],
  ]),
  ...law("ucx/WorkerResources.closeEndpoint", [
    ["    this.endpoints.delete(handle);\n", "", "An endpoint is given back twice."],
  ]),
  ...law("ucx/WorkerResources.releaseAll", [
    [
      "    for (const endpoint of this.endpoints) this.#abortEndpoint(progress, endpoint);\n",
      "",
      "The endpoints of a worker that was dropped are never closed.",
    ],
    [
      "    for (const message of this.taken) this.#discard(progress, message);\n",
      "",
      "A message that was taken and dropped is never freed.",
    ],
    [
      "    for (const data of this.lent) this.ucp.activeMessage.ucp_am_data_release(this.handle, data);\n",
      "",
      "Data of a message that was dropped are never freed.",
    ],
    ["    for (const one of this.watched) one.close();\n", "", "A descriptor for each worker stays open."],
    ["    this.keys.close();\n", "", "UCX frees a key that its worker has taken along."],
    [
      "    if (isStuck) stuck.add(this);\n    else this.#destroy();",
      "    this.#destroy();",
      "A message arrives in memory that is freed.",
    ],
  ]),
  ...law("ucx/WorkerResources.destroy", [
    ["    for (const one of this.#kept) one.close();\n", "", "What UCX calls stays as long as the process."],
  ]),
  ...law("ucx/UcxMemoryRegion.constructor", [
    [
      "    this.worker = context.worker;\n",
      "    this.worker = {};\n",
      "Memory that others use goes away with its worker.",
    ],
  ]),
  ...law("ucx/EndpointOperations.end", [
    [
      "    this.#starts.stop(reason);\n",
      "",
      "What waits for its memory is sent by an endpoint that is gone.",
    ],
  ]),
  ...law("ucx/EndpointOperations.fail", [
    ["    this.#stop(error);\n", "", "A failed endpoint sends what waited."],
  ]),
  ...law("ucx/WorkerResources.isAnswering", [
    [
      "return !flush.isDone;",
      "return false;",
      "A worker that is closed while it answers ends the process, before UCX 1.14.",
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
    ["    this.#receiver.close(reason);\n", "", "A receive that waits for its memory begins when its worker is gone."],
  ]),
  ...law("native/watchReadable", [
    ["      if (isWaiting || isClosed) return;\n", "", "Each start calls back, also of one that is under way."],
    [
      "      if (isWaiting) files.eventfd_write(stop, 1n);\n      else free();",
      "      free();",
      "A thread polls a list that is freed.",
    ],
  ]),
  ...law("native/x8664Completion", [
    ["[0x48, 0x0f, 0xbe, 0xf6]", "[0x48, 0x89, 0xf6]", "What lies beside a status in its register is part of it."],
    ["    ...[0x49, 0xff, 0xc0], // inc r8\n", "", "The second operation that ends takes the place of the first."],
    ["    ...[0x4c, 0x23, 0x50, ringAt.mask], // and r10, [rax + mask]\n", "", "The ring is written past its end."],
  ]),
  ...law("native/aarch64Completion", [
    ["0x93401c21, // sxtb", "0xaa0103e1, // mov x1, x1: not sxtb", "On arm64 what lies beside a status is part of it."],
    ["    0x8a080129, // and x9, x9, x8\n", "", "On arm64 each operation takes the place of the one before it."],
  ]),
  ...law("ucx/StagingPiece.isFree", [
    [
      "if (this.#copy !== null && this.#copy.outcome() !== null) return false;",
      "",
      "A message is written over another one that is still being copied.",
    ],
  ]),
  ...law("ucx/StagingWindow.reserve", [
    ["piece.bytes === size && ", "", "A message is written beyond the end of its piece."],
    ["if (other === undefined) return null;", "if (other === undefined) break;", "More is kept than allowed."],
    ["      this.#free(other);\n", "", "Pieces that make room for others are never freed."],
  ]),
  ...law("ucx/StagingWindow.make", [
    [
      "if (isOutOfMemory(error)) return null; // UCX manages without a piece\n",
      "",
      "A message fails for want of memory.",
    ],
  ]),
  ...law("ucx/StagingWindow.takeBack", [
    ["if (this.#isClosed) this.#free(piece);\n    else this", "this", "A piece that comes back late is never freed."],
  ]),
  ...law("ucx/PoolStaging.reserve", [
    ["this.#isClosed || ", "", "A closed context allocates."],
  ]),
  ...law("ucx/takeStaged", [
    ["      piece.release();\n", "", "A piece is lent once, and new memory taken for each message."],
    ["      pin[Symbol.dispose]();\n", "", "A buffer that was sent stays allocated."],
    ["if (captureOf(stream) !== null) throw landsInCapture();", "", "A message becomes a part of a graph."],
    [
      "memory.copy = piece.copy(stream, piece.ptr, ptr, memory.bytes);",
      "piece.copy(stream, piece.ptr, ptr, memory.bytes);",
      "A message is sent before it was copied.",
    ],
  ]),
  ...law("ucx/Progress.lands", [
    [" || operation.status !== ucs_status_t.UCS_OK", "", "What has not come is copied over what was there."],
    ["      this.#pending++;\n", "", "A worker sleeps for ever while a message is being copied."],
    [
      "if (operation.lands === copy) this.#landed(operation, failure); // else it was cancelled",
      "this.#landed(operation, failure);",
      "A receive that was given up ends twice.",
    ],
    [
      "        consumerWaitsForEvent(copy.event, null);\n",
      "",
      "Who waits in place has the memory before the message is there.",
    ],
  ]),
  ...law("ucx/PendingCopy.outcome", [
    ["this.#isDone ||= this.event.isDone;", "this.#isDone ||= true;", "A message is sent before its copy is done."],
    [
      "this.#isDone ||= this.event.isDone;",
      "this.#isDone = this.event.isDone;",
      "CUDA is asked again for what is done.",
    ],
  ]),
  ...law("ucx/PendingCopies.look", [
    [
      "        if (failure === undefined) break; // later ones are pending, too\n",
      "",
      "A copy is over before it is done.",
    ],
    ["      else if (done > 0) queue.splice(0, done);\n", "", "A copy is settled twice."],
  ]),
  ...law("ucx/PendingCopies.wakeBy", [
    ["      if (this.#watched.has(stream)) continue;\n", "", "Each sleep waits for each stream once more."],
    ["        wake();\n", "", "Who sleeps is never woken up."],
  ]),
];
