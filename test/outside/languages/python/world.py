"""What every program here needs: the gateway, its key, and the text of every response."""

import os
from importlib.metadata import version

from pydantic import BaseModel

url = os.environ["GATEWAY_URL"]
key = os.environ["GATEWAY_API_KEY"]
text = os.environ["ANSWER"]
is_sandbox = os.environ["WORLD"] == "the sandbox"

# The sandbox calls a tool that the prompt names
question = "Where to? [[sim:tool=weather]]"


class Trip(BaseModel):
    city: str
    days: int


def shows(*packages: str) -> None:
    for name in packages:
        print(f"{name} {version(name)}")
