import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as fc from "fast-check"
import { egressAllowNone, parseEgressAllow } from "../../../src/domain/network/EgressAllow.ts"
import { nonPublicRange, parseAddress } from "../../../src/domain/network/IpAddress.ts"
import type { Resolve } from "../../../src/egress/EgressConnector.ts"
import { EgressGuard } from "../../../src/egress/EgressGuard.ts"

const range = (text: string) => {
  const address = parseAddress(text)
  assert.isDefined(address, `${text} is not an address`)
  return nonPublicRange(address)
}

const guarded = (options: { readonly allow?: string; readonly resolve?: Resolve } = {}) =>
  EgressGuard.layer({
    allow: Result.getOrThrow(parseEgressAllow(options.allow ?? "")),
    resolve: options.resolve ?? (() => Promise.reject(new Error("no DNS in this test")))
  })

/** `undefined` if the URL passes, otherwise the reason. */
const check = (url: string, allow = "", schemes: ReadonlyArray<"https" | "http"> = ["https"]) =>
  EgressGuard.use((guard) => guard.checkUrl(url, { schemes })).pipe(
    Effect.match({ onFailure: (error) => error.reason, onSuccess: () => undefined }),
    Effect.provide(guarded({ allow })),
    Effect.runSync
  )

const resolveAndCheck = (url: string, addresses: ReadonlyArray<string>, allow = "") =>
  EgressGuard.use((guard) => guard.resolveAndCheck(url, { schemes: ["https"] })).pipe(
    Effect.match({ onFailure: (error) => error.message, onSuccess: () => undefined }),
    Effect.provide(guarded({ allow, resolve: () => Promise.resolve(addresses) }))
  )

describe("an address is public unicast or refused", () => {
  it.each([
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450:4001::1",
    "2620:0:2d0:200::7"
  ])("%s is public", (address) => assert.isUndefined(range(address)))

  it.each([
    ["0.0.0.0", "unspecified"],
    ["0.1.2.3", "unspecified"],
    ["10.0.0.0", "private"],
    ["10.255.255.255", "private"],
    ["172.16.0.1", "private"],
    ["172.31.255.255", "private"],
    ["192.168.1.1", "private"],
    ["100.64.0.1", "carrierGradeNat"],
    ["100.127.255.255", "carrierGradeNat"],
    ["127.0.0.1", "loopback"],
    ["127.255.255.255", "loopback"],
    ["169.254.169.254", "linkLocal"],
    ["169.254.0.1", "linkLocal"],
    ["192.0.0.1", "reserved"],
    ["192.0.0.170", "reserved"],
    ["192.0.2.1", "reserved"],
    ["198.51.100.1", "reserved"],
    ["203.0.113.1", "reserved"],
    ["192.88.99.1", "reserved"],
    ["198.18.0.1", "reserved"],
    ["198.19.255.255", "reserved"],
    ["240.0.0.1", "reserved"],
    ["254.1.1.1", "reserved"],
    ["224.0.0.1", "multicast"],
    ["239.255.255.255", "multicast"],
    ["255.255.255.255", "broadcast"],
    ["::", "unspecified"],
    ["::1", "loopback"],
    ["fc00::1", "uniqueLocal"],
    ["fd12:3456::1", "uniqueLocal"],
    ["fe80::1", "linkLocal"],
    ["febf::1", "linkLocal"],
    ["fec0::1", "deprecatedSiteLocal"],
    ["ff02::1", "multicast"],
    ["ff0e::1", "multicast"],
    ["2001:db8::1", "reserved"],
    ["3fff::1", "reserved"],
    ["2001::1", "teredo"],
    ["2001:2::1", "benchmarking"],
    ["2001:10::1", "deprecatedOrchid"],
    ["100::1", "discard"],
    ["100:0:0:1::1", "reserved"],
    ["5f00::1", "segmentRouting"],
    ["4000::1", "reserved"],
    ["8000::1", "reserved"],
    ["::ffff:8.8.8.8", "IPv6 form of 8.8.8.8"],
    ["::ffff:127.0.0.1", "IPv6 form of 127.0.0.1, loopback"],
    ["::ffff:a9fe:a9fe", "IPv6 form of 169.254.169.254, linkLocal"],
    ["::127.0.0.1", "IPv6 form of 127.0.0.1, loopback"],
    ["::8.8.8.8", "IPv6 form of 8.8.8.8"],
    ["::ffff:0:10.0.0.1", "IPv6 form of 10.0.0.1, private"],
    ["64:ff9b::8.8.8.8", "IPv6 form of 8.8.8.8"],
    ["64:ff9b::7f00:1", "IPv6 form of 127.0.0.1, loopback"],
    ["64:ff9b:1::a00:1", "IPv6 form of 10.0.0.1, private"],
    ["2002:7f00:1::1", "IPv6 form of 127.0.0.1, loopback"],
    ["2002:808:808::1", "IPv6 form of 8.8.8.8"]
  ])("%s is refused: %s", (address, expected) => assert.strictEqual(range(address), expected))

  it("no IPv6 address outside 2000::/3 is public, and no IPv6 form of an IPv4 address", () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const address = parseAddress(text)
        if (address === undefined) return
        const first = address.toByteArray()[0]!
        if (first < 0x20 || first > 0x3f) assert.isDefined(nonPublicRange(address), text)
      })
    )
    fc.assert(
      fc.property(fc.ipV4(), (text) => {
        for (const prefix of ["::", "::ffff:", "::ffff:0:", "64:ff9b::", "64:ff9b:1::"]) {
          assert.isDefined(range(prefix + text), prefix + text)
        }
      })
    )
  })
})

describe("a URL that is checked without DNS", () => {
  it.each([
    "https://example.com/hook",
    "https://example.com:8443/hook?a=b#c",
    "https://8.8.8.8/",
    "https://[2606:4700:4700::1111]/",
    "https://134744072/",
    "https://例え.jp/",
    "https://example.com./hook",
    "https://localhost.example.com/",
    "https://notlocalhost/"
  ])("%s passes", (url) => assert.isUndefined(check(url)))

  it.each([
    ["127.0.0.1 dotted", "https://127.0.0.1/"],
    ["short", "https://127.1/"],
    ["decimal", "https://2130706433/"],
    ["octal", "https://0177.0.0.1/"],
    ["octal whole", "https://017700000001/"],
    ["hexadecimal", "https://0x7f000001/"],
    ["hexadecimal parts", "https://0x7f.0x0.0x0.0x1/"],
    ["mixed", "https://0x7f.1/"],
    ["trailing dot", "https://127.0.0.1./"],
    ["zero", "https://0/"],
    ["percent-encoded", "https://%31%32%37.0.0.1/"],
    ["full-width digits", "https://１２７.0.0.1/"],
    ["full-width dots", "https://127。0。0。1/"],
    ["circled digits", "https://①②⑦.⓪.⓪.①/"],
    ["metadata", "https://169.254.169.254/latest/meta-data"],
    ["metadata decimal", "https://2852039166/"],
    ["private", "https://10.1.2.3/"],
    ["private hexadecimal", "https://0xa010203/"],
    ["IPv6 loopback", "https://[::1]/"],
    ["IPv6 long", "https://[0:0:0:0:0:0:0:1]/"],
    ["IPv4-mapped", "https://[::ffff:127.0.0.1]/"],
    ["IPv4-mapped hexadecimal", "https://[::ffff:7f00:1]/"],
    ["IPv4-compatible", "https://[::127.0.0.1]/"],
    ["NAT64", "https://[64:ff9b::127.0.0.1]/"],
    ["unique local", "https://[fd00::1]/"],
    ["link-local", "https://[fe80::1]/"],
    ["unspecified", "https://[::]/"]
  ])("%s: %s is refused as not public", (_, url) => {
    assert.match(check(url) ?? "passed", /not a public address/u)
  })

  it.each([
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://localhost../",
    "https://a.localhost/",
    "https://a.b.localhost./",
    "https://ｌｏｃａｌｈｏｓｔ/",
    "https://%6c%6f%63alhost/"
  ])("%s is refused as this machine", (url) =>
    assert.match(check(url) ?? "passed", /this machine/u)
  )

  it.each([
    ["http://example.com/", "must start with https://"],
    ["ftp://example.com/", "must start with https://"],
    ["javascript:alert(1)", "must start with https://"],
    ["file:///etc/passwd", "must start with https://"],
    ["https://user:secret@example.com/", "must not contain a user name or password"],
    ["https://user@example.com/", "must not contain a user name"],
    ["https://:secret@example.com/", "must not contain a user name"],
    ["", "is not valid"],
    ["example.com/hook", "is not valid"],
    ["https://", "is not valid"],
    ["https:///", "is not valid"],
    ["https://[::1", "is not valid"],
    ["https://[fe80::1%25eth0]/", "is not valid"],
    ["https://256.1.1.1/", "is not valid"],
    ["https://exa mple.com/", "is not valid"],
    ["https://./", "has no host"]
  ])("%j is refused: the URL %s", (url, reason) => {
    const refused = check(url) ?? "passed"
    assert.isTrue(refused.startsWith(`the URL ${reason}`), refused)
    assert.notInclude(refused, "secret")
  })

  it("may use http for media inputs if the caller allows it", () => {
    assert.isUndefined(check("http://example.com/a.png", "", ["https", "http"]))
    assert.strictEqual(
      check("ftp://example.com/", "", ["https", "http"]),
      "the URL must start with https:// or http://"
    )
  })
})

describe("a URL that is checked with DNS", () => {
  it.effect("passes when every address is public", () =>
    Effect.gen(function* () {
      assert.isUndefined(
        yield* resolveAndCheck("https://example.com/", ["93.184.215.14", "2606:2800:21f::1"])
      )
    })
  )

  it.effect("is refused if one address at any position is not public", () =>
    Effect.gen(function* () {
      for (const addresses of [
        ["8.8.8.8", "10.0.0.1"],
        ["10.0.0.1", "8.8.8.8"],
        ["2606:4700::1", "::ffff:10.0.0.1"],
        ["8.8.8.8", "fe80::1%eth0"]
      ]) {
        assert.match(
          (yield* resolveAndCheck("https://example.com/", addresses)) ?? "passed",
          /not a public address/u
        )
      }
    })
  )

  it.effect("fails separately, without a refusal, if its name has no address", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* resolveAndCheck("https://example.com/", []),
        "example.com does not resolve (ENODATA)"
      )
    })
  )

  it.effect("is not resolved if it contains an address", () =>
    EgressGuard.use((guard) =>
      guard.resolveAndCheck("https://[2606:4700::1]/", { schemes: ["https"] })
    ).pipe(Effect.provide(guarded()))
  )
})

describe("EGRESS_ALLOW", () => {
  it("is empty by default", () => {
    assert.deepStrictEqual(Result.getOrThrow(parseEgressAllow("")), egressAllowNone)
    assert.deepStrictEqual(Result.getOrThrow(parseEgressAllow(" , ")), egressAllowNone)
  })

  it.each([
    ["127.0.0.1", "https://127.0.0.1/"],
    ["127.0.0.0/8", "https://127.9.9.9/"],
    ["127.0.0.1/8", "https://127.9.9.9/"],
    ["::1", "https://[::1]/"],
    ["[::1]", "https://[::1]/"],
    ["fd00::/8", "https://[fd12::1]/"],
    ["8.8.8.8, 10.0.0.0/8 ,", "https://0xa000001/"],
    ["localhost", "https://localhost/"],
    ["LocalHost.", "https://localhost./"],
    ["127.0.0.1", "https://localhost/"],
    ["::1/128", "https://a.localhost/"],
    ["64:ff9b::/96", "https://[64:ff9b::8.8.8.8]/"],
    ["64:ff9b::/96,10.0.0.0/8", "https://[64:ff9b::10.0.0.1]/"]
  ])("%j allows %s", (allow, url) => assert.isUndefined(check(url, allow)))

  it.each([
    ["127.0.0.1", "https://127.0.0.2/"],
    ["10.0.0.0/8", "https://192.168.0.1/"],
    ["::/0", "https://127.0.0.1/"],
    ["0.0.0.0/0", "https://[::1]/"],
    ["example.com", "https://localhost/"],
    ["10.0.0.0/8", "https://localhost/"],
    ["127.0.0.0/8", "https://[::ffff:127.0.0.1]/"],
    ["64:ff9b::/96", "https://[64:ff9b::127.0.0.1]/"]
  ])("%j does not allow %s", (allow, url) => assert.isDefined(check(url, allow)))

  it.effect("allows a listed host, whatever it resolves to, and no other host", () =>
    Effect.gen(function* () {
      assert.isUndefined(
        yield* resolveAndCheck("https://hooks.internal/", ["10.0.0.1", "::1"], "hooks.internal")
      )
      assert.isDefined(
        yield* resolveAndCheck("https://other.internal/", ["10.0.0.1"], "hooks.internal")
      )
      assert.isDefined(
        yield* resolveAndCheck("https://a.hooks.internal/", ["10.0.0.1"], "hooks.internal")
      )
    })
  )

  it.effect("allows addresses in a listed CIDR, and a mixed result only if all are allowed", () =>
    Effect.gen(function* () {
      assert.isUndefined(
        yield* resolveAndCheck("https://a.test/", ["10.0.0.1", "8.8.8.8"], "10.0.0.0/8")
      )
      assert.isDefined(
        yield* resolveAndCheck("https://a.test/", ["10.0.0.1", "192.168.0.1"], "10.0.0.0/8")
      )
    })
  )

  it.each([
    ["https://example.com", "is a URL: write only the host"],
    ["*.example.com", "has a wildcard"],
    ["example.com:443", "leave out the port"],
    ["127.0.0.1:80", "leave out the port"],
    ["10.0.0.0/33", "is not a CIDR"],
    ["10.0.0/8", "is not a CIDR"],
    ["example.com/path", "is not a CIDR"],
    ["10.0.0.0/", "is not a CIDR"],
    ["fd00::/129", "is not a CIDR"],
    ["2130706433", "is an address in a short form: write 127.0.0.1"],
    ["exa mple", "is not a host name"],
    ["user@host", "is not a host name"],
    ["a?b", "is not a host name"],
    ["[::1", "is neither a host nor an address"]
  ])("%j is refused with the fault: %s", (entry, fault) => {
    const failure = Result.getOrThrow(Result.flip(parseEgressAllow(`localhost,${entry}`)))
    assert.strictEqual(failure.entry, entry)
    assert.include(failure.message, fault)
    assert.notInclude(failure.message, "\n")
  })
})

describe("a URL that is saved", () => {
  const save = (url: string, resolve: Resolve, allow = "") =>
    EgressGuard.use((guard) => guard.checkSaved(url, { schemes: ["https"] })).pipe(
      Effect.match({ onFailure: (error) => error.reason, onSuccess: () => undefined }),
      Effect.provide(guarded({ allow, resolve }))
    )
  const at =
    (...addresses: ReadonlyArray<string>): Resolve =>
    () =>
      Promise.resolve(addresses)
  const url = "https://hooks.example.com/"

  it.effect("is refused if no address of its host is public, without showing the addresses", () =>
    Effect.gen(function* () {
      for (const addresses of [["10.0.0.7"], ["127.0.0.1", "::1"], ["169.254.169.254"]]) {
        const reason = yield* save(url, at(...addresses))
        assert.strictEqual(reason, "the URL does not resolve to a public address")
      }
      assert.isUndefined(yield* save(url, at("1.1.1.1")))
      // Every connection attempt checks all of them
      assert.isUndefined(yield* save(url, at("1.1.1.1", "10.0.0.7")))
      assert.isUndefined(yield* save(url, at("10.0.0.7"), "10.0.0.0/8"))
      assert.isUndefined(yield* save(url, at("10.0.0.7"), "hooks.example.com"))
    })
  )

  it.effect("is accepted if its host does not resolve", () =>
    Effect.gen(function* () {
      assert.isUndefined(yield* save(url, () => Promise.reject(new Error("ENOTFOUND"))))
      assert.isUndefined(yield* save(url, at()))
    })
  )

  it.effect("is accepted if its host does not resolve within 2 seconds", () =>
    Effect.gen(function* () {
      const began = performance.now()
      let signal: AbortSignal | undefined
      const resolve: Resolve = (_, given) => {
        signal = given
        return new Promise(() => {})
      }
      assert.isUndefined(yield* save(url, resolve))
      assert.isTrue(signal?.aborted)
      const millis = performance.now() - began
      assert.isTrue(millis > 1900 && millis < 5000, `${millis} ms`)
    })
  )

  it.effect("is not resolved if its host is an address", () =>
    Effect.gen(function* () {
      let lookups = 0
      const resolve = () => {
        lookups += 1
        return Promise.resolve([])
      }
      assert.isUndefined(yield* save("https://1.1.1.1/", resolve))
      assert.isDefined(yield* save("https://10.0.0.1/", resolve))
      assert.strictEqual(lookups, 0)
    })
  )
})

describe("a URL in a spelling that parsers disagree on", () => {
  it.each([
    "https:\\\\host.example",
    "https:/\\host.example",
    "https:host.example",
    "https:/host.example",
    "https:///host.example",
    "https://host.example\\@other.example/",
    "https://host.example/a\\b",
    "https://@host.example/",
    "https://host.example:0/",
    " https://host.example/",
    "https://host.example:/"
  ])("%s is refused", (url) => assert.isDefined(check(url)))

  it.each([
    "https://host.example",
    "HTTPS://Host.Example/A?b=c#d",
    "https://host.example:8443/a//b?x=\\@:/",
    "https://host.example?x",
    "https://bücher.example/ü",
    "https://[2606:4700::1]:8443/"
  ])("%s is accepted", (url) => assert.isUndefined(check(url)))
})
