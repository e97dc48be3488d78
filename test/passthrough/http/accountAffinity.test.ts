import { assert, describe, it } from "vitest"
import { json, mockVendor, upstreamOfTests } from "../../support/mockVendors.ts"
import type { MockVendor, Script } from "../../support/mockVendors.ts"
import { gatewayOfTests, startGateway } from "../../support/passthroughGateway.ts"

const answers: Script = (_, response) =>
  json(response, 200, {
    id: "resp_1",
    object: "response",
    output: [],
    choices: [],
    usage: { input_tokens: 5, output_tokens: 5, prompt_tokens: 5, completion_tokens: 5 }
  })

const accountsOf = (bases: ReadonlyArray<MockVendor>) =>
  bases.map((it, n) => `sk-org-${n};name=${"ab"[n]};base=${it.origin}/v1`).join(",")

const first = await upstreamOfTests(mockVendor(answers))
const second = await upstreamOfTests(mockVendor(answers))
const gateway = await gatewayOfTests({ OPENAI_API_KEY: accountsOf([first, second]) })

const path = "/vendors/openai/v1/responses"
const reference = { input: [{ type: "item_reference", id: "msg_1" }] }

const respond = (key: string, body: object) =>
  gateway.post(
    path,
    { model: "gpt-4o", max_output_tokens: 20, input: "Hi", ...body },
    { authorization: `Bearer ${key}` }
  )

const seen = (): readonly [number, number] => [first.seen.length, second.seen.length]

const faultOf = async (response: Response) => {
  const { code, errors } = (await response.json()) as {
    code: number
    errors: ReadonlyArray<{ pointer: string; detail: string }>
  }
  return { status: response.status, code, pointers: errors.map(({ pointer }) => pointer) }
}

const options = { timeout: 120_000 }

/** docs/reference/passthrough.md#what-accounts-keep */
describe("several accounts of different organizations", options, () => {
  it("the state that a key's responses leave behind is stored and found at one account", async () => {
    const { key } = await gateway.newCaller(1000)
    for (let i = 0; i < 4; i += 1) assert.equal((await respond(key, {})).status, 200)
    assert.include([0, 4], first.seen.length)
    const [home, other] = first.seen.length === 4 ? [first, second] : [second, first]
    for (let i = 0; i < 3; i += 1) assert.equal((await respond(key, reference)).status, 200)
    assert.deepEqual([home.seen.length, other.seen.length], [7, 0])
    await gateway.settled()
  })

  it("keys start at different accounts, and calls that store nothing are spread over all", async () => {
    for (let n = 0; n < 4; n += 1) {
      const { key } = await gateway.newCaller(1000)
      assert.equal((await respond(key, {})).status, 200)
    }
    assert.isTrue(seen().every((calls) => calls > 0))
    first.seen.length = 0
    second.seen.length = 0
    const { key } = await gateway.newCaller(1000)
    for (let i = 0; i < 4; i += 1) await respond(key, { store: false })
    assert.deepEqual(seen(), [2, 2])
  })

  it("a call that refers to the state of one account does not go to another", async () => {
    const { key } = await gateway.newCaller(1000)
    await respond(key, {})
    const home = first.seen.length === 1 ? first : second
    home.script = (_, response) =>
      json(response, 429, { error: { message: "slow down" } }, { "retry-after": "2" })
    const limited = await respond(key, reference)
    assert.equal(limited.status, 429)
    assert.equal(limited.headers.get("retry-after"), "2")
    assert.equal(seen()[0] + seen()[1], 2)
    assert.equal((await respond(key, { store: false })).status, 200)
  })

  it("a reference whose account is unknown is refused, and nothing is charged or sent", async () => {
    const { key } = await gateway.newCaller(1000)
    assert.deepEqual(await faultOf(await respond(key, reference)), {
      status: 400,
      code: 2001,
      pointers: ["#/input/0"]
    })
    const prompt = { prompt: { id: "pmpt_1" } }
    assert.deepEqual(await faultOf(await respond(key, prompt)), {
      status: 400,
      code: 2001,
      pointers: ["#/prompt"]
    })
    assert.deepEqual(seen(), [0, 0])
  })
})

describe("a single account", options, () => {
  it("serves every reference, and nothing is remembered", async () => {
    const single = await startGateway({ OPENAI_API_KEY: accountsOf([first]) })
    for (const body of [reference, { input: "Hi", prompt: { id: "pmpt_1" } }]) {
      const answer = await single.post(path, { model: "gpt-4o", max_output_tokens: 20, ...body })
      assert.equal(answer.status, 200)
    }
    await single.settled()
    await single.stop()
  })
})
