import { stripVTControlCharacters } from "node:util"
import type { Reporter, SerializedError, TestModule } from "vitest/node"

/** Longest error text of a line, in characters. */
const errorLengthMax = 160

/**
 * Prints one line per failure after vitest's summary, because CI keeps only the last kilobyte of the output: failed
 * tests, suites and files that failed to load, files that did not end, and errors outside of tests.
 */
export class FailedTests implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<SerializedError>) {
    const lines = [
      ...modules.flatMap(failures),
      ...unhandled.map((error) => line("outside of tests", error))
    ]
    if (lines.length > 0) console.log(`${["Failed:", ...lines].join("\n")}\n`)
  }
}

const failures = (module: TestModule): ReadonlyArray<string> => {
  const file = module.relativeModuleId
  const suites = [module, ...module.children.allSuites()]
  return [
    ...(module.state() === "pending" ? [`${file}: did not end`] : []),
    ...suites.flatMap((suite) =>
      suite
        .errors()
        .map((error) => line(suite.type === "suite" ? `${file} > ${suite.fullName}` : file, error))
    ),
    ...Array.from(module.children.allTests("failed"), (test) =>
      line(`${file} > ${test.fullName}`, test.result().errors?.[0])
    )
  ]
}

const line = (place: string, error: SerializedError | undefined) => {
  const text = stripVTControlCharacters(error?.message || error?.name || "failed")
  return `${place}: ${(text.trim().split("\n")[0] ?? "").slice(0, errorLengthMax)}`
}
