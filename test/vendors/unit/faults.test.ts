import { assert, describe, it } from "@effect/vitest"
import { failureText, taskErrorOf } from "../../../src/tasks/submission/VendorFailure.ts"
import { jobFailed, noResponseError, responseError } from "../../../src/vendors/Faults.ts"
import { NoResponse } from "../../../src/vendors/VendorHttp.ts"

const answer = { status: 400, headers: {}, body: new Uint8Array() }

describe("the message of a vendor", () => {
  // An upstream may quote a whole picture, and its message is logged, stored, and matched against patterns
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

  it("hides the account wherever it is shown, and is classified by the vendor's own text", () => {
    const message =
      "Workspace ws-a1b2c3d4 of account 1234567890123456 may not call http://10.0.0.7:8080/x with key=abc\u001b[31m"
    const rules = [{ message: /10\.0\.0\.7/u, class: "CONTENT" }] as const
    const refusal = { code: "Denied.sk-abcdef123456", message, requestId: "req\n1" }
    for (const error of [
      responseError(rules, "submit", answer, refusal),
      jobFailed(rules, refusal)
    ]) {
      assert.strictEqual(error.class, "CONTENT")
      const shown =
        "Workspace [hidden] of account [hidden] may not call [hidden] with key=[hidden] [31m"
      assert.strictEqual(error.message, shown)
      assert.strictEqual(error.vendorCode, "Denied.[hidden]")
      assert.strictEqual(error.requestId, "req 1")
      assert.strictEqual(failureText(error), `CONTENT: ${shown}`)
      assert.strictEqual(taskErrorOf(error).detail, shown)
    }
    const unsent = noResponseError(
      "submit",
      new NoResponse({ sent: false, message: "connect ECONNREFUSED 10.0.0.7:443" })
    )
    assert.strictEqual(unsent.message, "connect ECONNREFUSED [hidden]")
  })
})
