import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { openai } from "../../../src/testing/vendors/OpenAiProtocol.ts"
import { png } from "../../support/media.ts"
import { accountAt, picture, request } from "../../support/upstreams/accounts.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

/** docs/reference/vendors.md#openai-videos */
describe("a video from a picture", () => {
  let upstream: Upstream
  beforeAll(async () => {
    upstream = await Upstream.start(openai)
  })
  afterAll(() => upstream.close())

  for (const [width, height, resolution] of [
    [1280, 720, "720P"],
    [720, 1280, "720P"],
    [1024, 1792, "1080P"]
  ] as const) {
    it.effect(`has the size of the picture: ${width}x${height}`, () =>
      Effect.gen(function* () {
        const account = yield* accountAt("openai-video", `${upstream.url}/v1`, upstream.key)
        const bytes = Effect.succeed(png({ width, height }))
        yield* account.submit(
          request(
            "image-to-video-spark",
            "sora-2",
            { prompt: "p", resolution, image: "artifact:1" },
            { media: [{ ...picture("#/image"), bytes }] }
          )
        )
        assert.strictEqual(upstream.lastSubmit.form.get("size")?.[0]?.text, `${width}x${height}`)
      })
    )
  }
})
