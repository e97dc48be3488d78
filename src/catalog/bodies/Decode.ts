import { Array as Arr, Effect, Schema } from "effect"
import { bodyFieldsMax, bodyItemsMax } from "../../domain/Limits.ts"
import { FieldFault } from "../../domain/Problem.ts"
import { bodyParseOptions, faultsOf, pointerOf } from "../Pointers.ts"
import { bodies } from "./Bodies.ts"
import type { Body, Label } from "./Bodies.ts"

/** A body that breaks rules of its model: all of its faults, never none. Contract 2 and 4, code 2001. */
export class InvalidBody extends Schema.TaggedError<InvalidBody>()("InvalidBody", {
  errors: Schema.NonEmptyArray(FieldFault)
}) {
  override get message(): string {
    return this.errors.map(({ detail, pointer }) => `${pointer}: ${detail}`).join("\n")
  }
}

/** Bodies with absurdly many fields or items are refused before each of them is looked at. */
export const crowdFaults = (input: unknown): ReadonlyArray<FieldFault> => {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return []
  const entries = Object.entries(input)
  if (entries.length > bodyFieldsMax) {
    return [
      { pointer: "#", detail: `Expected at most ${bodyFieldsMax} fields, got ${entries.length}` }
    ]
  }
  return entries.flatMap(([key, value]) =>
    Array.isArray(value) && value.length > bodyItemsMax
      ? [
          {
            pointer: pointerOf([key]),
            detail: `Expected at most ${bodyItemsMax} items, got ${value.length}`
          }
        ]
      : []
  )
}

/**
 * Decodes a request body by the rules of its label and fills in the defaults. Inline media are not
 * looked into: `acceptBody` does both. Fails with all faults at once.
 */
export const decodeBody = Effect.fnUntraced(function* (
  label: Label,
  input: unknown
): Effect.fn.Return<Body, InvalidBody> {
  const crowd = crowdFaults(input)
  if (Arr.isReadonlyArrayNonEmpty(crowd)) return yield* new InvalidBody({ errors: crowd })
  return yield* Schema.decodeUnknownEffect(
    bodies[label],
    bodyParseOptions
  )(input).pipe(Effect.mapError((error) => new InvalidBody({ errors: faultsOf(error.issue) })))
})
