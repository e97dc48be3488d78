import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Label } from "../../../src/catalog/bodies/Bodies.ts"
import { builtInEntries } from "../../../src/catalog/BuiltInModels.ts"
import type { AdapterName, CatalogEntry } from "../../../src/catalog/CatalogEntry.ts"
import { decodeRequest } from "../../../src/tasks/creation/RequestBody.ts"
import { bodySchemaOf } from "../../../src/vendors/BodyFaults.ts"
import { base64, bmp, jpeg, png } from "../../support/media.ts"

const entryOf = (label: Label, adapter: AdapterName, upstreamModel: string): CatalogEntry => {
  const builtIn = builtInEntries.find((it) => it.label === label)
  if (builtIn === undefined) throw new Error(`${label} has no built-in entry`)
  return { ...builtIn, model: "its-name", adapter, upstreamModel }
}

/** The pointer and detail of each fault at create; empty for an accepted body. */
const faultsOf = (entry: CatalogEntry, body: object) =>
  decodeRequest([entry], body, () => Effect.succeedNone).pipe(
    Effect.as([]),
    Effect.catch(({ errors = [] }) =>
      Effect.succeed(errors.map(({ detail, pointer }) => `${pointer}: ${detail}`))
    )
  )

const isAccepted = (entry: CatalogEntry, ...bodies: ReadonlyArray<object>) =>
  Effect.forEach(bodies, (body) =>
    Effect.map(faultsOf(entry, { prompt: "p", ...body }), (faults) =>
      assert.deepEqual(faults, [], JSON.stringify(body))
    )
  )

const isRefused = (entry: CatalogEntry, body: object, ...expected: ReadonlyArray<RegExp>) =>
  Effect.map(faultsOf(entry, { prompt: "p", ...body }), (faults) => {
    assert.strictEqual(faults.length, expected.length, faults.join("\n"))
    for (const [index, pattern] of expected.entries()) assert.match(faults[index] ?? "", pattern)
  })

/** docs/reference/vendors.md#openai-images */
describe("the image models of OpenAI", () => {
  const newer = entryOf("text-to-image-preview", "openai-image", "gpt-image-2.5-flare")
  const older = entryOf("text-to-image-preview", "openai-image", "gpt-image-1-mini")
  const images = [base64(png({ width: 400, height: 400 }))]

  it.effect("refuse fields that the API does not have, but no default that was filled in", () =>
    Effect.gen(function* () {
      for (const entry of [newer, older]) {
        yield* isAccepted(entry, {}, { n: 2 }, { size: null }, { safety_filter: false })
        yield* isRefused(
          entry,
          { seed: 7, negative_prompt: "rain", prompt_extend: false },
          /^#\/negative_prompt: its-name does not support this field$/u,
          /^#\/prompt_extend: /u,
          /^#\/seed: /u
        )
      }
      const { properties } = bodySchemaOf(newer)
      assert.sameMembers(Object.keys(properties ?? {}), [
        "prompt",
        "size",
        "n",
        "safety_filter",
        "metadata",
        "webhook"
      ])
    })
  )

  it.effect("accept sizes divisible by 16 with a ratio of 1:3 to 3:1 (gpt-image-2)", () =>
    Effect.gen(function* () {
      yield* isAccepted(newer, { size: "1280*1280" }, { size: "1664*928" }, { size: "768*1536" })
      yield* isRefused(
        newer,
        { size: "1281*1280" },
        /^#\/size: .*divisible by 16, got 1281\*1280$/u
      )
      yield* isRefused(newer, { size: "2400*640" }, /^#\/size: .*ratio of 1:3 to 3:1/u)
      const max = entryOf("image-edit-max", "openai-image", "gpt-image-2")
      yield* isAccepted(max, { images, size: "2048*1152" }, { images })
      const all = entryOf("text-to-image-max", "openai-image", "gpt-image-2")
      for (const size of ["1664*928", "1472*1104", "1328*1328", "1104*1472", "928*1664"]) {
        yield* isAccepted(all, { size })
      }
    })
  )

  it.effect("accept three sizes (gpt-image-1)", () =>
    Effect.gen(function* () {
      yield* isAccepted(older, { size: "1024*1024" }, { size: "1536*1024" }, { size: "1024*1536" })
      yield* isRefused(
        older,
        { size: "1280*1280" },
        /^#\/size: This model accepts only 1024\*1024, 1536\*1024, 1024\*1536, got "1280\*1280"$/u
      )
      const pro = entryOf("image-edit-pro", "openai-image", "gpt-image-1.5")
      yield* isAccepted(pro, { images }, { images, aspect_ratio: "3:2", resolution: "1K" })
      yield* isRefused(
        pro,
        { images, aspect_ratio: "16:9", resolution: "2K" },
        /^#\/aspect_ratio: .*1:1, 3:2, 2:3, got "16:9"$/u,
        /^#\/resolution: .*1K, got "2K"$/u
      )
    })
  )

  it.effect("edit PNG, JPEG and WEBP, as the API documents, but no BMP", () =>
    Effect.gen(function* () {
      const entry = entryOf("image-edit", "openai-image", "gpt-image-2")
      const sides = { width: 400, height: 400 }
      yield* isAccepted(entry, { images: [...images, base64(jpeg(sides))] })
      yield* isRefused(
        entry,
        { images: [...images, base64(bmp(sides))] },
        /^#\/images\/1: This model accepts only PNG, JPEG, WEBP, got "BMP"$/u
      )
    })
  )

  it.effect("accept any size if they are another vendor's behind the same API", () =>
    isAccepted(entryOf("text-to-image-preview", "openai-image", "flux-2"), { size: "1283*1280" })
  )
})

/** docs/reference/vendors.md#openai-videos */
describe("videos of OpenAI's API", () => {
  const entry = entryOf("text-to-video-spark", "openai-video", "sora-2")
  const image = base64(png({ width: 1280, height: 720 }))

  it.effect("refuse fields that the API does not have and sizes that it does not make", () =>
    Effect.gen(function* () {
      yield* isAccepted(entry, {}, { size: "720*1280", duration: 10 }, { audio_url: null })
      yield* isRefused(
        entry,
        { audio: false, seed: 1, size: "1920*1080" },
        /^#\/audio: /u,
        /^#\/size: .*1280\*720, 720\*1280, got "1920\*1080"$/u,
        /^#\/seed: /u
      )
      const still = entryOf("image-to-video-spark", "openai-video", "sora-2")
      yield* isAccepted(still, { image })
      yield* isRefused(still, { image, resolution: "480P" }, /^#\/resolution: .*720P, 1080P/u)
    })
  )
})

/** docs/reference/vendors.md#gemini-images */
describe("images of Gemini", () => {
  it.effect("accept a seed, but no pixels and only one image per call", () =>
    Effect.gen(function* () {
      const entry = entryOf("text-to-image-preview", "gemini-image", "gemini-3-pro-image")
      yield* isAccepted(entry, {}, { n: 1, seed: 7 })
      yield* isRefused(
        entry,
        { n: 2, size: "1280*1280", negative_prompt: "rain" },
        /^#\/negative_prompt: /u,
        /^#\/size: /u,
        /^#\/n: This model accepts only 1, got 2$/u
      )
    })
  )
})

/** docs/reference/vendors.md#dashscope-bodies */
describe("models of DashScope", () => {
  const image = base64(png({ width: 400, height: 400 }))

  it.effect("accept every field up to wan2.6", () =>
    Effect.gen(function* () {
      for (const entry of builtInEntries.filter(({ adapter }) => adapter === "dashscope-async")) {
        const { properties } = bodySchemaOf(entry)
        const label = bodySchemaOf(entryOf(entry.label, "dashscope-async", "wan2.6-t2v")).properties
        assert.deepEqual(properties, label, entry.label)
      }
      const words = entryOf("text-to-video-spark", "dashscope-async", "wan2.5-t2v-preview")
      yield* isAccepted(words, { audio: false, seed: 7, negative_prompt: "rain" })
    })
  )

  it.effect("wan2.7 is never silent and has no 480P", () =>
    Effect.gen(function* () {
      const words = entryOf("text-to-video-spark", "dashscope-async", "wan2.7-t2v")
      yield* isAccepted(words, {}, { audio: true, seed: 7, negative_prompt: "rain" })
      yield* isRefused(
        words,
        { audio: false },
        /^#\/audio: This model accepts only true, got false$/u
      )
      const still = entryOf("image-to-video-spark", "dashscope-async", "wan2.7-i2v")
      yield* isAccepted(still, { image }, { image, resolution: "1080P" })
      yield* isRefused(still, { image, resolution: "480P" }, /^#\/resolution: .*720P, 1080P/u)
    })
  )

  it.effect("wan3.0 accepts no negative prompt, no given sound and no templates", () =>
    Effect.gen(function* () {
      const words = entryOf("text-to-video-spark", "dashscope-async", "wan3.0-video")
      yield* isAccepted(words, {}, { audio: false, seed: 7 })
      yield* isRefused(
        words,
        { negative_prompt: "rain", audio_url: "https://example.com/a.mp3" },
        /^#\/negative_prompt: /u,
        /^#\/audio_url: /u
      )
      const still = entryOf("image-to-video-spark", "dashscope-async", "wan3.0-video-prime")
      yield* isAccepted(still, { image, resolution: "480P" })
      const frames = entryOf("keyframe-to-video-plus", "dashscope-async", "wan3.0-video")
      const body = { image, last_frame: image }
      yield* isAccepted(frames, body)
      yield* isRefused(frames, { ...body, template: "kiss" }, /^#\/template: /u)
    })
  )

  it.effect("blocking models accept no ratio instead of a size", () =>
    Effect.gen(function* () {
      const entry = entryOf("image-edit-pro", "dashscope-sync", "qwen-image-edit-max")
      yield* isAccepted(entry, { images: [image] })
      yield* isRefused(entry, { images: [image], aspect_ratio: "1:1" }, /^#\/aspect_ratio: /u)
    })
  )
})
