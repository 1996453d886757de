"""Write the key tables of docs/top.md from the bindings themselves. `--check` only compares."""

import sys
from pathlib import Path

from textual.binding import Binding

from kvflow.tui.screen.keys import MAIN, table
from kvflow.tui.screen.listing import Listing
from kvflow.tui.screen.tree_view import TreeView

TARGET = Path(__file__).parents[1] / "docs" / "top.md"
BEGIN = "<!-- Made by scripts/top_keys.py -->"
END = "<!-- Until here -->"


def render(document: str) -> str:
    """The document with the tables as they should be."""
    bindings = [*MAIN, *Listing.BINDINGS, *TreeView.BINDINGS]
    tables = table(binding for binding in bindings if isinstance(binding, Binding))
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"


def main() -> int:
    """Write, or with --check say whether the file is up to date (exit 1 if not)."""
    document = TARGET.read_text()
    text = render(document)
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text)
        return 0
    if document == text:
        return 0
    print(f"{TARGET} is out of date: python scripts/top_keys.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
