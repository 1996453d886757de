"""How much of a tree a frame shows."""

DEFAULT_NODES = 500
MOST_NODES = 2000
