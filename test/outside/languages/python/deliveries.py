"""Deliveries of the gateway, for the packages that verify them."""

import json
import os
from typing import Callable


def verifies(verify: Callable[[str, bytes, dict[str, str]], object], refused: type[Exception]) -> None:
    """Verifies each delivery with each of its secrets, and refuses another body."""
    deliveries = json.loads(os.environ["DELIVERIES"])
    assert [len(it["secrets"]) for it in deliveries] == [1, 2], deliveries
    for delivery in deliveries:
        body, headers = delivery["body"].encode(), delivery["headers"]
        for secret in delivery["secrets"]:
            verify(secret, body, headers)
            try:
                verify(secret, body + b" ", headers)
            except refused:
                continue
            raise AssertionError("another body was accepted")
