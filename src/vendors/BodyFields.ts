import { Effect, Schema } from "effect"
import { describeValue } from "../catalog/FieldFaults.ts"
import type { SubmitRequest } from "./VendorClient.ts"
import { VendorError } from "./VendorError.ts"

/** Reads the fields that an adapter sends. A body that it cannot read is an error in the catalog. */
export const bodyFields = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (request: SubmitRequest): Effect.Effect<S["Type"], VendorError> =>
    Effect.mapError(Effect.fromOption(decode(request.body)), () => unsupportedModel(request))
}

/** The catalog names an adapter that cannot serve the model. */
export const unsupportedModel = ({ model }: SubmitRequest): VendorError =>
  new VendorError({
    class: "OPERATOR",
    message: `the adapter cannot send a body of ${model}: correct the catalog's adapter`
  })

/** The fault of a value that the upstream model does not accept. */
export const unlessOneOf = (
  values: ReadonlyArray<string | number | boolean>,
  value: unknown
): string | undefined =>
  values.some((it) => it === value)
    ? undefined
    : `This model accepts only ${values.map(String).join(", ")}, got ${describeValue(value)}`
