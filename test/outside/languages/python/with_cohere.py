"""Cohere's client: reranking."""

from cohere import ClientV2
from cohere.errors import UnauthorizedError

from world import key, shows, url

shows("cohere")


def client_of(key: str) -> ClientV2:
    return ClientV2(api_key=key, base_url=f"{url}/vendors/cohere")


documents = ["A recipe", "The capital is Paris"]
asked = {"model": "rerank-v3.5", "query": "Which is the capital?", "documents": documents}
found = client_of(key).rerank(**asked, top_n=1)
assert [it.index for it in found.results] == [1], found
assert found.meta.billed_units.search_units == 1, found

try:
    client_of("sk-wrong").rerank(**asked)
    raise AssertionError("a wrong key was accepted")
except UnauthorizedError as error:
    assert "malformed" in str(error), error
