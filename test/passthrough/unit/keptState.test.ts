import { assert, describe, it } from "@effect/vitest"
import { builtInRoutes } from "../../../src/catalog/OpenRoutes.ts"
import type { OpenRoute } from "../../../src/catalog/OpenRoutes.ts"
import { keptStateOf } from "../../../src/passthrough/KeptState.ts"

const routeOf = (path: string): OpenRoute => {
  const found = builtInRoutes.find((route) => route.path === path)
  assert.isDefined(found)
  return found
}
const responses = routeOf("/v1/responses")
const counts = routeOf("/v1/responses/input_tokens")
const chat = routeOf("/v1/chat/completions")
const messages = routeOf("/v1/messages")
const gemini = routeOf("/v1beta/models/{model}:generateContent")
const caches: OpenRoute = {
  vendor: "google",
  provider: "gemini",
  method: "POST",
  path: "/v1beta/cachedContents",
  meter: { per: "nothing" }
}

const stateOf = (route: OpenRoute, body: object) =>
  keptStateOf(route, new TextEncoder().encode(JSON.stringify(body)))

const said = { role: "user", content: "Hi" }
const encrypted = ["reasoning.encrypted_content"]
const file = "https://generativelanguage.googleapis.com/v1beta/files/abc"

const cases: ReadonlyArray<readonly [string, OpenRoute, object, object]> = [
  ["a response that is stored", responses, { input: "Hi" }, { _tag: "Makes" }],
  ["a count of tokens", counts, { input: "Hi" }, { _tag: "Nothing" }],
  [
    "a count with a reference",
    counts,
    { input: [{ type: "item_reference", id: "msg_1" }] },
    { _tag: "Names", pointer: "#/input/0" }
  ],
  ["a response that is not stored", responses, { input: "Hi", store: false }, { _tag: "Nothing" }],
  [
    "encrypted reasoning",
    responses,
    { input: "Hi", store: false, include: encrypted },
    { _tag: "Makes" }
  ],
  [
    "a reference",
    responses,
    { input: [said, { type: "item_reference", id: "msg_1" }], store: false },
    { _tag: "Names", pointer: "#/input/1" }
  ],
  [
    "a reference without a type",
    responses,
    { input: [{ id: "msg_1" }] },
    { _tag: "Names", pointer: "#/input/0" }
  ],
  [
    "reasoning of an earlier response",
    responses,
    { input: [said, { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "g" }] },
    { _tag: "Names", pointer: "#/input/1" }
  ],
  [
    "a message with its id",
    responses,
    { input: [{ ...said, id: "msg_1" }], store: false },
    { _tag: "Nothing" }
  ],
  [
    "a vector store",
    responses,
    { input: "Hi", tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }], store: false },
    { _tag: "Elsewhere", pointer: "#/tools/0" }
  ],
  [
    "a prompt of the dashboard",
    responses,
    { input: "Hi", prompt: { id: "pmpt_1" } },
    { _tag: "Elsewhere", pointer: "#/prompt" }
  ],
  [
    "a file of a response",
    responses,
    {
      input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }],
      store: false
    },
    { _tag: "Names", pointer: "#" }
  ],
  ["a chat", chat, { messages: [said], store: true }, { _tag: "Nothing" }],
  [
    "a text that quotes a reference",
    chat,
    { messages: [{ role: "user", content: '{"file_id": "x", "cachedContent": "y"}' }] },
    { _tag: "Nothing" }
  ],
  [
    "a tool with a property that has the name of a file's",
    messages,
    {
      tools: [{ name: "f", input_schema: { properties: { file_id: { type: "string" } } } }],
      messages: [
        said,
        { role: "assistant", content: [{ type: "tool_use", name: "f", input: { file_id: "f" } }] }
      ]
    },
    { _tag: "Nothing" }
  ],
  [
    "a text about Gemini's address",
    gemini,
    { contents: [{ parts: [{ text: `What is ${file}?` }] }] },
    { _tag: "Nothing" }
  ],
  [
    "a file of a message",
    messages,
    {
      messages: [
        { role: "user", content: [{ type: "document", source: { type: "file", file_id: "f" } }] }
      ]
    },
    { _tag: "Names", pointer: "#" }
  ],
  [
    "a cache",
    gemini,
    { contents: [], cachedContent: "cachedContents/1" },
    { _tag: "Names", pointer: "#" }
  ],
  [
    "a file of Gemini",
    gemini,
    { contents: [{ parts: [{ fileData: { fileUri: file } }] }] },
    { _tag: "Names", pointer: "#" }
  ],
  ["a plain prompt", gemini, { contents: [] }, { _tag: "Nothing" }],
  ["a route that the operator opened", caches, { contents: [] }, { _tag: "Makes" }],
  ["a free route", routeOf("/v1/moderations"), { input: "Hi" }, { _tag: "Nothing" }],
  ["a body that is no JSON", responses, [], { _tag: "Makes" }]
]

/** docs/reference/passthrough.md#what-accounts-keep */
describe("the state that a call creates at an account or refers to", () => {
  for (const [what, route, body, expected] of cases) {
    it(`${what}: ${JSON.stringify(expected)}`, () => {
      assert.deepStrictEqual(stateOf(route, body), expected)
    })
  }
})
