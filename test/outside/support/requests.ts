import { Effect } from "effect"
import type { AdapterName } from "../../../src/catalog/CatalogEntry.ts"
import type { Adapter } from "../../../src/vendors/Adapter.ts"
import type { ResultItem, SubmitRequest, VendorAccount } from "../../../src/vendors/VendorClient.ts"
import type { VendorError } from "../../../src/vendors/VendorError.ts"
import { accountAt } from "../../support/upstreams/accounts.ts"
import type { Seen, Upstream } from "../../support/upstreams/Upstream.ts"

/** An account of the gateway's own adapter at a mock. */
export interface Account {
  readonly adapter: AdapterName | Adapter
  readonly upstream: Upstream
  /** The path after the mock's address. */
  readonly base: string
}

const use = <A>(
  { adapter, base, upstream }: Account,
  work: (account: VendorAccount) => Effect.Effect<A, VendorError>
) =>
  accountAt(adapter, `${upstream.url}${base}`, upstream.key).pipe(
    Effect.flatMap(work),
    Effect.scoped,
    Effect.runPromise
  )

/** Submits a job with the gateway's own adapter. Returns what the mock received. */
export const submitBy = async (account: Account, request: SubmitRequest): Promise<Seen> => {
  await use(account, ({ submit }) => submit(request))
  return account.upstream.lastSubmit
}

/** Submits a job, polls until it has ended, and returns its results. */
export const finishBy = (account: Account, request: SubmitRequest) =>
  use(account, ({ poll, submit }) =>
    Effect.gen(function* () {
      const submitted = yield* submit(request)
      if (submitted._tag === "Done") return submitted.result.items
      for (;;) {
        const progress = yield* poll(submitted.handle)
        if (progress._tag === "Done") return progress.result.items
      }
    })
  )

export const urlsOf = (items: ReadonlyArray<ResultItem>) =>
  items.map((item) => (item._tag === "Bytes" ? "bytes" : item.url))

/** Submits a job and cancels it. */
export const cancelBy = (account: Account, request: SubmitRequest) =>
  use(account, ({ cancel, submit }) =>
    Effect.gen(function* () {
      const submitted = yield* submit(request)
      return submitted._tag === "Done" ? undefined : yield* cancel(submitted.handle)
    })
  )

/** Headers that belong to the transport or name the sending program. */
const transport = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "connection",
  "content-length",
  "host",
  "keep-alive",
  "sec-fetch-mode",
  "transfer-encoding",
  "user-agent",
  "x-goog-api-client"
])

const isTransport = (name: string) => transport.has(name) || name.startsWith("x-stainless-")

const leavesOf = (value: unknown, at: string): ReadonlyArray<readonly [string, string]> => {
  if (value === undefined) return []
  return typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([name, member]) => leavesOf(member, `${at}.${name}`))
    : [[at, JSON.stringify(value)]]
}

/** A request as flat fields, named as in the vendor's documentation. */
const fieldsOf = ({ form, headers, json, method, path, query }: Seen) =>
  new Map<string, string>([
    ["method", method],
    // The id of a job, which differs per request
    ["path", path.replace(/(?<=\/)[a-z_]*\d{8}-[0-9a-f]{12}/u, "{id}")],
    ...Array.from(query, ([name, value]) => [`query.${name}`, value] as const),
    ...Object.entries(headers)
      .filter(([name]) => !isTransport(name))
      .map(([name, value]) => {
        const text = String(value)
        return [`header.${name}`, text.replace(/boundary=.*/u, "boundary=…")] as const
      }),
    ...leavesOf(json, "body"),
    ...Array.from(form).flatMap(([name, parts]) =>
      parts.map(({ fileName, text, type }, index) => {
        const what = fileName === undefined ? text : `${type}, ${text.length} bytes`
        return [`form.${name}${index === 0 ? "" : `.${index}`}`, what] as const
      })
    )
  ])

/**
 * The differences between two requests for the same job: `field: ours | theirs`, with `–` for a field that only the
 * other one sends.
 */
export const differences = (ours: Seen, theirs: Seen): Readonly<Record<string, string>> => {
  const [own, other] = [fieldsOf(ours), fieldsOf(theirs)]
  const names = [...new Set([...own.keys(), ...other.keys()])].toSorted()
  return Object.fromEntries(
    names
      .filter((name) => own.get(name) !== other.get(name))
      .map((name) => [name, `${own.get(name) ?? "–"} | ${other.get(name) ?? "–"}`])
  )
}

/** The requests made by some work, without those for results. */
export const seenOf = async (
  upstream: Upstream,
  work: () => Promise<unknown>
): Promise<ReadonlyArray<Seen>> => {
  const before = upstream.seen.length
  await work()
  return upstream.seen.slice(before)
}

/** The differing requests of two series, with their differences. */
export const differencesOfAll = (
  ours: ReadonlyArray<Seen>,
  theirs: ReadonlyArray<Seen>
): ReadonlyArray<Readonly<Record<string, string>>> => {
  if (ours.length !== theirs.length) {
    throw new Error(`${ours.length} requests of ours, ${theirs.length} of theirs`)
  }
  return ours.map((own, index) => differences(own, theirs[index] ?? own))
}
