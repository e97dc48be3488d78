from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from world import Trip, key, question, shows, text, url

shows("langchain-openai", "langchain-core")
model = ChatOpenAI(model="gpt-4o", api_key=key, base_url=f"{url}/v1", max_retries=0)

# Chat, whole and as a stream, both with usage figures
whole = model.invoke("Where to?")
assert whole.content == text, whole
assert whole.usage_metadata["total_tokens"] > 0
streamed = None
for chunk in model.stream("Where to?"):
    streamed = chunk if streamed is None else streamed + chunk
assert streamed.content == text, streamed


# A tool, until the answer is text
@tool
def weather(city: str) -> str:
    """The weather of a city"""
    return "sunny"


with_tools = model.bind_tools([weather])
asked = [HumanMessage(question)]
called = with_tools.invoke(asked)
(call,) = called.tool_calls
assert call["name"] == "weather" and isinstance(call["args"]["city"], str), called
result = ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])
last = with_tools.invoke([*asked, called, result])
assert last.content == text, last

# Structured output, embeddings
trip = model.with_structured_output(Trip).invoke("Where to?")
assert isinstance(trip, Trip), trip
embeddings = OpenAIEmbeddings(
    model="text-embedding-3-small", api_key=key, base_url=f"{url}/v1", check_embedding_ctx_length=False
)
assert len(embeddings.embed_documents(["a", "b"])) == 2

# An error contains the detail of the problem
try:
    ChatOpenAI(model="gpt-4o", api_key="sk-wrong", base_url=f"{url}/v1").invoke("Hi")
    raise AssertionError("a wrong key was accepted")
except Exception as error:
    assert "malformed" in str(error), error
