import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { egressAllowNone } from "../../../src/domain/network/EgressAllow.ts"
import { EgressGuard } from "../../../src/egress/EgressGuard.ts"
import { dashscope, policy } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { sendToNamed } from "../../../src/vendors/NamedHosts.ts"
import * as VendorHttp from "../../../src/vendors/VendorHttp.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { accountAt, jobsLike, picture, request } from "../../support/upstreams/accounts.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"

const inline = `data:image/png;base64,${pixel.toString("base64")}`
const aigc = "/api/v1/services/aigc"

const upstream = await upstreamOfTests(Upstream.start(dashscope))

/** docs/reference/vendors.md#dashscope-bodies */
describe("bodies of DashScope, field by field", () => {
  const sent = (adapter: "dashscope-async" | "dashscope-sync", it: ReturnType<typeof request>) =>
    Effect.gen(function* () {
      const account = yield* accountAt(adapter, upstream.url, upstream.key)
      yield* account.submit(it)
      return upstream.lastSubmit
    })

  it.effect("safety_filter: false requests no inspection if the operator may switch it off", () =>
    Effect.gen(function* () {
      const headers: Array<unknown> = []
      for (const mayDisableInspection of [true, false]) {
        for (const filter of [false, true, null]) {
          const body = { prompt: "p", size: "1664*928", safety_filter: filter }
          for (const [adapter, order] of [
            ["dashscope-async", request("text-to-image-preview", "wan2.5-t2i-preview", body)],
            ["dashscope-sync", request("text-to-image-max", "qwen-image-max", body)]
          ] as const) {
            const account = yield* accountAt(adapter, upstream.url, upstream.key, {
              mayDisableInspection
            })
            yield* account.submit(order)
            assert.notInclude(JSON.stringify(upstream.lastSubmit.json), "safety")
            headers.push(upstream.lastSubmit.headers["x-dashscope-datainspection"])
          }
        }
      }
      const disabled = '{"input":"disable","output":"disable"}'
      const rest = Array.from({ length: 10 }, () => undefined)
      assert.deepStrictEqual(headers, [disabled, disabled, ...rest])
    })
  )

  it.effect(
    "text-to-video-spark: a duration is always sent, and no audio together with audio_url",
    () =>
      Effect.gen(function* () {
        const url = "https://example.com/a.mp3"
        const body = {
          prompt: "p",
          negative_prompt: "n",
          audio: true,
          audio_url: url,
          size: "1280*720",
          prompt_extend: true,
          seed: 7,
          safety_filter: true
        }
        const media = [{ ...picture("#/audio_url", url), mime: "audio/mpeg" }]
        const seen = yield* sent(
          "dashscope-async",
          request("text-to-video-spark", "wan2.5-t2v-preview", body, { media })
        )
        assert.strictEqual(seen.path, `${aigc}/video-generation/video-synthesis`)
        assert.strictEqual(seen.headers["x-dashscope-async"], "enable")
        assert.deepEqual(seen.json, {
          model: "wan2.5-t2v-preview",
          input: { prompt: "p", negative_prompt: "n", audio_url: url },
          parameters: {
            size: "1280*720",
            duration: 5,
            prompt_extend: true,
            watermark: false,
            seed: 7
          }
        })
      })
  )

  it.effect(
    "keyframe-to-video-plus: URLs are sent unchanged, bytes are uploaded and named by oss://",
    () =>
      Effect.gen(function* () {
        const url = "https://example.com/last.png"
        const body = { prompt: "p", image: "artifact:1", last_frame: url, resolution: "720P" }
        const media = [picture("#/image"), picture("#/last_frame", url)]
        const seen = yield* sent(
          "dashscope-async",
          request("keyframe-to-video-plus", "wan2.1-kf2v-plus", body, { media })
        )
        assert.strictEqual(seen.path, `${aigc}/image2video/video-synthesis`)
        assert.strictEqual(seen.headers["x-dashscope-ossresourceresolve"], "enable")
        assert.strictEqual(seen.json.input.first_frame_url, "oss://dashscope-instant/1/image.png")
        const upload = upstream.seen.find((it) => it.path === "/oss")
        assert.deepEqual(
          Array.from(upload?.form ?? [], ([name, [part]]) => [name, part?.type ?? part?.text]),
          [
            ["OSSAccessKeyId", "LTAI"],
            ["Signature", "sig"],
            ["policy", "cG9saWN5"],
            ["key", "dashscope-instant/1/image.png"],
            ["x-oss-object-acl", "private"],
            ["x-oss-forbid-overwrite", "true"],
            ["success_action_status", "200"],
            ["x-oss-content-type", "image/png"],
            ["file", "image/png"]
          ]
        )
        assert.strictEqual(seen.json.input.last_frame_url, url)
        assert.strictEqual(seen.json.parameters.duration, 5)
      })
  )

  it.effect("media go to another host only if the egress guard allows it, and only over TLS", () =>
    Effect.gen(function* () {
      const guard = yield* EgressGuard
      const dispatcher = yield* guard.dispatcher()
      const guarded = yield* VendorHttp.make({ dispatcher })
      const asked: Array<string> = []
      const account = yield* accountAt("dashscope-async", upstream.url, upstream.key, {
        toNamed: (call) =>
          Effect.andThen(
            Effect.sync(() => asked.push(call.url)),
            guarded(call)
          )
      })
      const job = request(
        "keyframe-to-video-plus",
        "wan2.1-kf2v-plus",
        { prompt: "p", image: "artifact:1", last_frame: "https://example.com/last.png" },
        { media: [picture("#/image")] }
      )
      const { data } = policy(upstream).json as { data: object }
      const submitted = (host: string) => {
        upstream.askFaults = [{ status: 200, json: { data: { ...data, upload_host: host } } }]
        return Effect.flip(account.submit(job))
      }
      const inner = yield* submitted(upstream.url.replace("http:", "https:"))
      assert.strictEqual(inner.class, "RETRYABLE")
      assert.include(inner.message, "address")
      assert.lengthOf(asked, 1)
      for (const host of ["http://oss.example.com/", "oss.example.com", "file:///etc/passwd", ""]) {
        assert.strictEqual(
          (yield* submitted(host)).message,
          "The upstream returned no address for uploads"
        )
      }
      assert.lengthOf(asked, 1)
      assert.strictEqual(upstream.paidSubmits, 0)
    }).pipe(Effect.provide(EgressGuard.layer({ allow: egressAllowNone })))
  )

  it.effect("no host that a vendor names is called without a guard", () =>
    Effect.gen(function* () {
      const send = yield* sendToNamed
      const { headers, timeout } = { headers: {}, timeout: Duration.seconds(1) }
      const failure = yield* Effect.flip(
        send({ method: "POST", url: upstream.url, headers, timeout })
      )
      assert.isFalse(failure.sent)
      assert.lengthOf(upstream.seen, 0)
    })
  )

  it.effect("a model of 2.1 is named by its id in the region of the account, also in lists", () =>
    Effect.gen(function* () {
      const body = { prompt: "p", image: "https://example.com/1.png", last_frame: "artifact:1" }
      const job = request("keyframe-to-video-plus", "wan2.1-kf2v-plus", body, {
        media: [picture("#/image", body.image), picture("#/last_frame")]
      })
      const found: Array<unknown> = []
      for (const region of ["cn-beijing", "ap-southeast-1"] as const) {
        const account = yield* accountAt("dashscope-async", upstream.url, upstream.key, {
          account: {
            id: "dashscope:a",
            provider: "dashscope",
            key: Redacted.make(upstream.key),
            baseUrl: upstream.url,
            weight: 1,
            region
          }
        })
        yield* account.submit(job)
        const uploads = upstream.seen.find(({ path }) => path.endsWith("/uploads"))
        const listed = yield* jobsLike(account, job, yield* Clock.currentTimeMillis)
        found.push([
          upstream.lastSubmit.json.model,
          uploads?.query.get("model"),
          upstream.seen.at(-1)?.query.get("model_name"),
          listed.length
        ])
        upstream.reset()
      }
      const ids = ["wanx2.1-kf2v-plus", "wan2.1-kf2v-plus"]
      assert.deepEqual(
        found,
        ids.map((id) => [id, id, id, 0])
      )
    })
  )

  it.effect(
    "image-edit: pictures are URLs or data URIs, and n and prompt_extend are always sent",
    () =>
      Effect.gen(function* () {
        const url = "https://example.com/1.png"
        const body = { prompt: "p", images: ["artifact:1", url], n: 4, prompt_extend: false }
        const media = [picture("#/images/0"), picture("#/images/1", url)]
        const seen = yield* sent(
          "dashscope-async",
          request("image-edit", "wan2.5-i2i-preview", body, { media })
        )
        assert.deepEqual(seen.json.input, { prompt: "p", images: [inline, url] })
        assert.deepEqual(seen.json.parameters, { n: 4, prompt_extend: false, watermark: false })
      })
  )

  it.effect("image-to-video-spark: resolution instead of size", () =>
    Effect.gen(function* () {
      const body = { prompt: "p", image: "artifact:1", audio: false, resolution: "480P" }
      const seen = yield* sent(
        "dashscope-async",
        request("image-to-video-spark", "wan2.5-i2v-preview", body, { media: [picture("#/image")] })
      )
      assert.deepEqual(seen.json.input, { prompt: "p", img_url: inline })
      assert.deepEqual(seen.json.parameters, {
        resolution: "480P",
        duration: 5,
        watermark: false,
        audio: false
      })
    })
  )

  it.effect("video-edit-plus: function and references in input, controls in parameters", () =>
    Effect.gen(function* () {
      const body = {
        function: "image_reference",
        prompt: "p",
        images: ["https://example.com/1.png"],
        obj_or_bg: ["obj"],
        size: "1280*720",
        prompt_extend: true
      }
      const media = [picture("#/images/0", "https://example.com/1.png")]
      const seen = yield* sent(
        "dashscope-async",
        request("video-edit-plus", "wan2.1-vace-plus", body, { media })
      )
      assert.deepEqual(seen.json.input, {
        function: "image_reference",
        prompt: "p",
        ref_images_url: ["https://example.com/1.png"]
      })
      assert.deepEqual(seen.json.parameters, {
        obj_or_bg: ["obj"],
        size: "1280*720",
        prompt_extend: true,
        watermark: false
      })
    })
  )

  it.effect("image-edit-max: one message, pictures before the text, no async header", () =>
    Effect.gen(function* () {
      const body = { prompt: "p", images: ["artifact:1"], n: 2, prompt_extend: true }
      const seen = yield* sent(
        "dashscope-sync",
        request("image-edit-max", "qwen-image-edit-max", body, { media: [picture("#/images/0")] })
      )
      assert.strictEqual(seen.path, `${aigc}/multimodal-generation/generation`)
      assert.isUndefined(seen.headers["x-dashscope-async"])
      assert.deepEqual(seen.json.input, {
        messages: [{ role: "user", content: [{ image: inline }, { text: "p" }] }]
      })
      assert.deepEqual(seen.json.parameters, { n: 2, prompt_extend: true, watermark: false })
    })
  )

  it.effect("an unknown task is retried for half a minute, then its result is LOST", () =>
    Effect.gen(function* () {
      const account = yield* accountAt("dashscope-async", upstream.url, upstream.key)
      const it = request("text-to-image-preview", "wan2.5-t2i-preview", { prompt: "p", n: 1 })
      const submitted = yield* account.submit(it)
      assert(submitted._tag === "Accepted")
      upstream.ending = "lost"
      assert.strictEqual((yield* account.poll(submitted.handle))._tag, "Running")
      yield* TestClock.adjust("31 seconds")
      assert.strictEqual((yield* Effect.flip(account.poll(submitted.handle))).class, "LOST")
    })
  )

  it.effect("a job is polled every 2.5 seconds at first, and less often later", () =>
    Effect.gen(function* () {
      const account = yield* accountAt("dashscope-async", upstream.url, upstream.key)
      const it = request("text-to-image-preview", "wan2.5-t2i-preview", { prompt: "p", n: 1 })
      const submitted = yield* account.submit(it)
      assert(submitted._tag === "Accepted")
      upstream.runningPolls = 100
      const waits: Array<unknown> = []
      for (const step of ["1 second", "2 minutes", "10 minutes"] as const) {
        yield* TestClock.adjust(step)
        const progress = yield* account.poll(submitted.handle)
        waits.push(progress._tag === "Running" ? Duration.toMillis(progress.pollAfter) : progress)
      }
      assert.deepEqual(waits, [2500, 5000, 10_000])
    })
  )
})
