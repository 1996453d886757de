from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes import PATIENCE_S
from support.serve import Kvflow


@pytest.fixture
def kvflow(tmp_path: Path) -> Iterator[Kvflow]:
    made = Kvflow(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.wait(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()
