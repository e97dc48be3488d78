import { assert, describe, it } from "@effect/vitest"
import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { makeOverloadGuard } from "../../../src/http/server/OverloadGuard.ts"
import { limiterOf } from "../../support/admission.ts"

const full = () => limiterOf({ least: 0, usual: 0, most: 0 })
const free = () => limiterOf({ least: 128, usual: 128, most: 512 })

const isAdmitted = (kind: "creates" | "calls", method: string, url: string) => {
  const admission = { creates: free(), calls: free(), [kind]: full() }
  const request = Object.assign(new IncomingMessage(new Socket()), { method, url })
  return makeOverloadGuard(admission, () => {})(request, new ServerResponse(request))
}

/** docs/reference/http.md#overload */
describe("a process without capacity for creates", () => {
  it("refuses what is a create or may be one", () => {
    for (const url of [
      "/vendors/alibaba/v1/text-to-image-max/generation",
      "/vendors/alibaba/v1/image-edit/edit?dry_run=true",
      "/v1/images/generations",
      "/v1/images/edits",
      "/v1/videos",
      "/mcp",
      "/mcp?a=b"
    ]) {
      assert.isFalse(isAdmitted("creates", "POST", url), url)
      assert.isTrue(isAdmitted("calls", "POST", url), url)
    }
  })
  it("refuses nothing else", () => {
    for (const [method, url] of [
      ["GET", "/mcp"],
      ["POST", "/mcpx"],
      ["POST", "/manage/v1/api-keys"],
      ["POST", "/v1/chat/completions"],
      ["DELETE", "/vendors/alibaba/v1/text-to-image-max/generation/1"]
    ] as const) {
      assert.isTrue(isAdmitted("creates", method, url), `${method} ${url}`)
    }
    assert.isFalse(isAdmitted("calls", "POST", "/v1/chat/completions"))
  })
})
