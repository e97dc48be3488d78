import { Effect, Option } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { AppConfig } from "../../config/Config.ts"
import { mcpResourceMetadata, resourceMetadata } from "../../contract/ServiceApi.ts"
import { problem } from "../../domain/Problem.ts"
import { AccessTokens, mcpResource } from "../../users/AccessTokens.ts"
import { resource } from "../server/Resource.ts"

/**
 * OAuth Protected Resource Metadata (RFC 9728): tells clients of `/mcp` where to get access tokens.
 * docs/reference/mcp.md#oauth
 */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const access = yield* AccessTokens
    const { baseUrl, serviceName } = yield* AppConfig
    const metadata = Effect.gen(function* () {
      if (Option.isNone(access)) return yield* off
      return HttpServerResponse.jsonUnsafe(
        {
          resource: mcpResource(baseUrl),
          resource_name: serviceName,
          authorization_servers: [yield* access.value.issuer],
          ...(access.value.asked === undefined ? {} : { scopes_supported: access.value.asked }),
          bearer_methods_supported: ["header"]
        },
        { headers: { "cache-control": "public, max-age=3600" } }
      )
    })
    // RFC 9728 derives the second path from the resource's path; MCP clients may also request the first
    yield* router.addAll([
      ...resource(resourceMetadata.path, { GET: metadata }),
      ...resource(mcpResourceMetadata.path, { GET: metadata })
    ])
  })
)

const off = Effect.fail(problem(2006, "OAuth is not configured: send an API key"))
