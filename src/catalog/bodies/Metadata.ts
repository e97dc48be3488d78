import { Result, Schema } from "effect"
import { Metadata, metadataJsonSchema } from "../../domain/Metadata.ts"
import type { FieldFault } from "../../domain/Problem.ts"
import {
  metadataKeyCharactersMax,
  metadataKeysMax,
  metadataValueCharactersMax
} from "../../domain/ShapeLimits.ts"
import { bodyParseOptions, describeValue, faultsOf } from "../FieldFaults.ts"
import { Text } from "./Fields.ts"

const codePoints = (text: string): number => [...text].length

const keyFault = (key: string): string | undefined =>
  key.length === 0 || codePoints(key) > metadataKeyCharactersMax || !isStorable(key)
    ? `Expected a key of 1 to ${metadataKeyCharactersMax} characters, got ${describeValue(key)}`
    : undefined

const valueFault = (value: string): string | undefined => {
  if (!isStorable(value)) return "Contains a character that cannot be stored"
  return codePoints(value) > metadataValueCharactersMax
    ? `Expected at most ${metadataValueCharactersMax} characters, got ${codePoints(value)}`
    : undefined
}

const isStorable = Schema.is(Text)

/** The rules of docs/reference/tasks.md#metadata. */
export const GivenMetadata = Metadata.check(
  Schema.makeFilter<Metadata>(
    (metadata) => {
      const entries = Object.entries(metadata)
      if (entries.length > metadataKeysMax) {
        return `Expected at most ${metadataKeysMax} keys, got ${entries.length}`
      }
      return entries.flatMap(([key, value]) => {
        const issue = keyFault(key) ?? valueFault(value)
        return issue === undefined ? [] : [{ path: [key], issue }]
      })
    },
    { toJsonSchema: () => metadataJsonSchema }
  )
)

const Given = Schema.Struct({ metadata: GivenMetadata })
const decodeGiven = Schema.decodeUnknownResult(Given, bodyParseOptions)

/** The body of a create in two: what the model gets, and what the client attaches. */
export const splitMetadata = (
  input: unknown
): {
  readonly input: unknown
  readonly metadata: Metadata | null
  readonly faults: ReadonlyArray<FieldFault>
} => {
  const none = { input, metadata: null, faults: [] }
  if (typeof input !== "object" || input === null || Array.isArray(input)) return none
  if (!Object.hasOwn(input, "metadata")) return none
  const { metadata, ...rest } = { metadata: undefined, ...input }
  const given = decodeGiven({ metadata })
  return Result.isSuccess(given)
    ? { input: rest, metadata: given.success.metadata, faults: [] }
    : { input: rest, metadata: null, faults: faultsOf(given.failure.issue) }
}
