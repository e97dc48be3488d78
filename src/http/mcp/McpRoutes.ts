import { Effect } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import type { HttpServerResponse } from "effect/http"
import { AppConfig } from "../../config/Config.ts"
import { callMcp } from "../../contract/McpApi.ts"
import { mcpBatchMax } from "../../domain/limits/ShapeLimits.ts"
import { problem } from "../../domain/Problem.ts"
import type { Scope } from "../../domain/Scope.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { RequestQuotas } from "../../users/RequestQuotas.ts"
import { TokenUse } from "../server/access/TokenUse.ts"
import { readJsonBody } from "../server/bodies/JsonBody.ts"
import { RequestBodyLimiter } from "../server/bodies/RequestBodyLimiter.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"
import { resource } from "../server/Resource.ts"
import { accepted, errorOf, isObject, readMessage, respondJson, rpcCodes } from "./JsonRpc.ts"
import type { RpcError, RpcMessage, RpcRequest } from "./JsonRpc.ts"
import { makeMcpCaller, makeRequireScopes } from "./McpCaller.ts"
import type { McpCaller } from "./McpCaller.ts"
import { makeMcpServer } from "./McpServer.ts"
import { namesTask } from "./TaskExtension.ts"
import { MayWait } from "./Tools.ts"
import { headerVersion, takesBatches, versionOf } from "./Versions.ts"
import type { ProtocolVersion } from "./Versions.ts"

/**
 * The Model Context Protocol with the Streamable HTTP transport, without sessions and streams. docs/reference/mcp.md
 */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    yield* router.addAll([...resource(callMcp.path, { POST: (yield* makePost)() })])
  })
)

const makePost = Effect.gen(function* () {
  const callerOf = yield* makeMcpCaller
  const bodies = yield* RequestBodyLimiter
  const { baseUrl } = yield* AppConfig
  const { origin } = new URL(baseUrl)
  const respond = yield* makeRespond

  return Effect.fnUntraced(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const from = request.headers["origin"]
    // Prevents DNS rebinding: a page of another site whose name resolves to this address (MCP, Transports, Security
    // Warning)
    if (from !== undefined && from !== origin) return yield* foreign
    const caller = yield* callerOf
    yield* refuseUnknownQuery([])
    const within = bodies.within(request, caller.principal.userId)
    // Copied, because a request keeps the body that was read from it and stays in memory until its response
    const own = request.modify({})
    const read = Effect.provideService(readBody, HttpServerRequest.HttpServerRequest, own)
    const held = yield* within(
      // The caller's access may have ended while the body arrived
      Effect.flatMap(Effect.tap(read, caller.mayStill), (body) => {
        const responded = Effect.provideService(respond(caller, body), TokenUse, caller.token)
        // A request that waits for a task must not use the capacity for bodies meanwhile
        return hasInput(body) ? Effect.map(responded, Effect.succeed) : Effect.succeed(responded)
      })
    )
    return yield* held
  })
})

const foreign = problem(1007, "The Origin of the request is not that of this gateway")

type Headers = HttpServerRequest.HttpServerRequest["headers"]

/** The messages of a body, or the fault of the body. */
type Body =
  | { readonly _tag: "One"; readonly message: RpcMessage }
  | { readonly _tag: "Batch"; readonly messages: ReadonlyArray<RpcMessage> }
  | { readonly _tag: "Refused"; readonly error: RpcError }

const readBody = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { value } = yield* readJsonBody
  return Array.isArray(value) ? batchOf(headers, value) : oneOf(value)
}).pipe(
  Effect.catchIf(
    (fault) => fault._tag === "Problem" && fault.code === 2002,
    ({ message }) => Effect.succeed(refused({ code: rpcCodes.parseError, message }))
  )
)

const oneOf = (value: unknown): Body => ({ _tag: "One", message: readMessage(value) })

const refused = (error: RpcError): Body => ({ _tag: "Refused", error })

const invalidBatch = (message: string): Body => refused({ code: rpcCodes.invalidRequest, message })

/** A batch of messages, which only one protocol version supports. docs/reference/mcp.md#versions */
const batchOf = (headers: Headers, values: ReadonlyArray<unknown>): Body => {
  const version = headerVersion(headers)
  if (typeof version !== "string") return refused(version)
  if (!takesBatches(version)) return invalidBatch(`MCP ${version} has no batches`)
  if (values.length === 0 || values.length > mcpBatchMax) {
    return invalidBatch(`Expected 1 to ${mcpBatchMax} messages`)
  }
  const messages = values.map(readMessage)
  return messages.some((it) => it._tag === "Request" && it.method === "initialize")
    ? invalidBatch("initialize must not be part of a batch")
    : { _tag: "Batch", messages }
}

const messagesOf = (body: Body): ReadonlyArray<RpcMessage> => {
  if (body._tag === "Refused") return []
  return body._tag === "One" ? [body.message] : body.messages
}

const inputTools = new Set<unknown>(["create_task", "quote"])

/** Whether the body may contain media, which stay in memory until they are stored. */
const hasInput = (body: Body): boolean =>
  messagesOf(body).some((it) => it._tag === "Request" && inputTools.has(it.params["name"]))

/** Responds to the messages of a body. */
const makeRespond = Effect.gen(function* () {
  const server = yield* makeMcpServer
  const quotas = yield* RequestQuotas
  const requireScopes = yield* makeRequireScopes

  /** The scopes that the messages require. */
  const neededBy = (messages: ReadonlyArray<RpcMessage>): ReadonlyArray<Scope> => {
    const scopes = messages.map((it) => {
      if (it._tag !== "Request") return undefined
      if (it.method === "tools/call") return server.scopeOf(it.params["name"])
      return namesTask(it) ? "inference" : undefined
    })
    return [...new Set(scopes.filter((it) => it !== undefined))]
  }

  /** Whether the message is an inference call, which counts against the key's request rate where it is handled. */
  const isInference = (message: RpcMessage, headers: Headers): boolean =>
    message._tag === "Request" &&
    (namesTask(message) ||
      (message.method === "tools/call" &&
        server.scopeOf(message.params["name"]) === "inference" &&
        isObject(message.params["arguments"] ?? {}))) &&
    typeof versionOf(headers, message) === "string"

  const count = Effect.fnUntraced(function* (
    caller: Principal,
    messages: ReadonlyArray<RpcMessage>
  ) {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    for (const message of messages) {
      if (!isInference(message, headers)) yield* quotas.takeManagement(caller.userId)
    }
  })

  const answerOne = (caller: Principal, request: RpcRequest) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
      const version: ProtocolVersion | RpcError = versionOf(headers, request)
      return typeof version === "string"
        ? server.answer(caller, request, version)
        : Effect.succeed({ status: 400, body: errorOf(request.id, version) })
    })

  const answer = (caller: Principal, message: RpcMessage) => {
    if (message._tag === "Notice") return Effect.undefined
    if (message._tag === "Request") return answerOne(caller, message)
    const error = { code: rpcCodes.invalidRequest, message: message.detail }
    return Effect.succeed({ status: 400, body: errorOf(message.id, error) })
  }

  return ({ principal: caller, token }: McpCaller, body: Body) =>
    Effect.gen(function* () {
      if (body._tag === "Refused") {
        yield* quotas.takeManagement(caller.userId)
        return respondJson(errorOf(null, body.error), 400)
      }
      const messages = messagesOf(body)
      if (token !== undefined) {
        const needed = requireScopes(caller, neededBy(messages))
        yield* Effect.tapError(needed, () => quotas.takeManagement(caller.userId))
      }
      yield* count(caller, messages)
      // Sequentially, because a message may depend on the previous one
      const answers = yield* Effect.forEach(messages, (message) => answer(caller, message)).pipe(
        Effect.provideService(MayWait, body._tag === "One")
      )
      const bodies = answers.flatMap((it) => (it === undefined ? [] : [it]))
      const [first] = bodies
      if (first === undefined) return accepted
      return body._tag === "One"
        ? respondJson(first.body, first.status)
        : respondJson(bodies.map((it) => it.body))
    }) satisfies Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, unknown>
})
