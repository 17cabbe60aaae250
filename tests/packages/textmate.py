"""Applies a TextMate grammar to text as an editor does, with Python's re: match, begin and end, includes, captures."""
import json
import re


class TextMate:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.grammar = json.load(file)
        self.expressions = {}

    def rules(self, patterns):
        """The rules with a match or a begin, in their order, behind all includes."""
        for rule in patterns:
            if "include" in rule:
                yield from self.rules([self.grammar["repository"][rule["include"][1:]]])
            elif "match" in rule or "begin" in rule:
                yield rule
            else:
                yield from self.rules(rule["patterns"])

    def search(self, expression, text, at):
        if expression not in self.expressions:
            self.expressions[expression] = re.compile(expression)
        return self.expressions[expression].search(text, at)

    def first(self, rule, text, at):
        """(match, rule) of what begins first, no rule for the end of `rule`; of equals the end, then in order."""
        found = [(self.search(rule["end"], text, at), None)] if "end" in rule else []
        found += [(self.search(r.get("match", r.get("begin")), text, at), r) for r in self.rules(rule["patterns"])]
        return min((pair for pair in found if pair[0]), key=lambda pair: pair[0].start(), default=(None, None))

    def line(self, text, stack, scopes):
        """Sets the scopes of each character of a line, outermost first; `stack` goes on to the next one."""
        at = 0
        for _ in range(4 * len(text) + 16):
            rule, names = stack[-1]
            match, inner = self.first(rule, text, at)
            if not match:
                scopes[at:] = [names] * (len(text) - at)
                return
            scopes[at:match.start()] = [names] * (match.start() - at)
            own, captures = names, {}
            if not inner:
                captures = rule.get("endCaptures", {})
                stack.pop()
            else:
                own = names + [inner["name"]] if "name" in inner else names
                captures = inner.get("captures", inner.get("beginCaptures", {}))
                if "begin" in inner:
                    stack.append((inner, own))
            scopes[match.start():match.end()] = [own] * (match.end() - match.start())
            for group, capture in captures.items():
                begin, end = match.span(int(group))
                scopes[begin:end] = [own + [capture["name"]]] * (end - begin)
            at = match.end()
        raise AssertionError("no end of %r at %d" % (text, at))

    def scopes(self, text):
        """A list of scopes for each character."""
        stack, all_scopes = [(self.grammar, [])], []
        for line in text.splitlines(keepends=True):
            scopes = [[]] * len(line)
            self.line(line, stack, scopes)
            all_scopes += scopes
        return all_scopes
