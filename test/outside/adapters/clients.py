"""Calls the official Python client of a vendor, as a test says on standard input, and prints what it returned."""

import json
import sys


def client_of(name, base, key):
    if name == "luma":
        from luma_agents import Luma

        return Luma(auth_token=key, base_url=base, max_retries=0)
    raise SystemExit(f"there is no client {name}")


def outcome_of(client, path, arguments):
    method = client
    for part in path.split("."):
        method = getattr(method, part)
    try:
        made = method(**arguments)
        return {"made": None if made is None else json.loads(made.model_dump_json())}
    except Exception as error:
        return {"error": type(error).__name__, "status": getattr(error, "status_code", None)}


order = json.load(sys.stdin)
client = client_of(order["client"], order["base"], order["key"])
print(json.dumps([outcome_of(client, path, arguments) for path, arguments in order["calls"]]))
