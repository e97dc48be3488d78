import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach } from "vitest"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import {
  advance,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser,
  readResult
} from "../../support/gateway.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { callingUnsigned } from "../../support/upstreams/describedCallbacks.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

/** docs/vendors-as-files.md#callbacks: of a vendor that signs nothing. */

const publicUrl = "https://gateway.example.com/edge"
const path = "/vendors/calling-unsigned/v1/flux/generation"

const upstream = await upstreamOfTests(Upstream.start(fal))

describe("callbacks that only their address proves", () => {
  const folder = temporaryFolder("unsigned-callbacks")
  const catalog = join(folder, "catalog.json")
  writeFileSync(catalog, JSON.stringify({ vendors: [callingUnsigned] }))
  beforeEach(() => {
    upstream.runningPolls = Number.POSITIVE_INFINITY
  })

  const gateway = Effect.sync(() =>
    layerGateway({
      areVendorsLive: true,
      env: {
        CATALOG_FILE: catalog,
        PUBLIC_URL: publicUrl,
        CALLING_UNSIGNED_API_KEY: upstream.key,
        CALLING_UNSIGNED_BASE_URL: upstream.url
      }
    })
  )

  const begin = Effect.gen(function* () {
    const user = yield* makeUser()
    const created = yield* user.call("POST", path, { prompt: "A lighthouse", n: 1 })
    assert.strictEqual(created.status, 202, created.text)
    const { id } = created.json.task_info
    const get = user.call("GET", `${path}/${id}`)
    // An earlier callback would find a task without a job
    yield* eventually(
      user.call("GET", `/manage/v1/tasks/${id}`),
      (it) => it.json.attempts[0]?.state === "submitted"
    )
    const [job] = upstream.jobs.values()
    const address = upstream.lastSubmit.query.get("fal_webhook") ?? ""
    assert.isTrue(address.startsWith(`${publicUrl}/callbacks?token=`), address)
    return { address, get, polls: () => job!.polls }
  })

  const post = Effect.fnUntraced(function* (address: string, body = "{}") {
    const http = yield* GatewayHttp
    const response = yield* http.fetch(address.replace(publicUrl, ""), { method: "POST", body })
    return yield* Effect.promise(() => readResult(response))
  })

  it.effect(
    "trigger one poll at the end of their interval, whatever their content and number",
    () =>
      Effect.gen(function* () {
        const { address, get, polls } = yield* begin
        const lie = JSON.stringify({
          status: "OK",
          images: [{ url: "https://evil.example/x.png" }]
        })
        const answers = yield* Effect.all(
          Array.from({ length: 20 }, () => post(address, lie)),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [204])
        assert.strictEqual(polls(), 0)
        yield* advance("2 seconds", "100 millis")
        yield* eventually(Effect.sync(polls), (count) => count === 1)
        // Within 10 seconds the process knows that the vendor calls, and polls each minute
        yield* advance("15 seconds", "1 second")
        const before = polls()
        yield* advance("40 seconds", "1 second")
        const slow = polls()
        assert.isAtMost(slow - before, 1)
        upstream.runningPolls = 0
        assert.strictEqual((yield* post(address)).status, 204)
        yield* advance("2 seconds", "100 millis")
        const done = yield* eventually(get, (it) => it.json.task_info.status === "completed")
        assert.strictEqual(polls(), slow + 1)
        assert.notInclude(done.text, "evil")
        assert.strictEqual((yield* post(address)).status, 204)
      }).pipe((scenario) => Effect.flatMap(gateway, (layer) => Effect.provide(scenario, layer))),
    120_000
  )

  it.effect(
    "are refused at any other address, before their body is read",
    () =>
      Effect.gen(function* () {
        const { address, get, polls } = yield* begin
        const token = address.split("=").at(-1)!
        const forged = [
          // Not the last character, because some of its bits are unused
          address.replace(token, `${token.startsWith("A") ? "B" : "A"}${token.slice(1)}`),
          address.replace(token, token.slice(0, 30)),
          `${publicUrl}/callbacks?token=x`,
          `${publicUrl}/callbacks`
        ]
        for (const other of forged) {
          const answer = yield* post(other, "x".repeat(1024 * 1024))
          assert.deepStrictEqual([answer.status, answer.json.code], [403, 2012], other)
        }
        yield* advance("2 seconds", "500 millis")
        assert.strictEqual(polls(), 0)
        upstream.runningPolls = 0
        yield* eventually(
          Effect.andThen(advance("5 seconds", "5 seconds"), get),
          (it) => it.json.task_info.status === "completed"
        )
      }).pipe((scenario) => Effect.flatMap(gateway, (layer) => Effect.provide(scenario, layer))),
    120_000
  )
})
