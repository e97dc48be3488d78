import { assert, describe, it } from "vitest"
import { isErrorEvent } from "../../../src/catalog/Usage.ts"
import { endingEvent } from "../../../src/passthrough/ErrorBody.ts"

describe("the event that ends a stream whose hold is gone", () => {
  it.each([
    ["openai-chat", undefined, { error: { type: "server_error", code: "5003", param: null } }],
    ["openai-responses", "error", { type: "error", code: "5003", param: null }],
    ["anthropic-messages", "error", { type: "error", error: { type: "api_error" } }],
    ["gemini-generate", undefined, { error: { code: 503, status: "UNAVAILABLE" } }],
    [undefined, undefined, { error: { type: "server_error", code: "5003" } }]
  ] as const)("has the form of %s, also behind a part of another event", (protocol, name, form) => {
    const text = `data: {"a": ${endingEvent(protocol, "lost").toString()}`
    const event = text.split("\n\n").at(-2) ?? ""
    const value: unknown = JSON.parse(/^data: (.*)$/mu.exec(event)?.[1] ?? "")
    assert.strictEqual(/^event: (.*)$/mu.exec(event)?.[1], name)
    assert.containSubset(value, form)
    assert.isTrue(isErrorEvent(value))
    assert.isTrue(text.endsWith("\n\n"))
  })
})
