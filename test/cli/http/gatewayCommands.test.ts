import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import type { IncomingHttpHeaders } from "node:http"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import type { Finding } from "../../../src/cli/doctor/Finding.ts"
import { verifyWebhook } from "../../../src/webhooks/verifyWebhook.ts"
import { runCommand, withEnvironment } from "../../support/commandLine.ts"
import { adminToken } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { localServer } from "../../support/localServer.ts"
import { Running, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"

/** docs/cli.md */

const folder = Effect.sync(() => temporaryFolder("cli"))

const gateway = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(Running, ({ key, url }) =>
    runCommand(args, { GATEWAY_URL: url, GATEWAY_API_KEY: key, ADMIN_TOKEN: adminToken })
  )

/** The document printed by a command that succeeds. */
const json = (...args: ReadonlyArray<string>) =>
  Effect.map(gateway(...args, "--json"), (ran) => {
    assert.strictEqual(ran.code, 0, `${args.join(" ")}: ${ran.error}`)
    return JSON.parse(ran.out)
  })

const rowOf = (text: string, word: string) => text.split("\n").find((it) => it.includes(word)) ?? ""

interface Received {
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

const receiver = Effect.gen(function* () {
  const received: Array<Received> = []
  const url = yield* localServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks).toString() })
      const isFirst = received.length === 1
      response.writeHead(isFirst ? 500 : 200)
      // As in a delivery, the status decides, even if the body is cut off
      if (isFirst) response.end("answer 1")
      else response.write("answer 2", () => request.socket.destroy())
    })
  })
  return { received, url: `${url}/hook` }
})

liveLayer(runningGateway())((it) => {
  it.effect("doctor accepts a key that may only create, and says what it lacks", () =>
    Effect.gen(function* () {
      const { url } = yield* Running
      const { key } = yield* json("keys", "create", "--name", "shop", "--scope", "inference")
      yield* withEnvironment({ DATA_DIR: join(yield* folder, "data"), BASE_URL: url })
      const ran = yield* runCommand(["doctor", "--json"], {
        GATEWAY_URL: url,
        GATEWAY_API_KEY: key,
        ADMIN_TOKEN: adminToken
      })
      const findings: ReadonlyArray<Finding> = JSON.parse(ran.out).findings
      assert.deepEqual(
        findings
          .filter(({ check }) => check === "keys")
          .map(({ detail, status }) => [status, detail]),
        [
          ["warning", "GATEWAY_API_KEY is accepted, but lacks the scope manage"],
          ["ok", "ADMIN_TOKEN is accepted"]
        ]
      )
      assert.strictEqual(ran.code, 0, ran.error)
    })
  )

  it.effect("the operator manages users, keys and top-ups; a user manages keys, too", () =>
    Effect.gen(function* () {
      const user = yield* json("users", "create", "ada@example.com", "--name", "Ada")
      const again = yield* gateway("users", "create", "ada@example.com", "--json")
      assert.strictEqual(again.code, 1)
      assert.strictEqual(JSON.parse(again.out).error.problem.code, 2010)
      assert.match(again.error, /^Error: .*code 2010/mu)
      const listed = yield* gateway("users", "list")
      assert.match(rowOf(listed.out, "ada@example.com"), new RegExp(`^${user.id} {2}`, "u"))
      // Booked once, although it is sent twice
      for (const _ of [1, 2]) {
        const booked = yield* json("top-up", user.id, "12.50", "--operation-id", "order-1")
        assert.strictEqual(booked.wallet.available_balance, "12.50")
      }
      const made = yield* json("top-up", user.id, "1")
      assert.match(made.operation_id, /^cli-/u)
      const shown = yield* gateway("users", "show", user.id)
      assert.match(rowOf(shown.out, "available"), /13\.50$/u)
      const limited = yield* json("users", "limits", user.id, "--rate-limit", "10")
      assert.deepStrictEqual([limited.rate_limit_per_minute, limited.concurrent_tasks], [10, null])
      const free = yield* json("users", "limits", user.id, "--rate-limit", "none")
      assert.isNull(free.rate_limit_per_minute)
      const scope = ["--scope", "manage"]
      const key = yield* json("keys", "create", "--name", "first", "--user", user.id, ...scope)
      assert.match(key.key, /^sk-/u)
      const as = { GATEWAY_URL: (yield* Running).url, GATEWAY_API_KEY: key.key }
      const own = yield* runCommand(["keys", "list"], as)
      assert.include(own.out, key.id)
      assert.notInclude(own.out, key.key)
      const rotated = yield* runCommand(
        ["keys", "rotate", key.id, "--grace", "1 minute", "--json"],
        as
      )
      const next = JSON.parse(rotated.out)
      assert.notStrictEqual(next.key, key.key)
      const unsure = yield* runCommand(["keys", "revoke", key.id], as)
      assert.deepStrictEqual([unsure.code, unsure.out], [2, ""])
      assert.include(unsure.error, "Add --yes")
      // The replaced secret cannot revoke the key
      const replaced = yield* runCommand(["keys", "revoke", key.id, "--yes"], as)
      assert.strictEqual(replaced.code, 1)
      const now = { ...as, GATEWAY_API_KEY: next.key }
      assert.strictEqual((yield* runCommand(["keys", "revoke", key.id, "--yes"], now)).code, 0)
      const refused = yield* runCommand(["keys", "list"], now)
      assert.strictEqual(refused.code, 1)
      assert.match(refused.error, /code 1003[\s\S]*Remedy: GATEWAY_API_KEY: /u)
      assert.isTrue((yield* json("users", "disable", user.id)).disabled)
      assert.isFalse((yield* json("users", "enable", user.id)).disabled)
    })
  )

  it.effect("tasks wait saves the files of a vendor's batch, which need the user's key", () =>
    Effect.gen(function* () {
      const { key, url } = yield* Running
      const openai = new OpenAI({ apiKey: key, baseURL: `${url}/v1` })
      const endpoint = "/v1/chat/completions"
      const body = { model: "gpt-4o", messages: [{ role: "user", content: "hello" }] }
      const line = JSON.stringify({ custom_id: "first", method: "POST", url: endpoint, body })
      yield* Effect.promise(async () => {
        const file = await toFile(Buffer.from(line), "batch.jsonl")
        const { id: input_file_id } = await openai.files.create({ purpose: "batch", file })
        await openai.batches.create({ input_file_id, endpoint, completion_window: "24h" })
      })
      const listed = yield* gateway("tasks", "list", "--limit", "1", "--json")
      const [{ id }] = JSON.parse(listed.out).data
      const out = yield* folder
      const ran = yield* gateway("tasks", "wait", id, "--out", out)
      assert.strictEqual(ran.code, 0, ran.error)
      const file = join(out, `${id}-1.jsonl`)
      assert.include(ran.out, `Saved ${file}`)
      assert.strictEqual(JSON.parse(readFileSync(file, "utf8")).custom_id, "first")
    })
  )

  it.effect("models list and show print the models; a list continues on the next page", () =>
    Effect.gen(function* () {
      const all = yield* json("models", "list")
      assert.isAbove(all.data.length, 20)
      const media = yield* gateway("models", "list", "--type", "media")
      assert.match(rowOf(media.out, "alibaba/text-to-image-max"), /media {2}images {2}yes$/mu)
      const shown = yield* gateway("models", "show", "text-to-image-max")
      assert.match(rowOf(shown.out, "prompt"), /string {2,}yes/u)
      const none = yield* gateway("models", "show", "perpetuum-mobile")
      assert.strictEqual(none.code, 1)
      yield* json("users", "create", "b@example.com")
      yield* json("users", "create", "c@example.com")
      const first = yield* gateway("users", "list", "--limit", "1", "--json")
      const { data, next_cursor } = JSON.parse(first.out)
      assert.lengthOf(data, 1)
      assert.include(first.error, next_cursor)
      const second = yield* json("users", "list", "--limit", "1", "--cursor", next_cursor)
      assert.notStrictEqual(second.data[0].id, data[0].id)
    })
  )

  it.effect("run makes an image and saves it; a repeat creates no second task", () =>
    Effect.gen(function* () {
      const out = yield* folder
      const run = ["run", "text-to-image-max", "A lighthouse", "--out", out]
      const made = yield* gateway(...run, "--idempotency-key", "one")
      assert.strictEqual(made.code, 0, made.error)
      const [file = ""] = readdirSync(out)
      assert.match(file, /^[0-9a-f-]{36}-1\.png$/u)
      assert.include(made.out, `Saved ${join(out, file)}`)
      assert.deepStrictEqual([...readFileSync(join(out, file)).subarray(1, 4)], [0x50, 0x4e, 0x47])
      const again = yield* json(...run, "--idempotency-key", "one")
      assert.deepStrictEqual(again.files, [join(out, file)])
      // A local image goes into the field for images
      const edit = yield* json(
        "run",
        "google/image-edit-pro",
        "At night",
        "--out",
        out,
        "--image",
        join(out, file)
      )
      assert.strictEqual(edit.task.task_info.status, "completed")
      const id = again.task.task_info.id
      const shown = yield* gateway("tasks", "get", id)
      assert.match(shown.out, /pending[\s\S]*submit 1 {2}.*submitted[\s\S]*completed/u)
      const listed = yield* gateway("tasks", "list", "--model", "text-to-image-max")
      assert.include(rowOf(listed.out, id), "completed")
      const waited = yield* json("tasks", "wait", id)
      assert.strictEqual(waited.task.task_info.id, id)
      const late = yield* gateway("tasks", "cancel", id)
      assert.deepStrictEqual([late.code, /code 2010/u.test(late.error)], [1, true])
      const input = join(out, "input.json")
      writeFileSync(input, JSON.stringify({ prompt: "content-error", bogus: 1 }))
      const wrong = yield* gateway("run", "text-to-image-max", "--input", input)
      assert.strictEqual(wrong.code, 1)
      assert.include(wrong.error, "#/bogus")
    }).pipe(Effect.scoped)
  )

  it.effect("run buys nothing if its folder is not writable", () =>
    Effect.gen(function* () {
      const dangling = join(yield* folder, "dangling")
      symlinkSync(`${dangling}-target`, dangling)
      const before = yield* json("tasks", "list")
      // Node's recursive mkdir retries the refusal of /proc forever
      for (const out of [dangling, "/proc/pictures"]) {
        const ran = yield* gateway("run", "text-to-image-max", "A lighthouse", "--out", out)
        assert.strictEqual(ran.code, 1)
        assert.include(ran.error, out)
        assert.include(ran.error, "Remedy: Use --out to name a writable folder")
      }
      assert.deepStrictEqual(yield* json("tasks", "list"), before)
    }).pipe(Effect.scoped)
  )

  it.effect("endpoints creates, tests and rotates; redeliver takes deliveries and events", () =>
    Effect.gen(function* () {
      const endpoint = yield* json("endpoints", "create", "https://example.com/hook")
      assert.match(endpoint.secret, /^whsec_/u)
      assert.lengthOf(endpoint.events, 5)
      const rotated = yield* gateway("endpoints", "rotate", endpoint.id)
      assert.match(rotated.out, /secret \(shown this once\) {2}whsec_/u)
      const sent = yield* json("endpoints", "test", endpoint.id)
      const listed = yield* gateway("endpoints", "list")
      assert.include(listed.out, "https://example.com/hook")
      for (const id of [sent.delivery_id, sent.event_id]) {
        const again = yield* json("redeliver", id)
        assert.deepStrictEqual(
          again.data.map((it: { id: string }) => it.id),
          [sent.delivery_id]
        )
      }
      const unknown = yield* gateway("redeliver", "evt_0190000000007000800000000000000a")
      assert.strictEqual(unknown.code, 1)
    })
  )

  it.effect("listen forwards events as webhooks deliver them, signed with the printed secret", () =>
    Effect.gen(function* () {
      const { key, url } = yield* Running
      const { received, url: hook } = yield* receiver
      const lines: Array<string> = []
      const listening = yield* Effect.forkChild(
        runCommand(
          ["listen", "--forward", hook, "--events", "task.created,task.succeeded", "--json"],
          { GATEWAY_URL: url, GATEWAY_API_KEY: key },
          (line) => lines.push(line)
        )
      )
      yield* Effect.promise(() => until(async () => lines[0]))
      const { secret } = JSON.parse(lines[0]!)
      const out = yield* folder
      const made = yield* json("run", "text-to-image-max", "A buoy", "--out", out)
      yield* Effect.promise(() => until(async () => lines[2]))
      yield* Fiber.interrupt(listening)
      const [created, succeeded] = received
      for (const { body, headers } of [created!, succeeded!]) {
        const verified = yield* Effect.promise(() =>
          verifyWebhook({ secret, headers: headers as Record<string, string>, body })
        )
        assert.isTrue(verified.valid)
        assert.strictEqual(headers["user-agent"], "Service-Webhook/1.0")
        assert.strictEqual(headers["content-type"], "application/json")
        assert.isUndefined(headers["traceparent"])
        assert.isUndefined(headers["authorization"])
      }
      const types = received.map(({ body }) => JSON.parse(body).type)
      assert.deepStrictEqual(types, ["task.created", "task.succeeded"])
      assert.deepStrictEqual(JSON.parse(succeeded!.body).data.payload, made.task)
      const events = lines.slice(1).map((line) => JSON.parse(line))
      assert.deepStrictEqual(
        events.map(({ answer, status, type }) => [type, status, answer]),
        [
          ["task.created", 500, "answer 1"],
          ["task.succeeded", 200, ""]
        ]
      )
      assert.match(events[0].delivery_id, /^whd_[0-9a-f]{32}$/u)
    }).pipe(Effect.scoped)
  )

  it.effect("reconcile compares a bill, and rebuild-usage corrects usage", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "bill.csv")
      writeFileSync(file, "job,model,date,amount\nx,m,2026-11-20,0.05\n")
      const report = yield* json("reconcile", "--vendor", "fal", "--file", file, "--id", "job")
      assert.strictEqual(report.bought_not_charged.count, 1)
      const rebuilt = yield* gateway("rebuild-usage", "--from", "2026-11-01", "--to", "2026-11-30")
      assert.deepStrictEqual(JSON.parse(rebuilt.out), { corrected: 0 })
    }).pipe(Effect.scoped)
  )

  it.effect(
    "commands fail with a reason and a remedy: 1 for the service's, 2 for wrong usage",
    () =>
      Effect.gen(function* () {
        const { key, url } = yield* Running
        const env = { GATEWAY_URL: url, GATEWAY_API_KEY: key, ADMIN_TOKEN: adminToken }
        const closed = { ...env, GATEWAY_URL: "http://127.0.0.1:9" }
        for (const [args, variables, code, reason] of [
          [["dance"], env, 2, 'Unknown subcommand "dance"'],
          [["keys", "create"], env, 2, "Missing required flag: --name"],
          [["keys", "create", "--nam", "x"], env, 2, "--name"],
          [["top-up", "u", "much"], env, 2, "12.50"],
          [["users", "list"], { GATEWAY_URL: url }, 2, "ADMIN_TOKEN"],
          [["tasks", "list"], { GATEWAY_URL: url }, 2, "GATEWAY_API_KEY"],
          [["tasks", "list"], { ...env, GATEWAY_URL: "here" }, 2, "GATEWAY_URL"],
          [["users", "list"], { ...env, ADMIN_TOKEN: "wrong-token-of-nobody" }, 1, "ADMIN_TOKEN"],
          [["tasks", "list"], closed, 1, "gateway serve"],
          [["tasks", "get", "0"], env, 1, "Remedy"],
          [["listen", "--forward", "https://example.com/"], env, 2, "this machine"],
          [
            ["reconcile", "--vendor", "fal", "--file", "/nowhere.csv"],
            env,
            2,
            "/nowhere.csv does not exist"
          ],
          [
            ["run", "text-to-image-max", "--input", "/nowhere.json"],
            env,
            2,
            "/nowhere.json does not exist"
          ]
        ] as const) {
          const ran = yield* runCommand(args, variables)
          assert.deepStrictEqual([ran.code, ran.out], [code, ""], `${args.join(" ")}: ${ran.error}`)
          assert.include(ran.error, reason)
          assert.notInclude(ran.error, key)
          assert.notInclude(ran.error, adminToken)
          if (code !== 2) continue
          // docs/cli.md#json: wrong usage has no document
          const asJson = yield* runCommand([...args, "--json"], variables)
          assert.deepStrictEqual([asJson.code, asJson.out], [code, ""], args.join(" "))
        }
      })
  )

  it.effect("commands say which list has the ids that they take, in their own terms", () =>
    Effect.gen(function* () {
      const { key, url } = yield* Running
      const env = { GATEWAY_URL: url, GATEWAY_API_KEY: key, ADMIN_TOKEN: adminToken }
      const stranger = "01a20678-2e2e-7311-9155-06f4bb3f7f57"
      for (const [args, remedy] of [
        [["users", "show", "x"], /^Remedy: `gateway users list`/mu],
        [["users", "show", stranger], /^Remedy: `gateway users list`/mu],
        [["top-up", "x", "1"], /^Remedy: `gateway users list`/mu],
        [["tasks", "get", "x"], /^Remedy: `gateway tasks list`/mu],
        [["keys", "revoke", "x", "--yes"], /^Remedy: `gateway keys list`/mu],
        [["endpoints", "test", "x"], /^Remedy: `gateway endpoints list`/mu],
        [["redeliver", "foo"], /^Remedy: Give the id of a delivery \(whd_…\) or of an event/mu],
        [["keys", "create", "--name", ""], /^Remedy: Correct the values named above/mu]
      ] as const) {
        const ran = yield* runCommand(args, env)
        assert.deepStrictEqual([ran.code, ran.out], [1, ""], `${args.join(" ")}: ${ran.error}`)
        assert.match(ran.error, remedy)
      }
      const cut = yield* runCommand(["redeliver", "evt_1"], env)
      assert.strictEqual(cut.code, 2)
      assert.match(cut.error, /^Remedy: Give the whole id/mu)
    })
  )
})
