"""Facts about C, taken from real headers by a real compiler, for the tests of bindings/ to compare with.

    python3 tests/data/abi_facts.py library:version=include[,exporter...] ...

`library` is one of libc, cuda, cudart, nvrtc, ucp, cpython, dlpack, arrow; it may be given several times, oldest
version first. For every function, struct and constant that the library's files in bindings/ name, this writes to
abi_facts.json beside this file what the headers say: the prototype, the class, size and sign of each type in it, sizes
and offsets of structs, values of constants, and all members of an enum whose name the bindings use. An exporter is a
shared library, or a .txt file with one symbol per line for a library that is on another machine; what is recorded is
which of the functions it lacks. The include folder may be `-` where there is only an exporter. Facts about libraries
that are not given stay. Needs gcc and nm. After a change of bindings/libc.ts, for example:

    python3 tests/data/abi_facts.py libc:glibc=/usr/include,/lib/x86_64-linux-gnu/libc.so.6

The committed file was made from the headers and libraries in NVIDIA's wheels for CUDA 11.8, 12.9 and 13.5 (with the
crt headers of the compiler's wheels copied in); the drivers 470 (CUDA 11.4), 535 and 550 that Debian packages, and
580 (CUDA 13.0) from a machine with a GPU; Debian's UCX 1.13.1 and the libucx wheel 1.22.0; CPython's own installs of
3.9 to 3.13, and Debian's of 3.14 and 3.15; the DLPack header in apache-tvm-ffi 0.1.15 and the Arrow header in pyarrow
26.0.1.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BINDINGS = HERE.parent.parent / "bindings"

# What to include, and the macros that make a header show everything: cuda.h declares the unversioned names that it
# maps to `_v2` only when it is compiled for NVIDIA's own use.
SOURCES = {
    "libc": (
        "#define _GNU_SOURCE 1\n#include <dlfcn.h>\n#include <link.h>\n#include <glob.h>\n#include <stdio.h>\n"
        "#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\n#include <poll.h>\n"
        "#include <fcntl.h>\n#include <pthread.h>\n#include <signal.h>\n#include <semaphore.h>\n#include <netdb.h>\n"
        "#include <sys/socket.h>\n#include <sys/un.h>\n#include <net/if.h>\n"
        "#include <errno.h>\n#include <sys/eventfd.h>\n#include <sys/epoll.h>\n#include <sys/pidfd.h>\n"
        "#include <sys/timerfd.h>\n#include <time.h>\n",
        ["libc.ts"],
    ),
    "cuda": ("#define __CUDA_API_VERSION_INTERNAL 1\n#include <cuda.h>\n", ["cuda.ts", "cuda_types.ts"]),
    "cudart": ("#include <cuda_runtime_api.h>\n", ["cudart.ts"]),
    "nvrtc": ("#include <stddef.h>\n#include <nvrtc.h>\n", ["nvrtc.ts"]),
    "ucp": ("#include <ucp/api/ucp.h>\n#include <netinet/in.h>\n", ["ucp.ts", "ucp_types.ts"]),
    "cpython": ("#include <Python.h>\n", ["cpython.ts"]),
    "dlpack": ("#include <dlpack.h>\n", ["dlpack.ts"]),
    "arrow": ("#include <abi.h>\n", ["arrow.ts"]),
}

TOKEN = re.compile(r'[A-Za-z_]\w*|\.\.\.|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|\d[\w.]*|\S')
KEYWORDS = {
    "void",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "_Bool",
    "const",
    "struct",
    "union",
    "enum",
    "size_t",
}
DROPPED = {
    "extern",
    "__extension__",
    "__inline",
    "__inline__",
    "inline",
    "static",
    "_Noreturn",
    "restrict",
    "__restrict",
}


def compile_and_run(source, include):
    """Output of a C program, or None if it does not compile."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        command = ["gcc", "-w", "-x", "c", "-", "-o", str(program), "-I", include]
        if subprocess.run(command, input=source, text=True, capture_output=True).returncode != 0:
            return None
        return subprocess.run([str(program)], text=True, capture_output=True, check=True).stdout


def preprocess(source, include):
    command = ["gcc", "-E", "-P", "-w", "-x", "c", "-", "-I", include]
    return subprocess.run(command, input=source, text=True, capture_output=True, check=True).stdout


def without_attributes(tokens):
    """The tokens without __attribute__((...)), __asm__(...) and the words that say nothing about the ABI."""
    kept, depth, skipping = [], 0, False
    for token in tokens:
        if skipping:
            depth += (token == "(") - (token == ")")
            skipping = depth > 0
        elif token in ("__attribute__", "__asm__", "__declspec"):
            skipping = True
        elif token not in DROPPED:
            kept.append(token)
    return kept


def declarations(text):
    """Token lists of the declarations at file scope; bodies of functions end a declaration, as `;` does."""
    tokens, depth = [], 0
    for token in TOKEN.findall(text):
        if token == "{":
            depth += 1
        if depth == 0 and token == ";":
            yield tokens
            tokens = []
            continue
        tokens.append(token)
        if token == "}":
            depth -= 1
            if depth == 0 and "(" in tokens and tokens[0] not in ("typedef", "struct", "union", "enum"):
                tokens = []  # a function with a body: the header's own, not the library's


def members(text):
    """{enum: its constants}, by the name of its typedef or its tag."""
    found = {}
    for tokens in map(without_attributes, declarations(text)):
        head = tokens[1:] if tokens[:1] == ["typedef"] else tokens
        if head[:1] != ["enum"] or "{" not in head:
            continue
        body = head[head.index("{") + 1 : head.index("}")]
        names = [part[0] for part in split(body) if part]
        for name in (head[1], tokens[-1]):
            if name.isidentifier():
                found[name] = names
    return found


def split(tokens):
    """Tokens between top-level commas."""
    parts, part, depth = [], [], 0
    for token in tokens:
        if token == "," and depth == 0:
            parts.append(part)
            part = []
            continue
        depth += (token in "([") - (token in ")]")
        part.append(token)
    return parts + [part] if part or parts else []


def spell(tokens):
    """C text of a type or parameter: one blank between words, none after a star."""
    text = ""
    for token in tokens:
        glued = not text or text[-1] in "*([" or token in ")],(["
        text += token if glued else " " + token
    return text


def parameter(tokens):
    """(type, name) of one parameter; the name is "" where the header gives none."""
    if "(" in tokens:  # a pointer to function: its name stands behind the first star
        star = tokens.index("*")
        name = tokens[star + 1] if tokens[star + 1].isidentifier() else ""
        return spell(tokens[: star + 1] + tokens[star + 1 + bool(name) :]), name
    array = "[" in tokens
    if array:
        tokens = tokens[: tokens.index("[")]
    words = [token for token in tokens if token != "*"]
    nouns = [word for word in words if word not in ("const", "struct", "enum", "union")]
    last = tokens[-1]
    named = last.isidentifier() and last not in KEYWORDS and len(nouns) > 1
    name = last if named else ""
    kind = tokens[:-1] if named else tokens
    return spell(kind + ["*"] * array), name


def prototypes(text):
    """{function: {"returns": type, "parameters": ["type name", ...]}} of a preprocessed header."""
    found = {}
    for tokens in map(without_attributes, declarations(text)):
        if "(" not in tokens or tokens[0] == "typedef" or tokens[-1] != ")":
            continue
        opening = tokens.index("(")
        name = tokens[opening - 1]
        if opening < 2 or not name.isidentifier() or name in KEYWORDS:
            continue
        inside = tokens[opening + 1 : -1]
        parameters = [] if inside in ([], ["void"]) else [parameter(part) for part in split(inside)]
        found[name] = {"returns": spell(tokens[: opening - 1]), "parameters": parameters}
    return found


def enumerations(text):
    """Names of the types that are typedefs of an enum."""
    return {tokens[-1] for tokens in map(without_attributes, declarations(text)) if tokens[:2] == ["typedef", "enum"]}


# What __builtin_classify_type() answers.
CLASSES = {1: "integer", 2: "integer", 3: "integer", 4: "integer", 5: "pointer", 8: "float", 12: "struct", 13: "union"}


def types(names, header, include, enums):
    """{type: {"kind", "size", "signed"}} as the compiler sees them; signed only for integers."""
    lines = "\n".join(
        f'printf("%s\\t%d\\t%zu\\n", "{name}", __builtin_classify_type(*(__typeof__({name}) *)0), sizeof({name}));'
        for name in names
    )
    output = compile_and_run(f"{header}\n#include <stdio.h>\nint main(void) {{\n{lines}\n}}\n", include)
    found = {}
    for line in output.splitlines():
        name, kind, size = line.split("\t")
        found[name] = {"kind": CLASSES[int(kind)], "size": int(size)}
    integers = [name for name, fact in found.items() if fact["kind"] == "integer"]
    lines = "\n".join(f'printf("%s\\t%d\\n", "{name}", (__typeof__({name}))-1 < 0);' for name in integers)
    output = compile_and_run(f"{header}\n#include <stdio.h>\nint main(void) {{\n{lines}\n}}\n", include)
    for line in output.splitlines():
        name, signed = line.split("\t")
        found[name]["signed"] = signed == "1"
        if name in enums or name.startswith("enum "):
            found[name]["kind"] = "enum"
    return found


def exported(files):
    """{exported name: body} of the `export const` objects of TypeScript files, by kind: tables, structs, constants."""
    found = {"table": {}, "struct": {}, "constant": {}}
    for file in files:
        text = (BINDINGS / file).read_text()
        text = re.sub(r"//.*", "", text)
        objects = re.findall(r"^export const (\w+) = \{(.*?)\} as const(?: satisfies (\w+))?;", text, re.S | re.M)
        for name, body, described in objects:
            found[{"SymbolTable": "table", "StructDescription": "struct", "": "constant"}[described]][name] = body
        for name in re.findall(r"^export const (\w+) = -?\d+n?;", text, re.M):
            found["constant"][name] = None
    return found


def functions_named(tables):
    return [name for body in tables.values() for name in re.findall(r"(\w+): \{\s*args:", body)]


# An object of constants is named by the prefix that they share, all capitals, or by their type: then its keys are whole
# names.
PREFIX = re.compile(r"[A-Z0-9_]+|PyBUF|Py_TPFLAGS")


def constants_named(constants, words):
    names = []
    for prefix, body in constants.items():
        if body is None:
            names.append(prefix)
            continue
        for key in re.findall(r"(\w+): ", body):
            name = f"{prefix}_{key}" if PREFIX.fullmatch(prefix) else key
            if name in words:
                names.append(name)
    return names


def constants(names, header, include):
    lines = "\n".join(f'printf("%s\\t%lld\\n", "{name}", (long long)({name}));' for name in names)
    output = compile_and_run(f"{header}\n#include <stdio.h>\nint main(void) {{\n{lines}\n}}\n", include)
    return {name: int(value) for name, value in (line.split("\t") for line in output.splitlines())}


def struct_facts(name, fields, header, include):
    """{"size", "alignment", "fields": {name: [offset, size, kind]}}, or None if this version has no such struct."""

    def measure(spelling, fields):
        lines = "\n".join(
            f'printf("%s %zu %zu\\n", "{field}", offsetof({spelling}, {field}), sizeof((({spelling} *)0)->{field}));'
            for field in fields
        )
        return compile_and_run(
            f"{header}\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{\n"
            f'printf("%zu %zu\\n", sizeof({spelling}), _Alignof({spelling}));\n{lines}\n}}\n',
            include,
        )

    for spelling in (name, f"struct {name}"):
        if measure(spelling, []) is None:
            continue
        if measure(spelling, fields) is None:  # an older version: some field is not there yet
            fields = [field for field in fields if measure(spelling, [field]) is not None]
        head, *lines = measure(spelling, fields).splitlines()
        size, alignment = map(int, head.split())
        spelled = {field: f"__typeof__((({spelling} *)0)->{field})" for field in fields}
        kinds = types(spelled.values(), header, include, ())
        offsets = {}
        for field, offset, extent in (line.split() for line in lines):
            fact = kinds[spelled[field]]
            kind = {True: "signed", False: "unsigned", None: fact["kind"]}[fact.get("signed")]
            offsets[field] = [int(offset), int(extent), kind]
        return {"size": size, "alignment": alignment, "fields": offsets}
    return None


def introduced(include):
    """{driver function: version that brought it}, from cudaTypedefs.h, which has a type per function and version."""
    path = pathlib.Path(include) / "cudaTypedefs.h"
    versions = {}
    if path.exists():
        for name, version in re.findall(r"\bPFN_(cu\w+?)_v(\d{4,})\b", path.read_text()):
            versions.setdefault(name, set()).add(int(version))
    found = {}
    for name, numbers in versions.items():
        for index, number in enumerate(sorted(numbers)):
            found[name if index == 0 else f"{name}_v{index + 1}"] = number
    return found


def sockaddr(match):
    """What glibc's union of all socket addresses is to its callers: to GNU C it is transparent."""
    return "const struct sockaddr *" if match[1] else "struct sockaddr *"


def symbols(exporter):
    """Names that a shared library defines for others."""
    if exporter.endswith(".txt"):
        lines = pathlib.Path(exporter).read_text().splitlines()
    else:
        command = ["nm", "-D", "--defined-only", exporter]
        lines = subprocess.run(command, text=True, capture_output=True, check=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.strip()}


def written(name, prototype):
    """A prototype in one line of C."""
    parts = []
    for kind, parameter_name in prototype["parameters"]:
        if "(*" in kind:
            parts.append(kind.replace("(*", f"(*{parameter_name}", 1))
        elif parameter_name:
            parts.append(f"{kind}{'' if kind.endswith('*') else ' '}{parameter_name}")
        else:
            parts.append(kind)
    returns = prototype["returns"]
    return f"{returns}{'' if returns.endswith('*') else ' '}{name}({', '.join(parts) or 'void'});"


def facts_of(library, versions):
    """Everything about one library; versions are (version, include, exporters), oldest first."""
    header, files = SOURCES[library]
    ours = exported(files)
    functions = functions_named(ours["table"])
    sections = ("prototypes", "was", "types", "structs", "constants", "members", "since", "lacks")
    facts = {"versions": []} | {section: {} for section in sections}
    for version, include, exporters in versions:
        if exporters:
            there = set().union(*map(symbols, exporters))
            facts["lacks"][version] = sorted(name for name in functions if name not in there)
        if include == "-":
            continue
        facts["versions"].append(version)
        text = preprocess(header, include)
        found = prototypes(text)
        used = set()
        for name in functions:
            if name not in found:
                continue
            line = written(name, found[name])
            if library == "libc":
                line = re.sub(r"\b__(?!errno)", "", line)  # the C library keeps out of the user's names
                line = re.sub(r"\b(CONST_)?SOCKADDR_ARG ", sockaddr, line)
                line = line.replace("compar_fn_t compar", "int(*compar)(const void *, const void *)")
            before = facts["prototypes"].get(name)
            if before is not None and before != line:
                facts["was"].setdefault(name, {})[version] = before
            facts["prototypes"][name] = line
            used.update([found[name]["returns"], *(kind for kind, _ in found[name]["parameters"])])
        # What shows its star is a pointer.
        opaque = {kind.removeprefix("__") for kind in used - {"void"} if "*" not in kind}
        opaque = sorted(opaque - {"SOCKADDR_ARG", "CONST_SOCKADDR_ARG", "compar_fn_t"})
        measured = types(opaque, header, include, enumerations(text)) if opaque else {}
        for name, fact in measured.items():
            if facts["types"].setdefault(name, fact) != fact:
                raise SystemExit(f"{library} {version}: {name} is {fact}, and was {facts['types'][name]}")
        for name, body in ours["struct"].items():
            fact = struct_facts(name, re.findall(r"(\w+): ", body), header, include)
            if fact is not None:
                facts["structs"].setdefault(name, {})[version] = fact
        command = ["gcc", "-E", "-dD", "-w", "-x", "c", "-", "-I", include]
        words = set(TOKEN.findall(subprocess.run(command, input=header, text=True, capture_output=True).stdout))
        for name, value in constants(constants_named(ours["constant"], words), header, include).items():
            if facts["constants"].setdefault(name, value) != value:
                raise SystemExit(f"{library} {version}: {name} is {value}, and was {facts['constants'][name]}")
        facts["members"].update({name: names for name, names in members(text).items() if name in ours["constant"]})
        since = introduced(include)
        facts["since"].update({name: since[name] for name in functions if name in since})
    return {key: value for key, value in facts.items() if value}


def rows(value, depth, indent=""):
    """JSON with one line per entry at the given depth."""
    if depth == 0 or not isinstance(value, dict):
        return json.dumps(value)
    inner = indent + " "
    entries = [f"{inner}{json.dumps(key)}: {rows(item, depth - 1, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(entries) + f"\n{indent}}}"


def main():
    asked = {}
    for argument in sys.argv[1:]:
        library, rest = argument.split(":", 1)
        version, paths = rest.split("=", 1)
        include, *exporters = paths.split(",")
        asked.setdefault(library, []).append((version, include, exporters))
    path = HERE / "abi_facts.json"
    facts = json.loads(path.read_text()) if path.exists() else {}
    facts.update({library: facts_of(library, versions) for library, versions in asked.items()})
    path.write_text(rows(facts, 3) + "\n")


if __name__ == "__main__":
    main()
