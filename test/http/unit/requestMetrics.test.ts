import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { measureRequest } from "../../../src/http/server/listener/RequestMetrics.ts"

/** Requests of this kind, whatever their outcomes. */
const countOf = (kind: string) =>
  Effect.map(PrometheusMetrics.format(), (text) => {
    const name = `gateway_http_request_duration_seconds_count{kind="${kind}",`
    const counts = text.split("\n").filter((line) => line.startsWith(name))
    return counts.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)
  })

/** docs/operating.md#monitoring */
it.effect("a request is counted by its operation, whatever its query", () =>
  Effect.gen(function* () {
    for (const [kind, method, url] of [
      ["create", "POST", "/vendors/alibaba/v1/text-to-image-max/generation"],
      ["create", "POST", "/vendors/google/v1/image-edit-pro/edit?dry_run=true"],
      ["create", "POST", "/v1/videos?a=b"],
      ["task", "GET", "/vendors/alibaba/v1/text-to-image-max/generation/1?a=b"],
      ["task", "POST", "/v1/responses/resp_1/cancel"],
      ["task", "POST", "/v1/videos/1/remix"],
      ["call", "POST", "/v1/chat/completions?a=b"],
      ["manage", "GET", "/manage/v1/tasks?limit=1"],
      ["service", "GET", "/healthz?a=b"]
    ] as const) {
      const before = yield* countOf(kind)
      const request = Object.assign(new IncomingMessage(new Socket()), { method, url })
      const response = new ServerResponse(request)
      measureRequest(request, response)
      response.emit("close")
      assert.strictEqual(yield* countOf(kind), before + 1, `${method} ${url}`)
    }
  })
)
