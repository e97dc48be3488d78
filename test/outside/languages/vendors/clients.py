"""Calls methods of vendors' official clients: each line of the input says which, and a line says what it returned."""

import json
import sys


def client_of(name, base, key):
    if name == "luma":
        from luma_agents import Luma

        return Luma(auth_token=key, base_url=base, max_retries=0)
    if name == "byteplus":
        from byteplussdkarkruntime import Ark

        return Ark(api_key=key, base_url=base, max_retries=0)
    raise SystemExit(f"there is no client {name}")


def outcome_of(client, path, given):
    method = client
    for part in path.split("."):
        method = getattr(method, part)
    try:
        return {"made": json.loads(method(**given).model_dump_json())}
    except Exception as error:
        return {"error": type(error).__name__, "status": getattr(error, "status_code", None)}


for line in sys.stdin:
    order = json.loads(line)
    client = client_of(order["client"], order["base"], order["key"])
    print(json.dumps(outcome_of(client, order["method"], order["given"])), flush=True)
