import { Option, Schema } from "effect"
import { at } from "../domain/json/Json.ts"
import { numberExample, numberOf, stringExample } from "./ScalarExample.ts"
import { isOf, likelyType, listOf, textsOf, typesOf } from "./SchemaTypes.ts"

/** No value fits the schema. */
export class UnsatisfiableSchema extends Error {
  override readonly message = "No value fits the schema"
}

/** Bounds the work, and thereby the value. A text costs its length, … */
const workMax = 100_000
/** … and each schema of a value costs this much, which takes about 10 microseconds. */
const schemaWork = 25

const decodePointer = Schema.decodeOption(Schema.StringFromUriComponent)

/**
 * A value that fits a JSON schema, always the same for the same schema. Contains the required members, or all declared
 * members if none is required, and one element per array without a minimum. docs/reference/vendors.md#structured-output
 *
 * No library is used, because the schema comes from a client: json-schema-faker is random and does not terminate for
 * some recursive references, openapi-sampler supports few patterns, and neither bounds its work or reports that no
 * value fits.
 */
export const exampleOf = (schema: unknown): unknown => {
  const value = new Example(schema).of([schema], new Set(["#"]))
  if (value === undefined) throw new UnsatisfiableSchema()
  return value
}

/** The constraints on a value at one place. */
interface Place {
  readonly schemas: ReadonlyArray<unknown>
  /** The alternatives from which none has been chosen yet. */
  readonly choices: ReadonlyArray<ReadonlyArray<unknown>>
  /** The references followed on the way here. None is followed twice, so that recursion ends. */
  readonly refs: ReadonlySet<string>
}

class Example {
  readonly #root: unknown
  #work = workMax

  constructor(root: unknown) {
    this.#root = root
  }

  /** A value that fits all schemas; `undefined` if none does. */
  of(schemas: ReadonlyArray<unknown>, refs: ReadonlySet<string>): unknown {
    const place = this.#place(schemas, refs)
    return place && this.#chosen(place)
  }

  #spend(amount: number): void {
    this.#work -= amount
    if (this.#work < 0) throw new RangeError("The schema asks for too much")
  }

  /** Follows references and `allOf`. Alternatives remain to be chosen. */
  #place(given: ReadonlyArray<unknown>, above: ReadonlySet<string>): Place | undefined {
    const schemas = [...given]
    const choices: Array<ReadonlyArray<unknown>> = []
    const refs = new Set(above)
    // The list grows during the loop
    for (const schema of schemas) {
      this.#spend(schemaWork + refs.size + sizeOf(schema))
      if (schema === false) return undefined
      schemas.push(...listOf(at(schema, "allOf")))
      for (const name of ["anyOf", "oneOf"]) {
        const forms = at(schema, name)
        if (Array.isArray(forms)) choices.push(forms)
      }
      const ref = at(schema, "$ref")
      if (typeof ref !== "string") continue
      if (above.has(ref)) return undefined
      if (!refs.has(ref)) schemas.push(this.#target(ref))
      refs.add(ref)
    }
    return { schemas, choices, refs }
  }

  #target(ref: string): unknown {
    const path = ref.split("/").slice(1)
    const names = path.map((it) => Option.getOrElse(decodePointer(it), () => it))
    return at(this.#root, ...names.map((it) => it.replaceAll("~1", "/").replaceAll("~0", "~")))
  }

  #chosen({ choices, refs, schemas }: Place): unknown {
    const [forms, ...rest] = choices
    if (forms === undefined) return this.#value(schemas, refs)
    for (const form of forms) {
      const place = this.#place([form], refs)
      this.#spend(schemas.length)
      const value =
        place &&
        this.#chosen({
          schemas: [...schemas, ...place.schemas],
          choices: [...rest, ...place.choices],
          refs: place.refs
        })
      if (value !== undefined) return value
    }
    return undefined
  }

  #value(schemas: ReadonlyArray<unknown>, refs: ReadonlySet<string>): unknown {
    const types = typesOf(schemas)
    const lists = schemas.flatMap(listed)
    if (lists.length > 0) return this.#listed(lists, types)
    for (const type of types ?? [likelyType(schemas)]) {
      const value = this.#typed(type, schemas, refs)
      if (value !== undefined) return value
    }
    return undefined
  }

  /** The first value that is in all lists and has the type. */
  #listed(
    [first = [], ...others]: ReadonlyArray<ReadonlyArray<unknown>>,
    types: ReadonlyArray<string> | undefined
  ): unknown {
    const keys = (list: ReadonlyArray<unknown>) => new Set(list.map((it) => this.#key(it)))
    const sets = others.map(keys)
    this.#spend(first.length)
    return first.find(
      (value) =>
        (types === undefined || types.some((type) => isOf(type, value))) && this.#isIn(sets, value)
    )
  }

  #isIn(sets: ReadonlyArray<ReadonlySet<string>>, value: unknown): boolean {
    const key = this.#key(value)
    return sets.every((set) => set.has(key))
  }

  /** The JSON text of a value. Costs its length. */
  #key(value: unknown): string {
    const text = JSON.stringify(value)
    this.#spend(1 + text.length)
    return text
  }

  #typed(type: string, schemas: ReadonlyArray<unknown>, refs: ReadonlySet<string>): unknown {
    switch (type) {
      case "null":
        return null
      case "boolean":
        return true
      case "integer":
      case "number":
        return numberExample(schemas, type === "integer")
      case "string": {
        for (const schema of schemas) this.#spend(lengthOf(at(schema, "pattern")))
        const text = stringExample(schemas)
        this.#spend(text.length)
        return text
      }
      case "array":
        return this.#elements(schemas, refs)
      case "object":
        return this.#members(schemas, refs)
      default:
        return undefined
    }
  }

  #elements(schemas: ReadonlyArray<unknown>, refs: ReadonlySet<string>): unknown {
    const least = most(schemas, "minItems")
    const tuple = Math.max(...schemas.map((schema) => tupleOf(schema).length))
    const count = Math.max(least, Math.min(fewest(schemas, "maxItems"), Math.max(1, tuple)))
    const elements: Array<unknown> = []
    for (let index = 0; index < count; index += 1) {
      const element = this.of(
        schemas.map((schema) => elementSchema(schema, index)),
        refs
      )
      if (element === undefined) return index < least ? undefined : elements
      elements.push(element)
    }
    return elements
  }

  #members(schemas: ReadonlyArray<unknown>, refs: ReadonlySet<string>): unknown {
    // Names of declared members come first, in the order of the schema
    const declared = schemas.flatMap((schema) => Object.keys(Object(at(schema, "properties"))))
    const required = new Set(schemas.flatMap((schema) => textsOf(at(schema, "required"))))
    this.#spend(declared.length + required.size)
    const least = most(schemas, "minProperties")
    const limit = fewest(schemas, "maxProperties")
    const members = new Map<string, unknown>()
    const add = (name: string) => {
      if (members.has(name)) return true
      this.#spend(name.length)
      const value = this.of(
        schemas.map((schema) => memberSchema(schema, name)),
        refs
      )
      if (value !== undefined) members.set(name, value)
      return value !== undefined
    }
    const [wanted, optional] = [
      declared.filter((name) => required.has(name)).concat(...required),
      declared.filter((name) => !required.has(name))
    ]
    for (const name of wanted) if (!add(name)) return undefined
    for (const name of optional) {
      const isWanted = required.size === 0 || members.size < least
      if (isWanted && members.size < limit) add(name)
    }
    for (let index = 1; members.size < least; index += 1) if (!add(`key${index}`)) return undefined
    return Object.fromEntries(members)
  }
}

const lengthOf = (value: unknown): number =>
  typeof value === "string" || Array.isArray(value) ? value.length : 0

/** The cost of reading a schema for a value: its number of keywords, and the longest of them. */
const sizeOf = (schema: unknown): number =>
  Object.keys(Object(schema)).length +
  lengthOf(at(schema, "$ref")) +
  lengthOf(at(schema, "type")) +
  lengthOf(at(schema, "required"))

/** `const` and `enum` as lists. */
const listed = (schema: unknown): ReadonlyArray<ReadonlyArray<unknown>> => {
  const [constant, values] = [at(schema, "const"), at(schema, "enum")]
  return [
    ...(constant === undefined ? [] : [[constant]]),
    ...(Array.isArray(values) ? [values] : [])
  ]
}

const limits = (schemas: ReadonlyArray<unknown>, name: string): ReadonlyArray<number> =>
  schemas.map((schema) => numberOf(at(schema, name))).filter((limit) => limit >= 0)

const most = (schemas: ReadonlyArray<unknown>, name: string): number =>
  Math.max(0, ...limits(schemas, name))

const fewest = (schemas: ReadonlyArray<unknown>, name: string): number =>
  Math.min(Infinity, ...limits(schemas, name))

const tupleOf = (schema: unknown): ReadonlyArray<unknown> =>
  listOf(at(schema, "prefixItems") ?? at(schema, "items"))

const elementSchema = (schema: unknown, index: number): unknown => {
  const tuple = tupleOf(schema)
  if (index < tuple.length) return tuple[index]
  return Array.isArray(at(schema, "items")) ? at(schema, "additionalItems") : at(schema, "items")
}

const memberSchema = (schema: unknown, name: string): unknown => {
  const own = at(schema, "properties", name)
  if (own !== undefined || at(schema, "patternProperties") !== undefined) return own
  return at(schema, "additionalProperties")
}
