"""The contract suite asserts in modules that pytest does not collect: their asserts explain themselves too."""

import pytest

for name in ("contract", "gateway"):
    pytest.register_assert_rewrite(f"tests.delivery.transports.{name}")
