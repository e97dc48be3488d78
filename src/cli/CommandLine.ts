import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { TeardownOfProcess } from "./commands/serve.ts"
import { run, teardown } from "./Program.ts"
import { exitCode } from "./terminal/Fault.ts"

/** Who read the output is gone, such as `head`: the command ends as SIGPIPE ends one. A service goes on. */
const brokenPipe = (error: Error): void => {
  if (!("code" in error) || error.code !== "EPIPE") throw error
  globalThis.process.exit(exitCode.brokenPipe)
}
if (globalThis.process.argv[2] !== "serve") {
  for (const output of [globalThis.process.stdout, globalThis.process.stderr]) {
    output.on("error", brokenPipe)
  }
}

let end = teardown

NodeRuntime.runMain(
  run(globalThis.process.argv.slice(2)).pipe(
    Effect.provideService(TeardownOfProcess, (ofService) => {
      end = ofService
    }),
    Effect.provide(Layer.merge(NodeServices.layer, FetchHttpClient.layer))
  ),
  { disableErrorReporting: true, teardown: (exit, onExit) => end(exit, onExit) }
)
