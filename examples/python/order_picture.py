#!/usr/bin/env python3
"""Orders a picture and saves it. Needs Python 3.9 and nothing else.

usage: GATEWAY_URL=http://localhost:8080 GATEWAY_API_KEY=sk-... order_picture.py PROMPT FILE
"""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

PATH = "/vendors/alibaba/v1/text-to-image-max/generation"
SECONDS_MAX = 600


def call(method, url, key, body=None, headers=None):
    """Returns the parsed answer. Repeats what the gateway asks to repeat: the same key buys once."""
    data = None if body is None else json.dumps(body).encode()
    for attempt in range(6):
        request = urllib.request.Request(url, data=data, method=method)
        request.add_header("Authorization", f"Bearer {key}")
        request.add_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer), answer.headers
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503) or attempt == 5:
                sys.exit(f"{error.code}: {error.read().decode()}")
            time.sleep(float(error.headers.get("Retry-After") or 1))
        # A connection that breaks before or within the answer is neither a URLError nor always an OSError
        except (OSError, http.client.HTTPException) as error:
            if attempt == 5:
                sys.exit(f"{url}: {getattr(error, 'reason', error)}")
            time.sleep(2**attempt)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    prompt, file = sys.argv[1:]
    base = os.environ.get("GATEWAY_URL", "http://localhost:8080")
    key = os.environ["GATEWAY_API_KEY"]
    once = {"Idempotency-Key": str(uuid.uuid4())}
    task, headers = call("POST", base + PATH, key, {"prompt": prompt}, once)
    task_id = task["task_info"]["id"]
    end = time.monotonic() + SECONDS_MAX
    while task["task_info"].get("status", "pending") in ("pending", "processing"):
        if time.monotonic() > end:
            sys.exit(f"task {task_id} takes longer than {SECONDS_MAX} s")
        time.sleep(float(headers.get("Retry-After") or 1))
        task, headers = call("GET", f"{base}{PATH}/{task_id}", key)
    error = task["task_info"].get("error")
    if error is not None:
        sys.exit(f"{error['code']} {error['title']}: {error['detail']}")
    with urllib.request.urlopen(task["images"][0], timeout=60) as picture, open(file, "wb") as out:
        out.write(picture.read())
    print(task_id)


if __name__ == "__main__":
    main()
