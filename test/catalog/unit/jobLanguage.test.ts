import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { evaluate, expressionFault, holds } from "../../../src/catalog/jobs/Expression.ts"
import { first, JsonPath, select, written } from "../../../src/catalog/jobs/JsonPath.ts"
import { render } from "../../../src/catalog/jobs/Template.ts"
import { urlOf } from "../../../src/vendors/described/JobUrl.ts"

/** docs/vendors-as-files.md: paths, expressions and templates of a description. */

const isPath = Schema.is(JsonPath)

describe("a path of a description", () => {
  /** RFC 9535, figure 1, and the queries of its examples that are in the subset. */
  const store = {
    book: [
      { author: "Nigel Rees", title: "Sayings", price: 8.95 },
      { author: "Evelyn Waugh", title: "Sword", price: 12.99 }
    ],
    bicycle: { color: "red", price: 399 }
  }

  it("selects names, indexes and wildcards as in RFC 9535", () => {
    const value = { store, "j j": { "k.k": 3 }, "☺": 1 }
    const queries: ReadonlyArray<readonly [string, ReadonlyArray<unknown>]> = [
      ["$", [value]],
      ["$.store.book[*].author", ["Nigel Rees", "Evelyn Waugh"]],
      ["$.store.*", [store.book, store.bicycle]],
      ["$.store.book[1].title", ["Sword"]],
      ["$['j j']['k.k']", [3]],
      ['$["j j"]["k.k"]', [3]],
      ["$.☺", [1]],
      ["$.store.book[7]", []],
      ["$.store.bicycle[0]", []],
      ["$.store.bicycle.color.red", []],
      ["$.__proto__", []],
      ["$.store.book.length", []]
    ]
    for (const [path, nodes] of queries) assert.deepStrictEqual(select(path, value), nodes, path)
  })

  it("has no slices, filters or descendants, and selects a bounded number of values", () => {
    const others = ["$..a", "$[?@.a]", "$[0:2]", "$[-1]", "a.b", "$.a[", "$.a b"]
    for (const path of [...others, `$${".a".repeat(17)}`]) assert.isFalse(isPath(path), path)
    assert.strictEqual(
      select(
        "$[*]",
        Array.from({ length: 5000 }, () => 1)
      ).length,
      1000
    )
  })

  it("can also be used to write a value", () => {
    const made = written(written({}, "$.output[*].url", ["a", "b"]), "$.status", ["done"])
    assert.deepStrictEqual(made, { output: [{ url: "a" }, { url: "b" }], status: "done" })
    assert.strictEqual(first("$.output[1].url", made), "b")
  })
})

describe("an expression of a description", () => {
  const price = (text: string, body: object) => evaluate(text, "price", { body, usage: null })

  it("computes prices with integers of 64 bits, and says how it rounds", () => {
    const prices: ReadonlyArray<readonly [string, object, bigint]> = [
      ["body.n * 3000000", { n: 2 }, 6_000_000n],
      ["timesUp(body.seconds, 100000)", { seconds: 2.5 }, 250_000n],
      ["timesUp(body.seconds, 3)", { seconds: 0.1 }, 1n],
      ["timesDown(body.seconds, 3)", { seconds: 0.1 }, 0n],
      ["timesUp(body.seconds, 3)", { seconds: "1.5" }, 5n],
      ["timesUp(body.seconds, 1000)", { seconds: 3.3000000000000003 }, 3301n],
      ["timesUp(body.seconds, 1000)", { seconds: 2.333333333333333 }, 2334n],
      ["timesUp(body.seconds, 10000000)", { seconds: 1e-7 }, 1n],
      ["timesDown(body.seconds, 3)", { seconds: "1.5E-1" }, 0n],
      ["divideUp(body.pixels, 1000)", { pixels: 1001 }, 2n],
      ["divideDown(body.pixels, 1000)", { pixels: 1999 }, 1n],
      ['has(body.hd) && body.hd ? 8 : {"a": 5}["a"]', {}, 5n],
      ["max(body.n, 4) + min(body.n, 1)", { n: 3 }, 5n]
    ]
    for (const [text, body, amount] of prices) {
      assert.deepStrictEqual(price(text, body), Result.succeed(amount), text)
    }
  })

  it("fails instead of guessing if a value is missing, overflows or has another type", () => {
    for (const text of [
      "body.missing * 2",
      "body.n * 9223372036854775807",
      "timesUp(body.n, 9223372036854775807)",
      "divideUp(-9223372036854775807 - 1, -1)",
      "body.s * 2",
      "divideUp(1, body.zero)",
      "body.half * 2"
    ]) {
      assert.isTrue(Result.isFailure(price(text, { n: 3, s: "x", zero: 0, half: 0.5 })), text)
    }
  })

  it("has no floating point in a price, no pattern, no loop and no unknown name", () => {
    const refused: ReadonlyArray<readonly [string, "price" | "condition", RegExp]> = [
      ["body.n * 1.5", "price", /no floating point/u],
      ["body.n / 2", "price", /says how it rounds/u],
      ["double(body.n)", "price", /one of the functions/u],
      ["body.list.map(x, x)", "price", /one of the functions/u],
      ["message.matches('(a+)+$')", "condition", /one of the functions/u],
      ["cel.bind(a, 1, a == 1)", "condition", /one of the functions/u],
      ["env.SECRET == 'a'", "condition", /Unknown variable/u],
      ["body.n", "condition", /Unknown variable/u],
      ["'a'", "price", /Expected an expression of int/u],
      ["status ==", "condition", /Unexpected token/u],
      [`status == ${"1 + ".repeat(300)}1`, "condition", /./u]
    ]
    for (const [text, purpose, why] of refused) {
      assert.match(expressionFault(text, purpose) ?? "", why, text)
    }
  })

  it("a condition that cannot be evaluated does not hold", () => {
    assert.isTrue(holds("status == 422 && code.startsWith('bad')", { status: 422, code: "bad_x" }))
    assert.isFalse(holds("response.error.kind == 'x'", { status: 422, response: {} }))
  })
})

describe("a template of a description", () => {
  const scope = {
    body: { prompt: 'say "hi"\n', images: ["u1", "u2"], n: 2, seed: null },
    model: "m1",
    task: "t1"
  }
  const made = (template: Parameters<typeof render>[0]) => render(template, scope)

  it("writes values as JSON, and leaves out what is missing", () => {
    assert.deepStrictEqual(
      made({
        model: { $: "$.model" },
        input: { text: { $: "$.body.prompt" }, seed: { $: "$.body.seed" }, no: { $: "$.body.no" } },
        refs: { $each: "$.body.images[*]", $as: { uri: { $: "$.item" } } },
        double: { $cel: "body.n * 2" },
        hd: { $if: "body.n > 1", $then: true, $else: false },
        one: { $if: "body.n == 1", $then: true },
        list: [1, { $: "$.body.no" }, "x"]
      }),
      Result.succeed({
        model: "m1",
        input: { text: 'say "hi"\n', seed: null },
        refs: [{ uri: "u1" }, { uri: "u2" }],
        double: 4,
        hd: true,
        list: [1, "x"]
      })
    )
    assert.isTrue(Result.isFailure(made({ a: { $cel: "body.missing" } })))
  })
})

describe("a URL of a description", () => {
  const base = "https://api.acme.example/v1"

  it("has each value as one segment, and never leaves its folder or https", () => {
    const values = { id: "a/b?c", model: "owner/name", up: "..", url: "https://api.acme.example/x" }
    assert.strictEqual(urlOf(base, "/tasks/{id}", values), `${base}/tasks/a%2Fb%3Fc`)
    assert.strictEqual(urlOf(base, "/{model}/run", values), `${base}/owner/name/run`)
    assert.strictEqual(urlOf(base, "{url}", values), values.url)
    assert.isUndefined(urlOf(base, "/tasks/{up}", values))
    assert.isUndefined(urlOf(base, "/tasks/{none}", values))
    assert.isUndefined(urlOf(base, "/{model}", { model: "a/../b" }))
    // A URL of another origin is called without the key
    assert.strictEqual(
      urlOf(base, "{url}", { url: "https://eu.example/x" }),
      "https://eu.example/x"
    )
    for (const url of ["http://api.acme.example/x", "file:///etc/passwd", "//evil", "x"]) {
      assert.isUndefined(urlOf(base, "{url}", { url }), url)
    }
  })
})
