"""Write the key tables of docs/top.md from the bindings themselves. `--check` only compares."""

import sys
from pathlib import Path

from kvflow.tui.screen.keymap import shipped
from kvflow.tui.screen.keys import table

TARGET = Path(__file__).parents[1] / "docs" / "top.md"
BEGIN = "<!-- Made by scripts/top_keys.py -->"
END = "<!-- Until here -->"


def render(document: str) -> str:
    """The document with the tables as they should be."""
    tables = table(shipped())
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
