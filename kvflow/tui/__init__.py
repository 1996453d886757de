"""`kvflow top`: the live radix tree, as data, as lines, and on an operator's screen."""
