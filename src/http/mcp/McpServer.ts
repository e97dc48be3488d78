import { DateTime, Effect, Schema } from "effect"
import { bodyParseOptions, faultsOf } from "../../catalog/FieldFaults.ts"
import { AppConfig } from "../../config/Config.ts"
import { protocolVersions } from "../../contract/McpApi.ts"
import { createTask } from "../../contract/McpTools.ts"
import { TaskId } from "../../domain/Ids.ts"
import { TaskStatus } from "../../domain/task/Task.ts"
import { version } from "../../domain/Version.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { RequestQuotas } from "../../users/RequestQuotas.ts"
import { TokenUse } from "../server/access/TokenUse.ts"
import { makeDeliveryTools } from "./DeliveryTools.ts"
import { errorOf, resultOf, rpcCodes, tasksExtension } from "./JsonRpc.ts"
import type { JsonObject, RpcError, RpcRequest } from "./JsonRpc.ts"
import { makeModelTools } from "./ModelTools.ts"
import { makeTaskExtension } from "./TaskExtension.ts"
import { makeTaskTools } from "./TaskTools.ts"
import { resultOfAnswer, resultOfFailure } from "./Tools.ts"
import type { Content, Failure, McpTool, OfRequest } from "./Tools.ts"
import { hasResourceLinks, isStateless, negotiate, takesTasks } from "./Versions.ts"
import type { ProtocolVersion } from "./Versions.ts"
import { makeWalletTools } from "./WalletTools.ts"

/** A response and its HTTP status: since 2026-07-28 an unknown method is a 404. */
export interface Answered {
  readonly status: number
  readonly body: JsonObject
}

const instructions =
  "Generates images and videos with the models of many vendors, paid from one prepaid wallet in credits. Begin with list_models. create_task returns at once: then call get_task with wait_seconds until the task has ended."

const capabilities = { tools: {} }

/** An error of the protocol or of HTTP, or the result. */
type Outcome = Effect.Effect<JsonObject, RpcError | Failure, OfRequest>

/** A stateless MCP server: any process can respond to any message. The tools correspond to the HTTP API. ADR 0227. */
export const makeMcpServer = Effect.gen(function* () {
  const { serviceName } = yield* AppConfig
  const serverInfo = { name: "generation-gateway", title: titleOf(serviceName), version }
  const { call, list, scopeOf } = yield* makeToolMethods
  const extension = yield* makeTaskExtension

  const initialize = ({ params }: RpcRequest): Outcome =>
    Effect.map(decodeInitialize(params), ({ protocolVersion }) => ({
      protocolVersion: negotiate(protocolVersion),
      capabilities,
      serverInfo,
      instructions
    }))

  const discovered = {
    supportedVersions: protocolVersions,
    capabilities: { ...capabilities, extensions: { [tasksExtension]: {} } },
    instructions,
    ...cached
  }

  /** Methods of the versions that start with `initialize`. */
  const ofHandshake = (caller: Principal, request: RpcRequest, asked: ProtocolVersion) => {
    switch (request.method) {
      case "initialize":
        return initialize(request)
      case "ping":
        return Effect.succeed({})
      case "tools/list":
        return list(caller, request)
      case "tools/call":
        return call(caller, request, asked)
      default:
        return undefined
    }
  }

  const ofStateless = (caller: Principal, request: RpcRequest, asked: ProtocolVersion) => {
    switch (request.method) {
      case "server/discover":
        return Effect.succeed(discovered)
      case "tools/list":
        return Effect.map(list(caller, request), (result) => ({ ...result, ...cached }))
      case "tools/call":
        return takesTasks(request)
          ? Effect.flatMap(call(caller, request, asked), (result) => asTask(request, result))
          : call(caller, request, asked)
      default:
        return extension.call(caller, request)
    }
  }

  /** The task that `create_task` created, for clients that wait for it themselves. */
  const asTask = ({ params }: RpcRequest, result: JsonObject) => {
    const created = params["name"] === createTask.name ? result["structuredContent"] : undefined
    return isCreated(created)
      ? Effect.map(DateTime.now, (now) => extension.handleOf(created.task_id, created.status, now))
      : Effect.succeed(result)
  }

  /** Adds the members that every result has in the stateless version. */
  const complete = (result: JsonObject): JsonObject => ({
    resultType: "complete",
    ...result,
    _meta: { "io.modelcontextprotocol/serverInfo": serverInfo }
  })

  /** Responds to a request whose protocol version is known. */
  const answer = (caller: Principal, request: RpcRequest, asked: ProtocolVersion) => {
    const isModern = isStateless(asked)
    const outcome: Outcome | undefined = (isModern ? ofStateless : ofHandshake)(
      caller,
      request,
      asked
    )
    if (outcome === undefined) {
      const error = { code: rpcCodes.methodNotFound, message: "Method not found" }
      return Effect.succeed({ status: isModern ? 404 : 200, body: errorOf(request.id, error) })
    }
    return Effect.matchEffect(outcome, {
      onFailure: (error) =>
        "_tag" in error
          ? Effect.fail(error)
          : Effect.succeed<Answered>({ status: 200, body: errorOf(request.id, error) }),
      onSuccess: (result) =>
        Effect.succeed<Answered>({
          status: 200,
          body: resultOf(request.id, isModern ? complete(result) : result)
        })
    })
  }

  return { answer, scopeOf }
})

/** The methods `tools/list` and `tools/call`. */
const makeToolMethods = Effect.gen(function* () {
  const quotas = yield* RequestQuotas
  const tools: ReadonlyArray<McpTool> = [
    ...(yield* makeModelTools),
    ...(yield* makeTaskTools),
    ...(yield* makeWalletTools),
    ...(yield* makeDeliveryTools)
  ]
  const byName = new Map(tools.map((tool) => [tool.name, tool]))

  /** Counts an inference call that is refused before it is counted against its key's request rate. */
  const countRefused = ({ scope }: McpTool, { userId }: Principal) =>
    scope === "inference" ? quotas.takeManagement(userId) : Effect.void

  const call = Effect.fnUntraced(function* (
    caller: Principal,
    { params }: RpcRequest,
    asked: ProtocolVersion
  ) {
    const { arguments: args, name } = yield* decodeCall(params)
    const tool = byName.get(name)
    if (tool === undefined) return yield* failed(`Unknown tool: ${name.slice(0, 60)}`)
    const isShown = ({ type }: Content) => type !== "resource_link" || hasResourceLinks(asked)
    const begun = Effect.tapError(tool.begin(args, caller), () => countRefused(tool, caller))
    return yield* Effect.matchCauseEffect(Effect.flatten(begun), {
      onSuccess: ({ content = [], value }) =>
        Effect.succeed(resultOfAnswer({ value, content: content.filter(isShown) })),
      onFailure: (cause) => resultOfFailure(name, cause)
    })
  })

  const list = (caller: Principal, { params }: RpcRequest): Outcome =>
    params["cursor"] === undefined
      ? Effect.map(TokenUse, (token) => ({
          tools: tools
            // The client of a token can request the scopes that it lacks, so it sees all tools
            .filter(({ scope }) => !scope || token || caller.scopes.includes(scope))
            .map(({ listed }) => listed)
        }))
      : failed("All tools are on the first page")

  return { call, list, scopeOf: (name: unknown) => byName.get(String(name))?.scope }
})

const isCreated = Schema.is(Schema.Struct({ task_id: TaskId, status: TaskStatus }))

/** The tools of a key change only with its scopes and with the release. */
const cached = { ttlMs: 60_000, cacheScope: "private" }

const titleOf = (serviceName: string): string =>
  serviceName === "Service" ? "Generation Gateway" : serviceName

const failed = (message: string, data?: unknown): Effect.Effect<never, RpcError> =>
  Effect.fail({
    code: rpcCodes.invalidParams,
    message,
    ...(data === undefined ? {} : { data })
  })

/** Ignores unknown members, because later versions add some. */
const paramsOf = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(schema, {
    ...bodyParseOptions,
    onExcessProperty: "ignore"
  })
  return (params: JsonObject) =>
    Effect.catch(decode(params), ({ issue }) =>
      failed("Invalid params", { errors: faultsOf(issue) })
    )
}

const UnknownObject = Schema.Record(Schema.String, Schema.Unknown)

const decodeCall = paramsOf(
  Schema.Struct({
    name: Schema.String,
    arguments: UnknownObject.pipe(Schema.withDecodingDefaultKey(Effect.succeed({})))
  })
)

const decodeInitialize = paramsOf(
  Schema.Struct({
    protocolVersion: Schema.String,
    capabilities: UnknownObject,
    clientInfo: Schema.Struct({ name: Schema.String, version: Schema.String })
  })
)
