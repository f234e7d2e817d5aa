"""Many tabs at once: what they leave in the server's memory."""

import pytest

from benchmarks.tabs import many_tabs


@pytest.mark.slow
def test_a_minute_of_fifty_tabs_leaves_memory_flat() -> None:
    figures = many_tabs(50, 60)
    assert figures["moves"].median > 1
    assert figures["growth of memory"].median < 2
