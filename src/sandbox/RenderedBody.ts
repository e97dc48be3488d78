import { countOf } from "../catalog/Price.ts"
import type { SubmitRequest } from "../vendors/VendorClient.ts"

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

const whole = (value: unknown): number | undefined =>
  typeof value === "number" ? Math.round(value) : undefined

/** `5`, `"5"` or `"5s"`. */
const length = (value: unknown): number | undefined => {
  const digits = /^(\d{1,4})s?$/u.exec(text(value) ?? "")?.[1]
  return digits === undefined ? whole(value) : Number(digits)
}

const pixels = /^\d{2,4}[:x*]\d{2,4}$/u

/** The parts of a body that the simulator renders. A described body may have fields of any names and types. */
export const renderedBody = ({ body, described }: SubmitRequest): unknown => {
  if (described === undefined) return body
  const fields: Record<string, unknown> = { ...Object(body) }
  const sizes = [fields["size"], fields["ratio"], fields["resolution"]].map(text)
  const size = sizes.find((it) => it !== undefined && pixels.test(it))?.replace(/[:x]/u, "*")
  const all = {
    prompt: text(fields["prompt"]) ?? text(fields["text"]),
    size,
    n: countOf(described.count, body) ?? 1,
    duration: length(fields["duration"]) ?? length(fields["seconds"]),
    seed: whole(fields["seed"])
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}
