import { assert, describe, it } from "@effect/vitest"
import { failureText, taskErrorOf } from "../../../src/tasks/submission/VendorFailure.ts"
import { jobFailed, responseError } from "../../../src/vendors/Faults.ts"

const answer = { status: 400, headers: {}, body: new Uint8Array() }

describe("the message of a vendor", () => {
  // An upstream may quote a whole picture; its message is logged, stored, and matched by patterns
  for (const message of [`no: ${"x".repeat(5_000_000)}`, "https://".repeat(600_000)]) {
    it(`is cut to 4000 characters, whatever its length (${message.slice(0, 12)} …)`, () => {
      const refusal = { code: message, message, requestId: message }
      for (const error of [responseError([], "submit", answer, refusal), jobFailed([], refusal)]) {
        assert.isAtMost(error.message.length, 4000)
        assert.isAtMost((error.vendorCode ?? "").length, 4000)
        assert.isAtMost((error.requestId ?? "").length, 4000)
        assert.isAtMost(failureText(error).length, 4100)
        assert.isAtMost([...taskErrorOf(error).detail].length, 500)
      }
    })
  }
})
