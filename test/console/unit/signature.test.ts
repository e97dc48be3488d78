import { assert, describe, it } from "vitest"
import { checkSignature, readHeaders } from "../../../src/console/pages/signature/signature.ts"
import { deliveryHeaders } from "../../../src/webhooks/Signature.ts"
import { verifyWebhook } from "../../../src/webhooks/verifyWebhook.ts"

const secret = "whsec_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
const old = "whsec_before-the-last-rotation"
const body = `{"id":"evt_1","price":1.50,"name":"Ä<b>"}`
const timestampSeconds = 1_790_000_000

const headersOf = (previous?: string) =>
  deliveryHeaders(
    "Service",
    { deliveryId: "whd_1", timestampSeconds, body: new TextEncoder().encode(body) },
    secret,
    previous
  )

const textOf = (headers: Readonly<Record<string, string>>) =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n")

const received = {
  serviceName: "Service",
  secret,
  headers: textOf(headersOf()),
  body,
  atMillis: timestampSeconds * 1000,
  sent: undefined as string | undefined
}

type Change = Partial<typeof received>

const partsOf = async (change: Change) =>
  (await checkSignature({ ...received, ...change })).findings.map(({ part }) => part)

describe("the signature debugger", () => {
  it("agrees with verifyWebhook about what is valid", async () => {
    const cases: ReadonlyArray<readonly [boolean, Change]> = [
      [true, {}],
      [true, { sent: body }],
      [true, { secret: old, headers: textOf(headersOf(old)) }],
      [false, { secret: old }],
      [false, { body: `${body}\n` }],
      [false, { body: JSON.stringify(JSON.parse(body), null, 2), sent: body }],
      [false, { headers: received.headers.replace("v1=", "v2=") }],
      [false, { headers: received.headers.replace("v1=", "v1=A") }],
      [false, { headers: received.headers.replace(/^.*-Id: .*$/mu, "") }],
      [false, { headers: `${received.headers}\nX-Service-Webhook-Id: whd_1` }],
      [false, { atMillis: received.atMillis + 301_000 }],
      [false, { atMillis: received.atMillis - 301_000 }],
      [true, { atMillis: received.atMillis + 300_000 }],
      [false, { secret: secret.slice(6) }],
      [false, { secret: ` ${secret}` }],
      [false, { secret: "" }]
    ]
    for (const [expected, change] of cases) {
      const all = { ...received, ...change }
      const report = await checkSignature(all)
      assert.strictEqual(report.isValid, expected, JSON.stringify(change))
      const { valid } = await verifyWebhook({
        headers: Object.fromEntries(readHeaders(all.headers)),
        body: all.body,
        secret: all.secret,
        now: new Date(all.atMillis)
      })
      assert.strictEqual(valid, expected, JSON.stringify(change))
      if (!expected) assert.isNotEmpty(report.findings)
    }
  })

  it("names the part that differs", async () => {
    assert.deepStrictEqual(await partsOf({ secret: secret.slice(6) }), ["secret"])
    assert.deepStrictEqual(await partsOf({ secret: `${secret}\n` }), ["secret"])
    assert.deepStrictEqual(await partsOf({ body: `${body}\n` }), ["body"])
    const spaced = JSON.stringify(JSON.parse(body.replace("1.50", "1.5")), null, 2)
    assert.deepStrictEqual(await partsOf({ body: spaced, sent: body }), ["body", "body"])
    assert.deepStrictEqual(await partsOf({ secret: "other" }), ["signature"])
    assert.deepStrictEqual(await partsOf({ atMillis: 0 }), ["time"])
    assert.deepStrictEqual(await partsOf({ headers: "" }), ["header", "header", "header"])
    assert.deepStrictEqual(await partsOf({ secret: old, headers: textOf(headersOf(old)) }), [
      "secret"
    ])
  })

  it("reads headers pasted from a log or from JSON", () => {
    const found = readHeaders(`{\n  "X-A": "1",\n  "x-b": "2"\n}\r\nX-C:  3 \nnonsense`)
    assert.deepStrictEqual(
      [...found],
      [
        ["x-a", ["1"]],
        ["x-b", ["2"]],
        ["x-c", ["3"]]
      ]
    )
  })
})
