import { Cause, Context, Effect, Option, Schema } from "effect"
// Imports only the definitions: all of effect/ai takes 18 MB
import * as Tool from "effect/ai/Tool"
import type { HttpServerError, HttpServerRequest } from "effect/http"
import { sizeFaults } from "../../catalog/bodies/Decode.ts"
import { bodyParseOptions, faultsOf } from "../../catalog/FieldFaults.ts"
import { problemHelp } from "../../domain/ErrorHelp.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import type { Scope } from "../../domain/Scope.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { RequestTrace } from "../server/listener/RequestTrace.ts"
import { problemBody, problemOf } from "../server/problems/Problems.ts"
import type { JsonObject } from "./JsonRpc.ts"

/** A part of a result that accompanies its JSON. */
export type Content =
  | { readonly type: "image"; readonly data: string; readonly mimeType: string }
  | {
      readonly type: "resource_link"
      readonly uri: string
      readonly name: string
      readonly mimeType?: string
      readonly size?: number
    }

/** The result of a tool: its value, and content for clients to display. */
export interface Answer<Value> {
  readonly value: Value
  readonly content?: ReadonlyArray<Content>
}

export type Failure = Problem | StoreUnavailable | HttpServerError.HttpServerError

/** Services of the HTTP request that contains the call. */
export type OfRequest = HttpServerRequest.HttpServerRequest | RequestTrace

/** A tool with its handler, in the form in which the server lists and calls it. */
export interface McpTool {
  readonly name: string
  /** The scope that the key needs. `undefined`: no scope. */
  readonly scope: Scope | undefined
  /** Its entry in `tools/list`. */
  readonly listed: JsonObject
  /** Runs the call once its key and arguments have been checked. */
  readonly begin: (
    args: unknown,
    caller: Principal
  ) => Effect.Effect<Effect.Effect<Answer<JsonObject>, Failure, OfRequest>, Problem>
}

/**
 * Whether a call may wait for a task. Calls of a batch may not: their waits would add up while the body stays in
 * memory.
 */
export const MayWait = Context.Reference<boolean>("gateway/http/mcp/MayWait", {
  defaultValue: () => true
})

/** A definition made by `Tool.make` of effect/ai. */
interface Definition<Args, Value> {
  readonly name: string
  readonly description?: string | undefined
  readonly parametersSchema: Schema.ConstraintDecoder<Args>
  readonly successSchema: Schema.ConstraintCodec<Value, JsonObject>
  readonly annotations: Context.Context<never>
}

/** Combines a definition with its handler. Arguments are decoded like request bodies, so all faults are reported. */
export const bind = <Args, Value>(
  tool: Definition<Args, Value>,
  scope: Scope | undefined,
  run: (args: Args, caller: Principal) => Effect.Effect<Answer<Value>, Failure, OfRequest>
): McpTool => {
  const decode = Schema.decodeUnknownEffect(tool.parametersSchema, bodyParseOptions)
  const encode = Schema.encodeEffect(tool.successSchema)
  const check = Effect.fnUntraced(function* (args: unknown, caller: Principal) {
    if (scope !== undefined && !caller.scopes.includes(scope)) {
      return yield* problem(1004, `This API key lacks the scope ${scope}`)
    }
    const tooLarge = sizeFaults(args)
    if (tooLarge.length > 0) return yield* invalid(tooLarge)
    return yield* Effect.mapError(decode(args), ({ issue }) => invalid(faultsOf(issue)))
  })
  let listed: JsonObject | undefined
  return {
    name: tool.name,
    scope,
    // Built at first use, because building all schemas at startup takes some milliseconds
    get listed() {
      return (listed ??= listedOf(tool))
    },
    begin: (args, caller) =>
      Effect.map(check(args, caller), (decoded) =>
        Effect.flatMap(run(decoded, caller), ({ content = [], value }) =>
          Effect.map(Effect.orDie(encode(value)), (value) => ({ value, content }))
        )
      )
  }
}

const listedOf = <Args, Value>({
  annotations,
  description,
  name,
  parametersSchema,
  successSchema
}: Definition<Args, Value>): JsonObject => {
  const title = Option.getOrElse(Context.getOption(annotations, Tool.Title), () => name)
  return {
    name,
    title,
    description,
    inputSchema: jsonSchemaOf(parametersSchema, "error"),
    outputSchema: jsonSchemaOf(successSchema, "ignore"),
    annotations: {
      title,
      readOnlyHint: Context.get(annotations, Tool.Readonly),
      destructiveHint: Context.get(annotations, Tool.Destructive),
      idempotentHint: Context.get(annotations, Tool.Idempotent),
      openWorldHint: Context.get(annotations, Tool.OpenWorld)
    }
  }
}

/** The JSON Schema of arguments, which may not have unknown members, or of a result, which may gain members. */
const jsonSchemaOf = (schema: Schema.Constraint, onExcessProperty: "error" | "ignore") => {
  const { definitions: $defs, schema: own } = Schema.toJsonSchemaDocument(schema, {
    onExcessProperty
  })
  return Object.keys($defs).length === 0 ? own : { ...own, $defs }
}

const mcp = { path: "/mcp", vendor: "" }

/** A successful result. The text repeats the JSON for clients that do not read `structuredContent`. */
export const resultOfAnswer = ({ content = [], value }: Answer<JsonObject>): JsonObject => ({
  content: [{ type: "text", text: JSON.stringify(value) }, ...content],
  structuredContent: value
})

/**
 * A failed call as a result, so that the model sees the fault and can correct it. Has no `structuredContent`, which
 * clients would check against the schema of a success. docs/reference/mcp.md#errors
 */
export const resultOfFailure = (
  tool: string,
  cause: Cause.Cause<Failure>
): Effect.Effect<JsonObject, never, RequestTrace> =>
  Effect.gen(function* () {
    if (Cause.hasInterruptsOnly(cause)) return yield* Effect.interrupt
    const { traceId } = yield* RequestTrace
    const known = problemOf(Cause.squash(cause))
    if (Option.isNone(known)) yield* Effect.logError(`The tool ${tool} failed`, cause)
    const fault = Option.getOrElse(known, () =>
      problem(5000, "Something failed inside the service")
    )
    const { instance: _, ...body } = problemBody(fault, mcp, traceId)
    const shown = {
      ...body,
      remedy: problemHelp[fault.code].remedy,
      ...(fault.retryAfterSeconds === undefined
        ? {}
        : { retry_after_seconds: fault.retryAfterSeconds }),
      trace_id: traceId
    }
    return { content: [{ type: "text", text: JSON.stringify(shown) }], isError: true }
  })
