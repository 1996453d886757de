"""`kvflow top` on a terminal: Textual widgets that draw what the store says."""
