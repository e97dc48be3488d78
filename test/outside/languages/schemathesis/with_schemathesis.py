"""Requests that schemathesis makes from the gateway's document. A violation is a fault of the document or the gateway."""

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
    # Only the sandbox receives its requests
    sys.exit(0)

with urllib.request.urlopen(f"{url}/openapi.json") as response:
    document = json.load(response)

# The schema of a stream describes its text (OpenAPI 3.1); schemathesis takes it for that of an event (3.2)
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
    # The document's examples and the limits of each schema. Streams do not end; other vendors have the same routes
    words += ["--phases", "examples,coverage", "--max-examples", "3", "--request-timeout", "20"]
    words += ["--exclude-path-regex", "/(events|stream|mcp)|/vendors/(?!openai|alibaba)"]
    # The gateway may refuse what a schema allows: an unknown cursor, a time in the past, a used idempotency key,
    # the URL of a missing image. It always refuses what a schema forbids
    words += ["--exclude-checks", "positive_data_acceptance"]
    done = subprocess.run([tool, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout[-6000:] if done.returncode == 0 else done.stdout[-60000:])
    sys.exit(done.returncode)
