import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Console, Effect, Layer } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { FetchHttpClient } from "effect/http"
import { run, teardown } from "../../src/cli/Program.ts"
import { ProgressTarget } from "../../src/cli/terminal/Progress.ts"

/** The output of a command, and its exit code. */
export interface Ran {
  readonly code: number
  readonly out: string
  readonly error: string
}

/** Runs a command of `gateway` in this process. `onOut` and `onError` receive each line of stdout and stderr. */
export const runCommand = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  onOut: (line: string) => void = () => {},
  onError: (line: string) => void = () => {}
): Effect.Effect<Ran> =>
  Effect.gen(function* () {
    const out: Array<string> = []
    const error: Array<string> = []
    const console = {
      ...globalThis.console,
      log: (line: string = "") => {
        out.push(line)
        onOut(line)
      },
      error: (line: string = "") => {
        error.push(line)
        onError(line)
      }
    }
    const exit = yield* Effect.exit(run(args)).pipe(
      Effect.provideService(Console.Console, console),
      Effect.provideService(ProgressTarget, {
        isLive: false,
        write: (text) => void error.push(text)
      }),
      Effect.provideService(TerminalCapabilities.TerminalCapabilities, {
        canColor: false,
        canAnimate: false,
        canPrompt: false
      }),
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })),
      Effect.provide(Layer.merge(NodeServices.layer, FetchHttpClient.layer))
    )
    let code = -1
    teardown(exit, (it) => {
      code = it
    })
    return { code, out: out.join("\n"), error: error.join("\n") }
  })

/** The service's settings, which commands on its machine read. */
export const withEnvironment = (env: Record<string, string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = { ...process.env }
      Object.assign(process.env, env)
      return before
    }),
    (before) =>
      Effect.sync(() => {
        for (const name of Object.keys(env)) {
          if (before[name] === undefined) delete process.env[name]
          else process.env[name] = before[name]
        }
      })
  )
