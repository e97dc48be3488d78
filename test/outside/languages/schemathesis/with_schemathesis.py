"""Requests that schemathesis makes of the gateway's document: every violation is a fault of the one or the other."""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from importlib.metadata import version

print(f"schemathesis {version('schemathesis')}")
url = os.environ["GATEWAY_URL"]
if os.environ["WORLD"] != "the sandbox":
    # Its requests go no further than in the sandbox
    sys.exit(0)

with urllib.request.urlopen(f"{url}/openapi.json") as response:
    document = json.load(response)

# The schema of a stream describes its text (OpenAPI 3.1); schemathesis reads it as that of an event (3.2)
for item in document["paths"].values():
    for operation in item.values():
        for answer in operation["responses"].values():
            stream = answer.get("content", {}).get("text/event-stream", {})
            stream.pop("schema", None)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "openapi.json")
    with open(path, "w") as file:
        json.dump(document, file)
    tool = os.path.join(os.path.dirname(sys.executable), "schemathesis")
    words = ["run", path, "--url", url, "-H", f"Authorization: Bearer {os.environ['GATEWAY_API_KEY']}"]
    # Examples of the document and the edges of each schema. Streams have no end; other vendors have the same routes
    words += ["--phases", "examples,coverage", "--max-examples", "3", "--request-timeout", "20"]
    words += ["--exclude-path-regex", "/(events|stream|mcp)|/vendors/(?!openai|alibaba)"]
    # What a schema allows may be refused: a cursor of no page, a time in the past, an idempotency key used before,
    # an image behind no address. What it forbids is always refused
    words += ["--exclude-checks", "positive_data_acceptance"]
    done = subprocess.run([tool, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout[-6000:] if done.returncode == 0 else done.stdout[-60000:])
    sys.exit(done.returncode)
