import { Array as Arr, Effect, Schema } from "effect"
import { bodyFieldsMax, bodyItemsMax } from "../../domain/limits/Limits.ts"
import { FieldFault } from "../../domain/Problem.ts"
import { bodyParseOptions, faultsOf, pointerOf } from "../FieldFaults.ts"
import { decodeDescribed } from "../jobs/DescribedBody.ts"
import { bodies, Label, sourceOf } from "./Bodies.ts"
import type { Body, BodySource } from "./Bodies.ts"

/** A body that breaks the rules of its model, with all faults. Reported as 400 with code 2001. */
export class InvalidBody extends Schema.TaggedError<InvalidBody>()("InvalidBody", {
  errors: Schema.NonEmptyArray(FieldFault)
}) {
  override get message(): string {
    return this.errors.map(({ detail, pointer }) => `${pointer}: ${detail}`).join("\n")
  }
}

/** Faults of the body's size, checked before decoding, whose cost grows with the number of fields and items. */
export const sizeFaults = (input: unknown): ReadonlyArray<FieldFault> => {
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
 * Decodes a request body by the rules of its label or schema and fills in the defaults. Fails with all faults.
 * Inline media are not inspected: `acceptBody` does both.
 */
export const decodeBody = Effect.fnUntraced(function* (
  source: BodySource,
  input: unknown
): Effect.fn.Return<Body, InvalidBody> {
  const { described, label } = sourceOf(source)
  const tooLarge = sizeFaults(input)
  if (Arr.isReadonlyArrayNonEmpty(tooLarge)) return yield* new InvalidBody({ errors: tooLarge })
  if (described !== undefined) {
    return yield* Effect.mapError(
      Effect.fromResult(decodeDescribed(described.body, input)),
      (errors) => new InvalidBody({ errors })
    )
  }
  if (!isLabel(label)) return yield* Effect.die(`the body of ${label} is not described`)
  return yield* Schema.decodeUnknownEffect(
    bodies[label],
    bodyParseOptions
  )(input).pipe(Effect.mapError((error) => new InvalidBody({ errors: faultsOf(error.issue) })))
})

const isLabel = Schema.is(Label)
