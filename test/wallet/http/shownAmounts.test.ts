import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { catalogFile } from "../../support/aliases.ts"
import { eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"

/** docs/reference/wallet.md#amounts, ADR 0256 */

/** Every token costs a third of a cent, so that no amount of a call has two decimals. */
const file = catalogFile({
  tokenModels: [
    {
      vendor: "openai",
      model: "teller",
      price: { per: "million_tokens", input: "3333", output: "3333" },
      outputTokensMax: 10,
      inputTokensMax: 1000
    }
  ]
})

interface Entry {
  readonly kind: string
  readonly amount: string
  readonly settled_after: string
}

const cents = (amount: string): bigint => {
  assert.match(amount, /^-?\d+\.\d\d$/u)
  return BigInt(amount.replace(".", ""))
}

const settledBy = ({ amount, kind }: Entry): bigint => {
  if (kind === "capture") return -cents(amount)
  return kind === "hold" || kind === "release" ? 0n : cents(amount)
}

layer(layerGateway({ env: { CATALOG_FILE: file } }), { timeout: "60 seconds" })(
  "shown amounts",
  (it) => {
    it.effect("of the ledger add up to the shown balance, row by row", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 10 })
        for (const count of [1, 2, 3]) {
          const messages = [{ role: "user", content: "Hi" }]
          const answer = yield* user.call("POST", "/v1/chat/completions", {
            model: "teller",
            max_tokens: 5,
            messages
          })
          assert.strictEqual(answer.status, 200, answer.text)
          const captures = user.call("GET", "/manage/v1/wallet/entries?kind=capture")
          yield* eventually(captures, ({ json }) => json.data.length === count)
        }
        const note = "a refund"
        const refund = { amount: "0.05", note }
        assert.strictEqual(
          (yield* operator("POST", `/manage/v1/users/${user.id}/adjustments`, refund)).status,
          201
        )
        const list = yield* user.call("GET", "/manage/v1/wallet/entries?limit=100")
        const wallet = (yield* user.call("GET", "/manage/v1/wallet")).json
        const entries: ReadonlyArray<Entry> = list.json.data.toReversed()
        let settled = 0n
        for (const entry of entries) {
          settled += settledBy(entry)
          assert.strictEqual(cents(entry.settled_after), settled, JSON.stringify(entries))
        }
        assert.strictEqual(cents(wallet.settled_balance), settled)
        assert.isAbove(
          entries.filter(({ amount, kind }) => kind === "capture" && amount !== "0.00").length,
          0
        )
        const csv = yield* user.call("GET", "/manage/v1/wallet/entries?format=csv")
        const amounts = csv.text.trim().split("\r\n").slice(1)
        assert.deepStrictEqual(
          amounts.map((line) => line.split(",")[3]),
          list.json.data.map(({ amount }: Entry) => amount)
        )
        const exported = yield* operator("GET", `/manage/v1/users/${user.id}/export`)
        const rows = exported.text
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line))
          .filter(({ object }) => object === "wallet_entry")
        assert.deepStrictEqual(
          rows.map(({ amount }) => amount),
          entries.map(({ amount }) => amount)
        )
      })
    )

    it.effect(
      "equal the sent amounts, because more than two decimals are refused with a pointer",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser({ credits: 10 })
          const own = `/manage/v1/users/${user.id}`
          const keys = (yield* user.call("GET", "/manage/v1/api-keys")).json.data
          const key = `/manage/v1/api-keys/${keys[0].id}`
          for (const [method, path, member, amount, more] of [
            ["POST", `${own}/top-ups`, "amount", "0.001", {}],
            ["POST", `${own}/top-ups`, "amount", "5.000001", {}],
            ["POST", `${own}/adjustments`, "amount", "-0.005", { note: "n" }],
            ["PATCH", own, "trigger_threshold", "0.009", {}],
            ["PATCH", key, "spend_limit", "1.999999", { reset: "daily" }]
          ] as const) {
            const refused = yield* operator(method, path, { [member]: amount, ...more })
            assert.deepStrictEqual([refused.status, refused.json.code], [400, 2001], refused.text)
            assert.deepStrictEqual(refused.json.errors, [
              { pointer: `#/${member}`, detail: "Expected at most two decimals" }
            ])
          }
          const wallet = yield* user.call("GET", "/manage/v1/wallet")
          assert.strictEqual(wallet.json.settled_balance, "10.00")
          const zeros = yield* operator("POST", `${own}/top-ups`, { amount: "0.010000" })
          assert.deepStrictEqual([zeros.status, zeros.json.settled_balance], [201, "10.01"])
        })
    )
  }
)
