import { assert, describe, it } from "@effect/vitest"
import type { LookupAddress } from "node:dns"
import type { LookupOptions } from "node:dns"
import { NameCache } from "../../../src/vendors/upstream/NameCache.ts"

/** A cache whose lookups and clock the test controls. */
const cacheOf = (answer: (host: string, nth: number) => Promise<ReadonlyArray<LookupAddress>>) => {
  const asked: Array<string> = []
  const clock = { millis: 0 }
  const cache = new NameCache({
    now: () => clock.millis,
    lookup: (host) => {
      asked.push(host)
      return answer(host, asked.length)
    }
  })
  const find = (host: string, options: LookupOptions = { all: true }) =>
    new Promise<unknown>((resolve, reject) =>
      cache.lookup(host, options, (error, found, family) =>
        error === null
          ? resolve(typeof found === "string" ? [found, family] : found)
          : reject(error)
      )
    )
  return { asked, cache, clock, find }
}

const both = [
  { address: "2001:db8::1", family: 6 },
  { address: "192.0.2.1", family: 4 }
]

describe("the names of operators' hosts", () => {
  it("are looked up once in ten seconds, and once for concurrent requests", async () => {
    const { asked, clock, find } = cacheOf(() => Promise.resolve(both))
    const found = await Promise.all([find("one.test"), find("one.test"), find("two.test")])
    assert.deepStrictEqual(found, [both, both, both])
    clock.millis = 9_999
    await find("one.test")
    assert.deepStrictEqual(asked, ["one.test", "two.test"])
    clock.millis = 10_000
    await find("one.test")
    assert.deepStrictEqual(asked, ["one.test", "two.test", "one.test"])
  })

  it("are looked up again if they were not found or could not be connected to", async () => {
    const { asked, cache, find } = cacheOf((_host, nth) =>
      nth === 1 ? Promise.reject(new Error("no name server")) : Promise.resolve(both)
    )
    const failures = await Promise.allSettled([find("one.test"), find("one.test")])
    assert.deepStrictEqual(
      failures.map(({ status }) => status),
      ["rejected", "rejected"]
    )
    assert.deepStrictEqual(await find("one.test"), both)
    assert.lengthOf(asked, 2)
    cache.forget("one.test")
    await find("one.test")
    assert.lengthOf(asked, 3)
  })

  it("have the addresses of the requested family", async () => {
    const { find } = cacheOf((host) => Promise.resolve(host === "six.test" ? [both[0]!] : both))
    assert.deepStrictEqual(await find("one.test", {}), ["2001:db8::1", 6])
    assert.deepStrictEqual(await find("one.test", { family: 4 }), ["192.0.2.1", 4])
    assert.deepStrictEqual(await find("one.test", { all: true, family: "IPv6" }), [both[0]])
    const failure = await find("six.test", { family: "IPv4" }).catch((error: unknown) => error)
    assert.propertyVal(failure, "code", "ENOTFOUND")
  })

  it("are kept up to a limit, and the oldest is forgotten", async () => {
    const { asked, find } = cacheOf(() => Promise.resolve(both))
    for (let n = 0; n <= 100; n += 1) await find(`host${n}.test`)
    await find("host100.test")
    assert.lengthOf(asked, 101)
    await find("host0.test")
    assert.lengthOf(asked, 102)
  })

  it("are those of the operating system by default", async () => {
    const cache = new NameCache()
    const found = await new Promise((resolve, reject) =>
      cache.lookup("localhost", { family: 4 }, (error, address) =>
        error === null ? resolve(address) : reject(error)
      )
    )
    assert.strictEqual(found, "127.0.0.1")
  })
})
