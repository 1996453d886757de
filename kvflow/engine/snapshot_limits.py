"""How much a frame shows of what may be many."""

DEFAULT_NODES = 500
MOST_NODES = 2000
MOST_CHANGED_NODES = 100
MOST_NEWS = 64
MOST_AGENTS = 256
MOST_NAMES = 64  # of a node's agents
MOST_RUNS = 64
MOST_WAITING = 64
