import { Schema } from "effect"
import { Credits } from "./Credits.ts"

/**
 * Why a model of an alias did not do a task or call. Nothing was bought there.
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

/** A model of an alias, as it is fixed when the task is accepted. ADR 0224. */
export const Candidate = Schema.Struct({
  vendor: Schema.String,
  model: Schema.String,
  /** What the task costs by this model; null: it takes no part, and was not priced. */
  price: Schema.NullOr(Schema.BigIntFromString.pipe(Schema.decodeTo(Credits))),
  /** Null: it was not passed over, or not yet. */
  skipped: Schema.NullOr(
    Schema.Struct({
      reason: SkipReason,
      at: Schema.DateTimeUtcFromString,
      /** The submit that the vendor refused; null: nothing was sent. */
      attempt: Schema.NullOr(Schema.Int)
    })
  )
})
export type Candidate = typeof Candidate.Type

export const encodeCandidates = Schema.encodeSync(Schema.Array(Candidate))

/** A task as far as an alias concerns it. */
export interface Aliased {
  readonly vendor: string
  readonly model: string
  readonly price: Credits
  readonly candidates: ReadonlyArray<Candidate> | null
  readonly candidate: number | null
}

const candidateAt = ({ candidate, candidates }: Pick<Aliased, "candidate" | "candidates">) =>
  candidates?.[candidate ?? -1]

/** The model that a task is at. */
export const modelAt = (task: Omit<Aliased, "price">) => {
  const { model, vendor } = candidateAt(task) ?? task
  return { vendor, model }
}

/** What it costs by the model that it is at: of an alias it may be less than is held. */
export const priceAt = (task: Pick<Aliased, "candidate" | "candidates" | "price">): Credits =>
  candidateAt(task)?.price ?? task.price

/** The place of the model after the one that the task is at; `undefined`: that is the last one. */
export const nextPlace = ({
  candidate,
  candidates
}: Pick<Aliased, "candidate" | "candidates">): number | undefined => {
  if (candidates === null || candidate === null) return undefined
  const place = candidates.findIndex((it, index) => index > candidate && it.skipped === null)
  return place < 0 ? undefined : place
}

/** The models that were passed over, in the order in which they were to be tried. */
export const skippedOf = ({ candidates }: Pick<Aliased, "candidates">) =>
  (candidates ?? []).flatMap(({ model, skipped, vendor }) =>
    skipped === null ? [] : [{ vendor, model, ...skipped }]
  )

/** A list of RFC 9651: `"fal/flux-dev";reason=rate_limited`. */
export const skippedText = (
  all: ReadonlyArray<{
    readonly vendor: string
    readonly model: string
    readonly reason: SkipReason
  }>
): string =>
  all.map(({ model, reason, vendor }) => `"${vendor}/${model}";reason=${reason}`).join(", ")
