# SPDX-License-Identifier: BSD-3-Clause
"""The rules for co_await under g++ 12 (runtime/comm/task.h), checked on the text of a source.

The text is read as full expressions: what stands between two boundaries of statements. The condition of an if or a loop
is a full expression of its own, and so is each statement in the body of a lambda."""

import re

TOKEN = re.compile(
    r'(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*)'
    r'|(?P<literal>R"(?P<mark>[^\s()\\]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|\d(?:\'?[\w.])*)'
    r'|(?P<word>[A-Za-z_]\w*)|(?P<sign>->|::|&&|.)', re.S | re.M)
CLOSES = {"(": ")", "[": "]", "{": "}"}
CONTROL = {"if", "for", "while", "switch", "catch", "constexpr"}
LABELS = {"default", "public", "private", "protected"}
BEFORE_A_BODY = {")", "noexcept", "const", "override", "final", "mutable", "else", "do", "try"}
TRAILING_TYPE = re.compile(r"(\)|noexcept) ->[\w:<>&* ]+$")  # `auto f() -> Task {`
NOT_AN_OBJECT = {"return", "co_return", "co_await", "co_yield", "case", "else", "do"}  # `[` after it begins a lambda

LAMBDA = "a lambda with captures in a full expression with co_await: give it a name before"
BRACES = "a braced temporary in a full expression with co_await: give it a name before"
CONDITIONAL = "a conditional (?:) in a full expression with co_await: both sides are evaluated"
BINDING = "a structured binding of a co_await"
CATCH = "a co_await in a catch block"
REFERENCE = "a task takes a reference other than Comm&: pass a value or a pointer"
BRACKETS = "brackets that do not match: the rules for co_await cannot be checked"


def tokens_of(text):
    """(token, line) without comments, white space and preprocessor lines; a literal is the token 0."""
    line, found = 1, []
    for match in TOKEN.finditer(text):
        if match.lastgroup != "skip":
            found.append(("0" if match["literal"] else match[0], line))
        line += match[0].count("\n")
    return found


def by_reference(tokens):
    """True: a parameter is a reference other than Comm&. `tokens` begin after the parenthesis."""
    depth, parameters = 0, [[]]
    for token in tokens:
        depth += (token in "(<[{") - (token in ")>]}")
        if depth < 0:
            break
        if token == "," and depth == 0:
            parameters.append([])
        elif depth == 0:
            parameters[-1].append(token)
    return any(("&" in one or "&&" in one) and one[:2] != ["Comm", "&"] for one in parameters)


class Expression:
    """A full expression, or the head of a function or class, as far as it was read."""

    def __init__(self):
        self.tokens = []
        self.lines = []
        self.awaits = False
        self.found = []  # (line, rule): a violation when there is a co_await
        self.lambdas = []  # the depths of brackets at which the body of a lambda is still to come

    def last(self):
        return self.tokens[-1] if self.tokens else ""

    def before_a_body(self):
        """Whether `{` begins a block here, and not a braced initializer."""
        if not self.tokens or self.last() in BEFORE_A_BODY:
            return True
        if {"namespace", "class", "struct", "union", "enum", "extern"} & set(self.tokens) and "=" not in self.tokens:
            return True
        return self.last() == "}" or bool(TRAILING_TYPE.search(" ".join(self.tokens[-12:])))


class Source:
    def __init__(self, text):
        self.tokens = tokens_of(text)
        self.at = 0
        self.violations = []
        while self.at < len(self.tokens):
            self.block("", False)

    def block(self, closing, in_catch):
        """Statements up to `closing`; also the head of a for, whose parts are full expressions."""
        now = Expression()
        while self.at < len(self.tokens):
            token, line = self.tokens[self.at]
            if token == "(" and now.last() in CONTROL:
                catches = now.last() == "catch"
                self.at += 1
                self.block(")", in_catch)
                self.end(now)
                now = Expression()
                if catches and self.at < len(self.tokens) and self.tokens[self.at][0] == "{":
                    self.at += 1
                    self.block("}", True)
            elif token == "{" and not now.lambdas and now.before_a_body():
                self.end(now)
                self.at += 1
                self.block("}", in_catch)
                now = Expression()
            elif token in ")]}":
                self.at += 1
                if token != closing:
                    self.violations.append((line, BRACKETS))
                return self.end(now)
            elif token == ";" or token == ":" and ("case" in now.tokens[:1] or now.last() in LABELS):
                self.at += 1
                self.end(now)
                now = Expression()
            else:
                self.part(now, 0, in_catch)
        if closing:
            self.violations.append((self.tokens[-1][1], BRACKETS))
        self.end(now)

    def part(self, now, depth, in_catch):
        """One token of an expression, or brackets with all that they hold."""
        token, line = self.tokens[self.at]
        self.at += 1
        if token == "{" and depth in now.lambdas:
            now.lambdas.remove(depth)
            self.block("}", False)
            return self.add(now, "}", line)
        begins_lambda = token == "[" and self.begins_lambda(now)
        self.note(now, token, line, in_catch)
        self.add(now, token, line)
        if token not in CLOSES:
            return None
        first = len(now.tokens)
        while self.at < len(self.tokens) and self.tokens[self.at][0] not in ")]}":
            self.part(now, depth + 1, in_catch)
        if self.at == len(self.tokens) or self.tokens[self.at][0] != CLOSES[token]:
            self.violations.append((line, BRACKETS))
        else:
            self.add(now, *self.tokens[self.at])
            self.at += 1
        if begins_lambda:
            now.lambdas.append(depth)
            if len(now.tokens) > first + 1:
                now.found.append((line, LAMBDA))
        return None

    def begins_lambda(self, now):
        """Whether `[` does: not a subscript, an attribute or a structured binding."""
        before = now.last()
        if re.match(r"\w", before) and before not in NOT_AN_OBJECT or before in (")", "]", "}", "["):
            return False
        return self.at < len(self.tokens) and self.tokens[self.at][0] != "[" and not self.binds(now)

    @staticmethod
    def binds(now):
        return now.last() == "auto" or now.tokens[-2:] in (["auto", "&"], ["auto", "&&"])

    def note(self, now, token, line, in_catch):
        if token == "co_await" and now.last() != "operator":
            now.awaits = True
            if in_catch:
                self.violations.append((line, CATCH))
        elif token == "?":
            now.found.append((line, CONDITIONAL))
        elif token == "{":
            now.found.append((line, BRACES))
        elif token == "[" and self.binds(now):
            now.found.append((line, BINDING))

    @staticmethod
    def add(now, token, line):
        now.tokens.append(token)
        now.lines.append(line)

    def end(self, now):
        if now.awaits:
            self.violations += now.found
        for at, token in enumerate(now.tokens):
            if token == "Task":
                self.parameters(now, at)

    def parameters(self, now, at):
        """Of `Task name(...)`, or of `(...) -> Task`, whose `Task` is the token `at`."""
        tokens, begin, end = now.tokens, at + 1, at - 2
        if tokens[max(end, 0):at] == [")", "->"]:
            begin, depth = end, 1
            while depth > 0 and begin > 0:
                begin -= 1
                depth += (tokens[begin] == ")") - (tokens[begin] == "(")
        else:
            while begin < len(tokens) and re.match(r"\w|::", tokens[begin]):
                begin += 1
            if begin == at + 1 or tokens[begin:begin + 1] != ["("]:
                return  # a variable, a constructor or a type
        if by_reference(tokens[begin + 1:]):
            self.violations.append((now.lines[begin], REFERENCE))


def violations(text):
    """(line, rule) of each, in order."""
    return sorted(set(Source(text).violations))


def in_tree(root):
    """file:line and the rule, of all sources that await or have tasks."""
    for folder in ("bootstrap", "perf", "runtime", "tests", "tools"):
        for path in sorted(file for end in ("*.cc", "*.h") for file in (root / folder).rglob(end)):
            text = path.read_text()
            if re.search(r"\bco_await\b|\bTask\b", text):
                for line, rule in violations(text):
                    yield f"{path.relative_to(root)}:{line}: {rule}"
