import { Option, Predicate, Schema, SchemaTransformation, identity } from "effect"

/**
 * A field that an answer may leave out. Written as `null` it is absent too: vendors do either, and what
 * they write of a bought job must not stay unread for it.
 */
export const maybe = <S extends Schema.Constraint>(schema: S) =>
  Schema.optionalKey(Schema.NullOr(schema)).pipe(
    Schema.decodeTo(
      Schema.optionalKey(Schema.toType(schema)),
      SchemaTransformation.transformOptional<S["Type"], S["Type"] | null>({
        decode: Option.filter(Predicate.isNotNull),
        encode: identity
      })
    )
  )
