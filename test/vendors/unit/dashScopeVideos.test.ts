import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { videoSizes } from "../../../src/catalog/bodies/Size.ts"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { accountAt, picture, request } from "../../support/upstreams/accounts.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"

const inline = `data:image/png;base64,${pixel.toString("base64")}`
const aigc = "/api/v1/services/aigc"

const upstream = await upstreamOfTests(Upstream.start(dashscope))

/** docs/reference/vendors.md#dashscope-bodies */
describe("bodies of wan2.7 and wan3.0", () => {
  const sent = (adapter: "dashscope-async", it: ReturnType<typeof request>) =>
    Effect.gen(function* () {
      const account = yield* accountAt(adapter, upstream.url, upstream.key)
      yield* account.submit(it)
      return upstream.lastSubmit
    })

  it.effect("wan2.7: a picture is a first frame and sound drives it, without an audio flag", () =>
    Effect.gen(function* () {
      const url = "https://example.com/a.mp3"
      const body = {
        prompt: "p",
        negative_prompt: "n",
        image: "artifact:1",
        audio: true,
        audio_url: url,
        resolution: "1080P",
        duration: 10
      }
      const media = [picture("#/image"), { ...picture("#/audio_url", url), mime: "audio/mpeg" }]
      const seen = yield* sent(
        "dashscope-async",
        request("image-to-video-spark", "wan2.7-i2v", body, { media })
      )
      assert.deepEqual(seen.json.input, {
        prompt: "p",
        negative_prompt: "n",
        media: [
          { type: "first_frame", url: inline },
          { type: "driving_audio", url }
        ]
      })
      assert.deepEqual(seen.json.parameters, {
        resolution: "1080P",
        duration: 10,
        watermark: false
      })
    })
  )

  for (const model of ["wan2.7-i2v", "wan3.0-video"]) {
    it.effect(`${model}: keyframes are a first and a last frame`, () =>
      Effect.gen(function* () {
        const url = "https://example.com/last.png"
        const body = { prompt: "p", image: "artifact:1", last_frame: url, resolution: "720P" }
        const media = [picture("#/image"), picture("#/last_frame", url)]
        const seen = yield* sent(
          "dashscope-async",
          request("keyframe-to-video-plus", model, body, { media })
        )
        assert.strictEqual(seen.path, `${aigc}/video-generation/video-synthesis`)
        assert.deepEqual(seen.json.input, {
          prompt: "p",
          media: [
            { type: "first_frame", url: "oss://dashscope-instant/1/image.png" },
            { type: "last_frame", url }
          ]
        })
        assert.deepEqual(seen.json.parameters, {
          resolution: "720P",
          duration: 5,
          watermark: false
        })
      })
    )
  }

  it.effect("wan2.7 and wan3.0: each size is a tier and a ratio", () =>
    Effect.gen(function* () {
      const found: Array<unknown> = []
      for (const size of [...videoSizes["720P"], ...videoSizes["1080P"]]) {
        for (const model of ["wan2.7-t2v", "wan3.0-video"]) {
          const seen = yield* sent(
            "dashscope-async",
            request("text-to-video-spark", model, { prompt: "p", size, audio: false })
          )
          const { audio, ratio, resolution } = seen.json.parameters
          found.push([resolution, ratio, audio])
        }
      }
      const ratios = ["16:9", "9:16", "1:1", "4:3", "3:4"]
      assert.deepEqual(
        found,
        ["720P", "1080P"].flatMap((tier) =>
          ratios.flatMap((ratio) => [
            [tier, ratio, undefined],
            [tier, ratio, false]
          ])
        )
      )
    })
  )

  it.effect("a later model with an unknown body for the label is an operator fault", () =>
    Effect.gen(function* () {
      const account = yield* accountAt("dashscope-async", upstream.url, upstream.key)
      const body = { function: "image_reference", prompt: "p", size: "1280*720" }
      const error = yield* Effect.flip(
        account.submit(request("video-edit-plus", "wan2.7-videoedit", body))
      )
      assert.strictEqual(error.class, "OPERATOR")
      assert.strictEqual(upstream.paidSubmits, 0)
    })
  )
})
