"""The graph of patterns, in which the rule that matches an input is found.

A rule is a path of words: ``HELLO * <that> * <topic> *``. Paths with the same beginning share it.
At each word the alternatives are tried in the order of AIML 2.0: ``$WORD``, ``#``, ``_``, the word,
a set, ``^``, ``*``; a wildcard takes as few words as possible (``_`` and ``*`` at least one). The
first path that reaches a rule wins; AIML 1.0 is the same with ``_``, the word and ``*`` only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rejoinder.systems.aiml.parsing import SET_MARK, THAT, TOPIC, Rule

RULE = ""
"""Key of the rule in the node at the end of its path."""
SETS = "<sets>"
"""Key of the sets that a node has edges for."""

Node = dict[str, Any]
Span = tuple[int, int]


class Match(NamedTuple):
    """A rule that matches, and the words that its wildcards and sets stand for, by part."""

    rule: Rule
    star: list[Span]
    thatstar: list[Span]
    topicstar: list[Span]


class WordSets:
    """The sets that patterns refer to, such as the names of colours."""

    def __init__(self, sets: Mapping[str, set[tuple[str, ...]]]) -> None:
        self._sets = sets
        self._longest = {name: max(map(len, own), default=0) for name, own in sets.items()}

    def ends(self, name: str, tokens: Sequence[str], start: int, limit: int) -> Iterator[int]:
        """Yield where a member that begins at ``start`` may end, the longest member first."""
        if name == "number":
            if tokens[start].isdigit():
                yield start + 1
            return
        own = self._sets.get(name, set())
        for end in range(min(limit, start + self._longest.get(name, 0)), start, -1):
            if tuple(tokens[start:end]) in own:
                yield end


class Graph:
    """Rules by their paths."""

    def __init__(self, sets: WordSets | None = None) -> None:
        self._root: Node = {}
        self._sets = sets or WordSets({})
        self._has_new_keys = False
        """Whether a pattern has $, #, ^ or a set, which AIML 1.0 does not know."""
        self.size = 0

    def add(self, rule: Rule) -> Rule | None:
        """Add a rule; return the one with the same path, which it replaces."""
        node = self._root
        for key in rule.path:
            child = node.get(key)
            if child is None:
                child = node[key] = {}
                if key[0] in "$#^<" and key not in (THAT, TOPIC):
                    self._has_new_keys = True
                if key[0] == "<" and key.startswith(SET_MARK):
                    node.setdefault(SETS, []).append(key.removeprefix(SET_MARK))
            node = child
        before: Rule | None = node.get(RULE)
        node[RULE] = rule
        self.size += before is None
        return before

    def remove(self, rule: Rule) -> None:
        """Remove a rule that was added."""
        node = self._root
        for key in rule.path:
            node = node[key]
        del node[RULE]
        self.size -= 1

    def match(
        self,
        words: Sequence[str],
        that: Sequence[str],
        topic: Sequence[str],
        spend: Callable[[int], None],
    ) -> Match | None:
        """Return the rule that matches, or None; ``spend`` is told the number of steps.

        A path that failed from a node and a word on is not tried again, so the time is limited by
        the number of nodes times the number of words.
        """
        tokens = [*words, THAT, *that, TOPIC, *topic]
        first, second, total = len(words), len(words) + 1 + len(that), len(tokens)
        failed: set[tuple[int, int]] = set()
        # node, place, stars before it, and for an open wildcard where it began
        stack: list[tuple[Node, int, Any, int]] = [(self._root, 0, None, -1)]
        steps, new_keys = 0, self._has_new_keys
        while stack:
            node, at, stars, began = stack.pop()
            steps += 1
            if steps == 1000:
                spend(steps)
                steps = 0
            if began >= 0:
                limit = first if began <= first else second if began <= second else total
                only = THAT if limit == first else TOPIC if limit == second else RULE
                if len(node) == 1 and only in node:
                    at = limit  # nothing but the end of this part can follow
                if (id(node), at) in failed:
                    continue  # and so did all longer spans from this node
                failed.add((id(node), at))
                if at < limit:
                    stack.append((node, at + 1, stars, began))
                stars = (stars, began, at)
            if at == total:
                if (rule := node.get(RULE)) is not None:
                    spend(steps)
                    return _match(rule, stars, first, second)
                for zero in ("^", "#"):
                    if (child := node.get(zero)) is not None:
                        stack.append((child, at, stars, at))
                continue
            token = tokens[at]
            limit = first if at <= first else second if at <= second else total
            # the last pushed is tried first
            if at < limit and (child := node.get("*")) is not None:
                stack.append((child, at + 1, stars, at))
            if new_keys:
                if (child := node.get("^")) is not None:
                    stack.append((child, at, stars, at))
                if at < limit and SETS in node:
                    for name in reversed(node[SETS]):
                        child = node[SET_MARK + name]
                        for end in reversed(list(self._sets.ends(name, tokens, at, limit))):
                            stack.append((child, end, (stars, at, end), -1))
            if (child := node.get(token)) is not None:
                stack.append((child, at + 1, stars, -1))
            if at < limit and (child := node.get("_")) is not None:
                stack.append((child, at + 1, stars, at))
            if new_keys:
                if (child := node.get("#")) is not None:
                    stack.append((child, at, stars, at))
                if (child := node.get("$" + token)) is not None:
                    stack.append((child, at + 1, stars, -1))
        spend(steps)
        return None


def _match(rule: Rule, stars: Any, first: int, second: int) -> Match:
    """Sort the spans of wildcards by the part of the path in which they stand."""
    found = Match(rule, [], [], [])
    while stars is not None:
        stars, start, end = stars
        if start <= first and end <= first:
            found.star.insert(0, (start, end))
        elif end <= second:
            found.thatstar.insert(0, (start - first - 1, end - first - 1))
        else:
            found.topicstar.insert(0, (start - second - 1, end - second - 1))
    return found
