import { Console, Context, Effect, Layer, Ref } from "effect"
import { styleText } from "node:util"

/** One check of the demo. */
export interface Check {
  readonly what: string
  readonly passed: boolean
  /** What was found if the check failed. */
  readonly detail: string
}

/** Prints the progress of the demo and collects its checks. */
export class Report extends Context.Service<
  Report,
  {
    readonly heading: (text: string) => Effect.Effect<void>
    readonly print: (text: string) => Effect.Effect<void>
    readonly check: (what: string, passed: boolean, detail?: string) => Effect.Effect<void>
    readonly checks: Effect.Effect<ReadonlyArray<Check>>
  }
>()("gateway/cli/demo/Report") {
  static readonly layer = Layer.effect(
    Report,
    Effect.gen(function* () {
      const checks = yield* Ref.make<ReadonlyArray<Check>>([])
      return Report.of({
        heading: (text) => Console.log(`\n${bold(text)}`),
        print: (text) => Console.log(`  ${text}`),
        check: (what, passed, detail = "") =>
          Ref.update(checks, (all) => [...all, { what, passed, detail }]),
        checks: Ref.get(checks)
      })
    })
  )
}

/** Prints the checks and returns whether all of them passed. */
export const printOutcome = Effect.gen(function* () {
  const report = yield* Report
  const checks = yield* report.checks
  const failed = checks.filter((it) => !it.passed)
  yield* report.heading("Checks")
  for (const it of checks) yield* report.print(line(it))
  yield* Console.log(
    failed.length === 0
      ? `\n${green(`All ${checks.length} checks passed.`)}`
      : `\n${red(`${failed.length} of ${checks.length} checks FAILED.`)}`
  )
  return failed.length === 0
})

const line = ({ detail, passed, what }: Check): string =>
  passed ? `${green("✓")} ${what}` : `${red("✗")} ${what}${detail === "" ? "" : `: ${detail}`}`

const bold = (text: string) => styleText("bold", text)
const green = (text: string) => styleText("green", text)
const red = (text: string) => styleText("red", text)
