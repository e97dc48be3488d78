import os
from importlib.metadata import version

import instructor
from openai import AuthenticationError, OpenAI
from pydantic import BaseModel

print(f"instructor {version('instructor')}")
url = f"{os.environ['GATEWAY_URL']}/v1"
key = os.environ["GATEWAY_API_KEY"]
asked = [{"role": "user", "content": "Where to?"}]


class Trip(BaseModel):
    city: str
    days: int


# It requests a value with a tool or with a schema of the response
for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
    client = instructor.from_openai(OpenAI(api_key=key, base_url=url), mode=mode)
    trip = client.chat.completions.create(model="gpt-4o", messages=asked, response_model=Trip)
    assert isinstance(trip, Trip), trip

# A value that arrives in parts
parts = list(client.chat.completions.create_partial(model="gpt-4o", messages=asked, response_model=Trip))
assert isinstance(parts[-1].days, int), parts[-1]

# A wrong key is refused at once
stranger = instructor.from_openai(OpenAI(api_key="sk-wrong", base_url=url))
try:
    stranger.chat.completions.create(model="gpt-4o", messages=asked, response_model=Trip, max_retries=1)
    raise AssertionError("a wrong key was accepted")
except Exception as error:
    found = error
    while found is not None and not isinstance(found, AuthenticationError):
        found = found.__cause__
    assert found is not None or "malformed" in str(error), error
