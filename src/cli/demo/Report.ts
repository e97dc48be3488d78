import { Console, Context, Effect, Layer, Ref } from "effect"

/** One thing that the demo promised to show. */
export interface Check {
  readonly what: string
  readonly seen: boolean
  /** What was there instead, when it was not seen. */
  readonly detail: string
}

/** What the demo has shown so far; its exit status is 0 only if all of it was seen. */
export class Report extends Context.Service<
  Report,
  {
    readonly heading: (text: string) => Effect.Effect<void>
    readonly say: (text: string) => Effect.Effect<void>
    /** Notes that something was seen, or what was there instead. */
    readonly check: (what: string, seen: boolean, detail?: string) => Effect.Effect<void>
    readonly checks: Effect.Effect<ReadonlyArray<Check>>
  }
>()("gateway/cli/demo/Report") {
  static readonly layer = Layer.effect(
    Report,
    Effect.gen(function* () {
      const checks = yield* Ref.make<ReadonlyArray<Check>>([])
      return Report.of({
        heading: (text) => Console.log(`\n${bold(text)}`),
        say: (text) => Console.log(`  ${text}`),
        check: (what, seen, detail = "") =>
          Ref.update(checks, (all) => [...all, { what, seen, detail }]),
        checks: Ref.get(checks)
      })
    })
  )
}

/** Prints the list of what was seen and what not; answers whether all was. */
export const printOutcome = Effect.gen(function* () {
  const report = yield* Report
  const checks = yield* report.checks
  const missing = checks.filter((it) => !it.seen)
  yield* report.heading("What was seen")
  for (const it of checks) yield* report.say(line(it))
  yield* Console.log(
    missing.length === 0
      ? `\n${green(`All ${checks.length} points were seen.`)}`
      : `\n${red(`${missing.length} of ${checks.length} points were NOT seen.`)}`
  )
  return missing.length === 0
})

const line = ({ detail, seen, what }: Check): string =>
  seen ? `${green("✓")} ${what}` : `${red("✗")} ${what}${detail === "" ? "" : `: ${detail}`}`

const isTerminal =
  globalThis.process.stdout.isTTY && globalThis.process.env["NO_COLOR"] === undefined
const paint = (code: number) => (text: string) =>
  isTerminal ? `\u001b[${code}m${text}\u001b[0m` : text
const bold = paint(1)
const green = paint(32)
const red = paint(31)
