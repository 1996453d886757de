"""`kvflow bench`: what kvflow buys on this box, for this workflow, measured honestly."""
