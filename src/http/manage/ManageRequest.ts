import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { sizeFaults } from "../../catalog/bodies/Decode.ts"
import { pointerOf } from "../../catalog/FieldFaults.ts"
import { invalid } from "../../domain/Problem.ts"
import { readJsonBody } from "../server/JsonBody.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"

/**
 * What `HttpApi` alone lets pass: a query that the endpoint does not declare, a body that is not
 * said to be JSON or not UTF-8, absurdly many fields, and fields sent where no body is read.
 * Contract 1 and 2.
 */
export const checkRequest = Effect.fnUntraced(function* (endpoint: HttpApiEndpoint.Top) {
  if (endpoint.query === undefined) yield* refuseUnknownQuery([])
  const { headers, method } = yield* HttpServerRequest.HttpServerRequest
  if (method === "GET" || method === "HEAD") return
  const hasBody =
    Number(headers["content-length"] ?? 0) > 0 || headers["transfer-encoding"] !== undefined
  const takesBody = endpoint.payload.size > 0
  if (!takesBody && !hasBody) return
  // A body that cannot be read is a defect here and told as a problem by `rescue`
  const { value } = yield* Effect.catchTag(readJsonBody, "HttpServerError", Effect.die)
  const crowd = sizeFaults(value)
  if (crowd.length > 0) return yield* invalid(crowd)
  if (takesBody) return
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return yield* invalid([{ pointer: "#", detail: "Expected no body, or an object" }])
  }
  const faults = Object.keys(value).map((name) => ({
    pointer: pointerOf([name]),
    detail: "Unknown field"
  }))
  if (faults.length > 0) return yield* invalid(faults)
})
