import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { spawnSync } from "node:child_process"
import { createServer } from "node:http"
import type { AdapterName } from "../../../src/catalog/CatalogEntry.ts"
import { MockVendor, startVendorServer } from "../../../src/testing/index.ts"
import type { VendorName, VendorServer } from "../../../src/testing/index.ts"
import type { VendorErrorClass } from "../../../src/vendors/VendorError.ts"
import { listen } from "../../support/localServer.ts"
import { accountAt, request } from "../../support/upstreams/accounts.ts"

/** docs/developing.md#vendor-servers, ADR 0216 */

interface Subject {
  readonly vendor: VendorName
  readonly label: string
  readonly model: string
  /** Classes that the vendor's wire format cannot distinguish from another one. */
  readonly reads?: { readonly [kind in VendorErrorClass]?: VendorErrorClass }
}

const oneCode = { MEDIA: "FATAL_CLIENT" } as const
const subjects: { readonly [name in AdapterName]: Subject } = {
  "dashscope-async": {
    vendor: "dashscope",
    label: "text-to-image-preview",
    model: "wan2.5-t2i-preview"
  },
  "dashscope-sync": { vendor: "dashscope", label: "text-to-image-max", model: "qwen-image-max" },
  "gemini-image": {
    vendor: "gemini",
    label: "image-edit-pro",
    model: "gemini-3-pro-image",
    reads: oneCode
  },
  "openai-image": {
    vendor: "openai",
    label: "text-to-image-preview",
    model: "gpt-image-1.5",
    reads: oneCode
  },
  "openai-video": {
    vendor: "openai",
    label: "text-to-video-spark",
    model: "sora-2",
    reads: oneCode
  },
  "fal-queue": { vendor: "fal", label: "text-to-image-preview", model: "fal-ai/flux/dev" },
  replicate: {
    vendor: "replicate",
    label: "text-to-image-preview",
    model: "black-forest-labs/flux-schnell"
  }
}
const names = Object.keys(subjects) as Array<AdapterName>

const refusals = [
  "RETRYABLE",
  "RATE_LIMITED",
  "FATAL_CLIENT",
  "CONTENT",
  "MEDIA",
  "OPERATOR",
  "GONE",
  "AMBIGUOUS"
] as const
const failures = ["CONTENT", "MEDIA", "FATAL_CLIENT", "TIMEOUT", "FAILED", "LOST"] as const

const accountOf = (adapter: AdapterName, server: VendorServer) =>
  accountAt(adapter, Object.values(server.env)[1]!, server.key)

const orderOf = ({ label, model }: Subject) => request(label, model, { prompt: "A lighthouse" })

/** Submits and polls until the job has ended. */
const run = Effect.fnUntraced(function* (adapter: AdapterName, server: VendorServer) {
  const account = yield* accountOf(adapter, server)
  const submitted = yield* account.submit(orderOf(subjects[adapter]))
  if (submitted._tag === "Done") return submitted.result.items
  const progress = yield* account.poll(submitted.handle)
  assert(progress._tag === "Done", "still running")
  return progress.result.items
})

const serverOf = (vendor: VendorName, options: Parameters<typeof startVendorServer>[1] = {}) =>
  Effect.acquireRelease(
    Effect.promise(() => startVendorServer(vendor, options)),
    (server) => Effect.promise(() => server.stop())
  )

describe.each(names)("a vendor server and the adapter %s", (name) => {
  const subject = subjects[name]
  const { model, reads = {}, vendor } = subject

  it.effect("agree on the class and the message of each refusal", () =>
    Effect.gen(function* () {
      const server = yield* serverOf(vendor)
      const account = yield* accountOf(name, server)
      for (const kind of refusals) {
        server.failNext(MockVendor.refused(kind, "slow down now"))
        const error = yield* Effect.flip(account.submit(orderOf(subject)))
        assert.strictEqual(error.class, reads[kind as VendorErrorClass] ?? kind, error.message)
        if (kind !== "AMBIGUOUS") assert.include(error.message, "slow down now")
      }
      // The job whose response was lost
      assert.strictEqual(server.sold, 1)
    })
  )

  it.effect("agree on the class of each failure of a job, or the script is refused", () =>
    Effect.gen(function* () {
      for (const kind of failures) {
        const script = { [model]: [MockVendor.jobFails(kind, "it broke down", 0)] as const }
        const started = yield* Effect.result(
          Effect.tryPromise(() => startVendorServer(vendor, { script }))
        )
        if (started._tag === "Failure") {
          assert.instanceOf(started.failure.cause, RangeError)
          continue
        }
        const server = started.success
        yield* Effect.addFinalizer(() => Effect.promise(() => server.stop()))
        const isBlocking = name === "dashscope-sync" || name === "openai-image"
        // A lost job was never polled; DashScope tolerates an unknown job for a while
        if (kind === "LOST" && (isBlocking || name === "dashscope-async")) continue
        const error = yield* Effect.flip(run(name, server))
        // A failed blocking call has bought nothing
        const isRepeated = isBlocking && (kind === "FAILED" || kind === "TIMEOUT")
        const expected = isRepeated ? "RETRYABLE" : kind
        assert.strictEqual(error.class, reads[expected as VendorErrorClass] ?? expected)
        if (kind !== "LOST") assert.include(error.message, "it broke down")
      }
    })
  )

  it.effect("follow a model's steps in order, repeat the last one, and use one key", () =>
    Effect.gen(function* () {
      const picture = { _tag: "Bytes", mime: "image/png", bytes: new Uint8Array([1, 2]) } as const
      const server = yield* serverOf(vendor, {
        key: "own-key",
        script: {
          [model]: [
            MockVendor.refused("RATE_LIMITED", "slow down"),
            MockVendor.result(0, name === "openai-video" ? [picture] : [picture, picture])
          ],
          default: [MockVendor.refused("OPERATOR", "not this model")]
        }
      })
      assert.strictEqual((yield* Effect.flip(run(name, server))).class, "RATE_LIMITED")
      const results = name === "openai-video" ? 1 : 2
      assert.strictEqual((yield* run(name, server)).length, results)
      assert.strictEqual((yield* run(name, server)).length, results)
      assert.strictEqual(server.sold, 2)
      const stranger = yield* accountAt(name, Object.values(server.env)[1]!, "other")
      const error = yield* Effect.flip(stranger.submit(orderOf(subject)))
      assert.strictEqual(error.class, "OPERATOR")
      assert.strictEqual(server.sold, 2)
    })
  )
})

describe.each(["dashscope-async", "fal-queue", "replicate"] as const)("a cancel at %s", (name) => {
  it.effect("is too late for a job that has ended, and keeps its result", () =>
    Effect.gen(function* () {
      const server = yield* serverOf(subjects[name].vendor, { script: [MockVendor.result(0)] })
      const account = yield* accountOf(name, server)
      const submitted = yield* account.submit(orderOf(subjects[name]))
      assert(submitted._tag === "Accepted")
      assert.strictEqual(yield* account.cancel(submitted.handle), "TooLate")
      assert.strictEqual((yield* account.poll(submitted.handle))._tag, "Done")
    })
  )

  it.effect("ends an unfinished job without a result", () =>
    Effect.gen(function* () {
      const script = [MockVendor.result("1 hour")] as const
      const server = yield* serverOf(subjects[name].vendor, { script })
      const account = yield* accountOf(name, server)
      const submitted = yield* account.submit(orderOf(subjects[name]))
      assert(submitted._tag === "Accepted")
      assert.strictEqual(yield* account.cancel(submitted.handle), "Canceled")
      assert.strictEqual((yield* Effect.flip(account.poll(submitted.handle))).class, "FAILED")
    })
  )
})

it.effect("DashScope's list shows the status of each job", () =>
  Effect.gen(function* () {
    const subject = subjects["dashscope-async"]
    const server = yield* serverOf(subject.vendor, {
      script: [
        MockVendor.result(0),
        MockVendor.jobFails("CONTENT", "refused", 0),
        MockVendor.result("1 hour")
      ]
    })
    const account = yield* accountOf("dashscope-async", server)
    const orders = Array.from({ length: 4 }, () => account.submit(orderOf(subject)))
    const [, , , last] = yield* Effect.all(orders)
    assert(last?._tag === "Accepted")
    yield* account.cancel(last.handle)
    const query = new URLSearchParams({
      page_no: "1",
      model_name: subject.model,
      start_time: "20000101000000",
      end_time: "29991231235959"
    })
    const response = yield* Effect.promise(() =>
      fetch(`${server.url}/api/v1/tasks/?${query.toString()}`, {
        headers: { authorization: `Bearer ${server.key}` }
      })
    )
    const { data } = JSON.parse(yield* Effect.promise(() => response.text()))
    assert.deepStrictEqual(
      data.map(({ status }: { readonly status: string }) => status),
      ["SUCCEEDED", "FAILED", "PENDING", "CANCELED"]
    )
  })
)

it("a server refuses a script that its vendor cannot follow, at the start and in failNext", async () => {
  const started = startVendorServer("gemini", { script: [MockVendor.jobFails("LOST", "gone")] })
  const error = await started.catch((error: unknown) => error)
  assert.strictEqual(
    String(error),
    "RangeError: gemini has no response that says that a job failed with LOST"
  )
  await using server = await startVendorServer("fal")
  assert.throws(
    () => server.failNext(MockVendor.refused("LOST", "gone")),
    "fal has no response that says that a request was refused with LOST"
  )
})

it("lists of models and counts of tokens are queries, which use no step and sell nothing", async () => {
  const script = [MockVendor.refused("RATE_LIMITED", "slow down"), MockVendor.result(0)] as const
  const messages = [{ role: "user", content: "Where to?" }]
  for (const [vendor, paid, free] of [
    ["openai", { path: "chat/completions", model: "gpt-4o" }, { path: "models" }],
    [
      "openai",
      { path: "responses", model: "gpt-4o" },
      { path: "responses/input_tokens", model: "gpt-4o" }
    ],
    [
      "anthropic",
      { path: "messages", model: "claude-sonnet-4-5" },
      { path: "messages/count_tokens", model: "claude-sonnet-4-5" }
    ]
  ] as const) {
    await using server = await startVendorServer(vendor, { script })
    const headers = {
      authorization: `Bearer ${server.key}`,
      "anthropic-version": "2023-06-01",
      "content-type": "application/json"
    }
    const statusOf = async ({ path, model }: { path: string; model?: string }) => {
      const body = JSON.stringify({ model, max_tokens: 9, messages })
      const init = model === undefined ? { headers } : { method: "POST", headers, body }
      return (await fetch(`${server.url}/v1/${path}`, init)).status
    }
    assert.strictEqual(await statusOf(free), 200)
    assert.strictEqual(server.sold, 0)
    assert.strictEqual(await statusOf(paid), 429)
    server.failNext(MockVendor.refused("RETRYABLE", "busy"), "query")
    assert.strictEqual(await statusOf(paid), 200)
    assert.isAtLeast(await statusOf(free), 500)
    assert.strictEqual(server.sold, 1)
  }
})

it("a stopped server does not keep its process alive, whatever was still to happen", () => {
  const program = `
    import { MockVendor, startVendorServer } from "./src/testing/index.ts"
    const server = await startVendorServer("openai", {
      script: {
        "gpt-4o": [MockVendor.refused("RETRYABLE", "busy", "1 hour")],
        "gpt-5": [MockVendor.result("1 hour")],
        "gpt-image-2": [MockVendor.result("1 hour")]
      }
    })
    const ask = (path, model) =>
      fetch(server.url + "/v1/" + path, {
        method: "POST",
        headers: { authorization: "Bearer " + server.key, "content-type": "application/json" },
        body: JSON.stringify({ model, prompt: "A lighthouse", messages: [] })
      }).catch(() => undefined)
    const asked = [
      ask("chat/completions", "gpt-4o"),
      ask("chat/completions", "gpt-5"),
      ask("images/generations", "gpt-image-2")
    ]
    while (server.requests.length < asked.length) await new Promise((next) => setImmediate(next))
    await server.stop()
    await Promise.all(asked)
  `
  const { status, stderr } = spawnSync(
    process.execPath,
    ["--input-type=module", "--eval", program],
    { encoding: "utf8", timeout: 120_000 }
  )
  assert.strictEqual(status, 0, stderr)
}, 180_000)

it("a job that the vendor has lost sends no callback", async () => {
  const called: Array<string> = []
  const receiver = createServer((request, response) => {
    called.push(request.url ?? "")
    response.end()
  })
  const port = await listen(receiver)
  await using server = await startVendorServer("fal", {
    script: [MockVendor.jobFails("LOST", "gone", 0), MockVendor.result("20 millis")]
  })
  const headers = { authorization: `Key ${server.key}`, "content-type": "application/json" }
  const body = JSON.stringify({ prompt: "A lighthouse" })
  for (const name of ["lost", "made"]) {
    const to = encodeURIComponent(`http://127.0.0.1:${port}/${name}`)
    await fetch(`${server.url}/fal-ai/flux/dev?fal_webhook=${to}`, {
      method: "POST",
      headers,
      body
    })
  }
  while (!called.includes("/made")) await fetch(`${server.url}/unknown`, { headers })
  receiver.close()
  assert.deepStrictEqual(called, ["/made"])
})

it("a job that lasts longer than the longest timer does not end at once", async () => {
  for (const after of ["30 days", Duration.infinity] as const) {
    const item = { _tag: "Bytes", mime: "image/png", bytes: new Uint8Array([1]) } as const
    await using server = await startVendorServer("openai", {
      script: [{ _tag: "Result", after, items: [item] }]
    })
    let isAnswered = false
    const headers = {
      authorization: `Bearer ${server.key}`,
      "content-type": "application/json"
    }
    const body = JSON.stringify({ model: "gpt-image-1.5", prompt: "A lighthouse" })
    const made = fetch(`${server.url}/v1/images/generations`, { method: "POST", headers, body })
      .then(() => {
        isAnswered = true
      })
      .catch(() => undefined)
    while (server.sold === 0) await fetch(`${server.url}/v1/unknown`, { headers })
    for (let n = 0; n < 20; n += 1) await fetch(`${server.url}/v1/unknown`, { headers })
    assert.isFalse(isAnswered)
    await server.stop()
    await made
  }
})
