from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from world import Trip, key, question, shows, text, url

shows("pydantic-ai-slim")


def provider(secret: str) -> OpenAIProvider:
    return OpenAIProvider(api_key=secret, base_url=f"{url}/v1")


model = OpenAIChatModel("gpt-4o", provider=provider(key))

# Chat and responses, whole
for kind in (model, OpenAIResponsesModel("gpt-4o", provider=provider(key))):
    result = Agent(kind).run_sync("Where to?")
    assert result.output == text, result

# As a stream
with_stream = Agent(model).run_stream_sync("Where to?")
assert "".join(with_stream.stream_text(delta=True)) == text

# An agent that calls a tool until the answer is text
agent = Agent(model)
cities: list[str] = []


@agent.tool_plain
def weather(city: str) -> str:
    """The weather of a city"""
    cities.append(city)
    return "sunny"


assert agent.run_sync(question).output == text
assert len(cities) == 1, cities

# Structured output
assert isinstance(Agent(model, output_type=Trip).run_sync("Where to?").output, Trip)

# An error contains the detail of the problem
try:
    Agent(OpenAIChatModel("gpt-4o", provider=provider("sk-wrong"))).run_sync("Hi")
    raise AssertionError("a wrong key was accepted")
except ModelHTTPError as error:
    assert error.status_code == 401 and "malformed" in str(error), error
