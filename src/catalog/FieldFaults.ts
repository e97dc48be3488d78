import { Array as Arr, SchemaAST, SchemaIssue } from "effect"
import { LongText } from "../domain/json/LongText.ts"
import { faultsMax } from "../domain/limits/Limits.ts"
import type { FieldFault } from "../domain/Problem.ts"

/**
 * Parse options for request bodies: all faults are reported, unknown fields are refused, and details quote the wrong
 * value. Omit `reportInput` if a body contains secrets. docs/reference/errors.md#faults-of-a-body
 */
export const bodyParseOptions = {
  errors: "all",
  onExcessProperty: "error",
  reportInput: true
} as const satisfies SchemaAST.ParseOptions

/** Quoted values and names are truncated to this many UTF-16 units. */
const quotedUnitsMax = 60

export const truncate = (text: string): string =>
  text.length <= quotedUnitsMax
    ? text.toWellFormed()
    : `${text.slice(0, quotedUnitsMax).toWellFormed()}…`

/** A JSON pointer as URI fragment (RFC 6901, section 6), such as `#/images/0`. */
export const pointerOf = (path: ReadonlyArray<PropertyKey>): string =>
  path
    .map((key) => truncate(String(key)).replaceAll("~", "~0").replaceAll("/", "~1"))
    .reduce((pointer, token) => `${pointer}/${encodeURIComponent(token)}`, "#")

/** The names in such a pointer: `images` and `0`. */
export const namesIn = (pointer: string): ReadonlyArray<string> =>
  pointer
    .split("/")
    .slice(1)
    .map((token) => decodeURIComponent(token).replaceAll("~1", "/").replaceAll("~0", "~"))

/** A short description of any JSON value: `"abc"`, `12`, `an array of 4 items`. */
export const describeValue = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(truncate(value))
  if (Array.isArray(value))
    return `an array of ${value.length} item${value.length === 1 ? "" : "s"}`
  if (value === undefined) return "nothing"
  if (value instanceof LongText) return "a string that is too long"
  if (value instanceof Uint8Array) return "a file"
  return typeof value === "object" && value !== null ? "an object" : String(value)
}

/**
 * Faults of strings that are too long for any field of a management request, at most `faultsMax`. Cheap per value,
 * because a body has many.
 */
export const longTextFaults = (value: unknown): ReadonlyArray<FieldFault> => {
  const faults: Array<FieldFault> = []
  const path: Array<PropertyKey> = []
  const visitMembers = (object: object): void => {
    if (faults.length === faultsMax) return
    if (object instanceof LongText) {
      faults.push({ pointer: pointerOf(path), detail: `Expected a shorter string, got ${object}` })
    } else if (Array.isArray(object)) {
      object.forEach((item: unknown, index) => visit(index, item))
    } else {
      for (const [key, member] of Object.entries(object)) visit(key, member)
    }
  }
  const visit = (key: PropertyKey, value: unknown): void => {
    if (typeof value !== "object" || value === null) return
    path.push(key)
    visitMembers(value)
    path.pop()
  }
  if (typeof value === "object" && value !== null) visitMembers(value)
  return faults
}

/** Joins words as `a, b or c`. */
const alternatives = (words: ReadonlyArray<string>): string =>
  words.length < 2
    ? words.join("")
    : `${words.slice(0, -1).join(", ")} or ${words[words.length - 1] ?? ""}`

const wordOfTag: Partial<Record<SchemaAST.AST["_tag"], string>> = {
  String: "a string",
  Number: "a number",
  Boolean: "true or false",
  Null: "null",
  Arrays: "an array",
  Objects: "an object",
  ObjectKeyword: "an object",
  Never: "nothing"
}

/** The forms that a client may send: the members of the schema's encoded side. */
const members = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  ast._tag === "Union" ? ast.types.flatMap(members) : [SchemaAST.toEncoded(ast)]

const textOf = (annotations: object | undefined, key: string): string | undefined => {
  if (annotations === undefined) return undefined
  const value: unknown = Object.getOwnPropertyDescriptor(annotations, key)?.value
  return typeof value === "string" ? value : undefined
}

const wordOf = (ast: SchemaAST.AST): string => {
  if (ast._tag === "Literal") return describeValue(ast.literal)
  return (
    (ast._tag === "Number" ? numberWord(ast) : undefined) ?? wordOfTag[ast._tag] ?? "another value"
  )
}

/**
 * What a number has to be: in the words of its field, or of all rules of a described field, such as `an integer greater
 * than or equal to 1 and less than or equal to 50`.
 */
const numberWord = (ast: SchemaAST.Number): string | undefined => {
  const rules = (ast.checks ?? []).flatMap(
    ({ annotations }) => textOf(annotations, "expected") ?? []
  )
  const last = rules.at(-1)
  if (last === undefined || !last.startsWith(ofValue)) return last
  const kind = rules.includes("an integer") ? "an integer" : "a number"
  const limits = rules.filter((it) => it.startsWith(ofValue)).map((it) => it.slice(ofValue.length))
  return `${kind} ${limits.join(" and ")}`
}

/** How the texts of Effect's own rules begin. */
const ofValue = "a value "

/** The expectation of a schema as text: `a string or null`, `5 or 10`, `one of "a", "b" or "c"`. */
const expectation = (ast: SchemaAST.AST): string => {
  const all = members(ast)
  const words = all.map(wordOf)
  const literals = all.filter((member) => member._tag === "Literal").length
  if (literals > 2) return `one of ${alternatives(words)}`
  if (words.includes("true or false") && words.length > 1) {
    return alternatives(["true", "false", ...words.filter((word) => word !== "true or false")])
  }
  return alternatives(words)
}

const gotText = (issue: SchemaIssue.Issue): string =>
  SchemaIssue.hasInput(issue) ? `, got ${describeValue(issue.input)}` : ""

/** The message of a failed check: its own text, or the expected value. */
const checkDetail = (issue: SchemaIssue.Filter): string | undefined => {
  if (issue.issue._tag !== "InvalidValue") return undefined
  const own =
    textOf(issue.issue.annotations, "message") ?? textOf(issue.filter.annotations, "message")
  if (own !== undefined) return own
  const expected =
    textOf(issue.issue.annotations, "expected") ?? textOf(issue.filter.annotations, "expected")
  return `Expected ${expected ?? "a valid value"}${gotText(issue)}`
}

const leafDetail = (issue: SchemaIssue.Leaf): string => {
  switch (issue._tag) {
    case "MissingKey":
      return "Required, but missing"
    case "UnexpectedKey":
      return "Unknown field"
    case "InvalidType":
      return (
        textOf(issue.ast.annotations, "message") ??
        `Expected ${expectation(issue.ast)}${gotText(issue)}`
      )
    case "InvalidValue":
    case "Forbidden": {
      const expected = textOf(issue.annotations, "expected") ?? "a valid value"
      return textOf(issue.annotations, "message") ?? `Expected ${expected}${gotText(issue)}`
    }
    case "OneOf":
      return `Expected exactly one form to match${gotText(issue)}`
  }
}

const walk = (
  issue: SchemaIssue.Issue,
  path: ReadonlyArray<PropertyKey>,
  found: Map<string, FieldFault>
): void => {
  const add = (detail: string): void => {
    const pointer = pointerOf(path)
    found.set(`${pointer} ${detail}`, { pointer, detail })
  }
  switch (issue._tag) {
    case "Pointer":
      return walk(issue.issue, [...path, ...issue.path], found)
    case "Encoding":
      return walk(issue.issue, path, found)
    case "Filter": {
      const detail = checkDetail(issue)
      return detail === undefined ? walk(issue.issue, path, found) : add(detail)
    }
    case "Composite":
      return issue.issues.forEach((inner) => walk(inner, path, found))
    case "AnyOf":
      return issue.issues.length === 0
        ? add(`Expected ${expectation(issue.ast)}${gotText(issue)}`)
        : issue.issues.forEach((inner) => walk(inner, path, found))
    default:
      return add(leafDetail(issue))
  }
}

/** Keeps at most `faultsMax` faults. The last one gives the number of omitted faults. */
export const capFaults = (
  faults: Arr.NonEmptyReadonlyArray<FieldFault>
): Arr.NonEmptyReadonlyArray<FieldFault> =>
  faults.length <= faultsMax
    ? faults
    : Arr.append(Arr.take(faults, faultsMax - 1), {
        pointer: "#",
        detail: `And ${faults.length - faultsMax + 1} more faults`
      })

/**
 * Every fault of a failed decode with its pointer; at least one. Quotes values only if the decode ran with
 * `reportInput`.
 */
export const faultsOf = (issue: SchemaIssue.Issue): Arr.NonEmptyReadonlyArray<FieldFault> => {
  const found = new Map<string, FieldFault>()
  walk(issue, [], found)
  const faults = [...found.values()]
  return Arr.isReadonlyArrayNonEmpty(faults)
    ? capFaults(faults)
    : [{ pointer: "#", detail: "Expected a valid value" }]
}
