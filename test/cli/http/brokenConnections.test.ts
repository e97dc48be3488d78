import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { readdirSync } from "node:fs"
import { request as send } from "node:http"
import { join } from "node:path"
import { runCommand } from "../../support/commandLine.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { localServer } from "../../support/localServer.ts"
import { Running, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"

/** docs/cli.md: what `run` and `listen` do when their connection to the service breaks */

const folder = Effect.sync(() => temporaryFolder("broken"))

/**
 * A proxy in front of the service: `cutAfter` returns after how many bytes of a response the connection breaks, if it
 * does.
 */
const proxy = (target: string, cutAfter: (method: string, path: string) => number | undefined) =>
  localServer((request, response) => {
    const { headers, method = "GET", url = "/" } = request
    const most = cutAfter(method, url)
    const forwarded = send(`${target}${url}`, { method, headers }, (answer) => {
      let passed = 0
      if (most !== 0) response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on("data", (piece: Buffer) => {
        passed += piece.length
        if (most === undefined || passed <= most) return void response.write(piece)
        // In the middle of this chunk
        const rest = piece.subarray(0, Math.max(0, piece.length - (passed - most)))
        if (most > 0 && rest.length > 0) response.write(rest, () => request.socket.destroy())
        else request.socket.destroy()
      })
      answer.on("end", () => response.end())
      answer.on("error", () => response.destroy())
    })
    forwarded.on("error", () => response.destroy())
    response.on("close", () => forwarded.destroy())
    request.pipe(forwarded)
  })

const generation = /^\/vendors\/alibaba\/v1\/text-to-image-max\/generation/u

liveLayer(runningGateway({ SIMULATOR_DELAY: "300 millis" }))((it) => {
  it.effect("run creates one task, whichever connection breaks", () =>
    Effect.gen(function* () {
      const { key, url } = yield* Running
      const out = yield* folder
      const asked: Array<string> = []
      const broken = yield* proxy(url, (method, path) => {
        if (!generation.test(path)) return undefined
        asked.push(method)
        // The create succeeds without a response; the stream and the first poll break off in the middle
        return asked.length === 1 ? 0 : asked.length <= 4 && method === "GET" ? 40 : undefined
      })
      const env = { GATEWAY_URL: broken, GATEWAY_API_KEY: key }
      const prompt = ["A pier", "--out", out, "--idempotency-key", "one"]
      const ran = yield* runCommand(["run", "text-to-image-max", ...prompt, "--json"], env)
      assert.strictEqual(ran.code, 0, ran.error)
      assert.strictEqual(JSON.parse(ran.out).task.task_info.status, "completed")
      assert.lengthOf(readdirSync(out), 1)
      assert.deepStrictEqual(asked.slice(0, 4), ["POST", "POST", "GET", "GET"])
      const listed = yield* runCommand(["tasks", "list", "--json"], env)
      assert.lengthOf(JSON.parse(listed.out).data, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("run says how to find the task if its create never gets a response", () =>
    Effect.gen(function* () {
      const { key, url } = yield* Running
      const out = yield* folder
      const broken = yield* proxy(url, (method) => (method === "POST" ? 0 : undefined))
      const run = ["run", "text-to-image-max", "A mole", "--out", out]
      const named = [...run, "--idempotency-key", "two", "--json"]
      const lost = yield* runCommand(named, { GATEWAY_URL: broken, GATEWAY_API_KEY: key })
      assert.strictEqual(lost.code, 1)
      assert.include(lost.error, "--idempotency-key two")
      assert.isNull(JSON.parse(lost.out).error.problem)
      const again = yield* runCommand(named, { GATEWAY_URL: url, GATEWAY_API_KEY: key })
      assert.strictEqual(again.code, 0, again.error)
      const listed = yield* runCommand(["tasks", "list", "--json"], {
        GATEWAY_URL: url,
        GATEWAY_API_KEY: key
      })
      assert.lengthOf(JSON.parse(listed.out).data, 2)
    }).pipe(Effect.scoped)
  )

  it.effect("run leaves its task running when it is interrupted, and says how to wait for it", () =>
    Effect.gen(function* () {
      const { key, url } = yield* Running
      const env = { GATEWAY_URL: url, GATEWAY_API_KEY: key }
      const out = yield* folder
      const moves: Array<string> = []
      const running = yield* Effect.forkChild(
        runCommand(
          ["run", "text-to-image-max", "[[sim:hang]]", "--out", join(out, "my results")],
          env,
          undefined,
          (line) => moves.push(line)
        )
      )
      yield* Effect.promise(() => until(async () => moves[0]))
      yield* Fiber.interrupt(running)
      const [, id = "", named] =
        /gateway tasks wait (\S+) --out '(.+)'$/mu.exec(moves.join("\n")) ?? []
      assert.strictEqual(named, join(out, "my results"))
      const cancelled = yield* runCommand(["tasks", "cancel", id, "--json"], env)
      assert.strictEqual(JSON.parse(cancelled.out).task_info.error.code, 4004, cancelled.error)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "listen forwards every event once and in order to a slow receiver while its stream breaks",
    () =>
      Effect.gen(function* () {
        const { key, url } = yield* Running
        const got: Array<string> = []
        const hook = yield* localServer((request, response) => {
          const chunks: Array<Buffer> = []
          request.on("data", (chunk: Buffer) => chunks.push(chunk))
          request.on("end", () => {
            const { data, type } = JSON.parse(Buffer.concat(chunks).toString())
            got.push(`${type} ${data.payload.task_info.id}`)
            setImmediate(() => response.end())
          })
        })
        let streams = 0
        const broken = yield* proxy(url, (_, path) => {
          if (!path.startsWith("/manage/v1/events")) return undefined
          streams += 1
          return streams <= 6 ? 3000 * streams : undefined
        })
        const lines: Array<string> = []
        const listening = yield* Effect.forkChild(
          runCommand(
            ["listen", "--forward", hook, "--events", "task.created,task.failed", "--json"],
            { GATEWAY_URL: broken, GATEWAY_API_KEY: key },
            (line) => lines.push(line)
          )
        )
        // Waits for the first open stream
        yield* Effect.promise(() => until(() => streams > 0))
        yield* Effect.promise(() => until(async () => lines[0]))
        const at = `${url}/vendors/alibaba/v1/text-to-image-max/generation`
        const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
        const body = JSON.stringify({ prompt: "[[sim:hang]]" })
        const ids: Array<string> = []
        for (let n = 0; n < 60; n += 1) {
          const answer = yield* Effect.promise(() => fetch(at, { method: "POST", headers, body }))
          const made = (yield* Effect.promise(() => answer.json())) as { task_info: { id: string } }
          ids.push(made.task_info.id)
        }
        for (const id of ids) {
          yield* Effect.promise(() => fetch(`${at}/${id}`, { method: "DELETE", headers }))
        }
        yield* Effect.promise(() => until(() => got.length >= 120))
        yield* Fiber.interrupt(listening)
        assert.deepStrictEqual(got, [
          ...ids.map((id) => `task.created ${id}`),
          ...ids.map((id) => `task.failed ${id}`)
        ])
        assert.isAbove(streams, 6)
      }).pipe(Effect.scoped)
  )
})
