# SPDX-License-Identifier: BSD-3-Clause
"""The direction of dependencies, as data, and the search for includes that go against it. All rules here are about the text
of sources; what a script needs to know from their tables is in tables.json (tools/tables)."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

# The folders of the library, bottom to top, a line for each: a file includes files of its own folder or of one below. Folders of
# one line are side by side and do not know each other. A file outside of these folders is in no layer.
LAYERS = [
    ["runtime/include/"],
    ["runtime/base/"],
    ["runtime/machine/"],
    ["bootstrap/"],
    ["runtime/transport/"],
    ["runtime/ucx/workarounds/"],  # also for what loads UCX without the transport
    ["runtime/registration_cache/"],
    ["runtime/shm/", "runtime/ucx/", "runtime/verbs/", "runtime/sim/"],
    ["runtime/comm/"],
    ["runtime/collectives/framework/"],
    ["runtime/collectives/"],
    ["runtime/engine/"],
    ["runtime/context/", "runtime/trace/"],
    ["runtime/api/"],
    ["runtime/under_mpi/"],
]

# Folders that see only a few files of the others: prefix -> prefixes of what they may include.
ONLY = {
    "bootstrap/mpi/": ["bootstrap/mpi/", "runtime/include/"],
    "runtime/under_mpi/core/": ["runtime/under_mpi/core/", "runtime/include/"],
    "runtime/under_mpi/": ["runtime/under_mpi/", "runtime/include/"],
    "tools/ibcoll_run/": ["tools/ibcoll_run/", "tools/options/", "tools/terminal.h", "bootstrap/", "runtime/include/", "runtime/base/"],
    "tools/ibcoll_sim/": ["tools/ibcoll_sim/", "tools/options/", "tools/oracle/", "tools/traces/", "runtime/"],  # the runtime itself, in one process
    "tools/": ["tools/", "runtime/include/", "runtime/base/"],
    "perf/peers/": ["perf/", "tools/oracle/distributions.h", "runtime/base/catalog.h"],
    "perf/apps/": ["perf/apps/", "tools/options/follow_links.h", "perf/call_times.h", "runtime/include/"],
    # These measure parts that no program sees.
    "perf/measures/registration_cache": ["runtime/registration_cache/", "runtime/base/"],
    "perf/measures/reduce": ["runtime/comm/reduce/"],
    "perf/measures/put": ["perf/call_times.h", "perf/measures/cores.h", "runtime/verbs/", "runtime/base/"],
    "perf/": ["perf/", "tools/own_calls.h", "tools/options/", "tools/oracle/",
              "tools/timed_algorithms/", "runtime/include/", "runtime/base/"],
}

# What an algorithm must not know: fabrics, clocks, threads, random numbers. It runs unchanged in the simulator.
NOT_IN_COLLECTIVES = re.compile(
    r"^(infiniband/|rdma/|uc[pts]/|mpi\.h|pmix|chrono|ctime|time\.h|sys/time|thread|mutex|shared_mutex|"
    r"condition_variable|semaphore|future|pthread|sched\.h|random|unistd\.h|sys/random)")
NOT_USED_IN_COLLECTIVES = re.compile(
    r"\b(s?rand|random|drand48|clock_gettime|gettimeofday|usleep|nanosleep|sched_yield|getenv)\s*\(|"
    r"std::(thread|mutex|chrono|mt19937)\b")

# Numbers that were measured or assumed stand in one table. 0.0 and 1.0 are bounds.
COST_TABLE = "runtime/transport/cost_constants.h"
COST_CONSTANT = re.compile(r"(?<![\w.])(?![01]\.0\b)(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")
LINK_CONSTANTS = re.compile(r"\bLinkModel\b[^;{}]*\{\s*(?:return\s*\{\s*)?[\d.][^}]*\}")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
# What begins in the first column is in a namespace, not in a class or a function.
CLASS = re.compile(r"\b(?:class|struct)\s+(?:alignas\(\w+\)\s+|[A-Z_]+\s+)?(\w+)(?:\s+final)?(?:\s*:[^;{]*)?\s*\{")
FUNCTION = re.compile(r"^(?!using|namespace|static|template)(?:[\w:<>,]+[ *&]+)+?(\w+)\([^;{}]*(;|\{)", re.M)
MEMBER = re.compile(r"^(?=\w)[\w:<>*&,\[\] ]*?\b(\w+)::~?\w+\(", re.M)
VARIABLE = re.compile(r"^(?:(?:const|constinit|thread_local) )*[\w:<>*]+ [*&]?(\w+)(?:\[\w*\])?(?:\{| =|;)", re.M)
EXTERN = re.compile(r"^extern (?!\"C)[^;(]*;", re.M)
# A declaration without what stands in its brackets.
PUBLIC_FUNCTION = re.compile(r"(?!using\b|friend\b|static_assert\b|[,:])(?:(?!operator)[^=()])*?[\s*&](?!operator\b)(\w+)\(")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
SOURCES = ("*.h", "*.cc", "*.c", "*.inc")
PROGRAMS = ("runtime/", "bootstrap/", "tools/", "perf/")


def layer(path):
    """The number of the layer and the folder in it; None: a file that is in no layer."""
    for number, folders in enumerate(LAYERS):
        for folder in folders:
            if path.startswith(folder):
                return number, folder
    return None


# What a reader keeps in mind of one class; those that exceed it, with the reason.
MOST_PUBLIC_FUNCTIONS = 25
MANY_PUBLIC_FUNCTIONS = {
    "runtime/comm/comm.h Comm": "all that an algorithm may do",
}
MOST_SOURCES = 2
MANY_SOURCES = {
    "runtime/ucx/transport.h Transport": "a source for each way of a message, and one for connections",
    "runtime/under_mpi/core/builder.h Builder": "a source for each kind of collective",
}

# Headers that declare what other layers define: the interface of the library.
DEFINED_ABOVE = ["runtime/include/"]


class Tree:
    """The sources below a root and what they include."""

    def __init__(self, root):
        self.root = Path(root)
        self.code = {}
        for folder in ("runtime", "bootstrap", "tools", "perf", "tests"):
            for pattern in SOURCES:
                for file in (self.root / folder).rglob(pattern):
                    text = file.read_text(errors="replace")
                    self.code[str(file.relative_to(self.root))] = COMMENT.sub("", text)

    def resolve(self, path, name):
        """A quoted or angled include as a path in the tree, or None for a system header."""
        for candidate in (name, f"runtime/include/{name}", str(Path(path).parent / name)):
            if candidate in self.code:
                return candidate
        return None

    def includes(self, path):
        """(project files, system headers) that `path` includes itself."""
        own, system = [], []
        for _, name in INCLUDE.findall(self.code[path]):
            found = self.resolve(path, name)
            (system if found is None else own).append(found or name)
        return own, system

    def reach(self, path):
        """Every project file that `path` includes, itself among them, with the way to it."""
        ways, queue = {path: [path]}, [path]
        while queue:
            current = queue.pop()
            for own in self.includes(current)[0]:
                if own not in ways:
                    ways[own] = ways[current] + [own]
                    queue.append(own)
        return ways

    def below(self, prefix):
        return sorted(path for path in self.code if path.startswith(prefix))


def wrong_direction(tree):
    """Includes from a lower layer into a higher one, or between folders that are side by side."""
    for path in tree.below("runtime/") + tree.below("bootstrap/"):
        here = layer(path)
        if here is None:
            yield f"{path} is in no layer: tests/layering/rules.py lists the folders"
            continue
        for own in tree.includes(path)[0]:
            there = layer(own)
            if there is None or there[0] > here[0]:
                yield f"{path} includes {own}: a dependency from below to above"
            elif there[0] == here[0] and there[1] != here[1]:
                yield f"{path} includes {own}: folders that do not know each other"


def without_anonymous_namespaces(code):
    kept, end = [], 0
    for begin in re.finditer(r"^namespace \{", code, re.M):
        if begin.start() < end:
            continue
        kept.append(code[end:begin.start()])
        end, depth = begin.end(), 1
        while depth > 0 and end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
    return "".join(kept) + code[end:]


def declarations(tree):
    """(class -> layers, name of a function or variable -> layers): where headers declare them."""
    classes, names = {}, {}
    for path in tree.below("runtime/") + tree.below("bootstrap/"):
        if not path.endswith(".h") or path.startswith(tuple(DEFINED_ABOVE)):
            continue
        code = tree.code[path]
        for name in CLASS.findall(code):
            classes.setdefault(name, set()).add(layer(path))
        found = [name for name, end in FUNCTION.findall(code) if end == ";"]
        for variables in EXTERN.findall(code):
            found += re.findall(r"(\w+)(?=[,;\[])", variables)
        for name in found:
            names.setdefault(name, set()).add(layer(path))
    return classes, names


def defined_elsewhere(tree):
    """What a header of one layer declares and a source of another one defines: a dependency that no include shows."""
    classes, names = declarations(tree)
    for path in tree.below("runtime/") + tree.below("bootstrap/"):
        if not path.endswith(".cc"):
            continue
        own = set(CLASS.findall(tree.code[path]))
        code = without_anonymous_namespaces(tree.code[path])
        members = set(MEMBER.findall(code)) - own
        defined = {name for name, end in FUNCTION.findall(code) if end == "{"} | set(VARIABLE.findall(code))
        for name in sorted(members & classes.keys()) + sorted(defined & names.keys()):
            layers = classes[name] if name in members else names[name]
            if layer(path) not in layers:
                yield f"{path} defines what {sorted(layers)[0][1]} declares: {name}"


def beyond_the_interface(tree):
    """Includes of tools, perf and bootstrap beyond what ONLY grants them."""
    for path in sorted(tree.code):
        grant = next((allowed for prefix, allowed in ONLY.items() if path.startswith(prefix)), None)
        if grant is None:
            continue
        for own in tree.includes(path)[0]:
            if not own.startswith(tuple(grant)):
                yield f"{path} includes {own}: only {', '.join(grant)} are open to it"


def impure_collectives(tree):
    """What makes an algorithm depend on a fabric, on time, on threads or on chance, also through headers."""
    for path in tree.below("runtime/collectives/"):
        for file, way in tree.reach(path).items():
            for header in tree.includes(file)[1]:
                if NOT_IN_COLLECTIVES.match(header):
                    yield f"{' -> '.join(way)} includes <{header}>"
        for use in NOT_USED_IN_COLLECTIVES.finditer(tree.code[path]):
            yield f"{path} uses {use.group(0)}"


def constants_outside_the_table(tree):
    """Numbers of predicted costs in algorithms and transports."""
    for path in tree.below("runtime/"):
        if path == COST_TABLE:
            continue
        patterns = [LINK_CONSTANTS] + ([COST_CONSTANT] if path.startswith("runtime/collectives/") else [])
        for pattern in patterns:
            for number in pattern.finditer(tree.code[path]):
                yield f"{path} has {number.group(0)}: constants of costs stand in {COST_TABLE}"


def unregistered(tree):
    """Files that runtime/CMakeLists.txt does not list, and algorithms that are not exactly once in its list of algorithms."""
    listed = (tree.root / "runtime/CMakeLists.txt").read_text().split()
    for path in tree.below("runtime/collectives/"):
        if path.endswith(".cc"):
            file = path.removeprefix("runtime/")
            algorithm = "rows()" in tree.code[path] and not file.startswith("collectives/framework/")
            word = file.removeprefix("collectives/").removesuffix(".cc") if algorithm else file
            if word not in listed or algorithm and listed.count(word) > 1:
                yield f"{word} is {listed.count(word)} times in runtime/CMakeLists.txt"


def own_header_not_first(tree):
    """Sources that do not show that their own header compiles alone."""
    for path in sorted(tree.code):
        header = path.removesuffix(".cc") + ".h"
        if path.endswith(".cc") and header in tree.code:
            first = INCLUDE.search(tree.code[path])
            if first is None or tree.resolve(path, first.group(2)) != header:
                yield f"{path} does not include {header} first"


def without(text, opening, closing):
    """The text without what stands between such brackets."""
    kept, depth = [], 0
    for sign in text:
        depth -= sign == closing
        if depth == 0:
            kept.append(sign)
        depth += sign == opening
    return "".join(kept)


def public_functions(code):
    """(class, names of its public functions) for each class that a header defines; constructors and operators do not count."""
    for head in CLASS.finditer(code):
        depth, end = 1, head.end()
        while depth > 0 and end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        body = re.sub(r"\[\[[^\]]*\]\]", "", code[head.end():end - 1])
        body = without(without(body, "(", ")"), "{", "}")
        while (plain := re.sub(r"<[^<>;{}]*>", "", body)) != body:
            body = plain
        names, is_public = set(), head.group().startswith("struct")
        for part in re.split(r"\b(public|protected|private):", body):
            if part in ("public", "protected", "private"):
                is_public = part == "public"
            elif is_public:
                found = (PUBLIC_FUNCTION.match(each.strip()) for each in re.split("[;{}]", part))
                names |= {match.group(1) for match in found if match}
        yield head.group(1), names - {head.group(1)}


def many_public_functions(tree):
    """The classes with more than MOST_PUBLIC_FUNCTIONS, as "header class": their number."""
    return {f"{path} {name}": len(functions)
            for path in sorted(tree.code) if path.endswith(".h") and path.startswith(PROGRAMS)
            for name, functions in public_functions(tree.code[path]) if len(functions) > MOST_PUBLIC_FUNCTIONS}


def many_sources(tree):
    """The classes that more than MOST_SOURCES define, as "header class": these sources."""
    headers, sources = {}, {}
    for path in sorted(tree.code):
        if path.endswith(".h") and path.startswith(PROGRAMS):
            headers.update(((str(Path(path).parent), name), path) for name in CLASS.findall(tree.code[path]))
    for path in sorted(tree.code):
        if path.endswith(".cc") and path.startswith(PROGRAMS):
            for name in set(MEMBER.findall(tree.code[path])):
                if header := headers.get((str(Path(path).parent), name)):
                    sources.setdefault(f"{header} {name}", []).append(path)
    return {name: paths for name, paths in sources.items() if len(paths) > MOST_SOURCES}
