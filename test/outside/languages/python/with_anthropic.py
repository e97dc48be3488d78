import time

from anthropic import Anthropic, AuthenticationError, NotFoundError

from world import is_sandbox, key, question, shows, text, url

shows("anthropic")
client = Anthropic(api_key=key, base_url=url)
model = "claude-sonnet-5"
asked = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "Where to?"}]}

# Messages, whole and as a stream
assert client.messages.create(**asked).content[0].text == text
with client.messages.stream(**asked) as stream:
    assert "".join(stream.text_stream) == text

# A tool, until the answer is text
schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tools = [{"name": "weather", "input_schema": schema}]
messages = [{"role": "user", "content": question}]
called = client.messages.create(model=model, max_tokens=100, messages=messages, tools=tools)
assert called.stop_reason == "tool_use"
(use,) = called.content
assert isinstance(use.input["city"], str)
result = {"type": "tool_result", "tool_use_id": use.id, "content": "sunny"}
messages += [{"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
last = client.messages.create(model=model, max_tokens=100, messages=messages, tools=tools)
assert last.content[0].text == text, last

# A batch, until its results are there
if is_sandbox:
    batches = client.messages.batches
    requests = [{"custom_id": it, "params": asked} for it in ("a", "b")]
    batch = batches.create(requests=requests)
    while batches.retrieve(batch.id).processing_status != "ended":
        time.sleep(0.1)
    results = {it.custom_id: it.result.message.content[0].text for it in batches.results(batch.id)}
    assert results == {"a": text, "b": text}, results
    assert batches.delete(batch.id).type == "message_batch_deleted"

# Counts and models
assert client.messages.count_tokens(model=model, messages=asked["messages"]).input_tokens > 0
if is_sandbox:
    names = [it.id for it in client.models.list(limit=1000)]
    assert model in names and not any(name.startswith("gpt") for name in names), names


# Errors contain the detail of the problem
def fails(kind, act):
    try:
        act()
    except kind as error:
        return str(error)
    raise AssertionError(f"expected {kind}")


stranger = Anthropic(api_key="sk-wrong", base_url=url)
assert "malformed" in fails(AuthenticationError, lambda: stranger.messages.create(**asked))
other = lambda: client.messages.create(**{**asked, "model": "gpt-4o"})
assert "use /v1/chat/completions" in fails(NotFoundError, other)
