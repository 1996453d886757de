"""How a bench tells what it found: terminal, JSON, CSV, Markdown, and a folder with pictures."""
