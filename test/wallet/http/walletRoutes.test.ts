import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as fc from "fast-check"
import { randomUUID } from "node:crypto"
import type { Label } from "../../../src/catalog/bodies/Bodies.ts"
import { builtInEntries } from "../../../src/catalog/BuiltInModels.ts"
import { requestedOf } from "../../../src/catalog/Price.ts"
import type { SubmitRequest } from "../../../src/vendors/VendorClient.ts"
import { bodyWith, picture } from "../../support/bodies.ts"
import {
  advance,
  callWith,
  eventually,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import type { User } from "../../support/gateway.ts"

/** Inline media, so that nothing has to be fetched. */
const media: Partial<Record<Label, Record<string, unknown>>> = {
  "keyframe-to-video-plus": { image: picture, last_frame: picture },
  "image-edit": { images: [picture] },
  "image-edit-pro": { images: [picture] },
  "image-edit-max": { images: [picture] },
  "image-to-video-spark": { image: picture },
  "video-edit-plus": { images: [picture] }
}

/** Fields that affect the price, with values that each model accepts. */
const priced: Partial<Record<Label, fc.Arbitrary<Record<string, unknown>>>> = {
  "text-to-video-spark": fc.record(
    {
      duration: fc.constantFrom(5, 10),
      size: fc.constantFrom("1280*720", "1088*832", "1920*1080", "1440*1440")
    },
    { requiredKeys: [] }
  ),
  "keyframe-to-video-plus": fc.record({ duration: fc.constant(5) }, { requiredKeys: [] }),
  "image-edit": fc.record({ n: fc.integer({ min: 1, max: 4 }) }, { requiredKeys: [] }),
  "image-edit-max": fc.record({ n: fc.integer({ min: 1, max: 6 }) }, { requiredKeys: [] }),
  "text-to-image-preview": fc.record({ n: fc.integer({ min: 1, max: 4 }) }, { requiredKeys: [] }),
  "image-to-video-spark": fc.record(
    { resolution: fc.constantFrom("480P", "720P", "1080P"), duration: fc.constantFrom(5, 10) },
    { requiredKeys: [] }
  )
}

const pathOf = (label: Label) => {
  const entry = builtInEntries.find((it) => it.label === label)!
  return `/vendors/${entry.vendor}/v1/${entry.model}/${entry.action}`
}

const walletOf = (user: User) => Effect.map(user.call("GET", "/manage/v1/wallet"), (it) => it.json)
const entriesOf = (user: User, query = "") =>
  Effect.map(user.call("GET", `/manage/v1/wallet/entries${query}`), (it) => it.json.data)

const micro = (text: string) => BigInt(text.replace(".", "")) * 10_000n

layer(layerGateway())("prices", (it) => {
  for (const { label } of builtInEntries) {
    const path = pathOf(label)
    it.effect(`of ${label}: dry run, hold, release and headers agree for every body`, () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 1000 })
        const bodies = fc.sample(priced[label] ?? fc.constant({}), 4)
        for (const fields of bodies) {
          const body = bodyWith(label, { ...media[label], ...fields })
          const quote = yield* user.call("POST", `${path}?dry_run=true`, body)
          assert.strictEqual(quote.status, 200, quote.text)
          const { amount } = quote.json.quote
          const created = yield* user.call("POST", path, body)
          assert.strictEqual(created.headers.get("x-service-cost"), amount)
          const wallet = yield* walletOf(user)
          assert.strictEqual(wallet.held_balance, amount)
          assert.strictEqual(created.headers.get("x-service-balance"), wallet.available_balance)
          assert.strictEqual(micro(wallet.available_balance), micro("1000.00") - micro(amount))
          const [entry] = yield* entriesOf(user)
          assert.deepInclude(entry, { kind: "hold", amount })
          const id = created.json.task_info.id
          assert.strictEqual(entry.task_id, id)
          const cancelled = yield* user.call("DELETE", `${path}/${id}`)
          assert.strictEqual(cancelled.headers.get("x-service-cost"), "0.00")
          assert.deepInclude(yield* walletOf(user), {
            held_balance: "0.00",
            settled_balance: "1000.00"
          })
          const [released] = yield* entriesOf(user)
          assert.deepInclude(released, { kind: "release", amount, task_id: id })
        }
      })
    )
  }

  it.effect(
    "are settled for the existing results of a partial failure, and the rest is released",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 100 })
        const path = pathOf("image-edit")
        const body = { prompt: "a [[sim:partial=1]]", images: [picture], n: 4 }
        const created = yield* user.call("POST", path, body)
        assert.strictEqual(created.headers.get("x-service-cost"), "12.00")
        const task = `${path}/${created.json.task_info.id}`
        yield* advance("6 seconds")
        const done = yield* eventually(
          user.call("GET", task),
          ({ json }) => json.task_info.status === "completed"
        )
        assert.strictEqual(done.json.images.length, 1)
        assert.strictEqual(done.headers.get("x-service-cost"), "3.00")
        const entries = yield* entriesOf(user, `?task_id=${created.json.task_info.id}`)
        assert.deepStrictEqual(
          entries.map((it: { kind: string; amount: string }) => [it.kind, it.amount]),
          [
            ["release", "9.00"],
            ["capture", "3.00"],
            ["hold", "12.00"]
          ]
        )
        assert.deepInclude(yield* walletOf(user), {
          settled_balance: "97.00",
          held_balance: "0.00"
        })
      })
  )

  it.effect("above the balance are refused with 1101, and nothing is written", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 7 })
      const refused = yield* user.call("POST", pathOf("text-to-image-max"), { prompt: "a" })
      assert.strictEqual(refused.status, 402)
      assert.strictEqual(refused.json.code, 1101)
      assert.strictEqual((yield* entriesOf(user)).length, 1)
      assert.deepInclude(yield* walletOf(user), { available_balance: "7.00" })
    })
  )
})

/** A vendor that returns as many results as the body requests, at once. */
const prompt = {
  submit: ({ body }: SubmitRequest) =>
    Effect.succeed({
      _tag: "Done" as const,
      result: {
        items: Array.from({ length: requestedOf(body) }, (_, n) => ({
          _tag: "Bytes" as const,
          bytes: new Uint8Array([n]),
          mime: "image/png"
        }))
      }
    })
}

layer(layerGateway({ vendor: prompt }))("receipts", (it) => {
  it.effect("settle exactly what was quoted and held, over all models and bodies", () =>
    Effect.gen(function* () {
      for (const { label } of builtInEntries) {
        const path = pathOf(label)
        for (const fields of fc.sample(priced[label] ?? fc.constant({}), 3)) {
          const user = yield* makeUser({ credits: 1000 })
          const body = bodyWith(label, { ...media[label], ...fields })
          const { amount } = (yield* user.call("POST", `${path}?dry_run=true`, body)).json.quote
          const created = yield* user.call("POST", path, body)
          assert.strictEqual(created.status, 202, created.text)
          const done = yield* eventually(
            user.call("GET", `${path}/${created.json.task_info.id}`),
            ({ json }) => json.task_info.status === "completed"
          )
          assert.strictEqual(done.headers.get("x-service-cost"), amount, label)
          const entries = yield* entriesOf(user)
          assert.deepStrictEqual(
            entries.map((it: { kind: string; amount: string }) => [it.kind, it.amount]),
            [
              ["capture", amount],
              ["hold", amount],
              ["top_up", "1000.00"]
            ]
          )
          assert.deepInclude(yield* walletOf(user), {
            held_balance: "0.00",
            available_balance: entries[0].settled_after
          })
          assert.strictEqual(micro(entries[0].settled_after), micro("1000.00") - micro(amount))
        }
      }
    })
  )
})

layer(layerGateway())("the wallet over HTTP", (it) => {
  it.effect("accepts top-ups and adjustments with a note, and the same key only once", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 0 })
      const change = (kind: string, body: unknown, key?: string) =>
        operator(
          "POST",
          `/manage/v1/users/${user.id}/${kind}`,
          body,
          key === undefined ? {} : { "idempotency-key": key }
        )
      const first = yield* change("top-ups", { amount: "10.00", note: "first" }, "k")
      assert.strictEqual(first.status, 201, first.text)
      const again = yield* change("top-ups", { amount: "10.00", note: "first" }, "k")
      assert.deepStrictEqual([again.status, again.json], [201, first.json])
      const other = yield* change("top-ups", { amount: "11.00", note: "first" }, "k")
      assert.deepStrictEqual([other.status, other.json.code], [422, 2008])
      assert.strictEqual((yield* change("adjustments", { amount: "-2.51", note: "n" })).status, 201)
      assert.deepInclude(yield* walletOf(user), { settled_balance: "7.49" })
      const [entry] = yield* entriesOf(user)
      assert.deepInclude(entry, { kind: "adjustment", amount: "-2.51", note: "n" })
      for (const [kind, body, status, code] of [
        ["adjustments", { amount: "-100.00", note: "n" }, 409, 2010],
        ["adjustments", { amount: "-2.505", note: "n" }, 400, 2001],
        ["adjustments", { amount: "0.00", note: "n" }, 400, 2001],
        ["adjustments", { amount: "1.00" }, 400, 2001],
        ["top-ups", { amount: "0.00" }, 400, 2001],
        ["top-ups", { amount: "-1.00" }, 400, 2001],
        ["top-ups", { amount: "1e3" }, 400, 2001],
        ["top-ups", { amount: 5 }, 400, 2001]
      ] as const) {
        const refused = yield* change(kind, body)
        assert.deepStrictEqual([refused.status, refused.json.code], [status, code], refused.text)
      }
      const negative = yield* change("top-ups", { amount: "-1.00" })
      // Not in micro-credits, which are internal
      assert.strictEqual(negative.json.detail, "#/amount: Expected an amount above zero")
      assert.strictEqual((yield* entriesOf(user)).length, 2)
      const unknownUser = yield* operator("POST", `/manage/v1/users/${randomUUID()}/top-ups`, {
        amount: "1.00"
      })
      assert.strictEqual(unknownUser.status, 404)
      const own = yield* user.call("POST", `/manage/v1/users/${user.id}/top-ups`, {
        amount: "1.00"
      })
      assert.strictEqual(own.status, 403)
    })
  )

  it.effect(
    "holds up to nine million million credits, returns them exactly, and accepts no more",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 0 })
        const topUp = (amount: string) =>
          operator("POST", `/manage/v1/users/${user.id}/top-ups`, { amount })
        for (const [amount, status] of [
          ["999999999999.99", 201],
          ["8000000000000.01", 201],
          ["0.01", 409],
          ["9000000000000.01", 400],
          ["99999999999999.00", 400]
        ] as const) {
          const answer = yield* topUp(amount)
          assert.strictEqual(answer.status, status, answer.text)
        }
        const wallet = yield* walletOf(user)
        assert.deepInclude(wallet, { available_balance: "9000000000000.00" })
        const set = (trigger_threshold: string) =>
          user.call("PATCH", "/manage/v1/wallet", { trigger_threshold })
        assert.strictEqual((yield* set("9000000000000.00")).status, 200)
        assert.strictEqual((yield* set("9000000000000.01")).status, 400)
      })
  )

  it.effect("lets the user set the threshold, down to zero", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 10 })
      const set = (trigger_threshold: unknown) =>
        user.call("PATCH", "/manage/v1/wallet", { trigger_threshold })
      assert.deepInclude((yield* set("5.00")).json, { trigger_threshold: "5.00" })
      assert.deepInclude((yield* set("0.00")).json, { trigger_threshold: "0.00" })
      assert.strictEqual((yield* set("-1.00")).status, 400)
      assert.strictEqual((yield* set(5)).status, 400)
    })
  )

  it.effect("lists the ledger by kind, task and time, newest first, in pages", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 100 })
      yield* advance("1 second")
      const path = pathOf("text-to-image-max")
      const created = yield* user.call("POST", path, { prompt: "a" })
      const id = created.json.task_info.id
      yield* user.call("DELETE", `${path}/${id}`)
      const kinds = (query: string) =>
        Effect.map(entriesOf(user, query), (data) => data.map((it: { kind: string }) => it.kind))
      assert.deepStrictEqual(yield* kinds(""), ["release", "hold", "top_up"])
      assert.deepStrictEqual(yield* kinds("?kind=hold"), ["hold"])
      assert.deepStrictEqual(yield* kinds(`?task_id=${id}`), ["release", "hold"])
      const time = created.json.task_info.created_at
      assert.deepStrictEqual(yield* kinds(`?since=${time}`), ["release", "hold"])
      assert.deepStrictEqual(yield* kinds(`?until=${time}`), ["top_up"])
      const page = yield* user.call("GET", "/manage/v1/wallet/entries?limit=2")
      assert.strictEqual(page.json.data.length, 2)
      const next = `?limit=2&cursor=${page.json.next_cursor}`
      assert.deepStrictEqual(yield* kinds(next), ["top_up"])
      for (const query of ["?kind=gift", "?task_id=1", "?since=yesterday", "?format=xls"]) {
        const refused = yield* user.call("GET", `/manage/v1/wallet/entries${query}`)
        assert.strictEqual(refused.status, 400, query)
      }
    })
  )

  it.effect("exports the ledger as a CSV file in which no note is a formula", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 100 })
      const notes = [
        '=HYPERLINK("https://evil")',
        "+1",
        "-1",
        "@a",
        "\t=1",
        'say "hi", you\nthere',
        "ok"
      ]
      for (const note of notes) {
        yield* operator("POST", `/manage/v1/users/${user.id}/adjustments`, {
          amount: "-1.00",
          note
        })
      }
      const path = "/manage/v1/wallet/entries"
      const file = yield* user.call("GET", `${path}?format=csv`)
      assert.strictEqual(
        file.headers.get("content-type"),
        "text/csv; charset=utf-8; header=present"
      )
      assert.match(file.headers.get("content-disposition") ?? "", /attachment/u)
      const [head, ...lines] = file.text.split("\r\n")
      assert.strictEqual(
        head,
        "seq,created_at,kind,amount,settled_after,held_after,task_id,note,trace_id"
      )
      assert.strictEqual(lines.length, 9)
      assert.match(lines[0]!, /^8,[^,]+,adjustment,-1\.00,93\.00,0\.00,,ok,[0-9a-f]{32}$/u)
      for (const cell of [
        `"'=HYPERLINK(""https://evil"")"`,
        `'+1`,
        `'-1`,
        `'@a`,
        `'\t=1`,
        `"say ""hi"", you\nthere"`
      ]) {
        assert.include(file.text, `,${cell},`)
      }
      const accepted = yield* user.call("GET", path, undefined, { accept: "text/csv" })
      assert.strictEqual(accepted.text, file.text)
      const one = yield* user.call("GET", `${path}?format=csv&kind=top_up`)
      assert.strictEqual(one.text.split("\r\n").length, 3)
      const refused = yield* user.call("GET", `${path}?format=csv&kind=gift`)
      assert.strictEqual(refused.status, 400)
    })
  )

  it.effect("exports a long ledger completely", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 100 })
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id,
          subject_id, trace_id, created_at)
        SELECT ${user.id}::uuid, n, 'release', 0, 100000000, 0, 'release:' || i, i, md5(n::text), to_timestamp(0)
        FROM (SELECT n, gen_random_uuid() AS i FROM generate_series(2, 1101) n) x`
      yield* sql`UPDATE wallets SET entry_count = 1101 WHERE user_id = ${user.id}`
      const file = yield* user.call("GET", "/manage/v1/wallet/entries?format=csv")
      const numbers = file.text
        .split("\r\n")
        .slice(1, -1)
        .map((line) => Number(line.split(",")[0]))
      assert.deepStrictEqual(
        numbers,
        Array.from({ length: 1101 }, (_, n) => 1101 - n)
      )
    })
  )

  it.effect("shows a user's wallet and ledger to the operator, but to no other user", () =>
    Effect.gen(function* () {
      const user = yield* makeUser({ credits: 100 })
      const other = yield* makeUser({ credits: 1 })
      const path = `/manage/v1/users/${user.id}/wallet`
      assert.deepStrictEqual((yield* operator("GET", path)).json, yield* walletOf(user))
      const entries = yield* operator("GET", `${path}/entries`)
      assert.deepStrictEqual(entries.json.data, yield* entriesOf(user))
      assert.include((yield* operator("GET", `${path}/entries?format=csv`)).text, "top_up")
      for (const tail of ["", "/entries"]) {
        assert.strictEqual((yield* other.call("GET", `${path}${tail}`)).status, 403)
        const unknown = yield* operator("GET", `/manage/v1/users/${randomUUID()}/wallet${tail}`)
        assert.strictEqual(unknown.status, 404)
      }
    })
  )

  it.effect("has a drift gauge of 0, and a second gauge with the time of the last audit", () =>
    Effect.gen(function* () {
      yield* makeUser({ credits: 100 })
      yield* advance("20 seconds")
      const metrics = yield* eventually(callWith(undefined)("GET", "/metrics"), ({ text }) =>
        /^gateway_wallet_audit_timestamp_seconds \d/mu.test(text)
      )
      assert.match(metrics.text, /^gateway_wallet_drift 0$/mu)
    })
  )
})
