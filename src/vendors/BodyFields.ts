import { Effect, Schema } from "effect"
import type { SubmitRequest } from "./VendorClient.ts"
import { VendorError } from "./VendorError.ts"

/** Reads what an adapter sends of a body; one that it cannot read is the catalog's fault. */
export const bodyFields = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (request: SubmitRequest): Effect.Effect<S["Type"], VendorError> =>
    Effect.mapError(Effect.fromOption(decode(request.body)), () => unsendable(request))
}

/** The catalog gives the model an adapter that does not know it. */
export const unsendable = ({ model }: SubmitRequest): VendorError =>
  new VendorError({
    class: "OPERATOR",
    message: `the adapter cannot send a body of ${model}: correct the catalog's adapter`
  })
