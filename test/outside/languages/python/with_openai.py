import base64
import json
import urllib.request

from openai import APIStatusError, AuthenticationError, NotFoundError, OpenAI

from world import Trip, is_sandbox, key, question, shows, text, url

shows("openai")
client = OpenAI(api_key=key, base_url=f"{url}/v1")
model = "gpt-4o"
asked = [{"role": "user", "content": "Where to?"}]

# Chat, whole and as a stream
whole = client.chat.completions.create(model=model, messages=asked)
assert whole.choices[0].message.content == text, whole
chunks = client.chat.completions.create(model=model, messages=asked, stream=True)
assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text

# A tool, until the answer is text
schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
messages = [{"role": "user", "content": question}]
called = client.chat.completions.create(model=model, messages=messages, tools=tools).choices[0].message
(call,) = called.tool_calls
assert isinstance(json.loads(call.function.arguments)["city"], str)
result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
last = client.chat.completions.create(model=model, messages=[*messages, called, result], tools=tools)
assert last.choices[0].message.content == text, last

# Structured output, responses, embeddings
trip = client.chat.completions.parse(model=model, messages=asked, response_format=Trip)
assert isinstance(trip.choices[0].message.parsed, Trip), trip
assert client.responses.create(model=model, input="Where to?").output_text == text
made = client.embeddings.create(model="text-embedding-3-small", input=["a", "b"])
assert len(made.data) == 2 and isinstance(made.data[1].embedding[0], float)


# Errors contain the detail of the problem
def fails(kind, act):
    try:
        act()
    except kind as error:
        return str(error)
    raise AssertionError(f"expected {kind}")


stranger = OpenAI(api_key="sk-wrong", base_url=f"{url}/v1")
assert "malformed" in fails(AuthenticationError, lambda: stranger.models.list())
other = lambda: client.responses.create(model="claude-sonnet-5", input="Hi")
assert "use /v1/messages" in fails(NotFoundError, other)


def tasks() -> int:
    request = urllib.request.Request(f"{url}/manage/v1/tasks?limit=100")
    request.add_header("authorization", f"Bearer {key}")
    return len(json.load(urllib.request.urlopen(request))["data"])


# Images are bought once, however often the client would retry
if is_sandbox:
    picture = client.images.generate(
        model="text-to-image-preview", prompt="A lighthouse", response_format="b64_json"
    )
    assert base64.b64decode(picture.data[0].b64_json)[1:4] == b"PNG"
    before = tasks()
    hanging = lambda: client.images.generate(
        model="text-to-image-preview", prompt="[[sim:hang]]", extra_headers={"prefer": "wait=1"}
    )
    fails(APIStatusError, hanging)
    assert tasks() == before + 1
