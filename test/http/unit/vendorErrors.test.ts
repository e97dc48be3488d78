import { assert, describe, it } from "@effect/vitest"
import { invalid, Problem } from "../../../src/domain/Problem.ts"
import { vendorMembers } from "../../../src/http/server/problems/VendorErrors.ts"

const place = { path: "/v1/chat/completions", vendor: "openai" }

describe("an error in OpenAI's form", () => {
  it.each([
    ["#/model", "model"],
    ["#/messages/0/content", "messages[0].content"],
    ["#/metadata/a~1b%20c", "metadata.a/b c"],
    ["#/query/limit", "limit"],
    ["#/headers/x-service-max-cost", "x-service-max-cost"],
    ["#", null]
  ])("names the member of the first fault: %s is %s", (pointer, param) => {
    const fault = invalid([{ pointer, detail: "Expected another" }])
    assert.deepStrictEqual(vendorMembers(fault, place, ""), {
      error: { message: fault.detail, type: "invalid_request_error", param, code: "2001" }
    })
  })

  it("names no member without a fault of one", () => {
    const error = { message: "Gone", type: "invalid_request_error", param: null, code: "2006" }
    assert.deepStrictEqual(vendorMembers(new Problem({ code: 2006, detail: "Gone" }), place, ""), {
      error
    })
  })
})
