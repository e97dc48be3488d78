import { Predicate } from "effect"
import { isDeepStrictEqual } from "node:util"

/**
 * Compares the output shown in a document with the actual output. Ids, keys, signatures and times are matched by their
 * form, and equal ids in the document must be equal in the output. Everything else, including amounts, must be equal.
 * `…` in a text stands for omitted text, as a line or last item for several, and as a member `"…"` for further members.
 */

/** The ids that a page has shown so far, with the actual ones. */
export type Bindings = Map<string, string>

interface Form {
  readonly shown: RegExp
  readonly real: string
  /** Whether equal texts stand for the same thing on the whole page. */
  readonly isId: boolean
}

const day = 86_400_000

const forms: ReadonlyArray<Form> = [
  { shown: /…/u, real: "[^\\n]+?", isId: false },
  {
    shown: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/u,
    real: "\\d{4}-\\d\\d-\\d\\dT[\\d:]{8}\\.\\d{3}Z",
    isId: false
  },
  {
    shown: /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/u,
    real: "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    isId: true
  },
  {
    shown: /(?<=(?:art|evt|evt_test|key|ses|whd|whe)_)[0-9a-f]{32}/u,
    real: "[0-9a-f]{32}",
    isId: true
  },
  { shown: /sk-\.\.\.\w{4}/u, real: "sk-\\.\\.\\.[0-9A-Za-z]{4}", isId: false },
  { shown: /sk-[0-9A-Za-z]{46}/u, real: "sk-[0-9A-Za-z]{46}", isId: true },
  { shown: /whsec_\.\.\.[\w+/]{3}=/u, real: "whsec_\\.\\.\\.[\\w+/]{3}=", isId: false },
  { shown: /whsec_[\w+/]{43}=/u, real: "whsec_[\\w+/]{43}=", isId: true },
  { shown: /sil_[\w-]{43}/u, real: "sil_[\\w-]{43}", isId: true },
  { shown: /op_[\w-]{32}/u, real: "op_[\\w-]{32}", isId: true },
  { shown: /\b[0-9a-f]{64}\b/u, real: "[0-9a-f]{64}", isId: false },
  { shown: /\b[0-9a-f]{32}\b/u, real: "[0-9a-f]{32}", isId: true },
  { shown: /\b1[78]\d{8}\b/u, real: "1[78]\\d{8}", isId: false }
]

const anyForm = new RegExp(forms.map(({ shown }) => `(${shown.source})`).join("|"), "gu")

const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/gu, "\\$&")

/** The fault of a text. `undefined`: it matches the document. */
const textFault = (shown: string, real: string, bindings: Bindings): string | undefined => {
  let pattern = ""
  let last = 0
  const ids: Array<string | undefined> = []
  for (const found of shown.matchAll(anyForm)) {
    const form = forms[found.slice(1).findIndex((group) => group !== undefined)]!
    pattern += `${escaped(shown.slice(last, found.index))}(${form.real})`
    ids.push(form.isId ? found[0] : undefined)
    last = found.index + found[0].length
  }
  const match = new RegExp(`^${pattern}${escaped(shown.slice(last))}$`, "u").exec(real)
  if (match === null) return `shown ${JSON.stringify(shown)}, came ${JSON.stringify(real)}`
  for (const [index, id] of ids.entries()) {
    const came = match[index + 1] ?? ""
    if (id === undefined) continue
    if ((bindings.get(id) ?? came) !== came) return `${id} was ${bindings.get(id)}, now ${came}`
    bindings.set(id, came)
  }
  return timeFault(real)
}

/** The fault of an actual time that is not between yesterday and a year from now. */
const timeFault = (real: string): string | undefined =>
  [...real.matchAll(/\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z/gu)]
    .map(([time]) => time)
    .find((time) => Math.abs(Date.parse(time) - Date.now() - 182 * day) > 183 * day)

const isUnixTime = (value: unknown): value is number =>
  typeof value === "number" && Math.abs(value * 1000 - Date.now()) < 400 * day

/** The faults of JSON, each with its position. */
export const jsonFaults = (
  shown: unknown,
  real: unknown,
  bindings: Bindings,
  at = "#"
): ReadonlyArray<string> => {
  if (typeof shown === "string" && typeof real === "string") {
    const fault = textFault(shown, real, bindings)
    return fault === undefined ? [] : [`${at}: ${fault}`]
  }
  if (Array.isArray(shown) && Array.isArray(real)) {
    const isOpen = shown.at(-1) === "…"
    const items = isOpen ? shown.slice(0, -1) : shown
    const isShort = isOpen ? real.length < items.length : real.length !== items.length
    if (isShort) return [`${at}: ${items.length} shown, ${real.length} came`]
    return items.flatMap((item, index) => jsonFaults(item, real[index], bindings, `${at}/${index}`))
  }
  if (Predicate.isObject(shown) && Predicate.isObject(real))
    return objectFaults(shown, real, bindings, at)
  const isSame = isDeepStrictEqual(shown, real) || (isUnixTime(shown) && isUnixTime(real))
  return isSame ? [] : [`${at}: shown ${JSON.stringify(shown)}, came ${JSON.stringify(real)}`]
}

const objectFaults = (
  shown: Record<string, unknown>,
  real: Record<string, unknown>,
  bindings: Bindings,
  at: string
): ReadonlyArray<string> => {
  const names = Object.keys(shown).filter((name) => name !== "…")
  const others = Object.keys(real).filter((name) => !names.includes(name))
  const missing = names
    .filter((name) => !(name in real))
    .map((name) => `${at}/${name} did not come`)
  const hidden = "…" in shown ? [] : others.map((name) => `${at}/${name} is not shown`)
  const inside = names
    .filter((name) => name in real)
    .flatMap((name) => jsonFaults(shown[name], real[name], bindings, `${at}/${name}`))
  return [...missing, ...hidden, ...inside]
}

/** The faults of lines of text. */
export const lineFaults = (
  shown: ReadonlyArray<string>,
  real: ReadonlyArray<string>,
  bindings: Bindings
): ReadonlyArray<string> => {
  const [line, ...rest] = shown
  if (line === undefined) return real.length === 0 ? [] : [`not shown: ${real[0]}`]
  if (line === "…") {
    if (rest.length === 0) return []
    const from = real.findIndex(
      (it) => textFault(rest[0] ?? "", it, new Map(bindings)) === undefined
    )
    return from < 0 ? [`did not come: ${rest[0]}`] : lineFaults(rest, real.slice(from), bindings)
  }
  const [came, ...others] = real
  if (came === undefined) return [`did not come: ${line}`]
  const fault = textFault(line, came, bindings)
  return fault === undefined ? lineFaults(rest, others, bindings) : [fault]
}

/** The faults of an output, by the language of the block that shows it. */
export const answerFaults = (
  language: string,
  shown: string,
  output: string,
  bindings: Bindings
): ReadonlyArray<string> => {
  if (language !== "json") {
    return lineFaults(shown.trimEnd().split("\n"), output.trimEnd().split("\n"), bindings)
  }
  try {
    return jsonFaults(JSON.parse(shown), JSON.parse(output), bindings)
  } catch {
    return [`no JSON: ${output.slice(0, 500)}`]
  }
}
