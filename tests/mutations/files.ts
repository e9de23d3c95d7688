/** The protective lines of files. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const filesMutations: readonly Mutation[] = [
  ...law("files/writeToStream", [
    ["bytes.slice()", "bytes", "Who reads a stream has the array's own memory."],
    [
      "    await writer.abort(error).catch(() => {}); // it may have failed by itself\n",
      "",
      "A stream that is written in part never ends.",
    ],
    ["    writer.releaseLock();\n", "", "A stream stays locked."],
  ]),
  ...law("files/writeMembers", [
    ["isUtf8 | sizesFollow", "isUtf8", "Who reads a stream takes a member's size for 0."],
    ["      at += sizes.length;\n", "", "NumPy finds no member of a stream but the first."],
    ["sink.writeAt(localHeader(whole), whole.at)", "void whole", "Who reads a file's members finds them empty."],
  ]),
  ...law("files/writeMember", [
    [
      "Promise.race([consumed, drained])",
      "consumed",
      "A compressed file for which there is no room is never refused: its promise does not settle.",
    ],
  ]),
  ...law("files/checkNotMapped", [
    ["if (!marks", "if (true || !marks", "An array is lost when it is written to the file that it is read from."],
    ["${ino} `,", "${ino}x `,", "An array is lost when it is written to another name of its file."],
  ]),
  ...law("files/absolute", [
    [
      'text.startsWith("/") ? text : `${',
      "true ? text : `${",
      "A program that changes its folder gets the file there.",
    ],
  ]),
  ...law("files/replaceable", [
    ["    if (/^\\/proc\\//.test(folder)) return null;", "", "Standard output becomes another file than the shell's."],
    [" && status.nlink === 1", "", "The other names of a file keep what it had."],
    ["status?.isSymbolicLink() !== true", "true", "A link becomes a file."],
  ]),
  ...law("files/openBeside", [
    ["        checkNotMapped(path, old);\n", "", "A view is of a file that is no longer there."],
    ["return uid === old.uid && gid === old.gid;", "return true;", "A file of another user becomes this one's."],
    [
      "    fs.unlinkSync(beside);\n    return null;",
      "    return null;",
      "A file that cannot take the old one's place stays.",
    ],
    ["    fs.fchmodSync(file, old.mode & 0o7777);\n", "", "A file that only its user may read is readable for all."],
    [
      '    if (error instanceof Error && "code" in error && noRoom.has(error.code)) throw error;\n',
      "",
      "Where there is no room for a file the old one is lost.",
    ],
  ]),
  ...law("files/openInPlace", [
    [
      "      checkNotMapped(path, file);\n",
      "",
      "Where only the file may be written, an array is lost when it is written to its file.",
    ],
    ["if (fs.fstatSync(file).isFile())", "if (true)", "A pipe cannot be written."],
    ["      fs.ftruncateSync(file);\n", "", "A file that is written in place ends in what it had."],
    ["    fs.closeSync(file);\n", "", "A refused file stays open."],
  ]),
  ...law("files/replace", [
    ["  takesPlaceOf(target, file);", "", "A file that was made secret meanwhile is readable for all."],
    ["    fs.copyFileSync(path, target);\n", "", "A mount point keeps what it had."],
  ]),
  ...law("files/createFile", [
    [
      "const beside = namingErrors(`write ${path}`, () => openBeside(path));",
      "const beside: Beside | null = null;",
      "A write that fails takes the old file along.",
    ],
    [
      "      if (beside !== null) fs.rmSync(beside.path, { force: true });",
      "",
      "What a failed write has written stays on the disk.",
    ],
    [", { force: true }", "", "If the folder has gone the error is not the one that is documented."],
    [
      "      await writing.catch(() => {});",
      "      ",
      "What is left of a failed write gets into the file opened next.",
    ],
  ]),
  ...law("files/fill", [
    ["    await hostReady(lane.block);\n", "", "A block is overwritten while it is being copied to the device."],
    [
      "await readBlock(source, block, swapped);",
      "await readBlock(source, block, 0);",
      "Numbers in the other byte order are read without being swapped.",
    ],
  ]),
  ...law("files/checkReadOptions", [
    [
      "  if (device !== undefined) checkPlaceOfArray(device);\n",
      "",
      "A device given by its number is silently ignored, and the host is used.",
    ],
    [
      "  if (memory !== undefined) checkResource(memory);\n",
      "",
      "A value that is not a resource causes an error inside the library.",
    ],
    ["  checkProgress(onProgress);\n", "", "A value that is not a function is refused only when the file is open."],
    ["  checkOpenStream(", "  void (", "A value that is not a stream causes an error inside the library."],
  ]),
  ...law("files/namedViews", [
    [" || Array.isArray(arrays)", "", "Views without names are written as 0, 1, 2."],
  ]),
  ...law("files/headerFor", [
    [
      "  if (!(view instanceof StridedMemoryView)) throw notAView(view, where);\n",
      "",
      "Writing a typed array reports that undefined has no layout.",
    ],
  ]),
  ...law("files/openBlob", [
    ["readBlob(blob, position,", "readBlob(blob, 0,", "A Blob's header is mistaken for its elements."],
  ]),
  ...law("files/openNpy", [
    ["  if (swapped !== 0) {", "  if (swapped > 99) {", "Numbers in the other byte order are mapped."],
    ["  elementBytes(header, size - to);", "", "Accessing a file that is too short crashes the process."],
    [
      "writable ? MAP.SHARED : MAP.PRIVATE | MAP.NORESERVE",
      "MAP.SHARED",
      "A write despite readonly changes the file, or crashes the process.",
    ],
  ]),
  ...law("files/readDirectory", [
    ["  if (next !== size) throw", "  if (false) throw", "Arrays that a damaged directory does not count are missing."],
    ["  if (own !== name) throw", "  if (false) throw", "An array has another's name in a damaged file."],
    ["(flags & 0x2041) !== 0", "flags < 0", "Encrypted bytes are accepted as an array."],
    ["size > packed * maxInflated + 64", "size < 0", "A few bytes can request any amount of memory."],
  ]),
  ...law("files/checkApart", [
    ["last.packed > member.at", "last.packed < 0", "Any number of members can unpack the same few bytes."],
    ["last.packed > end", "last.packed < 0", "A member's bytes can be the directory's."],
  ]),
  ...law("files/limitsOf", [
    ["Number.isSafeInteger(value) && value >= 0", "true", "A limit that is not a number limits nothing."],
  ]),
  ...law("files/NpzArrays.close", [
    [
      "    runAll([...this.values()].map((view) => () => view.close()));\n",
      "    for (const view of this.values()) view.close();\n",
      "If one array cannot be freed, the others are not.",
    ],
  ]),
  ...law("files/checkedSource", [
    ["if (total !== member.size) throw", "if (total < 0) throw", "A truncated member is accepted as complete."],
    ["if (crc !== member.crc) {", "if (crc < 0) {", "Damaged bytes are accepted as an array."],
  ]),
];
