import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { measureRequest } from "../../../src/http/server/listener/RequestMetrics.ts"

const countsByKind = Effect.map(
  PrometheusMetrics.format(),
  (text) =>
    new Map(
      [
        ...text.matchAll(/^gateway_http_request_duration_seconds_count\{kind="(\w+)".* (\d+)$/gmu)
      ].map(([, kind = "", count]) => [kind, Number(count)])
    )
)

/** docs/operating.md#monitoring */
it.effect("a request is counted by what it does, whatever its query", () =>
  Effect.gen(function* () {
    for (const [kind, method, url] of [
      ["create", "POST", "/vendors/alibaba/v1/text-to-image-max/generation"],
      ["create", "POST", "/vendors/google/v1/image-edit-pro/edit?dry_run=true"],
      ["create", "POST", "/v1/videos?a=b"],
      ["task", "GET", "/vendors/alibaba/v1/text-to-image-max/generation/1?a=b"],
      ["call", "POST", "/v1/chat/completions?a=b"],
      ["manage", "GET", "/manage/v1/tasks?limit=1"],
      ["service", "GET", "/healthz?a=b"]
    ] as const) {
      const before = yield* countsByKind
      const request = Object.assign(new IncomingMessage(new Socket()), { method, url })
      const response = new ServerResponse(request)
      measureRequest(request, response)
      response.emit("close")
      const after = yield* countsByKind
      assert.strictEqual(after.get(kind), (before.get(kind) ?? 0) + 1, `${method} ${url}`)
    }
  })
)
