import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { TeardownOfProcess } from "./commands/serve.ts"
import { run, teardown } from "./Program.ts"
import { exitCode } from "./terminal/Fault.ts"

const { stderr, stdout } = globalThis.process

/**
 * Handles errors of stdout and stderr. If the reader of the output, such as `head`, is gone, the command ends as if by
 * SIGPIPE. Output that cannot be written for another reason, such as a full disk, is lost. A service continues in
 * either case.
 */
const endOn = (output: NodeJS.WriteStream) => (error: Error) => {
  if ("code" in error && error.code === "EPIPE") globalThis.process.exit(exitCode.brokenPipe)
  if (output === stdout) {
    stderr.write(
      `Error: The output cannot be written (${error.message}). Changes already made remain\n`
    )
  }
  globalThis.process.exit(exitCode.failed)
}
if (globalThis.process.argv[2] !== "serve") {
  for (const output of [stdout, stderr]) output.on("error", endOn(output))
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
