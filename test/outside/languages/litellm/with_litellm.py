"""LiteLLM's SDK, and its proxy in front of the gateway."""

import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from importlib.metadata import version

from openai import OpenAI

# Uses the prices and model lists of its package instead of newer ones from the network
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm  # noqa: E402

print(f"litellm {version('litellm')}")
url = f"{os.environ['GATEWAY_URL']}/v1"
key = os.environ["GATEWAY_API_KEY"]
text = os.environ["ANSWER"]
asked = [{"role": "user", "content": "Where to?"}]
to = {"api_key": key, "api_base": url, "num_retries": 0}

# Chat, whole and as a stream, responses, embeddings
whole = litellm.completion(model="openai/gpt-4o", messages=asked, **to)
assert whole.choices[0].message.content == text, whole
chunks = litellm.completion(model="openai/gpt-4o", messages=asked, stream=True, **to)
assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text
claude = litellm.completion(
    model="anthropic/claude-sonnet-5",
    messages=asked,
    max_tokens=600,
    api_key=key,
    api_base=f"{os.environ['GATEWAY_URL']}/vendors/anthropic",
    num_retries=0,
)
assert claude.choices[0].message.content == text, claude
made = litellm.embedding(model="openai/text-embedding-3-small", input=["a", "b"], **to)
assert len(made.data) == 2, made

# Reranking, in Jina's and in Cohere's format
ranked = {"query": "Which is the capital?", "documents": ["A recipe", "The capital is Paris"]}
for model, base in [
    ("jina_ai/jina-reranker-v3", f"{url}/rerank"),
    ("cohere/rerank-v3.5", f"{os.environ['GATEWAY_URL']}/vendors/cohere"),
]:
    found = litellm.rerank(model=model, top_n=1, api_key=key, api_base=base, **ranked)
    assert [it["index"] for it in found.results] == [1], found

# An error contains the detail of the problem
try:
    litellm.completion(model="openai/gpt-4o", messages=asked, api_key="sk-wrong", api_base=url)
    raise AssertionError("a wrong key was accepted")
except litellm.AuthenticationError as error:
    assert "malformed" in str(error), error

# The proxy, with the gateway as its only vendor
master = f"sk-{secrets.token_hex(24)}"
port = 4000 + os.getpid() % 20_000
config = f"""
model_list:
  - model_name: house
    litellm_params:
      model: openai/gpt-4o
      api_base: {url}
      api_key: {key}
"""
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "config.yaml")
    with open(file, "w") as out:
        out.write(config)
    command = [os.path.join(os.path.dirname(sys.executable), "litellm")]
    words = ["--config", file, "--host", "127.0.0.1", "--port", str(port)]
    with open(os.path.join(folder, "log"), "w+") as log:
        proxy = subprocess.Popen(command + words, stdout=log, stderr=log, cwd=folder, env={**os.environ, "LITELLM_MASTER_KEY": master})
        try:
            for _ in range(400):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=2)
                    break
                except (urllib.error.URLError, ConnectionError, TimeoutError):
                    if proxy.poll() is not None:
                        break
                    time.sleep(1)
            client = OpenAI(api_key=master, base_url=f"http://127.0.0.1:{port}", max_retries=0)
            answer = client.chat.completions.create(model="house", messages=asked)
            assert answer.choices[0].message.content == text, answer
            stream = client.chat.completions.create(model="house", messages=asked, stream=True)
            joined = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
            assert joined == text, joined
        except Exception:
            log.seek(0)
            print(log.read()[-4000:])
            raise
        finally:
            proxy.terminate()
            proxy.wait(20)
print("the proxy of litellm in front of the gateway")
