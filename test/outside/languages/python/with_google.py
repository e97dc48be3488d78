from google import genai
from google.genai import errors, types

from world import Trip, key, question, shows, text, url

shows("google-genai")
options = types.HttpOptions(base_url=f"{url}/vendors/google")
client = genai.Client(api_key=key, http_options=options)
model = "gemini-2.5-flash"

# Contents, whole and as a stream
assert client.models.generate_content(model=model, contents="Where to?").text == text
chunks = client.models.generate_content_stream(model=model, contents="Where to?")
assert "".join(chunk.text or "" for chunk in chunks) == text

# A tool
schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
weather = types.FunctionDeclaration(name="weather", parameters_json_schema=schema)
config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[weather])])
called = client.models.generate_content(model=model, contents=question, config=config)
assert called.function_calls[0].name == "weather", called

# Structured output, embeddings, counts
config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Trip)
trip = client.models.generate_content(model=model, contents="Where to?", config=config)
assert isinstance(trip.parsed, Trip), trip
made = client.models.embed_content(model="gemini-embedding-001", contents=["a", "b"])
assert len(made.embeddings) == 2
assert client.models.count_tokens(model=model, contents="Where to?").total_tokens > 0

# Errors contain the detail of the problem
for broken, name, sentence in [
    (genai.Client(api_key="sk-wrong", http_options=options), model, "malformed"),
    (client, "gpt-4o", "use /v1/chat/completions"),
]:
    try:
        broken.models.generate_content(model=name, contents="Hi")
        raise AssertionError("expected a failure")
    except errors.ClientError as error:
        assert sentence in str(error), error
