import { Context, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { microPerCredit, make as makeCredits } from "../domain/Credits.ts"
import { FieldFault } from "../domain/Problem.ts"
import type { Label } from "./bodies/Bodies.ts"
import { CatalogFile } from "./CatalogEntry.ts"
import type { Action, CatalogEntry } from "./CatalogEntry.ts"
import { bodyParseOptions, faultsOf } from "./FieldFaults.ts"
import { makeUpstreamCatalog } from "./UpstreamCatalog.ts"
import type { UpstreamCatalog } from "./UpstreamCatalog.ts"

/** Prices below are written in hundredths of a credit. */
const hundredths = (amount: bigint) => makeCredits((amount * microPerCredit) / 100n)

const builtIn = <L extends Label>(
  label: L,
  entry: Omit<CatalogEntry, "label" | "model" | "action" | "artifacts"> & {
    readonly action?: Action
  }
): CatalogEntry => ({ action: "generation", ...entry, label, model: label, artifacts: "copy" })

const perImage = (amount: bigint) => ({ per: "image", amount: hundredths(amount) }) as const

const videoPrice = {
  per: "second",
  amount: hundredths(10_00n),
  tiers: {
    "480P": hundredths(5_00n),
    "720P": hundredths(10_00n),
    "1080P": hundredths(15_00n)
  }
} as const

const flatVideoPrice = { per: "second", amount: hundredths(10_00n) } as const

/**
 * The models under their labels. docs/reference/vendors.md#mapping-of-models
 * Prices: docs/catalog.md#built-in-prices
 */
export const builtInEntries: ReadonlyArray<CatalogEntry> = [
  builtIn("text-to-video-spark", {
    vendor: "service",
    result: "videos",
    adapter: "dashscope-async",
    upstreamModel: "wan2.5-t2v-preview",
    price: videoPrice
  }),
  builtIn("keyframe-to-video-plus", {
    vendor: "alibaba",
    result: "videos",
    adapter: "dashscope-async",
    upstreamModel: "wan2.1-kf2v-plus",
    price: flatVideoPrice
  }),
  builtIn("image-edit", {
    vendor: "alibaba",
    result: "images",
    adapter: "dashscope-async",
    upstreamModel: "wan2.5-i2i-preview",
    price: perImage(3_00n)
  }),
  builtIn("text-to-image-max", {
    vendor: "alibaba",
    result: "images",
    adapter: "dashscope-sync",
    upstreamModel: "qwen-image-max",
    price: perImage(7_50n)
  }),
  builtIn("image-edit-pro", {
    vendor: "google",
    action: "edit",
    result: "images",
    adapter: "gemini-image",
    upstreamModel: "gemini-3-pro-image",
    price: perImage(13_40n)
  }),
  builtIn("image-edit-max", {
    vendor: "alibaba",
    result: "images",
    adapter: "dashscope-sync",
    upstreamModel: "qwen-image-edit-max",
    price: perImage(7_50n)
  }),
  builtIn("text-to-image-preview", {
    vendor: "alibaba",
    result: "images",
    adapter: "dashscope-async",
    upstreamModel: "wan2.5-t2i-preview",
    price: perImage(3_00n)
  }),
  builtIn("image-to-video-spark", {
    vendor: "alibaba",
    result: "videos",
    adapter: "dashscope-async",
    upstreamModel: "wan2.5-i2v-preview",
    price: videoPrice
  }),
  builtIn("video-edit-plus", {
    vendor: "alibaba",
    result: "videos",
    adapter: "dashscope-async",
    upstreamModel: "wan2.1-vace-plus",
    price: flatVideoPrice
  })
]

/** `CATALOG_FILE` cannot be used: the places in the file and their faults. It stops the start. */
export class CatalogError extends Schema.TaggedError<CatalogError>()("CatalogError", {
  file: Schema.String,
  errors: Schema.NonEmptyArray(FieldFault)
}) {
  override get message(): string {
    const faults = this.errors.map(({ detail, pointer }) => `${pointer}: ${detail}`).join("; ")
    return `CATALOG_FILE ${this.file}: ${faults}. Correct the file, or unset CATALOG_FILE to use the built-in catalog`
  }
}

interface CatalogInterface {
  readonly all: ReadonlyArray<CatalogEntry>
  /** The model behind `/vendors/{vendor}/v1/{model}/{action}`. */
  readonly find: (vendor: string, model: string, action: Action) => Option.Option<CatalogEntry>
  /** The routes that are open to passthrough calls, and their prices. */
  readonly upstream: UpstreamCatalog
}

const keyOf = (entry: { vendor: string; model: string; action: Action }): string =>
  `${entry.vendor}/v1/${entry.model}/${entry.action}`

const fromEntries = (
  entries: ReadonlyArray<CatalogEntry>,
  upstream: UpstreamCatalog
): CatalogInterface => {
  const byPath = new Map(entries.map((entry) => [keyOf(entry), entry]))
  return {
    all: entries,
    upstream,
    find: (vendor, model, action) =>
      Option.fromUndefinedOr(byPath.get(keyOf({ vendor, model, action })))
  }
}

const changed = (entry: CatalogEntry, change: Partial<CatalogEntry>): CatalogEntry => ({
  ...entry,
  ...change
})

/** The built-in catalog with the changes of a file. */
const applyFile = (file: CatalogFile): ReadonlyArray<CatalogEntry> => {
  const removed = new Set(file.remove ?? [])
  const kept = builtInEntries
    .filter((entry) => !removed.has(entry.label))
    .map((entry) => changed(entry, file.change?.[entry.label] ?? {}))
  const added = (file.add ?? []).flatMap((addition) =>
    builtInEntries
      .filter((entry) => entry.label === addition.label)
      .map((entry) => changed(entry, addition))
  )
  return [...kept, ...added]
}

const duplicatePath = (entries: ReadonlyArray<CatalogEntry>): string | undefined =>
  entries.map(keyOf).find((key, index, keys) => keys.indexOf(key) !== index)

// In two steps, so that the fault of a decoded value does not begin with "Expected a string"
const decodeJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Unknown))
const decodeFile = Schema.decodeUnknownEffect(CatalogFile, bodyParseOptions)

const load = Effect.fn("Catalog.load")(function* (path: string) {
  const fail = (pointer: string, detail: string) =>
    new CatalogError({ file: path, errors: [{ pointer, detail }] })
  const files = yield* FileSystem.FileSystem
  const text = yield* files
    .readFileString(path)
    .pipe(Effect.mapError((error) => fail("#", `Cannot be read (${error.reason._tag})`)))
  const value = yield* Effect.mapError(decodeJson(text), () => fail("#", "Expected valid JSON"))
  const file = yield* decodeFile(value).pipe(
    Effect.mapError((error) => new CatalogError({ file: path, errors: faultsOf(error.issue) }))
  )
  const entries = applyFile(file)
  const duplicate = duplicatePath(entries)
  return duplicate === undefined
    ? fromEntries(entries, makeUpstreamCatalog(file))
    : yield* fail("#", `Two models have the path /vendors/${duplicate}`)
})

/** Vendors, models, upstream models and prices. docs/catalog.md */
export class Catalog extends Context.Service<Catalog, CatalogInterface>()(
  "gateway/catalog/Catalog"
) {
  /** The built-in catalog. */
  static readonly layer = Layer.succeed(this, fromEntries(builtInEntries, makeUpstreamCatalog()))

  /** The built-in catalog as changed by a JSON file. */
  static readonly layerFile = (path: string) => Layer.effect(this, load(path))
}
