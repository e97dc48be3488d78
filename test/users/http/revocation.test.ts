import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { randomBytes } from "node:crypto"
import { assert, describe, it } from "vitest"
import { builtInRoutes } from "../../../src/catalog/OpenRoutes.ts"
import type { OpenRoute } from "../../../src/catalog/OpenRoutes.ts"
import { ApiKeys } from "../../../src/users/ApiKeys.ts"
import { Users } from "../../../src/users/Users.ts"
import { makeKey } from "../../support/callers.ts"
import { wav } from "../../support/media.ts"
import { json, mockVendor, upstreamOfTests } from "../../support/mockVendors.ts"
import { jsonOf, gatewayOfTests } from "../../support/passthroughGateway.ts"
import { until } from "../../support/until.ts"

const upstream = await upstreamOfTests(mockVendor((_, response) => json(response, 200, {})))
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: "sk-vendor",
  OPENAI_BASE_URL: upstream.origin,
  ANTHROPIC_API_KEY: "sk-vendor",
  ANTHROPIC_BASE_URL: upstream.origin,
  GEMINI_API_KEY: "sk-vendor",
  GEMINI_BASE_URL: upstream.origin
})

const models: Record<string, string> = {
  openai: "gpt-4o",
  anthropic: "claude-haiku-4-5",
  google: "gemini-2.5-flash"
}

const soundModels: Readonly<Record<string, string>> = {
  "/v1/audio/speech": "tts-1",
  "/v1/audio/transcriptions": "whisper-1",
  "/v1/audio/translations": "whisper-1"
}

/** The body of a request; audio is sent in a form. */
const bodyOf = ({ body, path }: (typeof ways)[number]): RequestInit => {
  if (!/\/audio\/trans/u.test(path)) {
    return { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }
  }
  const form = new FormData()
  form.set("model", "whisper-1")
  form.set("file", new Blob([new Uint8Array(wav(1))]), "sound.wav")
  return { body: form }
}

const image = "/vendors/alibaba/v1/text-to-image-max/generation"

const background = {
  method: "POST",
  path: "/v1/responses",
  body: { model: "gpt-4o", input: "Hi", background: true }
}

/** Every kind of request that a key can make: the open routes and those of tasks. */
const ways = [
  background,
  ...builtInRoutes.map(({ method, path, vendor }: OpenRoute) => ({
    method,
    path: `/vendors/${vendor}${path.replace("{model}", models[vendor]!)}`,
    body: {
      model: soundModels[path] ?? models[vendor],
      max_tokens: 5,
      messages: [],
      input: "Hi",
      voice: "alloy",
      contents: []
    }
  })),
  { method: "POST", path: image, body: { prompt: "A lighthouse" } },
  { method: "POST", path: `${image}?dry_run=true`, body: { prompt: "A lighthouse" } },
  { method: "GET", path: `${image}/01a1fde8-21f4-7d82-8c09-ff1738b15d2e`, body: undefined },
  { method: "DELETE", path: `${image}/01a1fde8-21f4-7d82-8c09-ff1738b15d2e`, body: undefined }
]

const call = (key: string, way: (typeof ways)[number]) => {
  const { body, headers }: RequestInit = way.method === "POST" ? bodyOf(way) : {}
  return fetch(`${gateway.origin}${way.path}`, {
    method: way.method,
    headers: { ...(headers as Record<string, string>), authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body })
  })
}

/** Waits until a background response is final, because its task is sent after the response to the create. */
const ended = async (key: string, created: Response) => {
  const { id } = Object(await created.json())
  const headers = { authorization: `Bearer ${key}` }
  await until(async () => {
    const shown = await fetch(`${gateway.origin}/v1/responses/${id}`, { headers })
    const { status } = Object(await shown.json())
    return status !== "queued" && status !== "in_progress"
  })
}

const newKey = () => gateway.run(makeKey(gateway.userId, ["inference"]))

const sql = <A>(change: (sql: PgClient.PgClient) => Effect.Effect<A, unknown>) =>
  gateway.run(Effect.flatMap(PgClient.PgClient, change) as Effect.Effect<A>)

/** All holds so far. */
const holds = () =>
  sql((sql) => sql`SELECT subject_id FROM wallet_entries WHERE kind = 'hold' ORDER BY 1`)

/** The ways in which a key becomes invalid, each with the detail of its refusal. */
const endings = {
  "is revoked": {
    detail: "This API key was revoked",
    end: (id: string) =>
      gateway.run(Effect.flatMap(ApiKeys, (keys) => keys.revoke(gateway.userId, id as never)))
  },
  expires: {
    detail: "This API key has expired",
    end: (id: string) =>
      sql((sql) => sql`UPDATE api_keys SET expires_at = '2020-01-01' WHERE id = ${id}`)
  },
  // In another process, whose hint was lost
  "is rotated": {
    detail: "This API key was replaced by a rotation",
    end: (id: string) =>
      sql(
        (sql) => sql`
          UPDATE api_keys SET previous_key_hash = key_hash, key_hash = ${randomBytes(32)}, rotations = rotations + 1
          WHERE id = ${id}`
      )
  },
  "has a user who is disabled": {
    detail: "The user of this API key is disabled",
    end: () => setDisabled(true)
  }
}

const setDisabled = (disabled: boolean) =>
  gateway.run(Effect.flatMap(Users, (users) => users.update(gateway.userId, { disabled })))

describe("a key that was valid a moment before", () => {
  it("is refused while its user is disabled, and works once the user is enabled", async () => {
    await setDisabled(true)
    const { key } = await newKey()
    const refused = await call(key, background)
    assert.deepEqual([refused.status, (await jsonOf(refused)).code], [401, 1003])
    await setDisabled(false)
    const good = await call(key, background)
    assert.strictEqual(good.status, 200)
    await ended(key, good)
  })

  for (const [how, { detail, end }] of Object.entries(endings)) {
    it(`is refused at once on every route when it ${how}: nothing is sent, held or created`, async () => {
      for (const way of ways) {
        const name = `${way.method} ${way.path}`
        // A new key each time, because a refused key is no longer cached
        const { key, row } = await newKey()
        const good = await call(key, way)
        assert.notInclude([401, 403], good.status, name)
        if (way === background) await ended(key, good)
        else await good.arrayBuffer()
        await end(row.id)
        const held = await holds()
        upstream.seen.length = 0
        const refused = await call(key, way)
        assert.equal(refused.status, 401, name)
        const problem = await jsonOf(refused)
        assert.equal(problem.code, 1003, name)
        assert.equal(problem.detail, detail, name)
        assert.equal(upstream.seen.length, 0, name)
        assert.deepEqual(await holds(), held, name)
        await setDisabled(false)
      }
      assert.equal(await gateway.drift(), 0)
    })
  }
})
