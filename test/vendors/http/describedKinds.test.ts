import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { MockVendor, startVendorServer } from "../../../src/testing/index.ts"
import type { VendorServer } from "../../../src/testing/index.ts"
import { call, finishedTask, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { describedKinds } from "../../support/upstreams/describedKinds.ts"

/** docs/vendors-as-files.md#results: what a described model makes, as a job and at once. */

const folder = temporaryFolder("described-kinds")
const catalog = join(folder, "catalog.json")
writeFileSync(catalog, JSON.stringify({ vendors: [describedKinds] }))

const pathOf = (model: string) => `/vendors/every-kind/v1/${model}/generation`

type Kind = "images" | "audios" | "meshes" | "documents"

const finished = (model: string) =>
  Effect.map(finishedTask(pathOf(model), { prompt: "A lighthouse" }), (task) => {
    assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
    return task as typeof task & { readonly [kind in Kind]?: ReadonlyArray<string> }
  })

const typeAndBytes = (url: string | undefined) =>
  Effect.promise(async () => {
    const response = await fetch(url ?? "")
    return [
      response.headers.get("content-type"),
      Buffer.from(await response.arrayBuffer())
    ] as const
  })

/** Each model with what it makes, its media type and its first bytes. */
const made = (sound: string): ReadonlyArray<readonly [string, Kind, string, string]> => [
  ["song", "audios", sound, sound === "audio/wav" ? "RIFF" : "ID3"],
  ["sound", "audios", sound, sound === "audio/wav" ? "RIFF" : "ID3"],
  ["statue", "meshes", "model/gltf-binary", "glTF"],
  ["sketch", "images", "image/png", "\u0089PNG"],
  ["caption", "documents", "application/json", "{"]
]

const makesAll = (sound: string) =>
  Effect.gen(function* () {
    for (const [model, kind, type, head] of made(sound)) {
      const task = yield* finished(model)
      assert.hasAllKeys(task, ["task_info", kind])
      const [mime, bytes] = yield* typeAndBytes(task[kind]?.[0])
      assert.strictEqual(mime, type, model)
      assert.isTrue(bytes.toString("latin1").startsWith(head), model)
      const shown = yield* call(`${pathOf(model)}/${task.task_info.id}`)
      assert.strictEqual(shown.headers.get("x-service-cost"), "5.00")
    }
  })

afterAll(() => rmSync(folder, { recursive: true }))

describe("results of a described vendor", () => {
  let server: VendorServer
  beforeAll(async () => {
    server = await startVendorServer(describedKinds)
  })
  afterAll(() => server.stop())
  const gateway = Layer.unwrap(
    Effect.sync(() => runningGateway({ CATALOG_FILE: catalog, ...server.env }))
  )
  layer(gateway, { excludeTestServices: true, timeout: "60 seconds" })((it) => {
    it.effect("are images, sounds, 3D files and JSON, by URL, in Base64 or as the response", () =>
      makesAll("audio/mpeg")
    )

    it.effect(
      "of a call without a job are bought once; a refusal says whether it was charged",
      () =>
        Effect.gen(function* () {
          const sold = server.sold
          server.failNext(MockVendor.refused("RATE_LIMITED", "later"))
          yield* finished("sound")
          assert.strictEqual(server.sold, sold + 1)
          server.failNext(MockVendor.refused("AMBIGUOUS", "the connection broke"))
          const lost = yield* finishedTask(pathOf("sound"), { prompt: "p" })
          assert.strictEqual(lost.task_info.error?.code, 3004)
          assert.strictEqual(server.sold, sold + 2)
        })
    )
  })
})

describe("the sandbox of a described vendor", () => {
  layer(runningGateway({ CATALOG_FILE: catalog }), {
    excludeTestServices: true,
    timeout: "60 seconds"
  })((it) => {
    it.effect("makes sounds, 3D files and JSON, too", () => makesAll("audio/wav"))

    it.effect("refuses a call without a job as the description says", () =>
      Effect.gen(function* () {
        const task = yield* finishedTask(pathOf("caption"), { prompt: "[[sim:refuse]] p" })
        assert.strictEqual(task.task_info.error?.code, 3001)
      })
    )
  })
})
