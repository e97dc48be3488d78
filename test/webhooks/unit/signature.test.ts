import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { createHmac } from "node:crypto"
import { deliveryHeaders, generateSecret, sign } from "../../../src/webhooks/Signature.ts"
import { verifyWebhook } from "../../../src/webhooks/verifyWebhook.ts"
import type { VerifyFailure, VerifyResult } from "../../../src/webhooks/verifyWebhook.ts"
import { testVectors } from "../../support/webhookDocs.ts"

const utf8 = new TextEncoder()
const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
const at = 1_767_225_600
const now = new Date(at * 1000)
const parts = { deliveryId: "whd_1", timestampSeconds: at, body: utf8.encode('{"a":1}') }
const headersOf = (overrides: Record<string, string | Array<string> | undefined> = {}) => ({
  ...deliveryHeaders("Service", parts, secret),
  ...overrides
})
const verify = (overrides: Partial<Parameters<typeof verifyWebhook>[0]> = {}) =>
  verifyWebhook({ headers: headersOf(), body: parts.body, secret, now, ...overrides })
const refusedFor = (reason: VerifyFailure): VerifyResult => ({ valid: false, reason })

describe("the test vectors of docs/webhooks.md", () => {
  it("are at least four, including an empty body, one beyond ASCII and a previous secret", () => {
    assert.isAtLeast(testVectors.length, 4)
    assert.isTrue(testVectors.some((vector) => vector.body === ""))
    assert.isTrue(testVectors.some((vector) => Buffer.byteLength(vector.body) > vector.body.length))
    assert.isTrue(testVectors.some((vector) => vector.previous_secret !== undefined))
  })

  it.each(testVectors)("$name: match the service's signature", (vector) => {
    const body = utf8.encode(vector.body)
    const signed = { deliveryId: vector.delivery_id, timestampSeconds: vector.timestamp, body }
    const headers = deliveryHeaders("Service", signed, vector.secret, vector.previous_secret)
    assert.strictEqual(headers["X-Service-Webhook-Signature"], vector.signature)
    assert.strictEqual(headers["X-Service-Webhook-Signature-Previous"], vector.signature_previous)
  })

  it.each(testVectors)("$name: are accepted by a receiver with either secret", async (vector) => {
    const now = new Date(vector.timestamp * 1000)
    const headers = {
      "x-service-webhook-id": vector.delivery_id,
      "x-service-webhook-timestamp": String(vector.timestamp),
      "x-service-webhook-signature": vector.signature,
      "x-service-webhook-signature-previous": vector.signature_previous
    }
    for (const secret of [vector.secret, vector.previous_secret]) {
      if (secret === undefined) continue
      const result = await verifyWebhook({ headers, body: vector.body, secret, now })
      assert.deepStrictEqual(result, { valid: true })
    }
  })
})

/** docs/reference/webhooks.md#delivery-request */
describe("delivery headers", () => {
  it("are exactly these five", () => {
    assert.deepStrictEqual(deliveryHeaders("Service", parts, secret), {
      "Content-Type": "application/json",
      "User-Agent": "Service-Webhook/1.0",
      "X-Service-Webhook-Id": "whd_1",
      "X-Service-Webhook-Timestamp": "1767225600",
      "X-Service-Webhook-Signature": sign(secret, parts)
    })
  })

  it("have another service name if the operator chose one", async () => {
    const headers = deliveryHeaders("Acme", parts, secret, "whsec_old")
    assert.strictEqual(headers["User-Agent"], "Acme-Webhook/1.0")
    assert.strictEqual(headers["X-Acme-Webhook-Signature-Previous"], sign("whsec_old", parts))
    assert.deepStrictEqual(await verify({ headers, serviceName: "Acme" }), { valid: true })
    assert.deepStrictEqual(await verify({ headers }), refusedFor("missing_header"))
  })
})

describe("a new secret", () => {
  it("is whsec_ with at least 32 random bytes, and never the same twice", () => {
    const secrets = Array.from({ length: 1000 }, generateSecret)
    assert.strictEqual(new Set(secrets).size, 1000)
    for (const made of secrets) {
      assert.match(made, /^whsec_[A-Za-z0-9+/]{43}=$/u)
      assert.strictEqual(Buffer.from(made.slice(6), "base64").length, 32)
    }
  })
})

/** docs/reference/webhooks.md#standard-webhooks */
describe("the headers of Standard Webhooks", () => {
  const [first, second] = [generateSecret(), generateSecret()]
  const signed = (secret: string) => {
    const key = Buffer.from(secret.slice("whsec_".length), "base64")
    const content = Buffer.concat([utf8.encode(`whd_1.${at}.`), parts.body])
    return `v1,${createHmac("sha256", key).update(content).digest("base64")}`
  }
  const standardOf = (secret: string, previous?: string) =>
    Object.fromEntries(
      Object.entries(deliveryHeaders("Acme", parts, secret, previous)).filter(([name]) =>
        name.startsWith("webhook-")
      )
    )

  it("sign the same content with the decoded key, and leave the other headers unchanged", async () => {
    assert.deepStrictEqual(standardOf(first), {
      "webhook-id": "whd_1",
      "webhook-timestamp": String(at),
      "webhook-signature": signed(first)
    })
    const headers = deliveryHeaders("Service", parts, first)
    assert.strictEqual(headers["X-Service-Webhook-Signature"], sign(first, parts))
    assert.deepStrictEqual(await verify({ headers, secret: first }), { valid: true })
  })

  it("have both signatures after a rotation, but only the new one after a secret of the old form", () => {
    const both = standardOf(second, first)["webhook-signature"]
    assert.strictEqual(both, `${signed(second)} ${signed(first)}`)
    assert.strictEqual(standardOf(second, secret)["webhook-signature"], signed(second))
  })

  it("are absent while the secret has the old form", () => {
    assert.deepStrictEqual(standardOf(secret), {})
    assert.deepStrictEqual(standardOf(secret, first), {})
  })
})

/** docs/reference/webhooks.md#signature */
describe("verifyWebhook", () => {
  it("reads Headers, Node's header object and any letter case", async () => {
    assert.deepStrictEqual(await verify(), { valid: true })
    assert.deepStrictEqual(
      await verify({ headers: new Headers(deliveryHeaders("Service", parts, secret)) }),
      { valid: true }
    )
    const lower = Object.fromEntries(
      Object.entries(headersOf()).map(([name, value]) => [name.toLowerCase(), value])
    )
    assert.deepStrictEqual(await verify({ headers: lower }), { valid: true })
  })

  it("accepts the body as bytes, buffer or text", async () => {
    assert.deepStrictEqual(await verify({ body: '{"a":1}' }), { valid: true })
    assert.deepStrictEqual(await verify({ body: parts.body.slice().buffer }), { valid: true })
    assert.deepStrictEqual(await verify({ body: Buffer.from(parts.body) }), { valid: true })
  })

  it.each(["Id", "Timestamp", "Signature"])(
    "refuses when %s is missing, empty or repeated",
    async (name) => {
      for (const value of [undefined, "", ["a", "b"]]) {
        const headers = headersOf({ [`X-Service-Webhook-${name}`]: value })
        assert.deepStrictEqual(await verify({ headers }), refusedFor("missing_header"))
      }
    }
  )

  it("accepts 300 seconds of skew in either direction and refuses more", async () => {
    for (const [skew, valid] of [
      [300, true],
      [-300, true],
      [300.001, false],
      [-300.001, false],
      [301, false],
      [-301, false]
    ] as const) {
      const result = await verify({ now: new Date((at + skew) * 1000) })
      assert.strictEqual(result.valid, valid, `skew ${skew}`)
      if (!result.valid) assert.strictEqual(result.reason, "timestamp_outside_tolerance")
    }
    assert.deepStrictEqual(
      await verify({ now: new Date(Number.NaN) }),
      refusedFor("timestamp_outside_tolerance")
    )
  })

  it.each(["", "v2=", "V1=", "v1", "v1:", " v1=", "v1 ="])(
    "refuses the version prefix %j",
    async (prefix) => {
      const hex = sign(secret, parts).slice(3)
      const headers = headersOf({ "X-Service-Webhook-Signature": prefix + hex })
      assert.deepStrictEqual(await verify({ headers }), refusedFor("unsupported_version"))
    }
  )

  it.each(["v1=", "v1=00", "v1=zz", `v1=${"0".repeat(64)}`, `v1=${"0".repeat(66)}`])(
    "refuses the signature %j without throwing",
    async (signature) => {
      const headers = headersOf({ "X-Service-Webhook-Signature": signature })
      assert.deepStrictEqual(await verify({ headers }), refusedFor("signature_mismatch"))
    }
  )

  it.each(["1767225600.0", "01767225600", "+1767225600", "1e9", " 1767225600", "now"])(
    "refuses the timestamp %j",
    async (timestamp) => {
      const headers = headersOf({ "X-Service-Webhook-Timestamp": timestamp })
      assert.deepStrictEqual(await verify({ headers }), refusedFor("malformed_timestamp"))
    }
  )

  it("refuses another secret, an empty one, and the secret without its prefix", async () => {
    for (const other of ["whsec_other", "", secret.slice("whsec_".length)]) {
      assert.deepStrictEqual(await verify({ secret: other }), refusedFor("signature_mismatch"))
    }
  })

  it("refuses when any byte of id, timestamp, signature or body is changed", async () => {
    const names = [
      "X-Service-Webhook-Id",
      "X-Service-Webhook-Timestamp",
      "X-Service-Webhook-Signature"
    ]
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 200 }),
        fc.constantFrom("body", ...names),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        async (body, where, index, flip) => {
          const headers = deliveryHeaders("Service", { ...parts, body }, secret)
          assert.deepStrictEqual(await verify({ headers, body }), { valid: true })
          const original = where === "body" ? body : Buffer.from(headers[where]!, "latin1")
          const changed = Uint8Array.from(original)
          changed[index % changed.length]! ^= flip
          const result =
            where === "body"
              ? await verify({ headers, body: changed })
              : await verify({
                  headers: { ...headers, [where]: Buffer.from(changed).toString("latin1") },
                  body
                })
          assert.isFalse(result.valid)
        }
      ),
      { numRuns: 500 }
    )
  })

  it("refuses bytes moved between id, timestamp and body", async () => {
    const body = utf8.encode("9.{}")
    const headers = deliveryHeaders(
      "Service",
      { deliveryId: "whd_1", timestampSeconds: at, body },
      secret
    )
    const moved = { ...headers, "X-Service-Webhook-Timestamp": `${at}9` }
    assert.isFalse((await verify({ headers: moved, body: ".{}" })).valid)
  })
})
