import OpenAI, { APIError } from "openai"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { MockVendor, startVendorServer } from "../../../src/testing/index.ts"
import type { VendorServer } from "../../../src/testing/index.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { until } from "../../support/until.ts"
import { taskIdOf } from "../../support/vendorBatches.ts"

type Name = "a" | "b"
type Responses = OpenAI["responses"]

/** Takes a minute; other models end soon. */
const slowModel = "gpt-4o"
const model = "gpt-4o-mini"
const seconds = 120_000

const start = () =>
  startVendorServer("openai", {
    script: {
      [slowModel]: [MockVendor.result("1 minute")],
      default: [MockVendor.result("100 millis")]
    }
  })

/** docs/reference/background.md#continuing-a-response */
describe("background responses with two accounts at the vendor", () => {
  let accounts: Readonly<Record<Name, VendorServer>>
  let gateway: GatewayProcess
  let userId: string
  /** The clients of one user, by the account that stores the responses of their key. */
  let at: Readonly<Record<Name, Responses>>

  const settingOf = (name: Name) => {
    const { key, url } = accounts[name]
    return `${key};name=${name};base=${url}/v1`
  }

  /** The account at the vendor that has the response. */
  const holderOf = (id: string) =>
    until(async () => {
      const { json } = await gateway.call("GET", `/manage/v1/tasks/${taskIdOf(id)}`)
      const [attempt] = json.attempts
      return attempt?.state === "submitted" && (attempt.account_id.at(-1) as Name)
    })

  const create = (responses: Responses, more: object = {}) =>
    responses.create({ model, input: "Where?", background: true, ...more })

  /** A response that runs for a minute. */
  const slowAt = async (name: Name): Promise<string> => {
    const { id } = await create(at[name], { model: slowModel })
    assert.strictEqual(await holderOf(id), name)
    return id
  }

  /** A response with events that has ended. */
  const doneAt = async (name: Name): Promise<string> => {
    let id = ""
    const asked = { model, input: "Hi", background: true, stream: true } as const
    for await (const event of await at[name].create(asked)) {
      if ("response" in event) id = event.response.id
    }
    assert.strictEqual(await holderOf(id), name)
    await until(async () => (await at[name].retrieve(id)).status === "completed")
    return id
  }

  /** A client with a new key whose responses are stored by one account. */
  const clientWithNewKey = async (): Promise<readonly [Name, Responses]> => {
    const named = { name: "test", scopes: ["inference", "manage"] }
    const { json } = await gateway.manage("POST", `/users/${userId}/api-keys`, named)
    const { responses } = new OpenAI({
      apiKey: json.key,
      baseURL: `${gateway.url}/v1`,
      maxRetries: 0
    })
    return [await holderOf((await create(responses)).id), responses]
  }

  const eventsOf = async (responses: Responses, id: string) => {
    const events: Array<{ readonly type: string; readonly id: string | undefined }> = []
    for await (const event of await responses.retrieve(id, { stream: true, starting_after: 0 })) {
      events.push({ type: event.type, id: "response" in event ? event.response.id : undefined })
    }
    return events
  }

  const refusal = (work: Promise<unknown>) =>
    work.then(
      () => assert.fail("nothing was refused"),
      (error: unknown) => {
        assert.instanceOf(error, APIError)
        const { code, status } = error as APIError
        return [status, code]
      }
    )

  /** How many requests of this kind are sent to each account meanwhile. */
  const during = async (kind: RegExp, work: () => Promise<unknown>) => {
    const count = (name: Name) =>
      accounts[name].requests.filter(({ method, path, query }) =>
        kind.test(`${method} ${path}${query.has("stream") ? "?stream" : ""}`)
      ).length
    const before = [count("a"), count("b")] as const
    await work()
    return { a: count("a") - before[0], b: count("b") - before[1] }
  }

  const only = (name: Name, times = 1) => ({ a: 0, b: 0, [name]: times })

  /** Reads, continues and cancels the responses of this account with a key bound to the other one. */
  const useAll = async (name: Name, done: string, slow: string) => {
    const responses = at[name === "a" ? "b" : "a"]
    const read = await responses.retrieve(done)
    assert.deepStrictEqual([read.id, read.status], [done, "completed"])
    const streams = await during(/^GET .v1.responses.resp_.*stream$/u, async () => {
      const events = await eventsOf(responses, done)
      assert.deepStrictEqual(events.at(-1), { type: "response.completed", id: done })
    })
    assert.deepStrictEqual(streams, only(name))
    const continued = await during(/^POST .v1.responses$/u, async () => {
      const next = await create(responses, { previous_response_id: done })
      await until(async () => (await responses.retrieve(next.id)).status === "completed")
      await create(responses, { previous_response_id: done, background: false })
    })
    assert.deepStrictEqual(continued, only(name, 2))
    const cancels = await during(/^POST .v1.responses.resp_[^/]+.cancel$/u, async () => {
      assert.strictEqual((await responses.cancel(slow)).status, "cancelled")
    })
    assert.deepStrictEqual(cancels, only(name))
  }

  beforeAll(async () => {
    accounts = { a: await start(), b: await start() }
    gateway = await GatewayProcess.start({
      env: { OPENAI_API_KEY: `${settingOf("a")},${settingOf("b")}`, EMBEDDED_DURABLE: "false" }
    })
    const user = await gateway.makeUser()
    userId = user.id
    gateway.useKey(user.key)
    const found = new Map<Name, Responses>()
    for (let n = 0; n < 8 && found.size < 2; n += 1) found.set(...(await clientWithNewKey()))
    at = { a: found.get("a")!, b: found.get("b")! }
  }, seconds)
  afterAll(async () => {
    await gateway.close()
    await Promise.all([accounts.a.stop(), accounts.b.stop()])
  })

  it(
    "are read, streamed, continued and cancelled at the account that holds them",
    async () => {
      for (const name of ["a", "b"] as const)
        await useAll(name, await doneAt(name), await slowAt(name))
    },
    seconds
  )

  it(
    "are still used there while that account drains, and the first response of a key goes to the other",
    async () => {
      const [done, slow] = [await doneAt("a"), await slowAt("a")]
      await gateway.manage("POST", "/accounts/openai:a/drain")
      for (let n = 0; n < 2; n += 1) assert.strictEqual((await clientWithNewKey())[0], "b")
      await useAll("a", done, slow)
      await gateway.manage("POST", "/accounts/openai:a/resume")
    },
    seconds
  )

  it(
    "of an account that has left can still be read and cancelled there, but not continued",
    async () => {
      const [done, slow] = [await doneAt("a"), await slowAt("a")]
      const [otherDone, otherSlow] = [await doneAt("b"), await slowAt("b")]
      gateway.env["OPENAI_API_KEY"] = settingOf("b")
      await gateway.restart()
      assert.strictEqual((await at.b.retrieve(done)).status, "completed")
      const submits = await during(/^POST .v1.responses$/u, async () => {
        for (const background of [true, false]) {
          const continued = create(at.b, { background, previous_response_id: done })
          assert.deepStrictEqual(await refusal(continued), [400, "2001"])
        }
      })
      assert.deepStrictEqual(submits, { a: 0, b: 0 })
      await useAll("b", otherDone, otherSlow)
      const cancels = await during(/^POST .v1.responses.resp_[^/]+.cancel$/u, async () => {
        assert.strictEqual((await at.b.cancel(slow)).status, "cancelled")
      })
      assert.deepStrictEqual(cancels, only("a"))
      gateway.env["OPENAI_API_KEY"] = `${settingOf("a")},${settingOf("b")}`
      await gateway.restart()
    },
    seconds
  )

  it(
    "are not requested from the other account when their own fails",
    async () => {
      const [done, slow] = [await doneAt("a"), await slowAt("a")]
      const [otherDone, otherSlow] = [await doneAt("b"), await slowAt("b")]
      await accounts.a.stop()
      assert.strictEqual((await at.b.retrieve(done)).status, "completed")
      // The vendor no longer streams it, so the last event is made from the stored response
      assert.deepStrictEqual((await eventsOf(at.b, done)).at(-1), {
        type: "response.completed",
        id: done
      })
      const submits = await during(/^POST /u, async () => {
        assert.deepStrictEqual(await refusal(at.b.cancel(slow)), [502, "5002"])
        assert.include(["queued", "in_progress"], (await at.b.retrieve(slow)).status)
        const continued = create(at.b, { background: false, previous_response_id: done })
        assert.include([502, 503], (await refusal(continued))[0])
        const waiting = await create(at.b, { previous_response_id: done })
        const path = `/manage/v1/tasks/${taskIdOf(waiting.id)}`
        const attempt = await until(
          async () => (await gateway.call("GET", path)).json.attempts[0] as { account_id: string }
        )
        assert.strictEqual(attempt.account_id, "openai-responses@openai:a")
      })
      assert.deepStrictEqual(submits, { a: 0, b: 0 })
      await useAll("b", otherDone, otherSlow)
    },
    seconds
  )
})
