"""What a command does when nobody reads any more what it writes."""

from rich.console import Console


class DataConsole(Console):
    """Says by BrokenPipeError that nobody reads; Rich's own ends the program on the spot."""

    def on_broken_pipe(self) -> None:
        """Leave it to the command."""
        raise  # what Rich is handling as it calls this
