import { jsonContent, problems, refTo, everyResponse } from "./OpenApiParts.ts"
import type { Json } from "./OpenApiParts.ts"

/** Service routes, artifacts and webhooks. docs/reference/http.md#service-routes */

const open: ReadonlyArray<never> = []
const text = (type: string, description: string): Json => ({
  description,
  headers: everyResponse,
  content: { [type]: { schema: { type: "string" } } }
})

const get = (operationId: string, summary: string, responses: Json): Json => ({
  get: { tags: ["Gateway"], security: open, operationId, summary, responses }
})

const ok = {
  description: "OK",
  headers: everyResponse,
  ...jsonContent(
    {
      type: "object",
      required: ["status"],
      properties: { status: { type: "string", enum: ["ok"] } }
    },
    { status: "ok" }
  )
}

const signed = (name: string, description: string): Json => ({
  name,
  in: "query",
  required: true,
  description,
  schema: { type: "string" }
})

const media: Json = {
  schema: { type: "string", format: "binary" }
}

const mediaHeaders = {
  ...everyResponse,
  ETag: refTo("headers", "ETag"),
  "Accept-Ranges": { description: "Always `bytes`", schema: { type: "string" } }
}

const artifact: Json = {
  parameters: [
    {
      name: "id",
      in: "path",
      required: true,
      description: "The artifact",
      schema: { type: "string", pattern: "^art_[0-9a-f]{32}$" }
    },
    signed("expires", "Unix time in seconds"),
    signed("signature", "Made by the service; the permission")
  ],
  get: {
    tags: ["Gateway"],
    security: open,
    operationId: "getArtifact",
    summary: "Get a medium by its signed URL",
    description: "No key is needed; the URL is valid for 24 hours",
    parameters: [
      {
        name: "Range",
        in: "header",
        description: "One range of bytes",
        schema: { type: "string", pattern: "^bytes=" }
      },
      refTo("parameters", "IfNoneMatch")
    ],
    responses: {
      200: { description: "The medium", headers: mediaHeaders, content: { "*/*": media } },
      206: { description: "A part of it", headers: mediaHeaders, content: { "*/*": media } },
      304: { description: "The client has it", headers: everyResponse },
      ...problems(403, 404, 416, 500, 503)
    }
  }
}

/** docs/reference/sessions.md#openid-connect */
const oidc = {
  "/manage/v1/session/oidc": get("beginOidc", "Leave for the OpenID provider", {
    302: {
      description: "To the provider, with the cookie of the transaction",
      headers: everyResponse
    },
    // For readers that ask for a success
    default: { description: "A problem", headers: everyResponse },
    ...problems(401, 403, 404, 405, 500, 502)
  }),
  "/manage/v1/session/oidc/callback": get("finishOidc", "Come back from the OpenID provider", {
    200: text("text/html", "A page that leads on, with the cookie of the session"),
    ...problems(401, 403, 404, 405, 429, 500, 502, 503)
  })
}

export const servicePaths: Json = {
  ...oidc,
  "/artifacts/{id}": artifact,
  "/healthz": get("health", "Is the process up?", { 200: ok, ...problems(405, 500) }),
  "/readyz": get("readiness", "Can it serve?", { 200: ok, ...problems(405, 500, 503) }),
  "/metrics": get("metrics", "Figures for Prometheus", {
    200: text("text/plain", "Prometheus text format"),
    ...problems(401, 405, 500, 503)
  }),
  "/openapi.json": get("openApi", "This document", {
    200: {
      description: "OpenAPI 3.1",
      headers: everyResponse,
      ...jsonContent({ type: "object", additionalProperties: true })
    },
    ...problems(405, 500)
  })
}

const webhook = (type: string, component: string): Json => ({
  post: {
    tags: ["Webhooks"],
    security: open,
    operationId: `receive_${type.replace(".", "_")}`,
    summary: `The event ${type}`,
    parameters: ["Id", "Timestamp", "Signature"].map((name) => ({
      name: `X-Service-Webhook-${name}`,
      in: "header",
      required: true,
      description: "See the section on signatures",
      schema: { type: "string" }
    })),
    requestBody: { required: true, ...jsonContent(refTo("schemas", component)) },
    responses: {
      "2XX": { description: "Accepted; any other response is retried" },
      "4XX": { description: "Not accepted" }
    }
  }
})

export const webhooks: Json = {
  "task.created": webhook("task.created", "TaskCreated"),
  "task.succeeded": webhook("task.succeeded", "TaskSucceeded"),
  "task.failed": webhook("task.failed", "TaskFailed"),
  "balance.low": webhook("balance.low", "BalanceLow")
}
