"""Where the nodes of a tree go: close together, parents over their children (Reingold and Tilford 1981)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass
class Node:
    key: int
    width: float
    children: "Sequence[Node]"
    x: float = 0.0
    """of its middle"""
    depth: int = 0

    def all(self) -> "Iterator[Node]":
        yield self
        for child in self.children:
            yield from child.all()


@dataclass
class _Outline:
    """How far a subtree reaches to both sides of its root, level by level."""

    left: list[float] = field(default_factory=list)
    right: list[float] = field(default_factory=list)


def place_tree(root: Node) -> tuple[float, int]:
    """Sets x and depth of every node; x from 0. How wide the tree is, and how many levels it has."""
    outline = _shape(root)
    low, high = min(outline.left), max(outline.right)
    _settle(root, -low, 0)
    return high - low, len(outline.left)


def _shape(node: Node) -> _Outline:
    """Sets x of each child relative to `node`."""
    outlines = [_shape(child) for child in node.children]
    forest = _Outline()
    places: list[float] = []
    for outline in outlines:
        pairs = zip(forest.right, outline.left, strict=False)
        places.append(max((right - left for right, left in pairs), default=-outline.left[0]))
        _join(forest, outline, places[-1])
    middle = (places[0] + places[-1]) / 2 if places else 0.0
    for child, place in zip(node.children, places, strict=True):
        child.x = place - middle
    half = node.width / 2
    return _Outline(
        [-half, *(left - middle for left in forest.left)], [half, *(right - middle for right in forest.right)]
    )


def _join(forest: _Outline, outline: _Outline, place: float) -> None:
    """A subtree at the right of others."""
    for level, (left, right) in enumerate(zip(outline.left, outline.right, strict=True)):
        if level < len(forest.left):
            forest.right[level] = place + right
        else:
            forest.left.append(place + left)
            forest.right.append(place + right)


def _settle(node: Node, x: float, depth: int) -> None:
    node.x, node.depth = x, depth
    for child in node.children:
        _settle(child, x + child.x, depth + 1)
