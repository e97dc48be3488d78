import { microPerCredit, make as makeCredits } from "../domain/Credits.ts"
import type { Label } from "./bodies/Bodies.ts"
import type { CatalogEntry } from "./CatalogEntry.ts"
import type { Action } from "./PathSegment.ts"

/** Prices below are in hundredths of a credit. */
const hundredths = (amount: bigint) => makeCredits((amount * microPerCredit) / 100n)

/** A built-in model, whose body is that of a label. */
export type BuiltInEntry = CatalogEntry & { readonly label: Label }

const builtIn = <L extends Label>(
  label: L,
  entry: Omit<CatalogEntry, "label" | "model" | "action" | "artifacts"> & {
    readonly action?: Action
  }
): BuiltInEntry => ({ action: "generation", ...entry, label, model: label, artifacts: "copy" })

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
export const builtInEntries: ReadonlyArray<BuiltInEntry> = [
  builtIn("text-to-video-spark", {
    vendor: "service",
    result: "videos",
    adapter: "dashscope-async",
    upstreamModel: "wan2.5-t2v-preview",
    price: videoPrice,
    source: "third-party lists, 1080P unverified; restated 2026-11-22"
  }),
  builtIn("keyframe-to-video-plus", {
    vendor: "alibaba",
    result: "videos",
    adapter: "dashscope-async",
    upstreamModel: "wan2.1-kf2v-plus",
    price: flatVideoPrice,
    source: "the vendor's page of June 2025; restated 2026-11-22"
  }),
  builtIn("image-edit", {
    vendor: "alibaba",
    result: "images",
    adapter: "dashscope-async",
    upstreamModel: "wan2.5-i2i-preview",
    price: perImage(3_00n),
    source: "third-party lists, unverified; restated 2026-11-22"
  }),
  builtIn("text-to-image-max", {
    vendor: "alibaba",
    result: "images",
    adapter: "dashscope-sync",
    upstreamModel: "qwen-image-max",
    price: perImage(7_50n),
    source: "the specification; the same at a reseller; restated 2026-11-22"
  }),
  builtIn("image-edit-pro", {
    vendor: "google",
    action: "edit",
    result: "images",
    adapter: "gemini-image",
    upstreamModel: "gemini-3-pro-image",
    price: perImage(13_40n),
    source: "public cost tables, 1K and 2K; restated 2026-11-22"
  }),
  builtIn("image-edit-max", {
    vendor: "alibaba",
    result: "images",
    adapter: "dashscope-sync",
    upstreamModel: "qwen-image-edit-max",
    price: perImage(7_50n),
    source: "a reseller's quote; restated 2026-11-22"
  }),
  builtIn("text-to-image-preview", {
    vendor: "alibaba",
    result: "images",
    adapter: "dashscope-async",
    upstreamModel: "wan2.5-t2i-preview",
    price: perImage(3_00n),
    source: "third-party lists; restated 2026-11-22"
  }),
  builtIn("image-to-video-spark", {
    vendor: "alibaba",
    result: "videos",
    adapter: "dashscope-async",
    upstreamModel: "wan2.5-i2v-preview",
    price: videoPrice,
    source: "third-party lists, 1080P unverified; restated 2026-11-22"
  }),
  builtIn("video-edit-plus", {
    vendor: "alibaba",
    result: "videos",
    adapter: "dashscope-async",
    upstreamModel: "wan2.1-vace-plus",
    price: flatVideoPrice,
    source: "unverified; restated 2026-11-22"
  })
]

/**
 * The label that each name of an OpenAI image model stands for, by route, unless the catalog has a model or an alias
 * with this name. docs/reference/shapes.md#names-of-openais-models
 */
export const imageNames: ReadonlyMap<
  unknown,
  { readonly generations: Label; readonly edits?: Label }
> = new Map([
  ["gpt-image-1", { generations: "text-to-image-preview", edits: "image-edit-pro" }],
  ["gpt-image-2", { generations: "text-to-image-preview", edits: "image-edit-pro" }],
  ["dall-e-3", { generations: "text-to-image-preview" }]
])
