import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import type { Logger as LoggerType } from "effect/Logger"
import * as fc from "fast-check"
import { formatJson, formatPretty } from "../../../src/cli/PrettyLog.ts"
import { anyText } from "../../support/anyText.ts"

/** docs/reference/configuration.md#logging */

const logged = (
  format: LoggerType<unknown, string>,
  log: Effect.Effect<void>
): Effect.Effect<string> =>
  Effect.suspend(() => {
    const entries: Array<string> = []
    const logger = Logger.make((options) => {
      entries.push(format.log(options))
    })
    return Effect.provide(log, Logger.layer([logger])).pipe(
      Effect.map(() => {
        assert.lengthOf(entries, 1)
        return entries[0]!
      })
    )
  })

const forged = "\n[12:00:00.000] INFO (#1): forged \u001b[31m\r\u009b2J\u2028\u202e\u0000\u0007"

/** Each way in which text from outside gets into a log entry. */
const ways: Readonly<Record<string, (text: string) => Effect.Effect<void>>> = {
  message: (text) => Effect.logWarning(`The vendor says ${text}`),
  "second message": (text) => Effect.logWarning("The vendor says", text),
  object: (text) => Effect.logWarning({ says: text, [text]: 1 }),
  error: (text) => Effect.logWarning("It failed", new Error(text)),
  cause: (text) =>
    Effect.catchCause(Effect.die(new Error(text)), (cause) => Effect.logError("It failed", cause)),
  annotation: (text) =>
    Effect.annotateLogs(Effect.logInfo("Vendor"), { requestId: text, [text]: 2 }),
  span: (text) => Effect.withLogSpan(Effect.logInfo("Vendor"), text)
}

const visible = (text: string) => text.replaceAll("\n", "")
const controls = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u

describe("LOG_FORMAT", () => {
  for (const [way, log] of Object.entries(ways)) {
    it.effect(`pretty: a ${way} cannot forge a line or control the terminal`, () =>
      Effect.gen(function* () {
        const [first = "", ...rest] = (yield* logged(formatPretty, log(forged))).split("\n")
        assert.match(first, /^\[\d\d:\d\d:\d\d\.\d{3}\] [A-Z]+ \(#?\d+\)/u)
        for (const line of rest) assert.match(line, /^ {2}/u)
        assert.notMatch([first, ...rest].map(visible).join(""), controls)
      })
    )

    it.effect(`json: a ${way} is one line without control characters, with the whole text`, () =>
      Effect.gen(function* () {
        const line = yield* logged(formatJson, log(forged))
        assert.notMatch(line, controls)
        assert.include(JSON.stringify(JSON.parse(line)), JSON.stringify("\u001b[31m").slice(1, -1))
      })
    )
  }

  it.effect("pretty: any text stays within its entry", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(anyText, async (text) => {
          const entry = await Effect.runPromise(
            logged(formatPretty, Effect.logInfo("a", { text }, text))
          )
          for (const line of entry.split("\n").slice(1)) assert.match(line, /^ {2}/u)
          assert.notMatch(visible(entry), controls)
        })
      )
    )
  )

  it.effect("pretty: a plain entry is one line", () =>
    Effect.gen(function* () {
      const entry = yield* logged(formatPretty, Effect.logInfo("Listening on http://0.0.0.0:8080"))
      assert.match(entry, /^\[[\d:.]{12}\] INFO \(#?\d+\): Listening on http:\/\/0\.0\.0\.0:8080$/u)
    })
  )
})
