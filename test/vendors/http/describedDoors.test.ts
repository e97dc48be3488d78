import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import { runCommand } from "../../support/commandLine.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { png } from "../../support/media.ts"
import { call, json, Running, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { describedDoors } from "../../support/upstreams/describedDoors.ts"

/** docs/vendors-as-files.md: a described model behind every door of the service, over HTTP. */

const folder = temporaryFolder("described-doors")
const catalog = join(folder, "catalog.json")
writeFileSync(catalog, JSON.stringify({ vendors: [describedDoors] }))

const picture = png({ width: 64, height: 64 })
const dataUri = `data:image/png;base64,${Buffer.from(picture).toString("base64")}`

// oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what is in it
type Json = any
const read = (path: string, init?: RequestInit): Effect.Effect<Json, never, Running> =>
  Effect.flatMap(call(path, init), (answer) => Effect.promise(() => answer.json()))

let requests = 0

/** A call of a tool at `/mcp`, in a protocol version without sessions. */
const useTool = (name: string, args: object): Effect.Effect<Json, never, Running> =>
  Effect.map(
    read("/mcp", {
      ...json({
        jsonrpc: "2.0",
        id: (requests += 1),
        method: "tools/call",
        params: { name, arguments: args }
      }),
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18"
      }
    }),
    ({ error, result }) => {
      assert.isUndefined(error, JSON.stringify(error))
      assert.isNotTrue(result.isError, JSON.stringify(result))
      return result.structuredContent
    }
  )

const openai = Effect.map(
  Running,
  ({ key, url }) => new OpenAI({ apiKey: key, baseURL: `${url}/v1` })
)

liveLayer(runningGateway({ CATALOG_FILE: catalog }))("a described model", (it) => {
  it.effect("is available in MCP with its schema, price, tasks and results", () =>
    Effect.gen(function* () {
      const { models } = yield* useTool("list_models", { model: "doors/" })
      const byName = new Map<string, Json>(models.map((it: Json) => [it.model, it]))
      assert.sameMembers(
        [...byName.keys()],
        ["sketch", "retouch", "film", "song", "caption"].map((it) => `doors/${it}`)
      )
      const film = byName.get("doors/film")
      assert.deepStrictEqual(film.input_schema.properties.duration, {
        type: "string",
        enum: ["5", "10"],
        default: "5"
      })
      assert.strictEqual(film.media.first_frame.kind, "image")
      const quoted = yield* useTool("quote", {
        model: "doors/film",
        input: { prompt: "a", duration: "10" }
      })
      assert.strictEqual(quoted.amount, "10.00")
      for (const [model, input, type] of [
        ["sketch", { prompt: "a", how_many: 1 }, "image/png"],
        ["film", { prompt: "a" }, "video/mp4"],
        ["song", { prompt: "a" }, "audio/wav"],
        ["caption", { picture: dataUri }, "application/json"]
      ] as const) {
        const made = yield* useTool("create_task", { model: `doors/${model}`, input })
        const ended = yield* useTool("get_task", { task_id: made.task_id, wait_seconds: 45 })
        assert.strictEqual(ended.status, "completed", JSON.stringify(ended))
        assert.strictEqual(ended.results[0].media_type, type, model)
      }
    })
  )

  it.effect(
    "makes each requested image in OpenAI's shape, whatever its own fields are called",
    () =>
      Effect.gen(function* () {
        const client = yield* openai
        const made = yield* Effect.promise(() =>
          client.images.generate({
            model: "doors/sketch",
            prompt: "a",
            n: 2,
            size: "1280x720" as never
          })
        )
        assert.lengthOf(made.data ?? [], 2)
        const plain = yield* Effect.promise(() =>
          client.images
            .generate({ model: "doors/sketch", prompt: "a", size: "512x512" })
            .withResponse()
        )
        assert.strictEqual(plain.response.headers.get("x-service-ignored"), "size")
        assert.strictEqual(plain.response.headers.get("x-service-cost"), "2.00")
        const image = yield* Effect.promise(() => toFile(picture, "a.png"))
        for (const model of ["doors/sketch", "doors/retouch"]) {
          const edited = yield* Effect.promise(() =>
            client.images.edit({ model, prompt: "a", image })
          )
          assert.lengthOf(edited.data ?? [], 1, model)
        }
        const wrong = yield* call(
          "/v1/images/generations",
          json({ model: "doors/retouch", prompt: "a" })
        )
        assert.include(yield* Effect.promise(() => wrong.text()), "/v1/images/edits")
      })
  )

  it.effect(
    "makes videos in OpenAI's shape, whatever its own fields for seconds, size and frame are called",
    () =>
      Effect.gen(function* () {
        const { videos } = yield* openai
        const first = yield* Effect.promise(() => toFile(picture, "a.png"))
        const created = yield* Effect.promise(() =>
          videos.create({
            model: "doors/film" as never,
            prompt: "a",
            seconds: "10" as never,
            size: "720x1280",
            input_reference: first
          })
        )
        assert.deepInclude<object>(created, { prompt: "a", seconds: "10" })
        const task = yield* call(`/vendors/doors/v1/film/generation/${created.id}`, {
          headers: { prefer: "wait=45" }
        })
        assert.strictEqual(task.headers.get("x-service-cost"), "10.00")
        const content = yield* Effect.promise(() => videos.downloadContent(created.id))
        assert.strictEqual(content.headers.get("content-type"), "video/mp4")
        const refused = yield* call(
          "/v1/videos",
          json({ model: "doors/film", prompt: "a", size: "64x64" })
        )
        assert.include(yield* Effect.promise(() => refused.text()), "#/size")
      })
  )

  it.effect("is in the OpenAPI document with its body, and quoted without a task", () =>
    Effect.gen(function* () {
      const { components, paths } = yield* read("/openapi.json")
      for (const { model } of describedDoors.jobs!.models) {
        const name = `Doors${model.charAt(0).toUpperCase()}${model.slice(1)}`
        assert.containsAllKeys(components.schemas[name].properties, ["webhook", "metadata"])
        const { post } = paths[`/vendors/doors/v1/${model}/generation`]
        assert.include(JSON.stringify(post), `schemas/${name}`)
      }
      const path = "/vendors/doors/v1/song/generation?dry_run=true"
      const { quote } = yield* read(path, json({ prompt: "a", seconds: 5 }))
      assert.deepStrictEqual(quote, { amount: "2.50", currency: "credits" })
      const faulty = yield* read(path, json({ prompt: "a", seconds: 99 }))
      assert.strictEqual(faulty.errors[0].pointer, "#/seconds")
    })
  )

  it.effect(
    "runs with `gateway run`, which puts pictures into its fields and saves the results",
    () =>
      Effect.gen(function* () {
        const { key, url } = yield* Running
        const env = { GATEWAY_URL: url, GATEWAY_API_KEY: key }
        const file = join(folder, "picture.png")
        writeFileSync(file, picture)
        const endings = { sketch: ".png", film: ".mp4", song: ".wav", caption: ".json" } as const
        for (const [model, ending] of Object.entries(endings)) {
          const out = join(folder, model)
          const words = model === "caption" ? ["--image", file] : ["a lighthouse"]
          const ran = yield* runCommand(["run", `doors/${model}`, ...words, "--out", out], env)
          assert.strictEqual(ran.code, 0, ran.error)
          const saved = readdirSync(out)
          assert.isTrue(saved[0]?.endsWith(ending), saved.join())
          assert.isAbove(readFileSync(join(out, saved[0] ?? "")).length, 0)
        }
        const shown = yield* runCommand(["models", "show", "doors/film"], env)
        assert.include(shown.out, "first_frame")
      })
  )
})
