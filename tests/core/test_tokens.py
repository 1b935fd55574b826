"""Token counts, under every name that operations have for them."""

import pytest

from cacheproxy.core.tokens import tokens_of


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}, (3, 4)), ({"input_tokens": 3}, (3, 0)),
        ({"prompt_tokens": 3, "completion_tokens": 4}, (3, 4)), ({"prompt_tokens": 3, "total_tokens": 3}, (3, 0)),
        ({"prompt_tokens": None, "input_tokens": 3}, (3, 0)), ({"prompt_tokens": 0, "total_tokens": 9}, (0, 0)),
        ({"total_tokens": 9}, (9, 0)), ({"total_tokens": 9, "completion_tokens": 4}, (5, 4)),
        ({"total_tokens": 3, "completion_tokens": 4}, (0, 4)), ({"output_tokens": 4, "input_tokens": -1}, (0, 4)),
        ({"input_tokens": True, "output_tokens": "4"}, (0, 0)), ({"input_tokens": 2**53, "output_tokens": 1.0}, (0, 0)),
        (None, (0, 0)), ([], (0, 0)), ("x", (0, 0)), ({}, (0, 0)),
    ],
)  # fmt: skip
def test_tokens_are_those_counted(usage, tokens):
    assert tokens_of(usage) == tokens
