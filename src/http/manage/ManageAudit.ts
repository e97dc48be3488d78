import { Effect, Option, Predicate, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import type { HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { UserId } from "../../domain/Ids.ts"
import type { AuditLog } from "../../process/audit/AuditLog.ts"
import type { Actor } from "../server/access/Authentication.ts"
import { RequestTrace } from "../server/listener/RequestTrace.ts"

/**
 * Fields whose text values the audit log shows. Numbers and booleans are always shown; every other text or list is
 * hidden, so that a field added later cannot reveal secrets or personal data. docs/reference/audit.md#what-changed
 */
const shownFields = new Set([
  "allowed_models",
  "amount",
  "endpoint_id",
  "events",
  "expires_at",
  "filter",
  "from",
  "reset",
  "scopes",
  "since",
  "spend_limit",
  "status",
  "to",
  "trigger_threshold",
  "type",
  "until",
  "user_id",
  "vendor"
])

const hidden = "[hidden]"

/** Longer values are hidden, too. */
const shownCharactersMax = 1000

/** The fields of a request body as the audit log shows them. */
export const changesOf = (body: unknown): Readonly<Record<string, unknown>> =>
  Predicate.isObject(body)
    ? Object.fromEntries(Object.entries(body).map(([name, value]) => [name, shownOf(name, value)]))
    : {}

const shownOf = (name: string, value: unknown): unknown => {
  if (!shown(name, value)) return hidden
  return Predicate.isObject(value) ? changesOf(value) : value
}

const shown = (name: string, value: unknown): boolean =>
  value === null ||
  typeof value === "number" ||
  typeof value === "boolean" ||
  (shownFields.has(name) &&
    Option.exists(written(value), ({ length }) => length <= shownCharactersMax))

/** Fails for deep nesting: `JSON.parse` accepts any depth, but `JSON.stringify` only some thousands of levels. */
const written = Option.liftThrowable((value: unknown) => JSON.stringify(value))

/** Audits a sign-in. Its store records the session that is created as the actor. */
export const auditSignIn = (
  log: AuditLog["Service"],
  type: "signIn" | "signInByOidc",
  ipAddress: Option.Option<string>
) =>
  Effect.fnUntraced(function* <A, E, R>(signIn: Effect.Effect<A, E, R>) {
    const entry = {
      type,
      actor: { type: "session" as const, id: null, userId: null },
      ipAddress: Option.getOrNull(ipAddress),
      userId: null,
      resourceId: null,
      changes: {},
      traceId: yield* traceId,
      isDone: false
    }
    return yield* log.around(entry)(signIn)
  })

// Read as an option, because middleware of the API cannot require a service that the global middleware provides
const traceId = Effect.map(Effect.serviceOption(RequestTrace), (trace) =>
  Option.getOrNull(Option.map(trace, (it) => it.traceId))
)

/** Who sent a request, and from where. */
interface Source {
  readonly actor: Actor
  readonly ipAddress: Option.Option<string>
}

/**
 * Runs a request of the management API and audits it: every writing request, whatever its route, and every read of a
 * user's data by the operator. docs/reference/audit.md#what-is-recorded
 */
export const auditRequest = (
  log: AuditLog["Service"],
  { actor, ipAddress }: Source,
  endpoint: HttpApiEndpoint.Top,
  body: unknown
) =>
  Effect.fnUntraced(function* <E, R>(
    handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ) {
    const request = yield* HttpServerRequest.HttpServerRequest
    const params = yield* HttpRouter.params
    const query = new URLSearchParams(request.url.split("?", 2)[1])
    const userId = namedUser(endpoint.path, params["id"], query)
    const isRead = request.method === "GET" || request.method === "HEAD"
    if (isRead && actor.userId !== null) return yield* handled
    const entry = {
      type: endpoint.identifier,
      actor,
      ipAddress: Option.getOrNull(ipAddress),
      userId: userId ?? actor.userId,
      resourceId: params["id"] ?? null,
      changes: isRead ? {} : changesOf(body),
      traceId: yield* traceId,
      // If a read does not name a user, its handler reports whether it concerned a single one
      isDone: isRead && userId === null
    }
    return yield* log.around(entry)(handled)
  })

const isUserId = Schema.is(UserId)

/** The user that the path or `?user_id=` names. */
const namedUser = (path: string, id: string | undefined, query: URLSearchParams): string | null => {
  const given = /\/users\/:id(?:\/|$)/u.test(path) ? id : query.get("user_id")
  return isUserId(given) ? given : null
}
