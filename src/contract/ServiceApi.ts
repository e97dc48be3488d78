import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { ArtifactId } from "../domain/Ids.ts"
import { Scope } from "../domain/Scope.ts"
import { documented } from "./Documented.ts"
import { requestHeaders, withHeaders } from "./Headers.ts"
import { problems } from "./Problems.ts"

const text = (contentType: string) => Schema.String.pipe(HttpApiSchema.asText({ contentType }))
const ok = Schema.Struct({ status: Schema.Literal("ok") })
const isOk = { description: "OK", example: { status: "ok" } }
const Medium = Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: "*/*" }))
const mediumHeaders = ["ETag", "Accept-Ranges"] as const

export const health = HttpApiEndpoint.get("health", "/healthz", {
  success: ok,
  error: problems(405, 500)
}).annotateMerge(documented({ summary: "Is the process up?", responses: { 200: isOk } }))

export const readiness = HttpApiEndpoint.get("readiness", "/readyz", {
  success: ok,
  error: problems(405, 500, 503)
}).annotateMerge(documented({ summary: "Can it serve?", responses: { 200: isOk } }))

export const metrics = HttpApiEndpoint.get("metrics", "/metrics", {
  success: text("text/plain"),
  error: problems(401, 405, 500, 503)
}).annotateMerge(
  documented({
    summary: "Figures for Prometheus",
    responses: { 200: { description: "Prometheus text format" } }
  })
)

export const openApi = HttpApiEndpoint.get("openApi", "/openapi.json", {
  success: Schema.Record(Schema.String, Schema.Unknown),
  error: problems(405, 500)
}).annotateMerge(
  documented({ summary: "This document", responses: { 200: { description: "OpenAPI 3.1" } } })
)

export const getArtifact = HttpApiEndpoint.get("getArtifact", "/artifacts/:id", {
  params: { id: ArtifactId.annotate({ description: "The artifact" }) },
  query: {
    expires: Schema.String.annotate({ description: "Unix time in seconds" }),
    signature: Schema.String.annotate({ description: "Made by the service; the permission" })
  },
  headers: {
    Range: Schema.optionalKey(
      Schema.String.check(Schema.isPattern(/^bytes=/u)).annotate({
        description: "One range of bytes"
      })
    ),
    "If-None-Match": requestHeaders["If-None-Match"]
  },
  success: [
    withHeaders(Medium, mediumHeaders),
    withHeaders(Medium.pipe(HttpApiSchema.status(206)), mediumHeaders),
    HttpApiSchema.Empty(304)
  ],
  error: problems(403, 404, 416, 500, 503)
}).annotateMerge(
  documented({
    summary: "Get a medium by its signed URL",
    description: "No key is needed; the URL is valid for 24 hours",
    responses: {
      200: { description: "The medium" },
      206: { description: "A part of it" },
      304: { description: "The client has it" }
    }
  })
)

/** docs/reference/sessions.md#openid-connect */
export const beginOidc = HttpApiEndpoint.get("beginOidc", "/manage/v1/session/oidc", {
  success: HttpApiSchema.Empty(302),
  error: problems(401, 403, 404, 405, 500, 502)
}).annotateMerge(
  documented({
    summary: "Redirect to the OpenID provider",
    responses: {
      302: { description: "A redirect to the provider, with the cookie of the transaction" },
      // For generators that require a success
      default: { description: "A problem" }
    }
  })
)

export const finishOidc = HttpApiEndpoint.get("finishOidc", "/manage/v1/session/oidc/callback", {
  success: text("text/html"),
  error: problems(401, 403, 404, 405, 429, 500, 502, 503)
}).annotateMerge(
  documented({
    summary: "Return from the OpenID provider",
    responses: {
      200: { description: "A page that continues to the console, with the cookie of the session" }
    }
  })
)

const ResourceMetadata = Schema.Struct({
  /** The audience of the tokens. */
  resource: Schema.String,
  resource_name: Schema.String,
  authorization_servers: Schema.Array(Schema.String),
  /** Absent if the provider grants scopes that were not requested. */
  scopes_supported: Schema.optionalKey(Schema.Array(Scope)),
  bearer_methods_supported: Schema.Array(Schema.Literal("header"))
}).annotate({ identifier: "ProtectedResourceMetadata" })

/** The same document at both paths of RFC 9728. docs/reference/mcp.md#oauth */
const resourceMetadataAt = <const Path extends `/${string}`>(name: string, path: Path) =>
  HttpApiEndpoint.get(name, path, {
    success: ResourceMetadata,
    error: problems(404, 405, 500, 502)
  }).annotateMerge(
    documented({
      summary: "Where clients of /mcp get access tokens (RFC 9728)",
      responses: {
        200: {
          description: "The metadata; 404 without an OpenID provider",
          example: {
            resource: "https://gateway.example.com/mcp",
            resource_name: "Service",
            authorization_servers: ["https://accounts.example.com"],
            scopes_supported: ["inference", "manage"],
            bearer_methods_supported: ["header"]
          }
        }
      }
    })
  )

export const mcpMetadataPath = "/.well-known/oauth-protected-resource/mcp"

export const resourceMetadata = resourceMetadataAt(
  "getResourceMetadata",
  "/.well-known/oauth-protected-resource"
)

export const mcpResourceMetadata = resourceMetadataAt("getMcpResourceMetadata", mcpMetadataPath)

/** Pages for people, which are not in the document. */
const page = <const Path extends `/${string}`>(name: string, path: Path) =>
  HttpApiEndpoint.get(name, path, { success: text("text/html") }).annotate(OpenApi.Exclude, true)

export const pages = {
  root: page("root", "/"),
  docs: page("docs", "/docs"),
  errors: page("errors", "/docs/errors"),
  signIn: page("signInPage", "/sign-in"),
  console: page("console", "/console/*"),
  consoleAsset: page("consoleAsset", "/console/assets/:name")
}

/** Called by vendors, with the token that the submit gave them. docs/reference/vendors.md#callbacks */
export const receiveCallback = HttpApiEndpoint.post("receiveCallback", "/callbacks", {
  success: HttpApiSchema.NoContent
}).annotate(OpenApi.Exclude, true)

/** Routes that need no key, except `/metrics`. docs/reference/http.md#service-routes */
export class ServiceApi extends HttpApiGroup.make("service", { topLevel: true }).add(
  beginOidc,
  finishOidc,
  getArtifact,
  health,
  readiness,
  metrics,
  openApi,
  resourceMetadata,
  mcpResourceMetadata,
  receiveCallback,
  pages.root,
  pages.docs,
  pages.errors,
  pages.signIn,
  pages.console,
  pages.consoleAsset
) {}
