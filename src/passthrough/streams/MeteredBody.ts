import { Result, Schema } from "effect"
import { faultsOf } from "../../catalog/FieldFaults.ts"
import { hasDuplicateKeys } from "../../domain/json/Json.ts"
import { documentOf } from "../../domain/json/JsonDocument.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"

/** Whether the value is a valid limit. */
export const isPositive = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 1

const Limit = Schema.optionalKey(
  Schema.NullOr(
    Schema.Finite.check(
      Schema.makeFilter<number>(isPositive, { expected: "a whole number from 1" })
    )
  )
)

/** Gemini accepts two spellings of each name. */
const GenerationConfig = Schema.optionalKey(
  Schema.NullOr(
    Schema.Struct({
      maxOutputTokens: Limit,
      max_output_tokens: Limit,
      candidateCount: Limit,
      candidate_count: Limit
    })
  )
)

/** The members of a request that determine its maximum cost; all others are only for the upstream. */
const RequestBody = Schema.Struct({
  model: Schema.optionalKey(Schema.String),
  stream: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  background: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  n: Limit,
  max_tokens: Limit,
  max_completion_tokens: Limit,
  max_output_tokens: Limit,
  stream_options: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({ include_usage: Schema.optionalKey(Schema.NullOr(Schema.Boolean)) })
    )
  ),
  previous_response_id: Schema.optionalKey(Schema.Unknown),
  conversation: Schema.optionalKey(Schema.Unknown),
  generationConfig: GenerationConfig,
  generation_config: GenerationConfig
})
type RequestBody = typeof RequestBody.Type

const decodeBody = Schema.decodeUnknownResult(RequestBody, {
  errors: "all",
  reportInput: true
})

const isFlag = (value: unknown): boolean =>
  value === undefined || value === null || typeof value === "boolean"
const isLimit = (value: unknown): boolean =>
  value === undefined || value === null || isPositive(value)

/**
 * Whether the body needs no decoder. Most bodies are simple and valid, and a decoder would cost as much as the rest of
 * a plan.
 */
const isPlain = (value: Partial<Record<keyof RequestBody, unknown>>): value is RequestBody =>
  (value.model === undefined || typeof value.model === "string") &&
  isFlag(value.stream) &&
  isFlag(value.background) &&
  isLimit(value.n) &&
  isLimit(value.max_tokens) &&
  isLimit(value.max_completion_tokens) &&
  isLimit(value.max_output_tokens) &&
  value.stream_options === undefined &&
  value.generationConfig === undefined &&
  value.generation_config === undefined

export interface ReadBody {
  readonly bytes: Uint8Array
  /** The text without long strings. */
  readonly text: string
  readonly value: unknown
  readonly body: RequestBody
}

const duplicateKeys = problem(2002, "An object of the body has the same key twice")

/** Parses the body. Fails with 2001 or 2002. */
export const readBody = (bytes: Uint8Array): Result.Result<ReadBody, Problem> => {
  const document = documentOf(bytes)
  if (Result.isFailure(document)) return Result.fail(problem(2002, document.failure))
  const { keys, outline: text, value } = document.success
  if (Array.isArray(value) || typeof value !== "object" || value === null) {
    return Result.fail(invalid([{ pointer: "#", detail: "Expected an object" }]))
  }
  // The upstream might use the other value of a duplicate key
  if (hasDuplicateKeys(keys, value)) return Result.fail(duplicateKeys)
  if (isPlain(value)) return Result.succeed({ bytes, text, value, body: value })
  const body = decodeBody(value)
  return Result.isFailure(body)
    ? Result.fail(invalid(faultsOf(body.failure.issue)))
    : Result.succeed({ bytes, text, value, body: body.success })
}
