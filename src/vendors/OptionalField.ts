import { Option, Predicate, Schema, SchemaTransformation, identity } from "effect"

/**
 * A field that a response may omit or set to `null`. Vendors do both, and a response about a paid job must not fail
 * to decode because of it.
 */
export const optionalField = <S extends Schema.Constraint>(schema: S) =>
  Schema.optionalKey(Schema.NullOr(schema)).pipe(
    Schema.decodeTo(
      Schema.optionalKey(Schema.toType(schema)),
      SchemaTransformation.transformOptional<S["Type"], S["Type"] | null>({
        decode: Option.filter(Predicate.isNotNull),
        encode: identity
      })
    )
  )
