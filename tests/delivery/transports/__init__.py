"""The contract suite asserts in a module that pytest does not collect: its asserts explain themselves too."""

import pytest

pytest.register_assert_rewrite("tests.delivery.transports.contract")
