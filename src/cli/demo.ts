import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Layer, Option } from "effect"
import { certificateIn, defaultFolder } from "./demo/Certificate.ts"
import { Client } from "./demo/Client.ts"
import { printOutcome, Report } from "./demo/Report.ts"
import { runScenario } from "./demo/Scenario.ts"
import { orFault, runningTarget, startTarget } from "./demo/Target.ts"

/**
 * `npm run demo`: exercises tasks, webhooks and the wallet over HTTP, against a service that it starts or the one at
 * `GATEWAY_URL`. The exit status is 0 only if every check passed. ADR 0042.
 */
const demo = Effect.gen(function* () {
  const report = yield* Report
  const env = globalThis.process.env
  const url = env["GATEWAY_URL"]
  yield* report.heading("Generation Gateway: tasks, webhooks and wallet")
  const target = yield* url === undefined ? startTarget(env) : runningTarget(url, env)
  const scenario = runScenario(target).pipe(
    Effect.provide(Client.layer(target.baseUrl, target.serviceName)),
    Effect.exit
  )
  const exit = yield* Effect.scoped(scenario)
  if (Exit.isFailure(exit)) {
    const error = Cause.squash(exit.cause)
    const why = error instanceof Error ? error.message : Cause.pretty(exit.cause)
    yield* report.check("the demo completed", false, why)
  }
  const isComplete = yield* printOutcome
  if (!isComplete && Option.isSome(target.hint)) yield* Console.log(`\n${target.hint.value}`)
  return isComplete
})

/** `npm run demo -- --certificate`: creates the receiver's certificate, which a running service must trust. */
const certificateOnly = Effect.gen(function* () {
  const { rootFile } = yield* orFault(certificateIn(defaultFolder))
  yield* Console.log(`EGRESS_ALLOW=localhost NODE_EXTRA_CA_CERTS=${rootFile} npm start`)
  return true
})

const isCertificateOnly = globalThis.process.argv.includes("--certificate")

NodeRuntime.runMain(
  (isCertificateOnly ? certificateOnly : demo).pipe(
    Effect.scoped,
    Effect.tapError((error) => Console.error(error.message)),
    Effect.provide(Layer.merge(Report.layer, NodeServices.layer))
  ),
  {
    disableErrorReporting: true,
    teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) && exit.value === true ? 0 : 1)
  }
)
