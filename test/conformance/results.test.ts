import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { HttpResult } from "../support/gateway.ts"
import { GatewayProcess } from "../support/gatewayProcess.ts"

/** docs/reference/requirements.md#models and docs/reference/requirements.md#results: every model over HTTP. */

let gateway: GatewayProcess
let picture = ""

beforeAll(async () => {
  gateway = await GatewayProcess.start()
  const made = await run("/vendors/alibaba/v1/text-to-image-max/generation", {
    prompt: "an input",
    size: "1328*1328"
  })
  const bytes = await fetch(made.done.json.images[0]).then((it) => it.arrayBuffer())
  picture = `data:image/png;base64,${Buffer.from(bytes).toString("base64")}`
}, 180_000)
afterAll(() => gateway.close())

const run = async (path: string, body: unknown) => {
  const created: HttpResult = await gateway.call("POST", path, body)
  assert.strictEqual(created.status, 202, created.text)
  const task = `${path}/${created.json.task_info.id}`
  const done = await gateway.call("GET", task, undefined, { prefer: "wait=30" })
  return { created, done }
}

/** The vendor, model and path, the required fields besides the prompt, and the type and number of results. */
const models = [
  ["service", "text-to-video-spark", "generation", () => ({}), "videos", 1],
  [
    "alibaba",
    "keyframe-to-video-plus",
    "generation",
    () => ({ image: picture, last_frame: picture }),
    "videos",
    1
  ],
  ["alibaba", "image-edit", "generation", () => ({ images: [picture] }), "images", 4],
  ["alibaba", "text-to-image-max", "generation", () => ({}), "images", 1],
  ["google", "image-edit-pro", "edit", () => ({ images: [picture] }), "images", 1],
  ["alibaba", "image-edit-max", "generation", () => ({ images: [picture] }), "images", 1],
  ["alibaba", "text-to-image-preview", "generation", () => ({}), "images", 4],
  ["alibaba", "image-to-video-spark", "generation", () => ({ image: picture }), "videos", 1],
  [
    "alibaba",
    "video-edit-plus",
    "generation",
    () => ({ function: "image_reference", images: [picture] }),
    "videos",
    1
  ]
] as const

describe("every model, from its smallest body to its result", () => {
  it("is in the list of models", async () => {
    const { data } = (await gateway.call("GET", "/manage/v1/models")).json
    const paths = data
      .filter((it: { readonly type: string }) => it.type === "media")
      .map((it: { readonly path: string }) => it.path)
    assert.sameMembers(
      paths,
      models.map(([vendor, model, action]) => `/vendors/${vendor}/v1/${model}/${action}`)
    )
  })

  for (const [vendor, model, action, more, kind, count] of models) {
    it(`returns ${kind} at the quoted price: ${model}`, async () => {
      const path = `/vendors/${vendor}/v1/${model}/${action}`
      const body = { prompt: "A lighthouse", ...more() }
      const { quote } = (await gateway.call("POST", `${path}?dry_run=true`, body)).json
      assert.strictEqual(quote.currency, "credits")
      const { created, done } = await run(path, body)
      assert.hasAllKeys(created.json, ["task_info"])
      assert.hasAllKeys(
        created.json.task_info,
        action === "edit"
          ? ["id", "status", "created_at", "updated_at"]
          : ["id", "created_at", "updated_at"]
      )
      assert.strictEqual(created.headers.get("x-service-cost"), quote.amount)
      assert.strictEqual(done.status, 200)
      assert.hasAllKeys(done.json, ["task_info", kind], done.text)
      assert.hasAllKeys(done.json.task_info, ["id", "status", "created_at", "updated_at"])
      assert.strictEqual(done.json.task_info.status, "completed")
      assert.strictEqual(done.json[kind].length, count)
      assert.strictEqual(done.headers.get("x-service-cost"), quote.amount)
      for (const url of done.json[kind]) {
        const result = await fetch(url)
        const type = kind === "images" ? "image/png" : "video/mp4"
        assert.strictEqual(result.headers.get("content-type"), type)
        assert.isAbove((await result.arrayBuffer()).byteLength, 100)
      }
      const other = path.replace(action, action === "edit" ? "generation" : "edit")
      assert.strictEqual((await gateway.call("POST", other, body)).json.code, 2006)
      const elsewhere = `${other}/${done.json.task_info.id}`
      assert.strictEqual((await gateway.call("GET", elsewhere)).status, 404)
    }, 180_000)
  }

  it("limits texts without a documented length, and holds nothing for a longer one", async () => {
    const path = "/vendors/google/v1/image-edit-pro/edit"
    const before = (await gateway.call("GET", "/manage/v1/wallet")).json
    const body = { prompt: "x".repeat(17 * 1024 * 1024), images: [picture] }
    const refused = await gateway.call("POST", path, body)
    assert.deepStrictEqual([refused.status, refused.json.code], [400, 2001])
    assert.deepStrictEqual(
      refused.json.errors.map((it: { pointer: string }) => it.pointer),
      ["#/prompt"]
    )
    assert.deepStrictEqual((await gateway.call("GET", "/manage/v1/wallet")).json, before)
  })
})
