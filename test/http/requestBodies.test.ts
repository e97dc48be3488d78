import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { connect } from "node:net"
import type { Socket } from "node:net"
import { jsonDepthMax } from "../../src/domain/json/JsonLimits.ts"
import { adminToken, GatewayHttp, layerGateway, makeUser } from "../support/gateway.ts"
import { GatewayProcess } from "../support/gatewayProcess.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const mebi = 1024 * 1024

describe("large bodies that are announced and never sent", () => {
  it("delay requests of the same user, and of nobody else", async () => {
    await using gateway = await GatewayProcess.start({ env: { MAX_BODY_BYTES: "4 MiB" } })
    const { hostname, port } = new URL(gateway.url)
    const poor = await gateway.makeUser("0.01")
    const sockets = await Promise.all(
      Array.from(
        { length: 8 },
        () =>
          new Promise<Socket>((resolve) => {
            const socket = connect(Number(port), hostname, () => {
              socket.write(
                `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${poor.key}\r\n` +
                  `Content-Type: application/json\r\nContent-Length: ${4 * mebi}\r\n\r\n{`,
                () => resolve(socket)
              )
            })
            socket.on("error", () => {})
          })
      )
    )
    // Sent after them to the same process, which has read their headers by then
    assert.strictEqual((await gateway.call("GET", "/manage/v1/wallet")).status, 200)
    const answer = await gateway.call("POST", path, { prompt: "x", y: "y".repeat(2 * mebi) })
    assert.deepStrictEqual([answer.status, answer.json.code], [400, 2001])
    for (const socket of sockets) socket.destroy()
  }, 180_000)
})

/** docs/reference/http.md#request-bodies */
layer(layerGateway(), { timeout: "60 seconds" })((it) => {
  const send = Effect.fnUntraced(function* (path: string, type: string, body: string) {
    const http = yield* GatewayHttp
    const response = yield* http.fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${adminToken}`, "content-type": type },
      body
    })
    const text = yield* Effect.promise(() => response.text())
    return { status: response.status, type: response.headers.get("content-type"), text }
  })

  it.effect("a type that ends in +json is JSON on every route", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const bodies = {
        [`/manage/v1/users/${user.id}/top-ups`]: [{ amount: "1.00" }, 201],
        "/manage/v1/session": [{ api_key: user.key }, 200]
      } as const
      for (const [path, [body, status]] of Object.entries(bodies)) {
        const sent = yield* send(path, "application/vnd.example+json", JSON.stringify(body))
        assert.strictEqual(sent.status, status, sent.text)
      }
    })
  )

  it.effect("a refused type is a problem, also where the body may be left out", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const { json } = yield* user.call("POST", "/manage/v1/api-keys", { name: "other" })
      const path = `/manage/v1/api-keys/${json.id}/rotate`
      for (const type of ["text/plain;charset=UTF-8", "application/x-www-form-urlencoded"]) {
        const refused = yield* send(path, type, "{}")
        assert.deepStrictEqual([refused.status, refused.type], [415, "application/problem+json"])
        // As `fetch` sends an empty text
        const sent = yield* send(path, type, "")
        assert.strictEqual(sent.status, 200, sent.text)
      }
    })
  )

  it.effect("values that nest as deeply as a body may are refused as what they are", () =>
    Effect.gen(function* () {
      const levels = jsonDepthMax - 1
      const deep = "[".repeat(levels) + "]".repeat(levels)
      const nested = '{"filter":'.repeat(levels) + "1" + "}".repeat(levels)
      const { id } = yield* makeUser()
      for (const [path, body, pointer] of [
        ["webhook-deliveries/redeliver", `{"filter":${deep}}`, "#/filter"],
        ["webhook-deliveries/redeliver", nested, "#/filter/filter"],
        [`users/${id}/top-ups`, `{"amount":${deep}}`, "#/amount"]
      ] as const) {
        const { status, text } = yield* send(`/manage/v1/${path}`, "application/json", body)
        assert.deepStrictEqual([status, JSON.parse(text).errors?.[0].pointer], [400, pointer], path)
      }
    })
  )
})
