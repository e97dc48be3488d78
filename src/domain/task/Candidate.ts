import { Schema } from "effect"
import { Credits } from "../Credits.ts"

/**
 * Why a model of an alias did not run a task or call. Nothing was bought from its vendor.
 * docs/reference/aliases.md#reasons
 */
export const SkipReason = Schema.Literals([
  "not_sold",
  "body",
  "sandbox",
  "no_route",
  "no_account",
  "circuit_open",
  "rate_limited",
  "unavailable",
  "account_refused",
  "model_gone"
])
export type SkipReason = typeof SkipReason.Type

/** A model of an alias, fixed when the task is accepted. ADR 0224. */
export const Candidate = Schema.Struct({
  vendor: Schema.String,
  model: Schema.String,
  /** The task's price with this model. Null if the model is not a candidate and has no price. */
  price: Schema.NullOr(Schema.BigIntFromString.pipe(Schema.decodeTo(Credits))),
  /** Null if the model has not been skipped. */
  skipped: Schema.NullOr(
    Schema.Struct({
      reason: SkipReason,
      at: Schema.DateTimeUtcFromString,
      /** The submit that the vendor refused; null if nothing was sent. */
      attempt: Schema.NullOr(Schema.Int)
    })
  )
})
export type Candidate = typeof Candidate.Type

export const encodeCandidates = Schema.encodeSync(Schema.Array(Candidate))

/** The members of a task that concern an alias. */
export interface Aliased {
  readonly vendor: string
  readonly model: string
  readonly price: Credits
  readonly candidates: ReadonlyArray<Candidate> | null
  readonly candidate: number | null
}

const candidateAt = ({ candidate, candidates }: Pick<Aliased, "candidate" | "candidates">) =>
  candidates?.[candidate ?? -1]

/** The model that currently runs a task. */
export const modelAt = (task: Omit<Aliased, "price">) => {
  const { model, vendor } = candidateAt(task) ?? task
  return { vendor, model }
}

/** The price with the current model. For an alias it may be less than the hold. */
export const priceAt = (task: Pick<Aliased, "candidate" | "candidates" | "price">): Credits =>
  candidateAt(task)?.price ?? task.price

/** The index of the model after the current one; `undefined` if that is the last. */
export const nextPlace = ({
  candidate,
  candidates
}: Pick<Aliased, "candidate" | "candidates">): number | undefined => {
  if (candidates === null || candidate === null) return undefined
  const place = candidates.findIndex((it, index) => index > candidate && it.skipped === null)
  return place < 0 ? undefined : place
}

/** The skipped models, in the order of trying. */
export const skippedOf = ({ candidates }: Pick<Aliased, "candidates">) =>
  (candidates ?? []).flatMap(({ model, skipped, vendor }) =>
    skipped === null ? [] : [{ vendor, model, ...skipped }]
  )

/** A list as in RFC 9651: `"fal/flux-dev";reason=rate_limited`. */
export const skippedText = (
  all: ReadonlyArray<{
    readonly vendor: string
    readonly model: string
    readonly reason: SkipReason
  }>
): string =>
  all.map(({ model, reason, vendor }) => `"${vendor}/${model}";reason=${reason}`).join(", ")
