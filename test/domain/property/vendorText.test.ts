import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { hideSecrets, sanitize } from "../../../src/domain/VendorText.ts"
import { anyText } from "../../support/anyText.ts"
import { cpuMillis } from "../../support/cpuTime.ts"

/** docs/reference/errors.md#vendor-messages */

const letters = "abcdefghijklmnopqrstuvwxyz"
const mixed = [...letters, ...letters.toUpperCase(), ..."0123456789"]
const of = (units: ReadonlyArray<string>, minLength: number, maxLength = minLength) =>
  fc.string({ unit: fc.constantFrom(...units), minLength, maxLength })
const word = (min: number, max = min) => of(mixed, min, max)
const hex = (length: number) => of([..."0123456789abcdef"], length)
const digits = (min: number, max = min) =>
  fc
    .tuple(of([..."123456789"], 1), of([..."0123456789"], min - 1, max - 1))
    .map(([first, rest]) => first + rest)
/** A random part that contains a digit, like keys. */
const key = (min: number, max = min) =>
  fc.tuple(word(min, max), digits(1)).map(([text, digit]) => `${text.slice(1)}${digit}`)
const with_ = (prefix: string, part: fc.Arbitrary<string>) => part.map((it) => `${prefix}${it}`)
const uuid = fc.tuple(hex(8), hex(4), hex(4), hex(4), hex(12)).map((parts) => parts.join("-"))

/** A text, and the part of it that must not be shown. */
interface Planted {
  readonly text: string
  readonly secret: string
}
const alone = (secret: fc.Arbitrary<string>): fc.Arbitrary<Planted> =>
  secret.map((it) => ({ text: it, secret: it }))
const within = (before: string, secret: fc.Arbitrary<string>, after = ""): fc.Arbitrary<Planted> =>
  secret.map((it) => ({ text: `${before}${it}${after}`, secret: it }))

const shapes: Readonly<Record<string, fc.Arbitrary<Planted>>> = {
  "OpenAI's key": alone(with_("sk-", word(20, 48))),
  "OpenAI's project key": alone(with_("sk-proj-", word(20, 120))),
  "OpenAI's masked key": alone(
    with_("sk-proj-", word(4)).map((it) => `${it}********************abcd`)
  ),
  "OpenAI's service key": alone(with_("sk-svcacct-", word(20, 60))),
  "OpenAI's ephemeral key": alone(with_("ek_", key(20))),
  "OpenAI's session": alone(with_("sess-", word(30))),
  "OpenAI's organization": alone(with_("org-", word(8, 28))),
  "OpenAI's project": alone(with_("proj_", word(8, 28))),
  "Anthropic's key": alone(with_("sk-ant-api03-", word(40, 95))),
  "Anthropic's workspace": alone(with_("wrkspc_", word(24))),
  "Anthropic's organization": within("organization ID: ", uuid),
  "Google's key": alone(with_("AIzaSy", word(33))),
  "Google's newer key": alone(with_("AQ.Ab8", word(40))),
  "Google's token": alone(with_("ya29.", word(60))),
  "Google's refresh token": alone(with_("1//0", word(40))),
  "Google's project": within("projects/", digits(8, 12)),
  "Google's project number": within("project_number:", digits(10, 12)),
  "Google's service account": alone(
    word(6).map((it) => `${it.toLowerCase()}@my-project-123.iam.gserviceaccount.com`)
  ),
  "DashScope's key": alone(with_("sk-", hex(32))),
  "DashScope's workspace": alone(with_("ws-", word(10, 20))),
  "Alibaba's account": within("uid: ", digits(16)),
  "Alibaba's access key": alone(with_("LTAI", word(20))),
  "Alibaba's resource": alone(digits(16).map((it) => `acs:ram::${it}:user/name`)),
  "fal's key": alone(fc.tuple(uuid, hex(32)).map(([id, part]) => `${id}:${part}`)),
  "fal's header": within(
    "Authorization: Key ",
    fc.tuple(uuid, hex(32)).map((it) => it.join(":"))
  ),
  "Replicate's key": alone(with_("r8_", word(37))),
  "AWS's key": alone(with_("AKIA", of([...letters.toUpperCase(), ..."0123456789"], 16))),
  "a bearer": within("Bearer ", key(12, 60)),
  "a header": within("x-api-key: ", key(10, 40)),
  "a key in words": within("Incorrect API key provided: ", key(8, 40), ". You can find"),
  "a key in a query": within("/v1/models?key=", word(6, 40), "&alt=sse"),
  "a key by itself": within("key=", word(6, 40)),
  "a token of JSON": within('{"access_token":"', key(8, 40), '"}'),
  "a password": within("password=", word(6, 20)),
  "a JSON web token": alone(
    fc.tuple(word(20), word(40), word(20)).map((parts) => `eyJ${parts.join(".")}`)
  ),
  "an account number": within("account ", digits(6, 16)),
  "a long number": alone(digits(12, 20)),
  "a number in groups": alone(
    fc.tuple(digits(4), digits(4), digits(4)).map((parts) => parts.join("-"))
  ),
  "a hash": alone(hex(32)),
  "a user in a URL": within("postgres://", key(8), ":pw@db.example.com/x"),
  "a signed URL": within("https://bucket.example.com/a.png?X-Amz-Signature=", hex(64), "&x=1"),
  "a URL signed by OSS": within("https://oss.example.com/a?OSSAccessKeyId=x&Signature=", key(20)),
  "a fragment": within("https://example.com/a#", key(8)),
  "an escaped URL": within("https:\\/\\/example.com\\/a?sig=", key(8)),
  "a private IPv4": alone(
    fc
      .tuple(
        fc.constantFrom("10.0", "192.168", "172.16", "127.0", "169.254"),
        fc.nat(255),
        fc.nat(255)
      )
      .map((parts) => parts.join("."))
  ),
  "an address and its port": alone(fc.nat(255).map((last) => `10.1.2.${last}:8443`)),
  "an IPv6": alone(hex(4).map((it) => `fd12:3456:789a:1::${it}`)),
  "a full IPv6": alone(hex(4).map((it) => `fe80:0:0:0:1:2:3:${it}`)),
  "a name within": alone(
    fc
      .tuple(word(5), fc.constantFrom("internal", "local", "svc.cluster.local", "lan", "corp"))
      .map(([name, zone]) => `${name.toLowerCase()}.${zone}`)
  ),
  "a URL within": alone(with_("http://backend", digits(1)).map((it) => `${it}:8080`)),
  "a PEM": alone(
    word(64).map((it) => `-----BEGIN PRIVATE KEY-----\n${it}\n-----END PRIVATE KEY-----`)
  )
}

/** What may surround it: an end of the text, spaces, quotes, punctuation. */
const around = fc.constantFrom<readonly [string, string]>(
  ["", ""],
  ["The vendor says ", " and no more"],
  ['{"message":"', '"}'],
  ["(", ")"],
  ["'", "'"],
  ["Fault: ", "."],
  ["Fault:\n", "\n\u001b[31mred"],
  ["<b>", "</b>"],
  ["[", "]"]
)

describe("a vendor's text", () => {
  for (const [name, shape] of Object.entries(shapes)) {
    it(`shows no part of ${name}`, () => {
      fc.assert(
        fc.property(shape, around, ({ secret, text }, [before, after]) => {
          const shown = hideSecrets(`${before}${text}${after}`)
          assert.notInclude(shown, secret)
          // Not even a large part of it
          for (let at = 0; at + 12 <= secret.length; at += 1) {
            const part = secret.slice(at, at + 12)
            if (/\d/u.test(part)) assert.notInclude(shown, part, shown)
          }
        }),
        { numRuns: 60 }
      )
    })
  }

  it("shows none of several secrets of any shape, and is unchanged by a second pass", () => {
    const any = fc.oneof(...Object.values(shapes))
    fc.assert(
      fc.property(fc.array(any, { minLength: 1, maxLength: 5 }), (planted) => {
        const shown = hideSecrets(planted.map(({ text }) => text).join(" and "))
        for (const { secret } of planted) {
          assert.notInclude(shown, secret)
        }
        assert.strictEqual(hideSecrets(shown), shown)
      }),
      { numRuns: 500 }
    )
  })

  it("has no control characters, no invisible ones and no lone surrogates", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const shown = sanitize(`a\u0000\u001b]0;b\u0007\r\n\u202e\u2028\u009b${text}`, 500)
        assert.notMatch(shown, /[\p{Cc}\p{Cf}\u2028\u2029]/u)
        assert.isTrue(shown.isWellFormed())
        assert.isAtMost([...shown].length, 500)
      })
    )
  })

  it("does not show a secret that invisible characters split", () => {
    assert.notInclude(hideSecrets("sk-proj-\u200babcdefgh\u200b12345678"), "12345678")
  })

  it("keeps what is useful to a client", () => {
    for (const text of [
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens.",
      "Invalid value: 'xyz'. Supported values are: 'low', 'medium', and 'high'.",
      "max_tokens: 8193 is above the maximum of 8192; set max_tokens=8192",
      "seed must be between 0 and 4294967295",
      "Rate limit reached for gpt-4o-2024-08-06 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 1.5s.",
      "messages.1.content.0.image.source.base64.data: image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes",
      "Unknown parameter: 'messages[0].foo'. See https://platform.openai.com/docs/guides/errors/api-errors.",
      "fal-ai/flux-pro/v1.1-ultra does not take num_images above 4, see claude-sonnet-4-5-20250929 at 12:30:45 on 2026-11-22",
      "Total tokens: 4096; the width and the height must be divisible by 16",
      "图片尺寸必须是 1664*928, size should be 1328*1328"
    ]) {
      assert.strictEqual(hideSecrets(text), text)
    }
  })

  it("is processed in linear time", () => {
    const nasty = [
      "a/",
      "api-",
      "a.",
      "key ",
      "sk",
      "::",
      "1.",
      "0:",
      "https://",
      "-----BEGIN A-----",
      "eyJ",
      "@a.",
      "a-",
      "a1+",
      "key:",
      "org ",
      "AQ.",
      "\\/"
    ]
    const times = nasty.map((it) => {
      const text = it.repeat(Math.ceil(64_000 / it.length))
      const began = cpuMillis()
      hideSecrets(text)
      return [it, cpuMillis() - began] as const
    })
    for (const [it, millis] of times) assert.isBelow(millis, 1500, it)
  })
})
