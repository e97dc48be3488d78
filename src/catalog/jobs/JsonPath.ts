import { Schema } from "effect"

/**
 * One step of a path: a member name, an array index, or a wildcard (`null`). Paths are a strict subset of RFC 9535
 * without filters, slices and descendants, so that the cost of a path is bounded by the number of nodes that it
 * selects. ADR 0298
 */
type Step = string | number | null

/** `.name`, `['name']`, `["name"]`, `[0]`, `.*`, `[*]`. */
const step =
  /\.([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)|\[(?:'([^'\\]+)'|"([^"\\]+)"|(0|[1-9]\d{0,4})|(\*))\]|(\.\*)/uy

const charactersMax = 200
const stepsMax = 16

/** The most nodes that a path may select. */
const nodesMax = 1000

/** `undefined` if the text is not a path of the subset. */
const parse = (text: string): ReadonlyArray<Step> | undefined => {
  if (!text.startsWith("$") || text.length > charactersMax) return undefined
  const steps: Array<Step> = []
  step.lastIndex = 1
  while (step.lastIndex < text.length) {
    const match = step.exec(text)
    if (match === null) return undefined
    const [, name, single, double, index] = match
    const key = name ?? single ?? double
    steps.push(key ?? (index === undefined ? null : Number(index)))
  }
  return steps.length > stepsMax ? undefined : steps
}

const known = new Map<string, ReadonlyArray<Step> | undefined>()
const knownMax = 2000

/** Cached, because paths come from catalogs, which have few. */
const stepsOf = (text: string): ReadonlyArray<Step> | undefined => {
  if (known.has(text)) return known.get(text)
  if (known.size >= knownMax) known.clear()
  const steps = parse(text)
  known.set(text, steps)
  return steps
}

/** A path in the catalog. docs/vendors-as-files.md#paths */
export const JsonPath = Schema.String.check(
  Schema.makeFilter<string>(
    (text) =>
      stepsOf(text) !== undefined ||
      "Expected a JSONPath of names, indexes and wildcards, such as $.output[*].url"
  )
)

/** A path that selects at most one node, so it can also be used to write a value. */
export const SingularPath = JsonPath.check(
  Schema.makeFilter<string>(
    (text) =>
      stepsOf(text)?.includes(null) !== true ||
      "Expected a path without a wildcard: it has one value"
  )
)

const childrenOf = (node: unknown, key: Step): ReadonlyArray<unknown> => {
  if (typeof node !== "object" || node === null) return []
  if (key === null) return Object.values(node)
  if (Array.isArray(node)) return typeof key === "number" && key in node ? [node[key]] : []
  return typeof key === "string" && Object.hasOwn(node, key) ? [Reflect.get(node, key)] : []
}

/** The nodes that a path selects, in order, at most `nodesMax`. */
export const select = (path: string, value: unknown): ReadonlyArray<unknown> => {
  let nodes: ReadonlyArray<unknown> = [value]
  for (const key of stepsOf(path) ?? []) {
    nodes = nodes.flatMap((node) => childrenOf(node, key)).slice(0, nodesMax)
  }
  return nodes
}

/** The nodes, or `undefined` if the value has no list (or null) in which the wildcard at the end of a path selects. */
export const listAt = (path: string, value: unknown): ReadonlyArray<unknown> | undefined =>
  typeof first(path.replace(/(?:\[\*\]|\.\*)$/u, ""), value) === "object"
    ? select(path, value)
    : undefined

/** The first node; `undefined` if there is none. */
export const first = (path: string, value: unknown): unknown => select(path, value)[0]

/** The first string, number or boolean that one of the paths selects, as text. */
export const textAt = (paths: ReadonlyArray<string>, value: unknown): string | undefined => {
  for (const path of paths) {
    const found = first(path, value)
    if (typeof found === "string" || typeof found === "number" || typeof found === "boolean") {
      return String(found)
    }
  }
  return undefined
}

/** The member names and indexes of a path without wildcards, such as `["images", 0]`. */
export const keysOf = (path: string): ReadonlyArray<string | number> =>
  (stepsOf(path) ?? []).filter((key) => key !== null)

/** Writes `values` where the path would select them: the inverse of `select`. A wildcard creates an array. */
export const written = (target: unknown, path: string, values: ReadonlyArray<unknown>): unknown => {
  const write = (
    node: unknown,
    steps: ReadonlyArray<Step>,
    given: ReadonlyArray<unknown>
  ): unknown => {
    const [key, ...rest] = steps
    if (key === undefined) return given[0]
    if (key === null)
      return given.map((value, index) => write(childrenOf(node, index)[0], rest, [value]))
    const child = write(childrenOf(node, key)[0], rest, given)
    if (typeof key === "string") {
      return { ...(typeof node === "object" && node !== null ? node : {}), [key]: child }
    }
    const items: Array<unknown> = Array.isArray(node) ? [...node] : []
    items[key] = child
    return items
  }
  return write(target, stepsOf(path) ?? [], values)
}
