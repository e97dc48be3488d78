import { signal } from "@preact/signals"
import { runsKey } from "../../api/session.ts"
import { plainSchema } from "../../components/form/schema.ts"
import type { JsonSchema } from "../../components/form/schema.ts"
import { parseJson } from "../../format/json.ts"
import { hrefOf, location, setQuery } from "../../router/location.ts"
import { writeDraft } from "./draft.ts"

/** The input of a run: the body of a task, or the fields of a chat, without files. */
export type Values = Readonly<Record<string, unknown>>

/** A run in this browser's history. */
export interface Run {
  readonly model: string
  readonly title: string
  readonly at: string
  readonly values: Values
  readonly task?: string
}

const runsMax = 20

/** A longer prompt can be restored from its task, but not from the history. */
const valuesMax = 8000

export const isObject = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isRun = (value: unknown): value is Run =>
  isObject(value) &&
  typeof value["model"] === "string" &&
  typeof value["title"] === "string" &&
  typeof value["at"] === "string" &&
  isObject(value["values"]) &&
  (value["task"] === undefined || typeof value["task"] === "string")

const changes = signal(0)

/** The latest runs of the signed-in user, newest first. */
export const lastRuns = (): ReadonlyArray<Run> => {
  void changes.value
  const all = parseJson(localStorage.getItem(runsKey()) ?? "[]")
  return Array.isArray(all) ? all.filter(isRun) : []
}

export const noteRun = (run: Omit<Run, "at" | "title">, title: string): void => {
  if (JSON.stringify(run.values).length > valuesMax) return
  const line = title.replaceAll(/\s+/gu, " ").trim().slice(0, 200)
  const newest = { ...run, title: line, at: new Date().toISOString() }
  try {
    localStorage.setItem(runsKey(), JSON.stringify([newest, ...lastRuns()].slice(0, runsMax)))
  } catch {
    localStorage.removeItem(runsKey())
  }
  changes.value += 1
}

/** Counts restores: the form is rendered again from its draft. */
export const restored = signal(0)

/** Fills the form of a model without running it. */
export const restore = ({ model, task, values }: Pick<Run, "model" | "task" | "values">): void => {
  writeDraft(model, values)
  restored.value += 1
  setQuery({ model, kind: "", task })
}

const mark = "#run="

/** The values are in the fragment, which is not sent to any server. */
export const linkOf = (model: string, values: Values): string => {
  const bytes = new TextEncoder().encode(JSON.stringify({ model, values }))
  const text = bytes.toBase64({ alphabet: "base64url", omitPadding: true })
  return `${globalThis.location.origin}${hrefOf("/playground")}${mark}${text}`
}

/** Fills the form from the link that was opened, and removes the values from the address. */
export const openLink = (): void => {
  // Pasting a link into the address bar changes nothing else
  void location.value
  const { hash, pathname, search } = globalThis.location
  if (!hash.startsWith(mark)) return
  history.replaceState(history.state, "", `${pathname}${search}`)
  const linked = linkedIn(hash.slice(mark.length))
  if (linked !== undefined) restore(linked)
}

const linkedIn = (text: string): Pick<Run, "model" | "values"> | undefined => {
  try {
    const bytes = Uint8Array.fromBase64(text, { alphabet: "base64url" })
    const value = parseJson(new TextDecoder().decode(bytes))
    if (!isObject(value) || typeof value["model"] !== "string") return undefined
    return isObject(value["values"])
      ? { model: value["model"], values: value["values"] }
      : undefined
  } catch {
    return undefined
  }
}

/** The part of a value whose types match the schema. A link's content cannot be trusted. */
export const matching = (schema: JsonSchema, value: unknown): unknown => {
  const { items = {}, properties = {}, type } = plainSchema(schema)
  if (type === "integer" || type === "number") return typeof value === "number" ? value : undefined
  if (type === "array") {
    if (!Array.isArray(value)) return undefined
    return value.map((it) => matching(items, it)).filter((it) => it !== undefined)
  }
  if (type !== "object") return typeof value === type ? value : undefined
  if (!isObject(value)) return undefined
  const members = Object.entries(properties).map(
    ([name, member]) => [name, matching(member, value[name])] as const
  )
  return Object.fromEntries(members.filter(([, it]) => it !== undefined))
}
