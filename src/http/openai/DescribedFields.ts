import { fieldNames } from "../../catalog/bodies/Bodies.ts"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"

type Described = NonNullable<CatalogEntry["described"]>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const propertyOf = ({ body: { properties } }: Described, name: string): unknown =>
  isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined

const typeOf = (property: unknown): unknown => (isObject(property) ? property["type"] : undefined)

/** The first field of a described body that takes an image or a list of images. */
export const pictureField = (described: Described) => {
  const [name] =
    Object.entries(described.media ?? {}).find(([, { kind }]) => kind === "image") ?? []
  return name === undefined
    ? undefined
    : { name, isList: typeOf(propertyOf(described, name)) === "array" }
}

/** Whether the model requires an image; `undefined` if it accepts none. */
export const needsPicture = (entry: CatalogEntry): boolean | undefined => {
  const { all, required } = fieldNames(entry)
  if (entry.described === undefined) return all.has("images") ? true : undefined
  const name = pictureField(entry.described)?.name
  return name === undefined ? undefined : required.has(name)
}

/** The name of the body field that sets the number of results. Its default does not matter. */
export const countField = ({ count = "" }: Described): string | undefined =>
  /\bbody\.(\w+)/u.exec(count)?.[1]

const pair = /^(\d{1,5})[x:*](\d{1,5})$/u

const isSame = (value: unknown, [, width, height]: RegExpExecArray): boolean => {
  const own = pair.exec(String(value))
  return own !== null && own[1] === width && own[2] === height
}

/** Translates a size in pixels to a field of the body: `1280x720` may become `1280:720` in `ratio`. */
export const sizeFields = (
  described: Described,
  size: string
): Readonly<Record<string, string>> | undefined => {
  const asked = pair.exec(size)
  const { properties } = described.body
  if (asked !== null && isObject(properties)) {
    for (const [name, property] of Object.entries(properties)) {
      const values = isObject(property) ? property["enum"] : undefined
      const found = Array.isArray(values) && values.find((value) => isSame(value, asked))
      if (found !== undefined && found !== false) return { [name]: String(found) }
    }
  }
  return propertyOf(described, "size") === undefined ? undefined : { size }
}

/** Translates seconds to the form that the body expects: a number, or one of its enumerated texts. */
export const secondsFields = (
  described: Described,
  seconds: unknown
): Readonly<Record<string, unknown>> => {
  const name = propertyOf(described, "duration") === undefined ? "seconds" : "duration"
  if (typeOf(propertyOf(described, name)) === "string") return { [name]: String(seconds) }
  const isNumber = typeof seconds === "string" && /^\d{1,4}$/u.test(seconds)
  return { [name]: isNumber ? Number(seconds) : seconds }
}
