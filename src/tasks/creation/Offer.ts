import { Array as Arr, Effect } from "effect"
import { inOrderOf } from "../../catalog/AliasTargets.ts"
import type { Attachments } from "../../catalog/bodies/Attachments.ts"
import type { BatchBody } from "../../catalog/bodies/BatchBody.ts"
import type { Body } from "../../catalog/bodies/Bodies.ts"
import type { ResponseBody } from "../../catalog/bodies/ResponseBody.ts"
import type { CatalogEntry, TaskModel } from "../../catalog/CatalogEntry.ts"
import type { InlineMedium } from "../../catalog/media/Media.ts"
import { quote } from "../../catalog/Price.ts"
import type { PriceRule } from "../../catalog/Price.ts"
import type { Credits } from "../../domain/Credits.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
import type { Candidate, SkipReason } from "../../domain/task/Candidate.ts"
import type { CheckUrl } from "../../webhooks/WebhookUrl.ts"
import { decodeRequest } from "./RequestBody.ts"

/** A model that can be bought, with its current price. */
export interface OfferedModel {
  readonly entry: CatalogEntry
  readonly price: PriceRule
  /** The model's weight, if its alias uses weights. */
  readonly weight?: number | undefined
}

/** A model of an alias that is not tried for this task, and why. */
export interface LeftOut {
  readonly entry: CatalogEntry
  readonly reason: SkipReason
}

/** What a path refers to: a model, or an alias whose models share a label. docs/reference/aliases.md */
export interface Offer {
  readonly models: Arr.NonEmptyReadonlyArray<OfferedModel>
  /** Absent if the path names a model. */
  readonly alias?: {
    readonly leftOut: ReadonlyArray<LeftOut>
    /** The names of all models of the alias. An API key with a list of models must allow every one of them. */
    readonly allowedBy: ReadonlyArray<string>
  }
  /** The id of the catalog that contains this offer. */
  readonly catalogId: number | null
  readonly sandbox: boolean
}

/** A model that can run a request, and its maximum price. */
export interface PricedModel extends Pick<OfferedModel, "weight"> {
  readonly entry: TaskModel
  readonly amount: Credits
}

/** A request and the models that accept its body. */
export interface PricedRequest extends Attachments {
  readonly body: StoredBody
  readonly media: ReadonlyArray<Pick<InlineMedium, "bytes" | "mime">>
  readonly models: Arr.NonEmptyReadonlyArray<PricedModel>
  readonly leftOut: ReadonlyArray<LeftOut>
  /** The price of the most expensive model: the amount to hold, and the most that the request can cost. */
  readonly most: Credits
}

/** A stored body: that of a media label, of a background response or of a batch. */
export type StoredBody = Body | ResponseBody | BatchBody

/** Decodes a body for an offer, and prices it for each model. Fails with 2001 or 2011 if no model accepts it. */
export const priceRequest = Effect.fnUntraced(function* (
  offer: Offer,
  given: unknown,
  checkUrl: CheckUrl
) {
  const entries = Arr.map(offer.models, ({ entry }) => entry)
  const { body, media, metadata, takes, webhook } = yield* decodeRequest(entries, given, checkUrl)
  const taking = offer.models.filter(({ entry }) => takes.includes(entry))
  const [first, ...rest] = yield* Effect.forEach(taking, (model) =>
    Effect.map(amountOf(model, body), (amount) => ({
      entry: model.entry,
      weight: model.weight,
      amount
    }))
  )
  if (first === undefined) return yield* Effect.die("a body was decoded that no model takes")
  const others = offer.models.filter(({ entry }) => !takes.includes(entry))
  return {
    body,
    media,
    metadata,
    webhook,
    models: [first, ...rest],
    leftOut: [
      ...others.map(({ entry }) => ({ entry, reason: "body" as const })),
      ...(offer.alias?.leftOut ?? [])
    ],
    most: rest.reduce((most, { amount }) => (amount > most ? amount : most), first.amount)
  } satisfies PricedRequest
})

/** Fails with 5003 if the price expression cannot be evaluated for this body, which the operator has to correct. */
const amountOf = (model: OfferedModel, body: Body): Effect.Effect<Credits, Problem> =>
  Effect.fromResult(quote(model, body)).pipe(
    Effect.tapError((why) =>
      Effect.logError(
        `The price of ${model.entry.vendor}/${model.entry.model} cannot be computed: ${why}. ` +
          "Remedy: correct its expression in CATALOG_FILE"
      )
    ),
    Effect.mapError(() =>
      problem(5003, "The price of this model cannot be computed for this request")
    )
  )

/**
 * The models of an alias as stored with a task: first the candidates, in the order in which they are tried, then the
 * models that were left out.
 */
export const candidatesOf = (
  { leftOut, models }: Pick<PricedRequest, "leftOut" | "models">,
  id: string,
  at: NonNullable<Candidate["skipped"]>["at"]
): ReadonlyArray<Candidate> => {
  const targets = models.map((it) => ({ model: { ...it, ...nameIn(it.entry) }, weight: it.weight }))
  return [
    ...inOrderOf(targets, id).map(({ amount, model, vendor }): Candidate => ({
      vendor,
      model,
      price: amount,
      skipped: null
    })),
    ...leftOut.map(({ entry, reason }): Candidate => ({
      ...nameIn(entry),
      price: null,
      skipped: { reason, at, attempt: null }
    }))
  ]
}

const nameIn = ({ model, vendor }: TaskModel) => ({ vendor, model })
