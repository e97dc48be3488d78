import { at } from "../domain/json/Json.ts"
import { patternExample } from "./PatternExample.ts"

const word = "simulated"

/** Examples of the formats that vendors name. */
const formats: ReadonlyMap<unknown, string> = new Map([
  ["date-time", "2026-01-01T00:00:00Z"],
  ["date", "2026-01-01"],
  ["time", "00:00:00Z"],
  ["duration", "P1D"],
  ["email", "simulated@example.com"],
  ["idn-email", "simulated@example.com"],
  ["hostname", "example.com"],
  ["idn-hostname", "example.com"],
  ["uri", "https://example.com/"],
  ["iri", "https://example.com/"],
  ["uri-reference", "/simulated"],
  ["iri-reference", "/simulated"],
  ["uri-template", "/simulated"],
  ["ipv4", "192.0.2.1"],
  ["ipv6", "2001:db8::1"],
  ["uuid", "00000000-0000-4000-8000-000000000000"],
  ["json-pointer", "/simulated"],
  ["relative-json-pointer", "0"],
  ["regex", word],
  ["byte", "c2lt"]
])

const found = (schemas: ReadonlyArray<unknown>, name: string): ReadonlyArray<unknown> =>
  schemas.map((schema) => at(schema, name)).filter((value) => value !== undefined)

/**
 * The value of a numeric limit. Gemini writes numbers as strings. Anything else, including longer strings, is not a
 * limit.
 */
export const numberOf = (value: unknown): number =>
  typeof value === "number" || (typeof value === "string" && value.length <= 32)
    ? Number(value)
    : NaN

const numbers = (schemas: ReadonlyArray<unknown>, name: string): ReadonlyArray<number> =>
  found(schemas, name).map(numberOf).filter(Number.isFinite)

/** The longest text that is generated. */
const lengthMax = 50_000

/** A text with the format, else the pattern, else the length that the schemas require. */
export const stringExample = (schemas: ReadonlyArray<unknown>): string => {
  const format = found(schemas, "format").find((name) => formats.has(name))
  if (format !== undefined) return formats.get(format) ?? word
  const least = Math.max(0, ...numbers(schemas, "minLength"))
  if (least > lengthMax) throw new RangeError("The text is too long")
  const pattern = found(schemas, "pattern")[0]
  if (typeof pattern === "string") return patternExample(pattern, least)
  const most = Math.min(Infinity, ...numbers(schemas, "maxLength"))
  return word.slice(0, Math.max(least, most)).padEnd(least, `-${word}`)
}

/** The number 1 or, if it does not fit, a number near the limits; `undefined` if no number fits. */
export const numberExample = (
  schemas: ReadonlyArray<unknown>,
  isInteger: boolean
): number | undefined => {
  const [min, above] = [
    Math.max(-Infinity, ...numbers(schemas, "minimum")),
    Math.max(-Infinity, ...numbers(schemas, "exclusiveMinimum"))
  ]
  const [max, below] = [
    Math.min(Infinity, ...numbers(schemas, "maximum")),
    Math.min(Infinity, ...numbers(schemas, "exclusiveMaximum"))
  ]
  const [low, high] = [Math.max(min, above), Math.min(max, below)]
  const given = Math.max(0, ...numbers(schemas, "multipleOf"))
  const step = isInteger ? (Number.isInteger(given) ? given || 1 : 1) : given
  const [up, down] =
    step === 0
      ? [(value: number) => value, (value: number) => value]
      : [
          (value: number) => Math.ceil(value / step) * step,
          (value: number) => Math.floor(value / step) * step
        ]
  const gap = step === 0 ? 1 : step
  return [1, low, low + gap, high, high - gap, (low + high) / 2, 0]
    .flatMap((value) => [up(value), down(value)])
    .find(
      (value) =>
        Number.isFinite(value) && value >= min && value > above && value <= max && value < below
    )
}
