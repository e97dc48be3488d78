import { useEffect, useState } from "preact/hooks"
import { send } from "../../api/client.ts"
import type { Schemas } from "../../api/schema.ts"

type Model = Schemas["Model"]
type Body = Readonly<Record<string, unknown>>

/** Requests wait for a pause in typing. */
const pauseMillis = 400

/** Replaces each uploaded file by a short URL, because the price does not depend on it. */
export const withoutFiles = (body: Body, address: string): Body =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      const short = (it: unknown) =>
        typeof it === "string" && it.startsWith("data:") ? address : it
      return [name, Array.isArray(value) ? value.map(short) : short(value)]
    })
  )

const isFilled = (value: unknown): boolean =>
  value !== undefined && value !== "" && !(Array.isArray(value) && value.includes(""))

const requiredOf = ({ body_schema: { required } }: Model): ReadonlyArray<string> =>
  Array.isArray(required) ? required.filter((it) => typeof it === "string") : []

/** The price of the request from a dry run, or the reason why the dry run was refused. */
export const usePrice = (model: Model, body: Body) => {
  const [price, setPrice] = useState<{ amount?: string; cause?: unknown }>({})
  const isReady =
    requiredOf(model).every((name) => isFilled(body[name])) && Object.values(body).every(isFilled)
  const text = JSON.stringify(
    withoutFiles(body, `${globalThis.location.origin.replace(/^http:/u, "https:")}/upload`)
  )
  useEffect(() => {
    if (!isReady) {
      setPrice({})
      return undefined
    }
    let isCurrent = true
    const timer = setTimeout(() => {
      send<Schemas["Quote"]>("POST", `${model.path}?dry_run=true`, JSON.parse(text)).then(
        ({ quote }) => isCurrent && setPrice({ amount: quote.amount }),
        (cause: unknown) => isCurrent && setPrice({ cause })
      )
    }, pauseMillis)
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [isReady, model.path, text])
  return price
}
