"""A client that openapi-python-client generates from the gateway's document."""

import importlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.metadata import version

print(f"openapi-python-client {version('openapi-python-client')}")
url = os.environ["GATEWAY_URL"]
key = os.environ["GATEWAY_API_KEY"]
is_sandbox = os.environ["WORLD"] == "the sandbox"

with tempfile.TemporaryDirectory() as folder:
    document = os.path.join(folder, "openapi.json")
    urllib.request.urlretrieve(f"{url}/openapi.json", document)
    tool = os.path.join(os.path.dirname(sys.executable), "openapi-python-client")
    words = ["generate", "--meta", "none", "--path", document, "--output-path", f"{folder}/made"]
    done = subprocess.run([tool, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    # It supports only JSON and text, and reports what it omits; it may omit nothing else
    lost = [line for line in done.stdout.splitlines() if "will not be generated" in line]
    assert lost == [], done.stdout
    sys.path.insert(0, folder)
    made = importlib.import_module("made")

    def call(module: str, **given):
        return importlib.import_module(f"made.api.{module}").sync_detailed(**given)

    client = made.AuthenticatedClient(base_url=url, token=key)
    wallet = call("wallet.get_wallet", client=client)
    assert wallet.status_code == 200 and float(wallet.parsed.available_balance) > 0, wallet
    stranger = made.AuthenticatedClient(base_url=url, token="sk-wrong")
    refused = call("wallet.get_wallet", client=stranger)
    assert refused.status_code == 401 and "malformed" in refused.parsed.detail, refused
    if is_sandbox:
        prefix = "models_of_alibaba"
        name = "alibaba_text_to_image_preview_generation"
        body = importlib.import_module("made.models").TextToImagePreview(prompt="A lighthouse", n=1)
        created = call(f"{prefix}.create_{name}", client=client, body=body)
        assert created.status_code == 202, created
        for _ in range(60):
            task = call(f"{prefix}.get_{name}", client=client, task_id=created.parsed.task_info.id)
            if str(task.parsed.task_info.status) == "completed":
                break
            time.sleep(1)
        assert len(task.parsed.images) == 1, task
    tasks = call("tasks.list_tasks", client=client, limit=2)
    assert tasks.status_code == 200, tasks
