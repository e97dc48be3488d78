import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { TaskId } from "../../../src/domain/Ids.ts"
import {
  falHeaders,
  falKey,
  replicateHeaders,
  replicateSecret,
  signing
} from "../../../src/testing/vendors/Callbacks.ts"
import type { SignOptions } from "../../../src/testing/vendors/Callbacks.ts"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { replicate } from "../../../src/testing/vendors/ReplicateProtocol.ts"
import {
  advance,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser,
  operator,
  readResult
} from "../../support/gateway.ts"
import type { User } from "../../support/gateway.ts"
import { call, json, Running, runningGateway } from "../../support/running.ts"
import { startedDatabase } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { callingFal, callingReplicate } from "../../support/upstreams/describedCallbacks.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"
import type { Protocol } from "../../support/upstreams/Upstream.ts"

const publicUrl = "https://gateway.example.com/edge"

interface Vendor {
  readonly name: string
  readonly protocol: Protocol
  readonly catalog: object
  readonly env: (upstream: Upstream) => Record<string, string>
  readonly headers: (options: SignOptions) => Record<string, string>
  /** The callback URL of the last submit. */
  readonly addressIn: (upstream: Upstream) => string | undefined
}

const coded = (vendor: string, adapter: string, upstreamModel: string, count: string) => ({
  add: [
    {
      label: "text-to-image-preview",
      vendor,
      model: "flux",
      adapter,
      upstreamModel,
      input: { fields: { n: count } }
    }
  ]
})

const vendors: ReadonlyArray<Vendor> = [
  {
    name: "fal",
    protocol: fal,
    catalog: coded("fal", "fal-queue", "fal-ai/flux/dev", "num_images"),
    env: ({ key, url }) => ({
      FAL_API_KEY: `${key};jwks=${url}/.well-known/jwks.json`,
      FAL_BASE_URL: url
    }),
    headers: falHeaders,
    addressIn: (upstream) => upstream.lastSubmit.query.get("fal_webhook") ?? undefined
  },
  {
    name: "replicate",
    protocol: replicate,
    catalog: coded("replicate", "replicate", "black-forest-labs/flux-schnell", "num_outputs"),
    env: ({ key, url }) => ({ REPLICATE_API_KEY: key, REPLICATE_BASE_URL: `${url}/v1` }),
    headers: replicateHeaders,
    addressIn: (upstream) => upstream.lastSubmit.json.webhook
  },
  {
    name: "calling-fal",
    protocol: fal,
    catalog: { vendors: [callingFal] },
    env: ({ key, url }) => ({
      CALLING_FAL_API_KEY: `${key};jwks=${url}/.well-known/jwks.json`,
      CALLING_FAL_BASE_URL: url
    }),
    headers: falHeaders,
    addressIn: (upstream) => upstream.lastSubmit.query.get("fal_webhook") ?? undefined
  },
  {
    name: "calling-replicate",
    protocol: replicate,
    catalog: { vendors: [callingReplicate] },
    env: ({ key, url }) => ({ CALLING_REPLICATE_API_KEY: key, CALLING_REPLICATE_BASE_URL: url }),
    headers: replicateHeaders,
    addressIn: (upstream) => upstream.lastSubmit.json.webhook
  }
]

for (const vendor of vendors) {
  describe(`callbacks of ${vendor.name}`, () => {
    const path = `/vendors/${vendor.name}/v1/flux/generation`
    let upstream: Upstream
    let folder: string
    beforeAll(async () => {
      upstream = await Upstream.start(vendor.protocol)
      folder = temporaryFolder("callbacks")
      await writeFile(join(folder, "catalog.json"), JSON.stringify(vendor.catalog))
    })
    beforeEach(() => {
      upstream.reset()
      upstream.runningPolls = Number.POSITIVE_INFINITY
      signing.fal = [falKey()]
      signing.replicate = replicateSecret()
    })
    afterAll(async () => {
      await upstream.close()
    })

    const gateway = (env: Record<string, string> = { PUBLIC_URL: publicUrl }) =>
      Effect.sync(() =>
        layerGateway({
          areVendorsLive: true,
          env: { CATALOG_FILE: join(folder, "catalog.json"), ...vendor.env(upstream), ...env }
        })
      )
    const settle = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      upstream.runningPolls = 0
      yield* eventually(
        Effect.andThen(advance("5 seconds", "5 seconds"), sql`SELECT 1 FROM runs`),
        (rows) => rows.length === 0
      )
    }).pipe(Effect.orDie)
    /** A whole gateway with the test's clock; all tasks end at the end of the test. */
    const test = <E>(
      name: string,
      scenario: Effect.Effect<void, E, Layer.Success<ReturnType<typeof layerGateway>>>,
      env?: Record<string, string>
    ) =>
      it.effect(
        name,
        () =>
          Effect.flatMap(gateway(env), (layer) =>
            Effect.provide(Effect.ensuring(scenario, settle), layer)
          ),
        120_000
      )

    /** A task whose job runs at the vendor. No time has passed, so it has not been polled. */
    const begin = () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const created = yield* user.call("POST", path, { prompt: "A lighthouse", n: 1 })
        assert.strictEqual(created.status, 202, created.text)
        const id = TaskId.make(created.json.task_info.id)
        const get = user.call("GET", `${path}/${id}`)
        yield* eventually(get, (it) => it.json.task_info.status === "processing")
        const submits = yield* eventually(
          Effect.sync(() => upstream.jobs.size),
          (size) => size > 0
        )
        assert.strictEqual(submits, 1)
        const address = vendor.addressIn(upstream) ?? ""
        const [job] = upstream.jobs.values()
        return {
          id,
          get,
          user,
          status: Effect.map(get, (it) => it.json.task_info.status),
          cancel: user.call("DELETE", `${path}/${id}`),
          address,
          polls: () => job!.polls,
          /** Lets the vendor finish and a poll find the result, which takes up to a minute after a callback. */
          finish: Effect.suspend(() => {
            upstream.runningPolls = 0
            return eventually(
              Effect.andThen(advance("5 seconds", "5 seconds"), get),
              (it) => it.json.task_info.status === "completed"
            )
          })
        }
      })

    const post = Effect.fnUntraced(function* (
      address: string,
      body: string,
      headers: Record<string, string>
    ) {
      const http = yield* GatewayHttp
      const response = yield* http.fetch(address.replace(publicUrl, ""), {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body
      })
      return yield* Effect.promise(() => readResult(response))
    })

    const content = JSON.stringify({ status: "OK", payload: {} })

    /** Calls back like the vendor; `sign` overrides what is signed. */
    const callBack = Effect.fnUntraced(function* (
      address: string,
      sign: Partial<SignOptions> & { readonly later?: number } = {},
      body = content
    ) {
      const at = Math.floor((yield* Clock.currentTimeMillis) / 1000) + (sign.later ?? 0)
      return yield* post(address, body, vendor.headers({ at, body, ...sign }))
    })

    test(
      "trigger the poll, so the task completes without any time passing",
      Effect.gen(function* () {
        const { address, get, polls } = yield* begin()
        assert.isTrue(address.startsWith(`${publicUrl}/callbacks?token=`), address)
        assert.strictEqual(polls(), 0)
        upstream.runningPolls = 0
        const answer = yield* callBack(address)
        assert.strictEqual(answer.status, 204, answer.text)
        const done = yield* eventually(get, (it) => it.json.task_info.status === "completed")
        assert.strictEqual(done.json.images.length, 1)
        assert.strictEqual(polls(), 1)
        const metrics = yield* operator("GET", "/metrics")
        assert.match(metrics.text, /gateway_callbacks_total\{outcome="taken"\} [1-9]/u)
      })
    )

    if (!("vendors" in vendor.catalog)) {
      // The built-in protocols are descriptions too, with the same schemes
      test(
        "that are forged, changed, early or unsigned get the same refusal and trigger no poll",
        Effect.gen(function* () {
          const { address, finish, polls } = yield* begin()
          const at = Math.floor((yield* Clock.currentTimeMillis) / 1000)
          const genuine = vendor.headers({ at, body: content })
          const signature = Object.keys(genuine).at(-1)!
          const token = address.split("=").at(-1)!
          const flip = (text: string) =>
            `${text.slice(0, -9)}${text.at(-9) === "0" ? "1" : "0"}${text.slice(-8)}`
          const others: ReadonlyArray<readonly [string, Record<string, string>, string?]> = [
            ["no header", {}],
            ["no signature", { ...genuine, [signature]: "" }],
            ["half a signature", { ...genuine, [signature]: genuine[signature]!.slice(0, 40) }],
            ["another signature", { ...genuine, [signature]: flip(genuine[signature]!) }],
            [
              "another key",
              vendor.headers({
                at,
                body: content,
                falKey: falKey(),
                replicateSecret: replicateSecret()
              })
            ],
            ["another body", vendor.headers({ at, body: `${content} ` })],
            ["a future timestamp", vendor.headers({ at: at + 301, body: content })],
            ["no timestamp", { ...genuine, [Object.keys(genuine).at(-2)!]: "now" }],
            ["another address", genuine, address.replace(token, flip(token))],
            ["a short address", genuine, address.replace(token, token.slice(0, 30))],
            ["an address with an invalid token", genuine, `${publicUrl}/callbacks?token=x`],
            ["no address", genuine, `${publicUrl}/callbacks`],
            ["a plain task id", genuine, `${publicUrl}/callbacks?token=${"0".repeat(36)}`]
          ]
          const words = new Set<string>()
          for (const [what, headers, to = address] of others) {
            const answer = yield* post(to, content, headers)
            assert.strictEqual(answer.status, 403, what)
            assert.strictEqual(answer.json.code, 2012, what)
            assert.isDefined(answer.headers.get("traceparent"))
            words.add(JSON.stringify({ ...answer.json, instance: "" }))
          }
          assert.strictEqual(words.size, 1)
          yield* advance("2 seconds")
          assert.strictEqual(polls(), 0)
          yield* finish
        })
      )

      test(
        "are off without PUBLIC_URL: no address is sent, and the route does not exist",
        Effect.gen(function* () {
          const { address, finish } = yield* begin()
          assert.strictEqual(address, "")
          assert.notInclude(JSON.stringify(upstream.lastSubmit.json), "webhook")
          const answer = yield* post("/callbacks?token=x", content, {})
          assert.strictEqual(answer.status, 404)
          assert.strictEqual(answer.json.code, 2006)
          yield* finish
        }),
        {}
      )

      test(
        "are refused as replays, however many arrive at once, but not the vendor's next attempt",
        Effect.gen(function* () {
          const { address, finish, polls } = yield* begin()
          const answers = yield* Effect.all(
            Array.from({ length: 8 }, () => callBack(address)),
            { concurrency: "unbounded" }
          )
          assert.deepEqual(answers.map(({ status }) => status).sort(), [204, ...Array(7).fill(403)])
          yield* eventually(Effect.sync(polls), (count) => count === 1)
          yield* advance("1 second")
          assert.strictEqual((yield* callBack(address, { later: -1 })).status, 403)
          yield* advance("1 second")
          assert.strictEqual(polls(), 1)
          // The same id, signed again
          assert.strictEqual((yield* callBack(address)).status, 204)
          yield* eventually(Effect.sync(polls), (count) => count === 2)
          yield* finish
        })
      )
    }

    if (vendor.name === "fal") {
      // None of this depends on how a vendor signs
      test(
        "are accepted until 300 seconds after they were signed, and no longer",
        Effect.gen(function* () {
          const { address, finish } = yield* begin()
          yield* advance("300 seconds", "20 seconds")
          const first = yield* callBack(address, { at: 0, id: "1" })
          assert.strictEqual(first.status, 204, first.text)
          yield* advance("1 second")
          const second = yield* callBack(address, { at: 0, id: "2" })
          assert.strictEqual(second.status, 403, second.text)
          assert.strictEqual((yield* callBack(address, { at: 1, id: "2" })).status, 204)
          yield* finish
        })
      )

      test(
        "reduce the polls of a job to one a minute, until the vendor stops calling",
        Effect.gen(function* () {
          const pollsWithin = Effect.fnUntraced(function* (user: User, seconds: number) {
            const before = new Set(upstream.jobs.keys())
            const created = yield* user.call("POST", path, { prompt: "Another", n: 1 })
            const jobs = Effect.sync(() => [...upstream.jobs.values()])
            const all = yield* eventually(jobs, ({ length }) => length > before.size)
            const job = all.find(({ id }) => !before.has(id))!
            yield* eventually(
              user.call("GET", `${path}/${created.json.task_info.id}`),
              (it) => it.json.task_info.status === "processing"
            )
            yield* advance(`${seconds} seconds`, "2 seconds")
            return job.polls
          })
          const { address, polls, user } = yield* begin()
          yield* advance("10 seconds", "2 seconds")
          assert.isAtLeast(polls(), 2)
          yield* callBack(address)
          // Read again every ten seconds
          yield* advance("20 seconds", "2 seconds")
          const before = polls()
          assert.strictEqual(yield* pollsWithin(user, 30), 0)
          assert.isAtMost(polls() - before, 1)
          yield* advance("120 seconds", "10 seconds")
          assert.isAtLeast(yield* pollsWithin(user, 20), 4)
        })
      )

      test(
        "are not trusted for their content: the job is polled and continues",
        Effect.gen(function* () {
          const { address, finish, polls, status } = yield* begin()
          const lies = JSON.stringify({
            status: "ERROR",
            error: "boom",
            output: ["https://evil.example.com/x.png"],
            payload: { images: [{ url: "https://evil.example.com/x.png" }] }
          })
          assert.strictEqual((yield* callBack(address, {}, lies)).status, 204)
          yield* eventually(Effect.sync(polls), (count) => count === 1)
          assert.strictEqual((yield* callBack(address, {}, "\u0000 no JSON")).status, 204)
          // The account's next permit
          yield* advance("50 millis", "50 millis")
          yield* eventually(Effect.sync(polls), (count) => count === 2)
          assert.strictEqual(yield* status, "processing")
          const done = yield* finish
          assert.notInclude(done.text, "evil")
        })
      )

      test(
        "are remembered if they arrive before the submit's response",
        Effect.gen(function* () {
          const context = yield* Effect.context<GatewayHttp>()
          let answered = 0
          upstream.runningPolls = 0
          upstream.onPaid = async () => {
            const answer = await Effect.runPromiseWith(context)(
              callBack(vendor.addressIn(upstream) ?? "", { at: 0 })
            )
            answered = answer.status
          }
          const user = yield* makeUser()
          const created = yield* user.call("POST", path, { prompt: "A lighthouse", n: 1 })
          const get = user.call("GET", `${path}/${created.json.task_info.id}`)
          yield* eventually(get, (it) => it.json.task_info.status === "completed")
          assert.strictEqual(answered, 204)
        })
      )

      test(
        "get the same response for a task that has ended, and change nothing",
        Effect.gen(function* () {
          const first = yield* begin()
          const completed = yield* first.finish
          const polls = first.polls()
          assert.strictEqual((yield* callBack(first.address, { id: "a" })).status, 204)
          upstream.reset()
          upstream.runningPolls = Number.POSITIVE_INFINITY
          const second = yield* begin()
          const cancelled = yield* second.cancel
          assert.strictEqual(cancelled.status, 200)
          assert.strictEqual((yield* callBack(second.address, { id: "b" })).status, 204)
          yield* advance("5 seconds")
          assert.strictEqual((yield* first.get).text, completed.text)
          assert.strictEqual((yield* second.get).text, cancelled.text)
          assert.strictEqual(first.polls(), polls)
        })
      )

      it.effect(
        "at another process reach the process that runs the task within a second",
        () =>
          Effect.gen(function* () {
            const database = Layer.succeedContext(yield* Layer.build(startedDatabase))
            const process = Layer.build(
              Layer.fresh(
                layerGateway({
                  areVendorsLive: true,
                  database,
                  env: {
                    CATALOG_FILE: join(folder, "catalog.json"),
                    PUBLIC_URL: publicUrl,
                    // Its store is used by more than one process
                    DATABASE_URL: "postgres://shared.example/gateway",
                    ...vendor.env(upstream)
                  }
                })
              )
            )
            const [a, b] = [yield* process, yield* process]
            const scenario = Effect.gen(function* () {
              const { address, get, polls } = yield* begin()
              upstream.runningPolls = 0
              const answer = yield* Effect.provide(callBack(address), b)
              assert.strictEqual(answer.status, 204, answer.text)
              assert.strictEqual(polls(), 0)
              yield* advance("1 second", "500 millis")
              const done = yield* eventually(get, (it) => it.json.task_info.status === "completed")
              // Before its first poll was due
              assert.isBelow(Date.parse(done.json.task_info.updated_at), 2500)
              assert.strictEqual(polls(), 1)
              assert.strictEqual((yield* Effect.provide(callBack(address), b)).status, 204)
            })
            yield* Effect.provide(Effect.ensuring(scenario, settle), a)
          }).pipe(Effect.scoped),
        120_000
      )

      test(
        "are ended with 408 if their body does not arrive",
        Effect.gen(function* () {
          const { address, finish } = yield* begin()
          const http = yield* GatewayHttp
          const slow = yield* Effect.forkScoped(
            http.fetch(address.replace(publicUrl, ""), {
              method: "POST",
              headers: vendor.headers({ at: 0, body: content }),
              body: new ReadableStream({ start: (it) => it.enqueue(new Uint8Array([123])) }),
              duplex: "half"
            } as RequestInit)
          )
          const answer = yield* eventually(
            Effect.andThen(
              advance("1 second"),
              Effect.sync(() => slow.pollUnsafe())
            ),
            (exit) => exit !== undefined
          )
          assert.strictEqual(answer?._tag === "Success" ? answer.value.status : 0, 408)
          yield* finish
        }).pipe(Effect.scoped)
      )

      it.live("are refused with another method, or if too large, with or without a length", () =>
        Effect.gen(function* () {
          const { url } = yield* Running
          const other = yield* call("/callbacks?token=x")
          assert.deepStrictEqual([other.status, other.headers.get("allow")], [405, "POST"])
          const created = yield* call(path, json({ prompt: "A lighthouse", n: 1 }))
          assert.strictEqual(created.status, 202)
          yield* eventually(
            Effect.sync(() => upstream.jobs.size),
            (size) => size > 0
          )
          const address = (vendor.addressIn(upstream) ?? "").replace(publicUrl, url)
          const send = (body: string, hasLength: boolean) =>
            Effect.promise(async () => {
              const at = Math.floor(Date.now() / 1000)
              const init = {
                method: "POST",
                headers: vendor.headers({ at, body, id: `${body.length}` }),
                body: hasLength ? body : new Blob([body]).stream(),
                duplex: "half"
              }
              const answer = await fetch(address, init as RequestInit).catch(() => undefined)
              return answer?.status ?? "cut off"
            })
          const tooLarge = "x".repeat(8 * 1024 * 1024 + 1)
          // A client that is still sending may see the connection close before it reads the response
          assert.include([413, "cut off"], yield* send(tooLarge, true))
          assert.include([413, "cut off"], yield* send(tooLarge, false))
          assert.strictEqual(yield* send(tooLarge.slice(1), false), 204)
          upstream.runningPolls = 0
        }).pipe(
          Effect.provide(
            Layer.unwrap(
              Effect.sync(() =>
                runningGateway({
                  CATALOG_FILE: join(folder, "catalog.json"),
                  PUBLIC_URL: publicUrl,
                  ...vendor.env(upstream)
                })
              )
            )
          )
        )
      )

      test(
        "need keys that are fetched through the egress guard; without them the response asks the vendor to call again",
        Effect.gen(function* () {
          const { address, finish } = yield* begin()
          const answer = yield* callBack(address)
          assert.deepStrictEqual([answer.status, answer.json.code], [503, 5003])
          assert.isDefined(answer.headers.get("retry-after"))
          assert.isEmpty(upstream.seen.filter(({ path }) => path.includes("jwks")))
          yield* finish
        }),
        { PUBLIC_URL: publicUrl, EGRESS_ALLOW: "" }
      )
    }
  })
}
